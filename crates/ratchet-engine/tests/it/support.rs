//! Jobs and engines for the tests.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use jiff::Timestamp;
use ratchet_core::{Clock, JobId, MemoryStore};
use ratchet_engine::{
    EventStream, Failure, Job, JobContext, JobDefaults, JobEvent, JobEventKind, Ratchet, RatchetBuilder, Requirement,
    ResultCondition, SystemClock, Timing,
};
use serde::{Deserialize, Serialize};
use tokio::sync::Notify;

/// What the handlers of a test did, and what the test lets them do.
#[derive(Debug, Default, Clone)]
pub(crate) struct Stage(Arc<StageInner>);

#[derive(Debug, Default)]
struct StageInner {
    runs: Mutex<HashMap<JobId, usize>>,
    dropped: AtomicUsize,
    open: Notify,
    together: AtomicUsize,
    together_max: AtomicUsize,
}

impl Stage {
    pub(crate) fn runs(&self, id: JobId) -> usize {
        self.0.runs.lock().unwrap().get(&id).copied().unwrap_or(0)
    }

    pub(crate) fn total_runs(&self) -> usize {
        self.0.runs.lock().unwrap().values().sum()
    }

    pub(crate) fn dropped(&self) -> usize {
        self.0.dropped.load(Ordering::SeqCst)
    }

    /// Lets one handler that waits on the gate go on.
    pub(crate) fn open_gate(&self) {
        self.0.open.notify_one();
    }

    pub(crate) fn most_together(&self) -> usize {
        self.0.together_max.load(Ordering::SeqCst)
    }

    fn begins(&self, id: JobId) -> RunGuard {
        *self.0.runs.lock().unwrap().entry(id).or_default() += 1;
        let together = self.0.together.fetch_add(1, Ordering::SeqCst) + 1;
        self.0.together_max.fetch_max(together, Ordering::SeqCst);
        RunGuard { stage: self.clone(), finished: false }
    }
}

struct RunGuard {
    stage: Stage,
    finished: bool,
}

impl Drop for RunGuard {
    fn drop(&mut self) {
        self.stage.0.together.fetch_sub(1, Ordering::SeqCst);
        if !self.finished {
            self.stage.0.dropped.fetch_add(1, Ordering::SeqCst);
        }
    }
}

/// A job that does as it is told.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) enum Play {
    Return(String),
    /// Fails in its first attempts.
    FailTimes(u32),
    FailForGood,
    Leak(String),
    Panic,
    /// Waits until the test opens the gate.
    Gate,
    /// Waits for ever, deaf to cancellation.
    Hang,
    /// Waits until it is told to end.
    UntilCanceled,
    SnoozeOnce,
    Big(usize),
    Nul,
    /// Blocks its thread for so many milliseconds.
    BlockThread(u64),
    Progress(f64),
    /// Starts a runtime, as blocking clients do.
    OwnRuntime,
    CancelsItsToken,
}

impl Job for Play {
    const KIND: &'static str = "play";
    type Output = String;

    fn defaults() -> JobDefaults {
        JobDefaults::default().backoff(ratchet_core::Backoff::None)
    }

    fn requires() -> Vec<Requirement> {
        vec![Requirement::state::<Stage>()]
    }

    async fn run(self, ctx: JobContext) -> Result<String, Failure> {
        let stage = ctx.state::<Stage>();
        let mut guard = stage.begins(ctx.id());
        let end = self.act(&ctx, &stage).await;
        guard.finished = true;
        end
    }
}

