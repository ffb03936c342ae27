//! The tasks of a node.

use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use ratchet_core::coordinator::ListenGuard;
use ratchet_core::store::WatchGuard;
use ratchet_core::{Hint, Retention};
use tokio::task::{AbortHandle, JoinSet};
use tokio_util::sync::CancellationToken;

use crate::batch::Canceler;
use crate::client::insight::Gauges;
use crate::guard::{self, GuardedCode};
use crate::job_log::{JobLogs, LogQueue, LogWriter, StoreSink};
use crate::node::context::NodeContext;
use crate::observe::bus::{EventStream, Listener, listen};
use crate::observe::stats::Loop;
use crate::protect::breaker_orders::BreakerOrders;
use crate::pump::{Pump, ShutdownLeftovers};
use crate::retention::Archiver;
use crate::schedule::{Declarations, Firer};
use crate::upkeep::rescue::Rescuer;
use crate::upkeep::service_watch::ServiceWatch;
use crate::upkeep::signal_limit::SignalLimit;
use crate::upkeep::{Upkeep, loop_watch, supervised};

/// The tasks of a node; dropping them ends them. Each is a [`Loop`], so that nothing runs without a name.
#[derive(Default)]
pub(super) struct Tasks {
    pump: JoinSet<ShutdownLeftovers>,
    pump_handle: Option<AbortHandle>,
    side: JoinSet<()>,
    log_writer: JoinSet<()>,
    logs: Option<Arc<LogQueue>>,
    listeners: JoinSet<()>,
    stop_listening: CancellationToken,
    pub(super) watch: Option<WatchGuard>,
    pub(super) hints: Option<ListenGuard>,
}

/// How long a stopping node waits for its event listeners.
const LISTENERS_MAX: Duration = Duration::from_secs(5);

impl Tasks {
    /// Starts a loop. A panic that the loop does not catch by itself ends it, and is logged and counted under its name.
    fn add(&mut self, node: &NodeContext, which: Loop, task: impl Future<Output = ()> + Send + 'static) {
        // Here and not in the task: a loop that never reaches its first success is missed too.
        node.counters.last_success.begin(which, node.clock.now());
        let tasks = match which {
            Loop::LogWriter => &mut self.log_writer,
            Loop::Listeners => &mut self.listeners,
            _ => &mut self.side,
        };
        let meter = node.meter().clone();
        let code = GuardedCode { name: which.as_str(), instead: "the loop has ended" };
        tasks.spawn(async move {
            let _ = guard::run(&meter, code, task).await;
        });
    }

    /// Gives each listener a task and a stream of its own.
    pub(super) fn spawn_listeners<E: Send + Sync + 'static>(
        &mut self,
        node: &NodeContext,
        listeners: Vec<Listener<E>>,
        events: impl Fn() -> EventStream<E>,
    ) {
        for listener in listeners {
            let listening = listen(events(), listener, self.stop_listening.clone(), node.meter().clone());
            self.add(node, Loop::Listeners, listening);
        }
    }

    /// Starts the loops beside the pump.
    pub(super) fn spawn_upkeep(
        &mut self,
        node: &NodeContext,
        services: ServiceWatch,
        orders: BreakerOrders,
        declarations: Declarations,
        retention: Retention,
    ) {
        self.add(node, Loop::ServiceWatch, services.run());
        self.add(node, Loop::Watch, loop_watch::tell(node.clone()));
        self.supervise(node, Rescuer::new(node.clone()));
        self.supervise(node, Firer::new(node.clone(), declarations));
        self.supervise(node, SignalLimit::new(node.clone()));
        self.supervise(node, Canceler::new(node.clone()));
        self.supervise(node, orders);
        if !retention.keeps_everything() {
            self.supervise(node, Archiver::new(node.clone(), retention));
        }
        self.supervise(node, Gauges::new(node.clone()));
    }

    fn supervise<U: Upkeep + 'static>(&mut self, node: &NodeContext, upkeep: U) {
        self.add(node, U::LOOP, supervised(upkeep, node.clone()));
    }

    /// Starts the task that writes jobs' logs, and returns the queue that it writes from.
    pub(super) fn spawn_log_writer(&mut self, node: &NodeContext, logs: JobLogs) -> Arc<LogQueue> {
        // The writer has a deadline of its own, whatever the sink.
        let sink = logs.sink.clone().unwrap_or_else(|| Arc::new(StoreSink(node.client.store().clone())));
        let queue = LogQueue::new(logs, node.counters.clone());
        let writer = LogWriter { queue: queue.clone(), sink, deadline: node.timing.store_deadline };
        self.add(node, Loop::LogWriter, writer.run());
        self.logs = Some(queue.clone());
        queue
    }

    /// Wakes the pump when the store or another node reports new work.
    pub(super) fn watch_for_work(&mut self, node: &NodeContext) {
        let woken = node.client.clone();
        self.watch = node.store.watch(Box::new(move || woken.wake().work()));
        let (woken, counters) = (node.client.clone(), node.counters.clone());
        let heard = move |_: &Hint| {
            counters.hints.add(1);
            woken.wake().work();
        };
        // Without hints the node finds work by polling.
        self.hints = node.client.coordinator().and_then(|coordinator| {
            let listen = || coordinator.listen(node.client.origin(), Box::new(heard));
            guard::call(node.meter(), guard::COORDINATOR, listen).ok()
        });
    }

    /// Starts the pump. Should it panic, the heartbeat is stopped too.
    pub(super) fn spawn_pump(
        &mut self,
        node: &NodeContext,
        pump: Pump,
        stop_heartbeat: impl FnOnce() + Send + 'static,
    ) {
        let meter = node.meter().clone();
        let running = async move {
            guard::run(&meter, Loop::Turn.guarded(), pump.run()).await.unwrap_or_else(|_| {
                // A fault of our own. A node that beats but runs nothing would keep its jobs from being rescued. It stays
                // registered, because threads of its handlers may still run with permits.
                stop_heartbeat();
                ShutdownLeftovers::HeldPermits
            })
        };
        self.pump_handle = Some(self.pump.spawn(running));
    }

    /// The pump's task.
    pub(super) fn pump_handle(&self) -> AbortHandle {
        self.pump_handle.clone().expect("a node has a pump")
    }

    /// Waits until the pump has drained, and ends the loops beside it.
    pub(super) async fn drained(&mut self) -> ShutdownLeftovers {
        let mut left = ShutdownLeftovers::Nothing;
        while let Some(ended) = self.pump.join_next().await {
            left = ended.unwrap_or(ShutdownLeftovers::HeldPermits);
        }
        self.side.shutdown().await;
        left
    }

    /// Writes the lines of jobs' logs that wait, for as long as one transaction may take.
    pub(super) async fn flush_logs(&mut self, deadline: Duration) {
        let Some(logs) = self.logs.take() else { return };
        logs.close();
        let written = async { while self.log_writer.join_next().await.is_some() {} };
        if tokio::time::timeout(deadline, written).await.is_err() {
            let lines = logs.len();
            logs.lost(lines);
            tracing::warn!(lines, "jobs' logs could not be written before the end; the last lines are lost");
        }
    }

    /// Lets listeners have the last events, and ends them.
    pub(super) async fn end_listeners(&mut self) {
        self.stop_listening.cancel();
        let heard = async { while self.listeners.join_next().await.is_some() {} };
        if tokio::time::timeout(LISTENERS_MAX, heard).await.is_err() {
            tracing::warn!("event listeners were too slow to hear of everything before the end");
        }
    }
}
