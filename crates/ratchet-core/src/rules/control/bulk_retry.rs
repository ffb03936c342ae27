//! Which dead letters are retried together, and how.

use std::collections::hash_map::Entry;
use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};

use crate::batch::{Batch, CountedBatch, batch_of};
use crate::dead_letter::HeldKey;
use crate::error::StoreError;
use crate::flow::JobFlags;
use crate::id::JobId;
use crate::limits::check_retry_count;
use crate::name::BusinessKey;
use crate::record::JobRecord;
use crate::state::JobState;
use crate::store::{RetriedAll, Transitioned};

/// What retrying dead letters was doing, in errors.
pub const RETRYING_LETTERS: &str = "retrying dead letters";

/// A retry of many dead letters.
///
/// A store reads the newest letters of a filter, [as many as are wanted](Self::wanted), locks their rows, reads them again with
/// their ties, and has them [judged](Self::judge). Letters that are skipped do not count, so it goes on until no more are
/// wanted or there are no further ones. Then it writes: the [plain](Self::plain) letters together, if no other job [holds their
/// keys](Self::held_keys), the [tied](Self::tied) ones each as a lone retry.
#[derive(Debug, Clone)]
pub struct BulkRetry {
    limit: usize,
    rounds: u32,
    plain: Vec<JobRecord>,
    tied: Vec<JobId>,
    result: RetriedAll,
}

/// What decides whether letters can be retried.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct LetterTies {
    /// Letters that must not be retried because their condition is undecidable: see [`undecidable`](crate::flow::undecidable).
    pub undecidable: HashSet<JobId>,
    /// Batches that take back the failure of a child.
    pub open_batches: HashSet<JobId>,
}

impl LetterTies {
    /// The ties of letters, by those of them that are undecidable and the batches whose children they are, as far as those are
    /// still there.
    pub fn new(undecidable: HashSet<JobId>, batches: &[Batch]) -> Self {
        let open = batches.iter().filter(|batch| !CountedBatch::of(batch).is_over());
        Self { undecidable, open_batches: open.map(|batch| batch.id).collect() }
    }

    /// The batches that have to be known about these letters.
    pub fn batches<'a>(letters: impl IntoIterator<Item = &'a JobRecord>) -> BTreeSet<JobId> {
        letters.into_iter().filter_map(|job| batch_of(job.flow, job.parent)).collect()
    }

    fn blocks(&self, job: &JobRecord) -> bool {
        self.undecidable.contains(&job.id)
            || batch_of(job.flow, job.parent).is_some_and(|batch| !self.open_batches.contains(&batch))
    }
}

impl BulkRetry {
    /// Returns a retry of up to `limit` letters.
    ///
    /// # Errors
    /// [`Invalid`](crate::ErrorKind::Invalid) if the limit is none.
    pub fn new(limit: usize) -> Result<Self, StoreError> {
        check_retry_count(limit).map_err(|refused| StoreError::refused(RETRYING_LETTERS, refused))?;
        Ok(Self { limit, rounds: 0, plain: Vec::new(), tied: Vec::new(), result: RetriedAll::default() })
    }

    /// Returns how many letters are to be judged next; zero if no more are wanted.
    ///
    /// Every further round is twice as large, so that a queue full of letters that are skipped takes few rounds.
    pub fn wanted(&self) -> usize {
        let missing = self.limit - self.plain.len() - self.tied.len();
        missing.saturating_mul(1_usize.checked_shl(self.rounds).unwrap_or(usize::MAX))
    }

    /// Judges the next letters, the newest first, until there are enough.
    pub fn judge(&mut self, letters: impl IntoIterator<Item = JobRecord>, ties: &LetterTies) {
        // One that is no dead letter any more was retried or archived meanwhile.
        for job in letters.into_iter().filter(|job| job.state == JobState::Failed) {
            if self.plain.len() + self.tied.len() == self.limit {
                break;
            } else if ties.blocks(&job) {
                self.result.passed_over += 1;
            } else if job.flow.has(JobFlags::DEPENDANTS) || job.awaits_signal_when_retried() {
                self.tied.push(job.id);
            } else {
                self.result.count += 1;
                self.result.priority = self.result.priority.max(Some(job.spec.priority));
                self.plain.push(job);
            }
        }
        self.rounds += 1;
    }

    /// The letters that are retried together, the newest first: no other job depends on them, and they wait for nothing.
    pub fn plain(&self) -> &[JobRecord] {
        &self.plain
    }

    /// The letters that are retried one by one, after the others, the newest first: others may come back with them.
    pub fn tied(&self) -> &[JobId] {
        &self.tied
    }

    /// The failures that the batches of the plain letters take back.
    pub fn uncounted(&self) -> BTreeMap<JobId, u64> {
        let mut uncounted = BTreeMap::new();
        for batch in self.plain.iter().filter_map(|job| batch_of(job.flow, job.parent)) {
            *uncounted.entry(batch).or_default() += 1;
        }
        uncounted
    }

