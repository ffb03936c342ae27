//! The tasks of a node.

use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use ratchet_core::Clock;
use ratchet_core::coordinator::ListenGuard;
use ratchet_core::store::WatchGuard;
use tokio::sync::watch;
use tokio::task::{AbortHandle, JoinSet};
use tokio_util::sync::CancellationToken;

use crate::guard::{self, GuardedCode};
use crate::job_log::LogQueue;
use crate::observe::stats::{Counters, Loop};
use crate::pump::ShutdownLeftovers;
use crate::upkeep::heartbeat::Standing;
use crate::upkeep::{Upkeep, supervised};

/// The tasks of a node; dropping them ends them. Each is a [`Loop`], so that nothing runs without a name.
pub(crate) struct Tasks {
    counters: Arc<Counters>,
    clock: Arc<dyn Clock>,
    standing: watch::Receiver<Standing>,
    pump: JoinSet<ShutdownLeftovers>,
    pump_handle: Option<AbortHandle>,
    side: JoinSet<()>,
    log_writer: JoinSet<()>,
    listeners: JoinSet<()>,
    pub(crate) stop_listening: CancellationToken,
    pub(crate) logs: Option<Arc<LogQueue>>,
    pub(crate) watch: Option<WatchGuard>,
    pub(crate) hints: Option<ListenGuard>,
}

/// How long a stopping node waits for its event listeners.
const LISTENERS_MAX: Duration = Duration::from_secs(5);

impl Tasks {
    pub(crate) fn new(counters: Arc<Counters>, clock: Arc<dyn Clock>, standing: watch::Receiver<Standing>) -> Self {
        Self {
            counters,
            clock,
            standing,
            pump: JoinSet::new(),
            pump_handle: None,
            side: JoinSet::new(),
            log_writer: JoinSet::new(),
            listeners: JoinSet::new(),
            stop_listening: CancellationToken::new(),
            logs: None,
            watch: None,
            hints: None,
        }
    }

    /// Starts a loop. A panic that the loop does not catch by itself ends it, and is logged and counted under its name.
    pub(crate) fn add(&mut self, which: Loop, task: impl Future<Output = ()> + Send + 'static) {
        // Here and not in the task: a loop that never reaches its first success is missed too.
        self.counters.last_success.begin(which, self.clock.now());
        let tasks = match which {
            Loop::LogWriter => &mut self.log_writer,
            Loop::Listeners => &mut self.listeners,
            _ => &mut self.side,
        };
        let meter = self.counters.meter.clone();
        let code = GuardedCode { name: which.as_str(), instead: "the loop has ended" };
        tasks.spawn(async move {
            let _ = guard::run(&meter, code, task).await;
        });
    }

    /// Starts a loop beside the pump.
    pub(crate) fn add_upkeep<U: Upkeep + 'static>(&mut self, upkeep: U) {
        let (standing, counters, clock) = (self.standing.clone(), self.counters.clone(), self.clock.clone());
        self.add(U::LOOP, supervised(upkeep, standing, counters, clock));
    }

    /// Starts the pump. If it panics, `stop_heartbeat` is called, and others take the node's jobs after the grace.
    pub(crate) fn add_pump(
        &mut self,
        pump: impl Future<Output = ShutdownLeftovers> + Send + 'static,
        stop_heartbeat: impl FnOnce() + Send + 'static,
    ) {
        let meter = self.counters.meter.clone();
        self.pump_handle = Some(self.pump.spawn(async move {
            guard::run(&meter, Loop::Turn.guarded(), pump).await.unwrap_or_else(|_| {
                // A fault of our own. A node that beats but runs nothing would keep its jobs from being rescued. It stays
                // registered, because threads of its handlers may still run with permits.
                stop_heartbeat();
                ShutdownLeftovers::HeldPermits
            })
        }));
    }

    /// The pump's task.
    pub(crate) fn pump_handle(&self) -> AbortHandle {
        self.pump_handle.clone().expect("a node has a pump")
    }

    /// Waits until the pump has drained, and ends the loops beside it.
    pub(crate) async fn drained(&mut self) -> ShutdownLeftovers {
        let mut left = ShutdownLeftovers::Nothing;
        while let Some(ended) = self.pump.join_next().await {
            left = ended.unwrap_or(ShutdownLeftovers::HeldPermits);
        }
        self.side.shutdown().await;
        left
    }

    /// Writes the lines of jobs' logs that wait, for as long as one transaction may take.
    pub(crate) async fn flush_logs(&mut self, deadline: Duration) {
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
    pub(crate) async fn end_listeners(&mut self) {
        self.stop_listening.cancel();
        let heard = async { while self.listeners.join_next().await.is_some() {} };
        if tokio::time::timeout(LISTENERS_MAX, heard).await.is_err() {
            tracing::warn!("event listeners were too slow to hear of everything before the end");
        }
    }
}
