use std::time::Duration;

use super::{Consequences, EdgeState, Fate, JobFlags, WaitState, limit_begins};
use crate::batch::Tallies;
use crate::id::JobId;
use crate::outcome::ErrorReport;
use crate::settlement::FollowedBy;
use crate::state::JobState;
use crate::transition::Event;

/// A live job at the end of an edge, as far as what follows depends on it. A store reads it under the job's lock.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Dependent {
    /// What it waits for, and its ties.
    pub waiting: WaitState,
    /// The time from its release until it is due.
    pub release_delay: Option<Duration>,
    /// The batch that it is a child of.
    pub batch: Option<JobId>,
}

/// A job that has nothing left to wait for: it becomes PENDING.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Release {
    /// The job.
    pub id: JobId,
    /// The ties that are stored from now on.
    pub flow: JobFlags,
    /// The time from now until it is due. A later time that is already stored stands.
    pub delay: Option<Duration>,
}

impl Release {
    /// Releases a job with these ties.
    pub const fn new(id: JobId, flow: JobFlags, delay: Option<Duration>) -> Self {
        Self { id, flow: flow.at_rest(), delay }
    }
}

/// The end of a job that waited and never ran.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UnrunEnd {
    /// The job.
    pub id: JobId,
    /// The state that it ends in.
    pub state: JobState,
    /// The job whose end has canceled it.
    pub canceled_because: Option<JobId>,
    /// The error that it fails with; its alert and its callback follow from it.
    pub error: Option<ErrorReport>,
}

impl UnrunEnd {
    /// The event that leads there.
    pub const fn event(&self) -> Event {
        match self.state {
            JobState::Failed => Event::Expire,
            _ => Event::Cancel,
        }
    }
}

/// The writes that follow from the ends of jobs.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct FlowPlan {
    /// Edges that are decided: parent, child, and how.
    pub edges: Vec<(JobId, JobId, EdgeState)>,
    /// Jobs that wait on, for fewer.
    pub still: Vec<(JobId, WaitState)>,
    /// Those of them that wait for nothing but their signal from now on: its time limit begins.
    pub awaiting: Vec<JobId>,
    /// Jobs that become PENDING.
    pub released: Vec<Release>,
    /// Jobs that end without a run.
    pub ended: Vec<UnrunEnd>,
    /// Their ends, to be counted by batch.
    pub tallies: Tallies,
    /// Those of them that are the parent jobs of batches, and the states in which they ended.
    pub closed: Vec<(JobId, JobState)>,
    /// What is reported about each job.
    pub followed: Vec<(JobId, FollowedBy)>,
}

impl Consequences {
    /// The writes that carry these consequences out, with the jobs in the order of their ids.
    ///
    /// `job` gives the rows of the jobs that wait; a job without one is left as it is.
    pub fn plan(self, job: impl Fn(JobId) -> Option<Dependent>) -> FlowPlan {
        let mut plan = FlowPlan { edges: self.edges, ..FlowPlan::default() };
        for (id, fate) in self.fates {
            if let Some(dependent) = job(id) {
                plan.carry_out(id, fate, &dependent);
            }
        }
        plan
    }
}

impl FlowPlan {
    fn carry_out(&mut self, id: JobId, fate: Fate, job: &Dependent) {
        match fate {
            Fate::Waits(left) => {
                self.still.push((id, left));
                if limit_begins(left) {
                    self.awaiting.push(id);
                    self.followed.push((id, FollowedBy::Awaiting));
                }
            }
            Fate::Released => {
                self.released.push(Release::new(id, job.waiting.flow, job.release_delay));
                self.followed.push((id, FollowedBy::Released));
            }
            Fate::Canceled { because } => {
                self.end(UnrunEnd { id, state: JobState::Canceled, canceled_because: Some(because), error: None }, job);
                self.followed.push((id, FollowedBy::Canceled { because }));
            }
            Fate::Failed { error } => {
                let report = ErrorReport::new("Condition", &error);
                self.followed.push((id, FollowedBy::Failed { error: report.text().to_owned() }));
                self.end(UnrunEnd { id, state: JobState::Failed, canceled_because: None, error: Some(report) }, job);
            }
        }
    }

