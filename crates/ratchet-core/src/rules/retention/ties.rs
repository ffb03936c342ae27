use std::collections::HashSet;

use crate::batch::batch_of;
use crate::flow::JobFlags;
use crate::id::JobId;
use crate::state::JobState;

/// An ended job, as far as it decides what else has to be known before the job may leave.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct EndedJob {
    /// Its id.
    pub id: JobId,
    /// Its ties.
    pub flow: JobFlags,
    /// Its batch or its schedule.
    pub parent: Option<JobId>,
    /// The job whose end has canceled it.
    pub canceled_because: Option<JobId>,
}

/// The jobs that a store looks up before ended jobs leave, each list in order and without repetition.
///
/// Most jobs are tied to nothing, and ask for nothing.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct TieQuestions {
    /// Which of these does a live job wait for, or have its input from? The answer is [`Ties::needed`].
    pub needed: Vec<JobId>,
    /// Which of these batches [have children to come](crate::batch::BatchCounts::has_children_to_come)?
    pub open_batches: Vec<JobId>,
    /// Which of these are live?
    pub live_parents: Vec<JobId>,
    /// Which of these [bring others back](brings_back) when they are retried?
    pub revivers: Vec<JobId>,
}

impl TieQuestions {
    /// The questions that these jobs ask.
    pub fn about(jobs: impl IntoIterator<Item = EndedJob>) -> Self {
        let mut questions = Self::default();
        for job in jobs {
            questions.needed.extend(Some(job.id).filter(|_| job.flow.has(JobFlags::DEPENDANTS)));
            questions.open_batches.extend(Some(job.id).filter(|_| job.flow.has(JobFlags::BATCH)));
            questions.live_parents.extend(batch_of(job.flow, job.parent));
            questions.revivers.extend(job.canceled_because);
        }
        let Self { needed, open_batches, live_parents, revivers } = &mut questions;
        for list in [needed, open_batches, live_parents, revivers] {
            list.sort_unstable();
            list.dedup();
        }
        questions
    }
}

/// The answers to [`TieQuestions`].
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Ties {
    /// Jobs that a live job waits for, or has its input from.
    pub needed: HashSet<JobId>,
    /// Batches with children to come.
    pub open_batches: HashSet<JobId>,
    /// Parent jobs of batches that are live.
    pub live_parents: HashSet<JobId>,
    /// Jobs whose retry brings back what they had canceled.
    pub revivers: HashSet<JobId>,
}

/// Whether an ended job may leave for the archive: nothing that is live depends on it, and nothing can bring it back.
pub fn may_go(job: &EndedJob, ties: &Ties) -> bool {
    !ties.needed.contains(&job.id)
        && !ties.open_batches.contains(&job.id)
        && batch_of(job.flow, job.parent).is_none_or(|parent| !ties.live_parents.contains(&parent))
        && job.canceled_because.is_none_or(|cause| !ties.revivers.contains(&cause))
}

/// Whether the retry of a job can bring back what its end has canceled: it has failed, or it is live and may fail again.
///
/// `ended` is the state in which it ended, `None` while it is live. A job that is gone brings back nothing.
pub fn brings_back(ended: Option<JobState>) -> bool {
    ended.is_none_or(|state| state == JobState::Failed)
}

#[cfg(test)]
mod tests {
    use uuid::Uuid;

    use super::*;

    const fn id(number: u128) -> JobId {
        JobId(Uuid::from_u128(number))
    }

    fn job(number: u128, flow: JobFlags, parent: Option<u128>, cause: Option<u128>) -> EndedJob {
        EndedJob { id: id(number), flow, parent: parent.map(id), canceled_because: cause.map(id) }
    }

    const CHILD: JobFlags = JobFlags::BATCH_CHILD;

    #[test]
    fn only_ties_are_asked_about_each_once() {
        let check = |jobs: &[EndedJob], expected: [&[u128]; 4]| {
            let [needed, open_batches, live_parents, revivers] =
                expected.map(|list| list.iter().copied().map(id).collect());
            let expected = TieQuestions { needed, open_batches, live_parents, revivers };
            assert_eq!(TieQuestions::about(jobs.iter().copied()), expected, "{jobs:?}");
        };
        check(&[job(1, JobFlags::none(), None, None)], [&[], &[], &[], &[]]);
        check(&[job(1, JobFlags::INPUTS, Some(9), None)], [&[], &[], &[], &[]]);
        check(
            &[job(2, JobFlags::DEPENDANTS, None, None), job(1, JobFlags::DEPENDANTS, None, None)],
            [&[1, 2], &[], &[], &[]],
        );
        check(&[job(1, JobFlags::BATCH.with(JobFlags::DEPENDANTS), None, None)], [&[1], &[1], &[], &[]]);
        check(&[job(1, CHILD, Some(9), None), job(2, CHILD, Some(9), Some(8))], [&[], &[], &[9], &[8]]);
    }

    #[test]
    fn a_job_may_go_unless_something_live_is_tied_to_it() {
        let none = Ties::default();
        let check =
            |job: EndedJob, ties: &Ties, expected: bool| assert_eq!(may_go(&job, ties), expected, "{job:?} {ties:?}");
        let of = |number| HashSet::from([id(number)]);
        check(job(1, JobFlags::none(), None, None), &none, true);
        let needed = Ties { needed: of(1), ..none.clone() };
        check(job(1, JobFlags::DEPENDANTS, None, None), &needed, false);
        check(job(2, JobFlags::DEPENDANTS, None, None), &needed, true);
        let open = Ties { open_batches: of(1), ..none.clone() };
        check(job(1, JobFlags::BATCH, None, None), &open, false);
        check(job(2, JobFlags::BATCH, None, None), &open, true);
        let live = Ties { live_parents: of(9), ..none.clone() };
        check(job(1, CHILD, Some(9), None), &live, false);
        check(job(1, CHILD, Some(8), None), &live, true);
        check(job(1, JobFlags::none(), Some(9), None), &live, true);
        let revives = Ties { revivers: of(7), ..none };
        check(job(1, JobFlags::INPUTS, None, Some(7)), &revives, false);
        check(job(1, JobFlags::INPUTS, None, Some(6)), &revives, true);
    }

    #[test]
    fn what_failed_or_may_fail_brings_back_what_it_had_canceled() {
        let check = |ended, expected| assert_eq!(brings_back(ended), expected, "{ended:?}");
        check(None, true);
        check(Some(JobState::Failed), true);
        check(Some(JobState::Succeeded), false);
        check(Some(JobState::Canceled), false);
    }
}
