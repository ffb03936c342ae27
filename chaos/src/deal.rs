//! The jobs of the fault tests.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use ratchet::{Failure, Job, JobContext, JobId, Requirement};
use serde::{Deserialize, Serialize};

use crate::record::{Deed, Record, Run};

/// A job with a number by which it is known whether or not its submit was answered.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Deal {
    /// The number.
    pub serial: u64,
    /// What it does.
    pub work: Work,
}

/// What a job does.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub enum Work {
    /// Takes so many milliseconds and succeeds.
    Sleep(u64),
    /// The same, but its first attempt fails.
    FailFirst(u64),
    /// Takes so many milliseconds unless it is canceled before.
    Endure(u64),
    /// Aborts its process after so many milliseconds.
    Abort(u64),
    /// Blocks its thread for so many milliseconds.
    Block(u64),
    /// The same as a sleep, but fails if a node has died while it ran it.
    FailAfterCrash(u64),
    /// Succeeds if the signal that it awaited says its number.
    Signaled,
}

impl Work {
    /// As a job without a number.
    pub fn unnumbered(self) -> Deal {
        Deal { serial: 0, work: self }
    }
}

impl Job for Deal {
    const KIND: &'static str = "deal";
    type Output = u32;

    fn requires() -> Vec<Requirement> {
        vec![Requirement::state::<Record>()]
    }

    async fn run(self, ctx: JobContext) -> Result<u32, Failure> {
        let (record, run) = (ctx.state::<Record>(), Run::of(&ctx));
        record.add(Deed::Began(run));
        let wait = |ms| tokio::time::sleep(Duration::from_millis(ms));
        match self.work {
            Work::Sleep(ms) => wait(ms).await,
            Work::FailFirst(ms) => {
                wait(ms).await;
                if ctx.attempt() == 1 {
                    record.add(Deed::Ended(run));
                    return Err(Failure::new("the first attempt fails"));
                }
            }
            Work::Endure(ms) => tokio::select! {
                () = ctx.canceled() => {
                    record.add(Deed::Ended(run));
                    return Err(Failure::new("told to end"));
                }
                () = wait(ms) => {}
            },
            Work::Block(ms) => std::thread::sleep(Duration::from_millis(ms)),
            Work::Abort(ms) => {
                wait(ms).await;
                std::process::abort();
            }
            Work::FailAfterCrash(ms) => {
                if ctx.job().crash_count > 0 {
                    return Err(Failure::new("a node died of it"));
                }
                wait(ms).await;
            }
            Work::Signaled => {
                let says = ctx.signal().and_then(|signal| signal.payload.decode().ok());
                if says != Some(self.serial) {
                    return Err(Failure::new(format!("its signal says {says:?}")));
                }
            }
        }
        record.add(Deed::Ended(run));
        Ok(std::process::id())
    }
}

/// A job that does nothing, many times: its runs are counted in memory and written at the end.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Nothing;

/// The jobs of which this process ran [`Nothing`].
#[derive(Debug, Clone, Default)]
pub struct Tally(Arc<Mutex<Vec<JobId>>>);

impl Tally {
    /// What was counted so far.
    pub fn ids(&self) -> Vec<JobId> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

impl Job for Nothing {
    const KIND: &'static str = "nothing";
    type Output = ();

    fn requires() -> Vec<Requirement> {
        vec![Requirement::state::<Tally>()]
    }

    async fn run(self, ctx: JobContext) -> Result<(), Failure> {
        ctx.state::<Tally>().0.lock().unwrap_or_else(PoisonError::into_inner).push(ctx.id());
        Ok(())
    }
}
