//! Batches: many jobs that are counted together, and one job that stands for them all.
//!
//! The job that stands for a batch is WAITING until the last of its children has ended; then it runs, as a step of the
//! engine's own, and its result is the [`BatchSummary`]. How far a batch is is one row beside that job: who ends a child
//! counts it there in the same transaction, under the row's lock.

mod counting;
mod counts;
mod every;

use std::time::Duration;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use crate::clock::elapsed;
use crate::flow::JobFlags;
use crate::id::{JobId, derived_id};
use crate::invalid::InvalidInput;
use crate::json::JsonText;
use crate::limits;
use crate::name::Kind;
use crate::spec::{JobSpec, JobType, NewJob, Origin, StartState};
use crate::state::JobState;

pub use counting::{CountPlan, CountedBatch, Threshold};
pub use counts::{BatchCounts, Tallies, Tally, batch_of};
pub use every::ProgressEvery;

/// The kind of the jobs that stand for batches; every node can run it.
pub const BATCH_KIND: &str = "ratchet.batch";

/// A batch that is to be stored with the job that stands for it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NewBatch {
    /// The job that stands for it.
    pub id: JobId,
    /// Whether no further children will come.
    pub sealed: bool,
    /// What is submitted as it goes on.
    pub hook: Option<ProgressHook>,
}

impl NewBatch {
    /// Makes a job stand for this batch.
    pub fn tie_parent(&self, job: &mut NewJob) {
        job.job_type = JobType::BatchParent;
        job.flow = job.flow.with(JobFlags::BATCH);
        job.start = StartState::Waiting;
        job.waits_for += 1;
    }
}

/// Makes a job a child of a batch.
///
/// # Errors
/// If the job is tied to others: the children of a batch have no edges. They may await signals.
pub fn tie_child(batch: JobId, job: &mut NewJob) -> Result<(), InvalidInput> {
    let own = JobFlags::BATCH_CHILD.with(JobFlags::SIGNAL);
    if !job.flow.without(own).is_none() || job.workflow.is_some() {
        return Err(InvalidInput::new("child", "is tied to other jobs; the children of a batch stand alone"));
    }
    job.job_type = JobType::BatchChild;
    job.flow = job.flow.with(JobFlags::BATCH_CHILD);
    job.parent = Some(batch);
    Ok(())
}

/// A job that is submitted whenever a batch has come so much further.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ProgressHook {
    /// What is submitted; its origin's result is the [`BatchProgress`].
    pub spec: JobSpec,
    /// How often.
    pub every: ProgressEvery,
}

/// A batch as it stands.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Batch {
    /// Its id: that of the job that stands for it.
    pub id: JobId,
    /// Where that job stands.
    pub state: JobState,
    /// Its children, counted.
    pub counts: BatchCounts,
    /// Whether its children are still being canceled.
    pub canceling: bool,
    /// What is submitted as it goes on.
    pub hook: Option<ProgressHook>,
    /// The next threshold at which it is.
    pub next_progress: Option<u64>,
    /// When it was stored.
    pub created_at: Timestamp,
    /// When something was last counted.
    pub updated_at: Timestamp,
    /// When the job that stands for it ended.
    pub completed_at: Option<Timestamp>,
}

impl Batch {
    /// A batch that was just stored with so many children.
    pub fn stored(new: &NewBatch, total: u64, now: Timestamp) -> Self {
        Self {
            id: new.id,
            state: JobState::Waiting,
            counts: BatchCounts { total, sealed: new.sealed, ..BatchCounts::default() },
            canceling: false,
            hook: new.hook.clone(),
            next_progress: new.hook.as_ref().map(|hook| hook.every.step()),
            created_at: now,
            updated_at: now,
            completed_at: None,
        }
    }

    /// Why no child can be added, if none can.
    pub fn refusal(&self) -> Option<String> {
        refusal(self.counts.sealed, self.completed_at.is_some())
    }

    /// How far it is.
    pub fn progress(&self) -> BatchProgress {
        let counts = &self.counts;
        let ran = elapsed(self.created_at, self.updated_at);
        #[expect(clippy::cast_precision_loss, reason = "a rate for people")]
        let rate = if ran.is_zero() { 0.0 } else { counts.done() as f64 / ran.as_secs_f64() };
        BatchProgress {
            batch: self.id,
            total: counts.total,
            done: counts.done(),
            succeeded: counts.succeeded,
            failed: counts.failed,
            canceled: counts.canceled,
            percent: BatchCounts::share(counts.done(), counts.total) * 100.0,
            sealed: counts.sealed,
            canceling: self.canceling,
            ended: self.state.is_terminal(),
            rate_per_second: rate,
            elapsed_ms: millis(ran),
        }
    }

    /// What came of it, as the result of the job that stands for it.
    pub fn summary(&self) -> BatchSummary {
        let counts = &self.counts;
        let total_time = elapsed(self.created_at, self.updated_at);
        BatchSummary {
            total: counts.total,
            succeeded: counts.succeeded,
            failed: counts.failed,
            canceled: counts.canceled,
            clean: counts.failed == 0 && counts.canceled == 0,
            success_rate: BatchCounts::share(counts.succeeded, counts.total),
            child_ms: millis(counts.child_execution),
            total_ms: millis(total_time),
            overhead_ms: millis(total_time.saturating_sub(counts.child_execution)),
        }
    }