    fn end(&mut self, end: UnrunEnd, job: &Dependent) {
        if let Some(batch) = job.batch {
            self.tallies.entry(batch).or_default().add(end.state, None);
        }
        if job.waiting.flow.has(JobFlags::BATCH) {
            self.closed.push((end.id, end.state));
        }
        self.ended.push(end);
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use uuid::Uuid;

    use super::*;
    use crate::batch::Tally;

    const fn id(number: u128) -> JobId {
        JobId(Uuid::from_u128(number))
    }

    const DELAY: Option<Duration> = Some(Duration::from_secs(5));

    /// The plan for job 1 with these ties, a child of batch 9 if they say so.
    fn plan(fate: Fate, flow: JobFlags) -> FlowPlan {
        let batch = flow.has(JobFlags::BATCH_CHILD).then_some(id(9));
        let job = Dependent { waiting: WaitState { waits_for: 1, flow }, release_delay: DELAY, batch };
        let done = Consequences { fates: BTreeMap::from([(id(1), fate)]), ..Consequences::default() };
        done.plan(|asked| (asked == id(1)).then_some(job))
    }

    #[test]
    fn a_job_that_waits_on_is_counted_down_and_its_limit_begins_when_only_its_signal_is_left() {
        let check = |waits_for, flow, awaiting: bool| {
            let left = WaitState { waits_for, flow };
            let expected = FlowPlan {
                still: vec![(id(1), left)],
                awaiting: if awaiting { vec![id(1)] } else { Vec::new() },
                followed: if awaiting { vec![(id(1), FollowedBy::Awaiting)] } else { Vec::new() },
                ..FlowPlan::default()
            };
            assert_eq!(plan(Fate::Waits(left), flow), expected, "{left:?}");
        };
        check(1, JobFlags::SIGNAL, true);
        check(2, JobFlags::SIGNAL, false);
        check(1, JobFlags::none(), false);
        check(1, JobFlags::SIGNALED, false);
    }

    #[test]
    fn a_released_job_keeps_its_delay_and_loses_what_only_waiting_jobs_have() {
        let check = |flow, kept| {
            let expected = FlowPlan {
                released: vec![Release { id: id(1), flow: kept, delay: DELAY }],
                followed: vec![(id(1), FollowedBy::Released)],
                ..FlowPlan::default()
            };
            assert_eq!(plan(Fate::Released, flow), expected, "{flow:?}");
        };
        check(JobFlags::INPUTS, JobFlags::INPUTS);
        check(JobFlags::JOIN_ANY.with(JobFlags::HELD), JobFlags::JOIN_ANY);
        check(JobFlags::BATCH_CHILD, JobFlags::BATCH_CHILD);
    }

    #[test]
    fn an_end_without_a_run_says_why_and_counts_for_batches() {
        let failed = || ErrorReport::new("Condition", "nobody knows");
        let canceled = || Fate::Canceled { because: id(7) };
        let check = |fate: Fate, flow, end: UnrunEnd, tally: Option<Tally>, closed: bool, what| {
            let expected = FlowPlan {
                tallies: tally.map(|tally| (id(9), tally)).into_iter().collect(),
                closed: if closed { vec![(id(1), end.state)] } else { Vec::new() },
                ended: vec![end],
                followed: vec![(id(1), what)],
                ..FlowPlan::default()
            };
            assert_eq!(plan(fate, flow), expected, "{flow:?}");
        };
        let cancel = || UnrunEnd { id: id(1), state: JobState::Canceled, canceled_because: Some(id(7)), error: None };
        let fail = || UnrunEnd { id: id(1), state: JobState::Failed, canceled_because: None, error: Some(failed()) };
        let why = || FollowedBy::Failed { error: "nobody knows".to_owned() };
        let unknown = || Fate::Failed { error: "nobody knows".to_owned() };
        let (one_canceled, one_failed) =
            (Tally { canceled: 1, ..Tally::default() }, Tally { failed: 1, ..Tally::default() });
        let because = || FollowedBy::Canceled { because: id(7) };
        check(canceled(), JobFlags::INPUTS, cancel(), None, false, because());
        check(canceled(), JobFlags::BATCH, cancel(), None, true, because());
        check(canceled(), JobFlags::BATCH_CHILD, cancel(), Some(one_canceled), false, because());
        check(unknown(), JobFlags::INPUTS, fail(), None, false, why());
        check(unknown(), JobFlags::BATCH, fail(), None, true, why());
        check(unknown(), JobFlags::BATCH_CHILD, fail(), Some(one_failed), false, why());
        assert_eq!((cancel().event(), fail().event()), (Event::Cancel, Event::Expire));
    }

    #[test]
    fn a_job_without_a_row_is_left_as_it_is_and_its_edge_is_decided() {
        let edges = vec![(id(2), id(1), EdgeState::Held)];
        let fates = BTreeMap::from([(id(1), Fate::Released)]);
        let plan = Consequences { edges: edges.clone(), fates, ..Consequences::default() }.plan(|_| None);
        assert_eq!(plan, FlowPlan { edges, ..FlowPlan::default() });
    }
}
