//! The heartbeat: on a thread and a runtime of its own, so that a blocked executor does not kill the node.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use ratchet_core::node::NodeRegistration;
use ratchet_core::store::HeartbeatStore;
use ratchet_core::{NodeId, StoreError};
use tokio::sync::{oneshot, watch};
use tokio_util::sync::CancellationToken;
use tracing::Instrument as _;

use crate::guard::{self, GuardedCode};
use crate::node::context::NodeContext;
use crate::node::ids::new_node_id;
use crate::observe::stats::Loop;
use crate::upkeep::clock_skew::{MEASURE_EVERY, ROUND_TRIP_MAX, SkewWarning, skew_us};
use crate::upkeep::heartbeat_interval::next_interval;

/// What the heartbeat knows of the node's standing.
#[derive(Debug, Clone)]
pub(crate) struct Standing {
    /// The present incarnation.
    pub(crate) node: NodeId,
    /// Since when this incarnation has been heard without a gap that others could have noticed.
    pub(crate) alive_since: Instant,
    /// The node has not been heard for two thirds of its grace: others may soon take its jobs, so it must stop them.
    pub(crate) fenced: bool,
    /// The right to run jobs: canceled from the heartbeat's own thread, so that it ends on time whatever the pump does.
    pub(crate) right: CancellationToken,
}

impl Standing {
    /// The standing of an incarnation that registers now.
    pub(crate) fn of(node: NodeId) -> Self {
        Self { node, alive_since: Instant::now(), fenced: false, right: CancellationToken::new() }
    }
}

/// The running heartbeat; dropping it ends the thread.
#[derive(Debug)]
pub(crate) struct Heartbeat {
    stop: Arc<AtomicBool>,
    thread: Option<std::thread::JoinHandle<()>>,
}

/// What the heartbeat's thread begins with.
struct Beating {
    node: NodeContext,
    registration: NodeRegistration,
    publish: watch::Sender<Standing>,
}

impl Heartbeat {
    /// Registers the node and begins to beat; returns after the first success.
    pub(crate) async fn start(
        node: NodeContext,
        publish: watch::Sender<Standing>,
        registration: NodeRegistration,
    ) -> Result<Self, StoreError> {
        node.counters.last_success.begin(Loop::Heartbeat, node.clock.now());
        node.counters.last_success.waits(Loop::Heartbeat, node.timing.heartbeat);
        let beating = Beating { node, registration, publish };
        let stop = Arc::new(AtomicBool::new(false));
        let (ready, first) = oneshot::channel();
        let stopped = stop.clone();
        let thread = std::thread::Builder::new()
            .name("ratchet-heartbeat".to_owned())
            .spawn(move || beat_until_stopped(beating, ready, &stopped))
            .map_err(|error| {
                let problem = "the operating system refused a thread for the heartbeat";
                StoreError::new(ratchet_core::ErrorKind::Unavailable, "starting the node", problem).with_source(error)
            })?;
        first.await.unwrap_or_else(|_| {
            let problem = "the heartbeat thread ended before its first beat";
            Err(StoreError::new(ratchet_core::ErrorKind::Unavailable, "starting the node", problem))
        })?;
        Ok(Self { stop, thread: Some(thread) })
    }

    /// Ends the heartbeat from elsewhere, without waiting.
    pub(crate) fn stopper(&self) -> impl Fn() + Send + Sync + 'static {
        let (stop, thread) = (self.stop.clone(), self.thread.as_ref().map(|thread| thread.thread().clone()));
        move || {
            stop.store(true, Ordering::Release);
            if let Some(thread) = &thread {
                thread.unpark();
            }
        }
    }

    /// Ends the heartbeat and waits for its thread.
    pub(crate) async fn stop(mut self) {
        self.stop.store(true, Ordering::Release);
        if let Some(thread) = self.thread.take() {
            thread.thread().unpark();
            let _ = tokio::task::spawn_blocking(move || thread.join()).await;
        }
    }
}

impl Drop for Heartbeat {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Release);
        if let Some(thread) = &self.thread {
            thread.thread().unpark();
        }
    }
}

type Ready = oneshot::Sender<Result<(), StoreError>>;

