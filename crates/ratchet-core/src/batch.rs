//! Batches: many jobs that are counted together, and one job that stands for them all.
//!
//! The job that stands for a batch is WAITING until the last of its children has ended; then it runs, as a step of the
//! engine's own, and its result is the [`BatchSummary`]. How far a batch is is one row beside that job: who ends a child
//! counts it there in the same transaction, under the row's lock.

use std::time::Duration;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use crate::clock::elapsed;
use crate::flow::Flow;
use crate::id::{JobId, derived_id};
use crate::invalid::InvalidInput;
use crate::json::JsonText;
use crate::limits;
use crate::name::Kind;
use crate::spec::{JobSpec, JobType, NewJob, Origin, StartState};
use crate::state::JobState;

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
        job.flow = job.flow.with(Flow::BATCH);
        job.start = StartState::Waiting;
        job.waits_for += 1;
    }
}

/// Makes a job a child of a batch.
///
/// # Errors
/// If the job is tied to others: the children of a batch have no edges. They may await signals.
pub fn tie_child(batch: JobId, job: &mut NewJob) -> Result<(), InvalidInput> {
    let own = Flow::BATCH_CHILD.with(Flow::SIGNAL);
    if !job.flow.without(own).is_none() || job.workflow.is_some() {
        return Err(InvalidInput::new("child", "is tied to other jobs; the children of a batch stand alone"));
    }
    job.job_type = JobType::BatchChild;
    job.flow = job.flow.with(Flow::BATCH_CHILD);
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

/// How often the progress of a batch is told.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ProgressEvery {
    /// Whenever so many more children have ended.
    Items(u64),
    /// Whenever so many more hundredths of the children have ended; as long as children are added, nobody knows.
    Percent(u8),
}

impl ProgressEvery {
    /// Checks the number.
    ///
    /// # Errors
    /// If it is zero, or more than a hundred percent.
    pub fn check(self) -> Result<(), InvalidInput> {
        match self {
            Self::Items(0) => Err(InvalidInput::new("every", "is 0 items; give at least 1")),
            Self::Percent(percent) if !(1..=100).contains(&percent) => {
                Err(InvalidInput::new("every", format!("is {percent} percent; give 1 to 100")))
            }
            _ => Ok(()),
        }
    }

    /// As it is stored: percents are below zero.
    pub fn to_number(self) -> i64 {
        match self {
            Self::Items(items) => i64::try_from(items).unwrap_or(i64::MAX),
            Self::Percent(percent) => -i64::from(percent),
        }
    }

    /// As it was stored.
    pub fn from_number(number: i64) -> Option<Self> {
        match (u64::try_from(number), u8::try_from(number.unsigned_abs())) {
            (Ok(0), _) | (Err(_), Err(_)) => None,
            (Ok(items), _) => Some(Self::Items(items)),
            (Err(_), Ok(percent)) => Some(Self::Percent(percent)),
        }
    }

    /// The distance between two thresholds, and the first of them.
    pub const fn step(self) -> u64 {
        match self {
            Self::Items(items) => items,
            Self::Percent(percent) => percent as u64,
        }
    }

    /// The highest threshold that was passed, if the next one was: of several at once only the last is told.
    pub fn passed(self, next: u64, counts: &BatchCounts) -> Option<u64> {
        let reached = match self {
            Self::Items(_) => counts.done(),
            Self::Percent(_) if counts.sealed && counts.total > 0 => counts.done().saturating_mul(100) / counts.total,
            Self::Percent(_) => return None,
        };
        let step = self.step().max(1);
        (reached >= next && reached > 0).then(|| reached - reached % step)
    }
}

/// How many children a batch has, and what has become of them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize)]
pub struct BatchCounts {
    /// All of them, so far.
    pub total: u64,
    /// Those that succeeded.
    pub succeeded: u64,
    /// Those in the dead letter queue.
    pub failed: u64,
    /// Those that were cancelled.
    pub canceled: u64,
    /// How long they ran, all together.
    pub child_execution: Duration,
    /// Whether no further ones will come.
    pub sealed: bool,
}

impl BatchCounts {
    /// Children that have ended.
    pub const fn done(&self) -> u64 {
        self.succeeded + self.failed + self.canceled
    }

    /// Whether every child has ended and no further ones will come.
    pub const fn is_complete(&self) -> bool {
        self.sealed && self.done() >= self.total
    }

    /// Adds the ends of children.
    pub fn add(&mut self, tally: &Tally) {
        self.succeeded += tally.succeeded;
        self.failed += tally.failed;
        self.canceled += tally.canceled;
        self.child_execution += tally.execution;
    }