    /// The job that tells of a threshold; the same every time it is asked for.
    pub fn progress_job(&self, threshold: u64) -> Option<NewJob> {
        let hook = self.hook.as_ref()?;
        let result = JsonText::encode("progress", &self.progress(), limits::RESULT_BYTES_MAX).ok()?;
        let origin = Origin {
            job_id: self.id,
            kind: Kind::new(BATCH_KIND).ok()?,
            params: std::collections::BTreeMap::new(),
            result: Some(result),
            error: None,
        };
        let id = derived_id(self.id, threshold, "progress");
        Some(NewJob { job_type: JobType::Callback, origin: Some(origin), ..NewJob::new(id, hook.spec.clone()) })
    }
}

/// Why a batch takes no further children, if it does not.
pub fn refusal(sealed: bool, ended: bool) -> Option<String> {
    let why = match (ended, sealed) {
        (true, _) => "it has ended or was canceled",
        (false, true) => "it is sealed",
        (false, false) => return None,
    };
    Some(format!("{why} and takes no further children; begin a new batch"))
}

/// How far a batch is.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct BatchProgress {
    /// The batch.
    pub batch: JobId,
    /// Its children so far.
    pub total: u64,
    /// Those that have ended.
    pub done: u64,
    /// Those that succeeded.
    pub succeeded: u64,
    /// Those in the dead letter queue.
    pub failed: u64,
    /// Those that were canceled.
    pub canceled: u64,
    /// Those that have ended, in hundredths of those that there are so far.
    pub percent: f64,
    /// Whether no further children will come.
    pub sealed: bool,
    /// Whether its children are being canceled.
    pub canceling: bool,
    /// Whether the job that stands for it has ended.
    pub ended: bool,
    /// Children that ended in a second, from the start to the last that was counted.
    pub rate_per_second: f64,
    /// From the start to the last that was counted.
    pub elapsed_ms: u64,
}

/// What came of a batch: the result of the job that stands for it.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct BatchSummary {
    /// Its children.
    pub total: u64,
    /// Those that succeeded.
    pub succeeded: u64,
    /// Those in the dead letter queue.
    pub failed: u64,
    /// Those that were canceled.
    pub canceled: u64,
    /// Whether all of them succeeded.
    pub clean: bool,
    /// The share of those that succeeded, from 0 to 1; 1 for a batch without children.
    pub success_rate: f64,
    /// How long the children ran, all together.
    pub child_ms: u64,
    /// From the start to the end of the last child.
    pub total_ms: u64,
    /// How much longer that was than the children ran; zero if they ran side by side for longer.
    pub overhead_ms: u64,
}

fn millis(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use uuid::Uuid;

    use super::counts::tests::counts;
    use super::*;

    fn batch(counts: BatchCounts, hook: Option<ProgressHook>) -> Batch {
        let new = NewBatch { id: JobId(Uuid::from_u128(7)), sealed: counts.sealed, hook };
        let mut batch = Batch::stored(&new, counts.total, Timestamp::UNIX_EPOCH);
        batch.counts = counts;
        batch.updated_at = crate::clock::later(batch.created_at, Duration::from_secs(4));
        batch
    }

    #[test]
    fn a_summary_says_how_well_it_went() {
        let counts = BatchCounts {
            total: 4,
            succeeded: 3,
            failed: 1,
            canceled: 0,
            child_execution: Duration::from_secs(3),
            sealed: true,
        };
        let summary = batch(counts, None).summary();
        assert_eq!((summary.clean, summary.success_rate), (false, 0.75));
        assert_eq!((summary.child_ms, summary.total_ms, summary.overhead_ms), (3_000, 4_000, 1_000));
        let empty = batch(BatchCounts { sealed: true, ..BatchCounts::default() }, None).summary();
        assert_eq!((empty.clean, empty.success_rate, empty.total), (true, 1.0, 0));
    }

    #[test]
    fn the_job_that_tells_of_a_threshold_is_always_the_same() {
        let spec = JobSpec::new(Kind::new("tell").unwrap(), JsonText::null());
        let batch = batch(counts(4, 2, true), Some(ProgressHook { spec, every: ProgressEvery::Items(2) }));
        let job = batch.progress_job(2).unwrap();
        assert_eq!(job.id, batch.progress_job(2).unwrap().id);
        assert_ne!(job.id, batch.progress_job(4).unwrap().id);
        let told: BatchProgress = job.origin.unwrap().result.unwrap().decode().unwrap();
        assert_eq!((told.done, told.percent, told.rate_per_second), (2, 50.0, 0.5));
    }

    #[test]
    fn a_child_that_is_tied_to_others_is_refused() {
        let spec = JobSpec::new(Kind::new("work").unwrap(), JsonText::null());
        let mut job = NewJob::new(JobId(Uuid::from_u128(8)), spec);
        let batch = JobId(Uuid::from_u128(7));
        tie_child(batch, &mut job).unwrap();
        assert_eq!((job.parent, job.job_type, job.flow), (Some(batch), JobType::BatchChild, JobFlags::BATCH_CHILD));
        job.flow = job.flow.with(JobFlags::INPUTS);
        assert!(tie_child(batch, &mut job).is_err());
    }
}