fn beat_until_stopped(beating: Beating, ready: Ready, stop: &AtomicBool) {
    let Beating { node, registration, publish } = beating;
    let runtime = match tokio::runtime::Builder::new_current_thread().enable_all().build() {
        Ok(runtime) => runtime,
        Err(error) => {
            let problem = "the operating system refused a runtime for the heartbeat";
            let error =
                StoreError::new(ratchet_core::ErrorKind::Unavailable, "starting the node", problem).with_source(error);
            let _ = ready.send(Err(error));
            return;
        }
    };
    let opened = runtime.block_on(async {
        let mut heartbeat = node.store.open_heartbeat().await?;
        heartbeat.register(&registration).await?;
        Ok(heartbeat)
    });
    let heartbeat = match opened {
        Ok(heartbeat) => heartbeat,
        Err(error) => {
            let _ = ready.send(Err(error));
            return;
        }
    };
    let standing = Standing::of(registration.id);
    publish.send_replace(standing.clone());
    if ready.send(Ok(())).is_err() {
        return;
    }
    let mut beater = Beater {
        heard: standing.alive_since,
        interval: node.timing.heartbeat,
        measure: standing.alive_since,
        node: &node,
        registration: &registration,
        heartbeat: Some(heartbeat),
        standing,
        publish,
        warning: SkewWarning::default(),
    };
    // What the beats do around the calls of the store may panic too, such as a clock of the user's.
    let meter = node.meter();
    let _ = runtime.block_on(guard::run(meter, GUARDED, beater.measure_skew()));
    while !stop.load(Ordering::Acquire) {
        std::thread::park_timeout(beater.pause());
        if !stop.load(Ordering::Acquire) {
            let span = tracing::debug_span!("node.heartbeat", node = %beater.standing.node);
            let _ = runtime.block_on(guard::run(meter, GUARDED, beater.beat().instrument(span)));
        }
    }
}

/// The heartbeat as the guard knows it.
const GUARDED: GuardedCode = Loop::Heartbeat.guarded();

struct Beater<'a> {
    node: &'a NodeContext,
    registration: &'a NodeRegistration,
    heartbeat: Option<Box<dyn HeartbeatStore>>,
    standing: Standing,
    publish: watch::Sender<Standing>,
    /// When the last success began: others count from then.
    heard: Instant,
    /// Between two beats: the heartbeat, or more while the database is slow.
    interval: Duration,
    /// When to compare the clocks.
    measure: Instant,
    warning: SkewWarning,
}