    #[expect(clippy::cast_precision_loss, reason = "a share for people and for conditions")]
    fn share(part: u64, whole: u64) -> f64 {
        if whole == 0 { 1.0 } else { part as f64 / whole as f64 }
    }
}

/// The ends of some children of one batch.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Tally {
    /// How many succeeded.
    pub succeeded: u64,
    /// How many went to the dead letter queue.
    pub failed: u64,
    /// How many were cancelled.
    pub canceled: u64,
    /// How long they ran, all together.
    pub execution: Duration,
}

impl Tally {
    /// Adds the end of one child; a state that is no end adds nothing.
    pub fn add(&mut self, state: JobState, execution: Option<Duration>) {
        match state {
            JobState::Succeeded => self.succeeded += 1,
            JobState::Failed => self.failed += 1,
            JobState::Canceled => self.canceled += 1,
            JobState::Pending | JobState::Running | JobState::Waiting | JobState::Paused => return,
        }
        self.execution += execution.unwrap_or_default();
    }
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
    /// Whether its children are still being cancelled.
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
        (true, _) => "it has ended or was cancelled",
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
    /// Those that were cancelled.
    pub canceled: u64,
    /// Those that have ended, in hundredths of those that there are so far.
    pub percent: f64,
    /// Whether no further children will come.
    pub sealed: bool,
    /// Whether its children are being cancelled.
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
    /// Those that were cancelled.
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

    use super::*;

    fn counts(total: u64, done: u64, sealed: bool) -> BatchCounts {
        BatchCounts { total, succeeded: done, sealed, ..BatchCounts::default() }
    }

    fn batch(counts: BatchCounts, hook: Option<ProgressHook>) -> Batch {
        let new = NewBatch { id: JobId(Uuid::from_u128(7)), sealed: counts.sealed, hook };
        let mut batch = Batch::stored(&new, counts.total, Timestamp::UNIX_EPOCH);
        batch.counts = counts;
        batch.updated_at = crate::clock::later(batch.created_at, Duration::from_secs(4));
        batch
    }

    #[test]
    fn a_batch_is_complete_when_it_is_sealed_and_every_child_has_ended() {
        let check = |total, done, sealed, expected| {
            assert_eq!(counts(total, done, sealed).is_complete(), expected, "{done} of {total}, sealed: {sealed}");
        };
        check(3, 3, true, true);
        check(3, 2, true, false);
        check(3, 3, false, false);
        check(0, 0, true, true);
        check(0, 0, false, false);
    }

    #[test]
    fn only_ends_are_counted() {
        let mut tally = Tally::default();
        for state in JobState::ALL {
            tally.add(state, Some(Duration::from_secs(1)));
        }
        let expected = Tally { succeeded: 1, failed: 1, canceled: 1, execution: Duration::from_secs(3) };
        assert_eq!(tally, expected);
    }

    #[test]
    fn a_threshold_is_passed_when_it_is_reached() {
        let check = |every: ProgressEvery, next, counts: BatchCounts, expected| {
            assert_eq!(every.passed(next, &counts), expected, "{every:?} after {next} of {counts:?}");
        };
        check(ProgressEvery::Items(10), 10, counts(100, 9, true), None);
        check(ProgressEvery::Items(10), 10, counts(100, 10, false), Some(10));
        check(ProgressEvery::Items(10), 10, counts(100, 37, false), Some(30));
        check(ProgressEvery::Items(10), 40, counts(100, 37, false), None);
        check(ProgressEvery::Percent(25), 25, counts(8, 2, true), Some(25));
        check(ProgressEvery::Percent(25), 50, counts(8, 3, true), None);
        check(ProgressEvery::Percent(25), 25, counts(8, 8, false), None);
        check(ProgressEvery::Percent(25), 25, counts(0, 0, true), None);
    }

    #[test]
    fn how_often_is_stored_as_one_number() {
        for every in [ProgressEvery::Items(1), ProgressEvery::Items(9_000), ProgressEvery::Percent(100)] {
            assert_eq!(ProgressEvery::from_number(every.to_number()), Some(every));
            assert!(every.check().is_ok());
        }
        assert_eq!(ProgressEvery::from_number(0), None);
        for every in [ProgressEvery::Items(0), ProgressEvery::Percent(0), ProgressEvery::Percent(101)] {
            assert!(every.check().is_err(), "{every:?}");
        }
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
        assert_eq!((job.parent, job.job_type, job.flow), (Some(batch), JobType::BatchChild, Flow::BATCH_CHILD));
        job.flow = job.flow.with(Flow::INPUTS);
        assert!(tie_child(batch, &mut job).is_err());
    }
}
