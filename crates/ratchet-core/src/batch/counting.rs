use std::collections::BTreeMap;

use super::{Batch, BatchCounts, ProgressEvery, Tally, refusal};
use crate::id::JobId;

/// The row of a batch, as far as counting needs it. A store reads it under the row's lock.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CountedBatch {
    /// Its id.
    pub id: JobId,
    /// Its children, counted.
    pub counts: BatchCounts,
    /// The distance between the thresholds of its progress hook, if it has one.
    pub every: Option<ProgressEvery>,
    /// The next threshold.
    pub next_progress: Option<u64>,
    /// Whether its parent job has ended.
    pub ended: bool,
}

impl CountedBatch {
    /// The same of a batch that is known.
    pub fn of(batch: &Batch) -> Self {
        Self {
            id: batch.id,
            counts: batch.counts,
            every: batch.hook.as_ref().map(|hook| hook.every),
            next_progress: batch.next_progress,
            ended: batch.completed_at.is_some(),
        }
    }

    /// Adds the ends of children.
    pub fn count(&mut self, tally: &Tally) {
        self.counts.add(tally);
    }

    /// Adds the children of an extension, of which `stored` of `asked` are new; `false` if there is nothing to write.
    ///
    /// If all of them were there, the answer to an earlier call was lost, and the batch may have been sealed since.
    ///
    /// # Errors
    /// If it takes no further children.
    pub fn grow(&mut self, stored: usize, asked: usize) -> Result<bool, String> {
        if stored == 0 && asked > 0 {
            return Ok(false);
        }
        if let Some(problem) = self.refusal() {
            return Err(problem);
        }
        self.counts.total += stored as u64;
        Ok(true)
    }

    /// Takes no further children from now on; `false` if it takes none already.
    ///
    /// # Errors
    /// If it was canceled.
    pub fn seal(&mut self) -> Result<bool, &'static str> {
        match (self.counts.sealed, self.ended) {
            (true, _) => Ok(false),
            (false, true) => Err("it was canceled"),
            (false, false) => {
                self.counts.sealed = true;
                Ok(true)
            }
        }
    }

    /// Takes back the failures of children that are retried.
    ///
    /// # Errors
    /// If it counts them permanently, because it is over.
    pub fn uncount(&mut self, failures: u64) -> Result<(), String> {
        match self.counts.failed.checked_sub(failures) {
            Some(failed) if !self.is_over() => {
                self.counts.failed = failed;
                Ok(())
            }
            _ => Err(Self::over(self.id)),
        }
    }

    /// The reason for refusing the retry of a child whose batch is over, or is gone.
    pub fn over(id: JobId) -> String {
        format!("batch {id} is over and counts it as failed; submit it anew")
    }

    /// Why it takes no further children, if it does not.
    pub fn refusal(&self) -> Option<String> {
        refusal(self.counts.sealed, self.ended)
    }

    /// Whether it counts its failed children permanently: none of them can be retried.
    pub const fn is_over(&self) -> bool {
        self.counts.is_over(self.ended)
    }

    /// The threshold that was passed, if the next one was.
    fn passed(&self) -> Option<Threshold> {
        let every = self.every?;
        let reached = every.passed(self.next_progress?, &self.counts)?;
        Some(Threshold { reached, next: reached.saturating_add(every.step()) })
    }
}

/// A threshold that a batch has passed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Threshold {
    /// The threshold: a store submits its [`progress_job`](Batch::progress_job).
    pub reached: u64,
    /// The next one, which is stored.
    pub next: u64,
}

/// The writes that follow when ends were counted for batches.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct CountPlan {
    /// Thresholds that were passed, by batch.
    pub thresholds: BTreeMap<JobId, Threshold>,
    /// Batches that are complete: their parent jobs are released, if they wait.
    pub complete: Vec<JobId>,
}

impl CountPlan {
    /// The writes that follow for batches that were just stored, sealed or counted.
    ///
    /// The same threshold is never passed twice: a store writes the next one under the lock under which it has read this one.
    pub fn after(counted: &[CountedBatch]) -> Self {
        Self {
            thresholds: counted.iter().filter_map(|batch| Some((batch.id, batch.passed()?))).collect(),
            complete: counted.iter().filter(|batch| batch.counts.is_complete()).map(|batch| batch.id).collect(),
        }
    }
}

#[cfg(test)]
mod tests {
    use uuid::Uuid;

    use super::*;
    use crate::batch::counts::tests::counts;

    const fn id(number: u128) -> JobId {
        JobId(Uuid::from_u128(number))
    }

    fn batch(counts: BatchCounts, every: Option<ProgressEvery>, next_progress: Option<u64>) -> CountedBatch {
        CountedBatch { id: id(1), counts, every, next_progress, ended: false }
    }