    /// The business keys that the plain letters need, by their ids.
    pub fn keys(&self) -> impl DoubleEndedIterator<Item = (&BusinessKey, JobId)> {
        self.plain.iter().filter_map(|job| Some((job.business_key.as_ref()?, job.id)))
    }

    /// The plain letters that cannot be retried because of their keys, the newest first: a key is held by the job that `holder`
    /// returns, or else by the newest of several letters that need it.
    pub fn held_keys(&self, holder: impl Fn(&BusinessKey) -> Option<JobId>) -> Vec<HeldKey> {
        let mut newest = HashMap::new();
        let held = self.keys().filter_map(|(key, job)| {
            let letter = match newest.entry(key) {
                Entry::Occupied(newest) => Some(*newest.get()),
                Entry::Vacant(free) => {
                    free.insert(job);
                    None
                }
            };
            let other = holder(key).filter(|holder| *holder != job);
            let (holder, same_call) = other.map(|holder| (holder, false)).or(letter.map(|letter| (letter, true)))?;
            Some(HeldKey { job, business_key: key.clone(), holder, same_call })
        });
        held.collect()
    }

    /// Refuses the call, because other jobs hold keys.
    ///
    /// # Errors
    /// [`Duplicate`](crate::ErrorKind::Duplicate) if there are any.
    pub fn refuse_held(&self, held: Vec<HeldKey>) -> Result<(), StoreError> {
        if held.is_empty() { Ok(()) } else { Err(StoreError::held_keys(RETRYING_LETTERS, held)) }
    }

    /// The error of the lone retry of a tied letter, as one of this call.
    pub fn refused(&self, tied: JobId, error: StoreError) -> StoreError {
        let call: Vec<JobId> = self.plain.iter().map(|job| job.id).chain(self.tied.iter().copied()).collect();
        error.of_dead_letter(tied, &call)
    }

    /// Returns the result of the call, after the plain letters and the tied ones were retried.
    pub fn result<'a>(&self, tied: impl IntoIterator<Item = &'a Transitioned>) -> RetriedAll {
        let mut result = self.result;
        for Transitioned { job, followed, .. } in tied {
            result.count += 1;
            result.revived += followed.len() as u64;
            let can_run = job.state == JobState::Pending;
            result.priority = result.priority.max(can_run.then_some(job.spec.priority));
        }
        result
    }
}

#[cfg(test)]
mod tests {
    use uuid::Uuid;

    use super::*;
    use crate::control::tests;
    use crate::priority::Priority;
    use crate::transition::Place;

    const fn id(number: u128) -> JobId {
        JobId(Uuid::from_u128(number))
    }

    fn letter(number: u128, flow: JobFlags, batch: Option<u128>) -> JobRecord {
        JobRecord { id: id(number), flow, parent: batch.map(id), ..tests::job(JobState::Failed) }
    }

    fn keyed(number: u128, key: &str) -> JobRecord {
        JobRecord { business_key: Some(BusinessKey::new(key).unwrap()), ..letter(number, JobFlags::none(), None) }
    }

    fn judged(limit: usize, letters: Vec<JobRecord>, ties: &LetterTies) -> BulkRetry {
        let mut retry = BulkRetry::new(limit).unwrap();
        retry.judge(letters, ties);
        retry
    }

    #[test]
    fn each_letter_is_retried_with_others_or_alone_or_skipped() {
        let ties = LetterTies { undecidable: HashSet::from([id(8)]), open_batches: HashSet::from([id(9)]) };
        let check = |job: JobRecord, plain, tied, passed_over, uncounted: &[(u128, u64)]| {
            let retry = judged(10, vec![job.clone()], &ties);
            assert_eq!((retry.plain().len(), retry.tied().len()), (plain, tied), "{job:?}");
            let uncounted = uncounted.iter().map(|(batch, count)| (id(*batch), *count)).collect();
            assert_eq!((retry.result([]).passed_over, retry.uncounted()), (passed_over, uncounted), "{job:?}");
        };
        let child = JobFlags::BATCH_CHILD;
        check(letter(1, JobFlags::none(), None), 1, 0, 0, &[]);
        check(letter(1, JobFlags::INPUTS, None), 1, 0, 0, &[]);
        check(letter(1, JobFlags::SIGNALED, None), 1, 0, 0, &[]);
        check(letter(1, JobFlags::DEPENDANTS, None), 0, 1, 0, &[]);
        check(letter(1, JobFlags::SIGNAL, None), 0, 1, 0, &[]);
        check(letter(1, child, Some(9)), 1, 0, 0, &[(9, 1)]);
        check(letter(1, child.with(JobFlags::DEPENDANTS), Some(9)), 0, 1, 0, &[]);
        check(letter(1, child, Some(7)), 0, 0, 1, &[]);
        check(letter(1, child.with(JobFlags::DEPENDANTS), Some(7)), 0, 0, 1, &[]);
        // The parent of one that is not a child is its schedule.
        check(letter(1, JobFlags::none(), Some(7)), 1, 0, 0, &[]);
        check(letter(8, JobFlags::INPUTS, None), 0, 0, 1, &[]);
        check(JobRecord { state: JobState::Pending, ..letter(8, JobFlags::none(), None) }, 0, 0, 0, &[]);
    }