impl Beater<'_> {
    /// Until the next beat: quicker once one is missing, and never past the moment at which the node must fence itself.
    fn pause(&self) -> Duration {
        let late = self.heard.elapsed() >= self.interval * 2;
        let pause = if late { self.node.timing.heartbeat / 5 } else { self.interval };
        self.before_fencing(pause)
    }

    /// `wait`, or less if the node would have to fence itself before.
    fn before_fencing(&self, wait: Duration) -> Duration {
        let left = (self.node.timing.grace * 2 / 3).saturating_sub(self.heard.elapsed());
        let wait = wait.min(self.node.timing.grace / 4);
        if left.is_zero() { wait } else { wait.min(left) }
    }

    async fn beat(&mut self) {
        let begun = Instant::now();
        let deadline = self.before_fencing(self.node.timing.heartbeat.max(Duration::from_millis(250)));
        let meter = &self.node.counters.meter;
        match tokio::time::timeout(deadline, guard::run(meter, GUARDED, self.try_beat())).await {
            Ok(Ok(Ok(true))) => {
                if begun.duration_since(self.heard) >= self.node.timing.grace {
                    // Others could have noticed the gap, so the wait before rescuing them begins anew.
                    self.standing.alive_since = begun;
                }
                self.heard = begun;
                self.node.counters.last_success.mark(Loop::Heartbeat, self.node.clock.now());
                let (normal, most) = (self.node.timing.heartbeat, self.node.timing.grace / 4);
                self.interval = next_interval(self.interval, begun.elapsed(), normal, most);
                self.node.counters.last_success.waits(Loop::Heartbeat, self.interval);
                if std::mem::take(&mut self.standing.fenced) {
                    self.standing.right = CancellationToken::new();
                }
            }
            Ok(Ok(Ok(false))) => {
                self.standing.right.cancel();
                // A call that does not return must not end the heartbeat.
                let reborn = guard::run(meter, GUARDED, self.reincarnate());
                if !matches!(tokio::time::timeout(deadline, reborn).await, Ok(Ok(()))) {
                    self.missed(None);
                }
            }
            Ok(Ok(Err(error))) => self.missed(Some(&error)),
            // Nor may a panic: a node that goes on unheard would have its jobs taken while it runs them.
            Ok(Err(_)) | Err(_) => self.missed(None),
        }
        // Sampled after the attempt: a process that was stopped for long learns of it here.
        if self.heard.elapsed() >= self.node.timing.grace * 2 / 3 && !self.standing.fenced {
            tracing::error!(node = %self.standing.node, "no heartbeat for two thirds of the grace: running work is canceled");
            self.standing.fenced = true;
            self.standing.right.cancel();
        }
        self.publish.send_if_modified(|standing| {
            let of = |s: &Standing| (s.node, s.alive_since, s.fenced);
            let changed = of(standing) != of(&self.standing);
            *standing = self.standing.clone();
            changed
        });
        // Last, so that nothing of the above waits for it.
        self.measure_skew().await;
    }

    /// Compares the clocks, on the connection that beats, if it is time to.
    async fn measure_skew(&mut self) {
        let limit = self.before_fencing(ROUND_TRIP_MAX);
        let Some(heartbeat) = self.heartbeat.as_mut().filter(|_| self.measure <= Instant::now()) else { return };
        self.measure = Instant::now() + MEASURE_EVERY;
        let NodeContext { clock, counters, .. } = self.node;
        let (begun, before) = (Instant::now(), clock.now());
        let asked = guard::run(&counters.meter, GUARDED, heartbeat.database_time());
        let answer = tokio::time::timeout(limit, asked).await;
        let (took, after) = (begun.elapsed(), clock.now());
        let database = match answer {
            Ok(Ok(Ok(time))) => time,
            Ok(Ok(Err(error))) => {
                tracing::debug!(error = &error as &dyn std::error::Error, "the database's time could not be read");
                return;
            }
            Ok(Err(_)) | Err(_) => {
                tracing::debug!("the database's time took too long to read, or reading it panicked");
                // The answer may still be on its way, to a question that nobody asks any more.
                self.heartbeat = None;
                return;
            }
        };
        let Some(skew) = skew_us(before, database, after, took) else { return };
        self.node.counters.vitals.set_clock_skew_us(skew);
        if self.warning.is_due(skew, Instant::now()) {
            tracing::warn!(
                clock_skew_ms = skew / 1_000,
                "this node's clock is far from the database's; times of jobs follow the database"
            );
        }
    }

    async fn try_beat(&mut self) -> Result<bool, StoreError> {
        let heartbeat = match &mut self.heartbeat {
            Some(heartbeat) => heartbeat,
            empty => empty.insert(self.node.store.open_heartbeat().await?),
        };
        heartbeat.beat(self.standing.node, self.node.counters.vitals.read()).await
    }

    fn missed(&mut self, error: Option<&StoreError>) {
        let silent_ms = self.heard.elapsed().as_millis();
        if let Some(error) = error {
            tracing::warn!(silent_ms, error = error as &dyn std::error::Error, "a heartbeat failed");
        } else {
            tracing::warn!(silent_ms, "a heartbeat took too long");
        }
        // The connection may be what is broken.
        self.heartbeat = None;
    }

    /// Declared dead: what this incarnation ran belongs to others. Goes on as a new one.
    async fn reincarnate(&mut self) {
        let node = new_node_id();
        let registration = NodeRegistration { id: node, ..self.registration.clone() };
        let Some(heartbeat) = &mut self.heartbeat else { return };
        match heartbeat.register(&registration).await {
            Ok(()) => {
                tracing::error!(old = %self.standing.node, new = %node, "this node was declared dead; it goes on as a new incarnation");
                self.node.counters.reincarnations.add(1);
                self.standing = Standing::of(node);
                self.heard = self.standing.alive_since;
            }
            Err(error) => self.missed(Some(&error)),
        }
    }
}