    #[test]
    fn failures_are_taken_back_until_the_batch_is_over() {
        let check = |failed, total, sealed, ended, failures, expected: Option<u64>| {
            let counts = BatchCounts { failed, ..counts(total, 0, sealed) };
            let mut batch = CountedBatch { ended, ..batch(counts, None, None) };
            let uncounted = batch.uncount(failures).map(|()| batch.counts.failed);
            assert_eq!(uncounted.ok(), expected, "{failures} of {counts:?}, {ended}");
        };
        check(2, 5, true, false, 1, Some(1));
        check(2, 2, false, false, 2, Some(0));
        check(2, 5, true, false, 3, None);
        check(2, 2, true, false, 1, None);
        check(2, 5, false, true, 1, None);
    }

    #[test]
    fn a_count_passes_a_threshold_and_completes_a_batch() {
        let check = |every: ProgressEvery, next, counts: BatchCounts, threshold: Option<(u64, u64)>, complete: bool| {
            let plan = CountPlan::after(&[batch(counts, Some(every), Some(next))]);
            let threshold = threshold.map(|(reached, next)| (id(1), Threshold { reached, next }));
            let complete = if complete { vec![id(1)] } else { Vec::new() };
            let expected = CountPlan { thresholds: threshold.into_iter().collect(), complete };
            assert_eq!(plan, expected, "{every:?} after {next} of {counts:?}");
        };
        let (items, percent) = (ProgressEvery::Items, ProgressEvery::Percent);
        check(items(10), 10, counts(100, 9, true), None, false);
        check(items(10), 10, counts(100, 10, false), Some((10, 20)), false);
        check(items(10), 10, counts(100, 37, true), Some((30, 40)), false);
        check(items(10), 40, counts(100, 37, true), None, false);
        check(items(10), 100, counts(100, 100, true), Some((100, 110)), true);
        check(items(10), 100, counts(100, 100, false), Some((100, 110)), false);
        check(items(1), 1, counts(0, 0, true), None, true);
        check(items(u64::MAX), u64::MAX, counts(u64::MAX, u64::MAX, true), Some((u64::MAX, u64::MAX)), true);
        check(percent(25), 25, counts(8, 3, true), Some((25, 50)), false);
        check(percent(25), 25, counts(8, 8, false), None, false);
        check(percent(25), 25, counts(8, 8, true), Some((100, 125)), true);
        check(percent(25), 25, counts(0, 0, true), None, true);
    }

    #[test]
    fn a_batch_without_a_hook_passes_nothing() {
        let without = [batch(counts(3, 3, true), None, Some(1)), batch(counts(3, 2, true), None, None)];
        assert_eq!(CountPlan::after(&without), CountPlan { complete: vec![id(1)], ..CountPlan::default() });
    }

    #[test]
    fn ends_are_added() {
        let mut counted = batch(counts(5, 1, true), None, None);
        counted.count(&Tally { succeeded: 1, failed: 2, canceled: 1, ..Tally::default() });
        let BatchCounts { succeeded, failed, canceled, .. } = counted.counts;
        assert_eq!((succeeded, failed, canceled), (2, 2, 1));
        assert_eq!(CountPlan::after(&[counted]).complete, [id(1)]);
    }

    #[test]
    fn new_children_are_added_to_a_batch_that_takes_some() {
        let check = |sealed, ended, stored, asked, expected: Option<bool>, total| {
            let mut one = CountedBatch { ended, ..batch(counts(5, 0, sealed), None, None) };
            assert_eq!(one.grow(stored, asked).ok(), expected, "{stored} of {asked}, {sealed}, {ended}");
            assert_eq!(one.counts.total, total, "{stored} of {asked}, {sealed}, {ended}");
        };
        check(false, false, 2, 2, Some(true), 7);
        check(false, false, 1, 2, Some(true), 6);
        check(false, false, 0, 2, Some(false), 5);
        check(true, false, 0, 2, Some(false), 5);
        check(true, false, 1, 2, None, 5);
        check(true, false, 0, 0, None, 5);
        check(false, true, 1, 1, None, 5);
    }

    #[test]
    fn a_batch_is_sealed_once_and_not_when_it_was_canceled() {
        let check = |sealed, ended, expected, sealed_then| {
            let mut one = CountedBatch { ended, ..batch(counts(1, 0, sealed), None, None) };
            assert_eq!((one.seal(), one.counts.sealed), (expected, sealed_then), "sealed: {sealed}, ended: {ended}");
        };
        check(false, false, Ok(true), true);
        check(true, false, Ok(false), true);
        check(true, true, Ok(false), true);
        check(false, true, Err("it was canceled"), false);
    }
}