    #[test]
    fn skipped_letters_do_not_count_and_are_judged_in_few_rounds() {
        let ties = LetterTies { undecidable: HashSet::from([id(9), id(8), id(7)]), ..LetterTies::default() };
        let letters = |numbers: &[u128]| numbers.iter().map(|number| letter(*number, JobFlags::none(), None)).collect();
        let check = |limit, rounds: &[&[u128]], wanted, chosen: &[u128], passed_over| {
            let mut retry = BulkRetry::new(limit).unwrap();
            assert_eq!(retry.wanted(), limit);
            for round in rounds {
                let round: Vec<JobRecord> = letters(round);
                retry.judge(round, &ties);
            }
            let plain: Vec<u128> = retry.plain().iter().map(|job| job.id.0.as_u128()).collect();
            assert_eq!((retry.wanted(), &plain[..]), (wanted, chosen), "{rounds:?}");
            assert_eq!(retry.result([]).passed_over, passed_over, "{rounds:?}");
        };
        check(2, &[&[6, 5]], 0, &[6, 5], 0);
        check(2, &[&[9, 8]], 4, &[], 2);
        check(2, &[&[9, 6], &[8, 5]], 0, &[6, 5], 2);
        check(2, &[&[9, 6], &[8, 7]], 4, &[6], 3);
        // What follows after enough were found is not judged.
        check(2, &[&[9, 6], &[5, 8]], 0, &[6, 5], 1);
        check(1, &[&[][..]; 70], usize::MAX, &[], 0);
        assert!(BulkRetry::new(0).is_err());
    }

    #[test]
    fn a_key_is_held_by_a_live_job_or_else_by_the_newest_letter() {
        let check = |letters: Vec<JobRecord>, holders: &[(&str, u128)], expected: &[(u128, &str, u128, bool)]| {
            let retry = judged(10, letters, &LetterTies::default());
            let holder =
                |key: &BusinessKey| holders.iter().find(|(name, _)| *name == key.as_str()).map(|(_, job)| id(*job));
            let held: Vec<_> = retry
                .held_keys(holder)
                .into_iter()
                .map(|held| {
                    (held.job.0.as_u128(), held.business_key.to_string(), held.holder.0.as_u128(), held.same_call)
                })
                .collect();
            let expected: Vec<_> =
                expected.iter().map(|(job, key, holder, same)| (*job, (*key).to_owned(), *holder, *same)).collect();
            assert_eq!(held, expected);
        };
        check(vec![letter(3, JobFlags::none(), None), keyed(2, "a"), keyed(1, "b")], &[], &[]);
        check(vec![keyed(2, "a"), keyed(1, "b")], &[("b", 7)], &[(1, "b", 7, false)]);
        check(vec![keyed(3, "a"), keyed(2, "a"), keyed(1, "a")], &[], &[(2, "a", 3, true), (1, "a", 3, true)]);
        check(vec![keyed(2, "a"), keyed(1, "a")], &[("a", 7)], &[(2, "a", 7, false), (1, "a", 7, false)]);
        // A letter that has just taken its key holds it against none but the others.
        check(vec![keyed(2, "a"), keyed(1, "b")], &[("a", 2)], &[]);
    }

    #[test]
    fn the_result_counts_what_was_retried_and_what_came_back() {
        let with = |number, flow, priority| {
            let mut job = letter(number, flow, None);
            job.spec.priority = priority;
            job
        };
        let plain = with(3, JobFlags::none(), Priority::Normal);
        let retry = judged(10, vec![plain, with(2, JobFlags::SIGNAL, Priority::High)], &LetterTies::default());
        let done = |state| Transitioned {
            from: Place::Failed,
            job: JobRecord { state, ..with(2, JobFlags::SIGNAL, Priority::High) },
            followed: Vec::new(),
        };
        let check = |tied: &[Transitioned], count, priority| {
            let expected = RetriedAll { count, priority: Some(priority), ..RetriedAll::default() };
            assert_eq!(retry.result(tied), expected);
        };
        check(&[], 1, Priority::Normal);
        // One that waits for its signal again cannot run.
        check(&[done(JobState::Waiting)], 2, Priority::Normal);
        check(&[done(JobState::Pending)], 2, Priority::High);
    }
}