impl Play {
    async fn act(self, ctx: &JobContext, stage: &Stage) -> Result<String, Failure> {
        match self {
            Self::Return(text) => Ok(text),
            Self::FailTimes(times) if ctx.attempt() <= times => {
                Err(Failure::new(format!("attempt {} broke", ctx.attempt())))
            }
            Self::FailTimes(_) => Ok("at last".to_owned()),
            Self::FailForGood => Err(Failure::do_not_retry("card declined", "declined by the issuer")),
            Self::Leak(text) => Err(Failure::new(text)),
            Self::Panic => panic!("a handler gone wrong"),
            Self::Gate => {
                stage.0.open.notified().await;
                Ok("opened".to_owned())
            }
            Self::Hang => std::future::pending().await,
            Self::UntilCanceled => {
                ctx.canceled().await;
                Err(Failure::new("told to end"))
            }
            Self::SnoozeOnce if stage.runs(ctx.id()) == 1 => Err(Failure::snooze(Duration::from_millis(20))),
            Self::SnoozeOnce => Ok(format!("attempt {}", ctx.attempt())),
            Self::Big(bytes) => Ok("x".repeat(bytes)),
            Self::Nul => Ok("a\0b".to_owned()),
            Self::BlockThread(ms) => {
                std::thread::sleep(Duration::from_millis(ms));
                Ok("thread".to_owned())
            }
            Self::CancelsItsToken => {
                ctx.cancellation_token().cancel();
                tokio::time::sleep(Duration::from_millis(100)).await;
                Ok("still here".to_owned())
            }
            Self::OwnRuntime => {
                let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
                runtime.block_on(tokio::time::sleep(Duration::from_millis(1)));
                Ok("own runtime".to_owned())
            }
            Self::Progress(fraction) => {
                ctx.progress(fraction);
                stage.0.open.notified().await;
                Ok("progressed".to_owned())
            }
        }
    }
}

/// The same on the blocking pool.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct Blocking(pub(crate) Play);

impl Job for Blocking {
    const KIND: &'static str = "play.blocking";
    type Output = String;

    fn defaults() -> JobDefaults {
        Play::defaults().blocking()
    }

    async fn run(self, ctx: JobContext) -> Result<String, Failure> {
        self.0.run(ctx).await
    }
}

/// The machine's clock, ahead by as much as the test says.
#[derive(Debug, Clone, Default)]
pub(crate) struct Ahead(Arc<AtomicU64>);

impl Ahead {
    pub(crate) fn advance(&self, by: Duration) {
        self.0.fetch_add(by.as_secs(), Ordering::SeqCst);
    }
}

impl Clock for Ahead {
    fn now(&self) -> Timestamp {
        SystemClock.now() + Duration::from_secs(self.0.load(Ordering::SeqCst))
    }
}

pub(crate) fn memory() -> MemoryStore {
    MemoryStore::new(Arc::new(SystemClock))
}

/// A builder with quick timers: what takes seconds by default takes tens of milliseconds.
pub(crate) fn quick(stage: &Stage) -> RatchetBuilder {
    Ratchet::builder().job::<Play>().job::<Blocking>().state(stage.clone()).timing(quick_timing())
}

/// The times of [`quick`].
pub(crate) fn quick_timing() -> Timing {
    Timing {
        heartbeat: Duration::from_millis(50),
        scan: Duration::from_millis(50),
        reconcile: Duration::from_millis(30),
        cancel_grace: Duration::from_millis(50),
        ..Timing::with_grace(Duration::from_millis(600))
    }
}

/// The times of [`quick`], with an archiver that hardly pauses.
pub(crate) fn busy_archiver() -> Timing {
    Timing { retention_interval: Duration::from_millis(10), ..quick_timing() }
}

pub(crate) async fn engine() -> (Ratchet, Stage) {
    let stage = Stage::default();
    let ratchet = quick(&stage).store(memory()).start().await.unwrap();
    (ratchet, stage)
}

/// Waits for the first event that fits; panics after ten seconds, which no event takes.
pub(crate) async fn event(events: &mut EventStream, fits: impl Fn(&JobEvent) -> bool) -> Arc<JobEvent> {
    let waiting = async {
        loop {
            let event = events.next().await.expect("the engine runs");
            if fits(&event) {
                return event;
            }
        }
    };
    tokio::time::timeout(Duration::from_secs(10), waiting).await.expect("the event comes")
}

pub(crate) async fn started(events: &mut EventStream, id: JobId) {
    event(events, |e| e.job_id == id && matches!(e.what, JobEventKind::Started { .. })).await;
}

/// Waits until something holds; for what no event tells of.
pub(crate) async fn eventually(what: &str, mut holds: impl AsyncFnMut() -> bool) {
    let deadline = tokio::time::Instant::now() + Duration::from_secs(10);
    while !holds().await {
        assert!(tokio::time::Instant::now() < deadline, "{what} does not come");
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}

/// A condition that is a function.
pub(crate) struct IsEven;

impl ResultCondition for IsEven {
    const KIND: &'static str = "ratchet.when.is-even";
    type Input = u64;

    fn holds(number: &u64) -> Result<bool, Failure> {
        Ok(number.is_multiple_of(2))
    }
}
