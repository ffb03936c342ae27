use std::collections::{BTreeMap, BTreeSet};

use jiff::Timestamp;

use super::{Tables, to_micros};
use crate::batch::batch_of;
use crate::claim::Input;
use crate::clock::later;
use crate::control::TiedChild;
use crate::decide::failure_callback;
use crate::error::StoreError;
use crate::flow::{
    CanceledStep, Condition, Dependent, Edge, EdgeState, End, FlowPlan, JobFlags, Release, UnrunEnd, WaitState, follow,
    may_revive, revive, unbegun, undecidable,
};
use crate::id::JobId;
use crate::outcome::ErrorReport;
use crate::record::JobRecord;
use crate::retention::brings_back;
use crate::settlement::{Followed, FollowedBy};
use crate::state::JobState;
use crate::transition::Event;

impl Tables {
    /// Does what follows from the end of a job.
    pub(super) fn follow(&mut self, id: JobId, now: Timestamp) -> Result<Vec<Followed>, StoreError> {
        let Some(job) = self.jobs.get(&id) else { return Ok(Vec::new()) };
        if !(job.state.is_terminal() && job.flow.has(JobFlags::DEPENDANTS)) {
            return Ok(Vec::new());
        }
        let (state, result) = (job.state, job.result.clone());
        let edges = self.edges_of(job.workflow);
        let live = |id: &JobId| self.jobs.get(id).is_some_and(|job| !job.state.is_terminal());
        let over: BTreeSet<JobId> = edges.iter().map(|edge| edge.child).filter(|child| !live(child)).collect();
        let end = End { id, state, result: result.as_ref() };
        let done = follow(&[end], &edges, &self.waiting(&edges), &over);
        let plan = done.plan(|child| self.jobs.get(&child).map(dependent));
        self.carry_out(plan, now)
    }

    /// Writes what follows from ends.
    fn carry_out(&mut self, plan: FlowPlan, now: Timestamp) -> Result<Vec<Followed>, StoreError> {
        for (parent, child, state) in plan.edges {
            if let Some(edge) = self.edges.get_mut(&(parent, child)) {
                edge.state = state;
            }
        }
        for (id, left) in plan.still {
            if let Some(job) = self.jobs.get_mut(&id) {
                (job.waits_for, job.flow) = (left.waits_for, left.flow);
            }
        }
        for id in plan.awaiting {
            self.begin_limit(id, now);
        }
        for release in plan.released {
            self.release(release, now)?;
        }
        for end in plan.ended {
            self.end_unrun(&end, now)?;
        }
        for (id, state) in plan.closed {
            self.close_batch(id, state, now);
        }
        let followed = |(id, what)| self.jobs.get(&id).map(|job| Followed::of(job, what));
        let mut followed: Vec<Followed> = plan.followed.into_iter().filter_map(followed).collect();
        followed.append(&mut self.count(&plan.tallies, now)?);
        Ok(followed)
    }

    /// Lets a job that waits become claimable; `None` if it does not wait.
    pub(super) fn release(&mut self, release: Release, now: Timestamp) -> Result<Option<&JobRecord>, StoreError> {
        let Some((_, job)) = self.transition(release.id, Event::Release)? else { return Ok(None) };
        job.flow = release.flow;
        job.waits_for = 0;
        job.scheduled_time = job.scheduled_time.max(release.delay.map_or(now, |delay| to_micros(later(now, delay))));
        Ok(Some(job))
    }

    fn end_unrun(&mut self, end: &UnrunEnd, now: Timestamp) -> Result<(), StoreError> {
        let Some((_, job)) = self.transition(end.id, end.event())? else { return Ok(()) };
        job.flow = job.flow.at_rest();
        job.terminated_at = Some(now);
        job.canceled_because = end.canceled_because;
        let Some(error) = &end.error else { return Ok(()) };
        job.last_error = Some(error.text().to_owned());
        self.failed_unrun(end.id, error, now)
    }

    /// What follows from a failure without a run: the alert and the callback.
    pub(super) fn failed_unrun(&mut self, id: JobId, report: &ErrorReport, now: Timestamp) -> Result<(), StoreError> {
        self.alert(id, report, now);
        let callback = self.jobs.get(&id).and_then(|job| failure_callback(job, report));
        callback.map_or(Ok(()), |callback| self.insert(&callback, now))
    }

    /// Brings back what was canceled because `retried` had failed; refused as a whole if one of their keys is taken.
    pub(super) fn revive(&mut self, retried: JobId, now: Timestamp) -> Result<Vec<Followed>, StoreError> {
        let Some(job) = self.jobs.get(&retried) else { return Ok(Vec::new()) };
        let edges = self.edges_of(job.workflow);
        let mut after =
            edges.iter().filter(|edge| edge.parent == retried).filter_map(|edge| self.jobs.get(&edge.child));
        if !after.any(may_revive) {
            return Ok(Vec::new());
        }
        let canceled: BTreeMap<JobId, CanceledStep> = edges
            .iter()
            .filter_map(|edge| self.jobs.get(&edge.child))
            .filter_map(|child| Some((child.id, CanceledStep::of(child)?)))
            .collect();
        let released: BTreeMap<JobId, JobFlags> = edges
            .iter()
            .filter_map(|edge| self.jobs.get(&edge.child))
            .filter(|child| unbegun(child) && !self.has_attempts(child.id))
            .map(|child| (child.id, child.flow))
            .collect();
        let back = revive(retried, &edges, &canceled, &self.waiting(&edges), &released);
        for id in back.revived.keys() {
            if let Some(key) = self.jobs.get(id).and_then(|job| job.business_key.as_ref())
                && let Some(holder) = self.business_keys.get(key)
            {
                return Err(StoreError::duplicate(format!("revive job {id}"), key.clone(), *holder));
            }
        }
        for edge in back.reopened {
            if let Some(edge) = self.edges.get_mut(&edge) {
                edge.state = EdgeState::Open;
            }
        }
        for (id, left) in back.waiting {
            if let Some(job) = self.jobs.get_mut(&id) {
                (job.waits_for, job.flow) = (left.waits_for, left.flow);
            }
            self.begin_limit(id, now);
        }
        let mut revived = Vec::new();
        for (id, left) in back.withdrawn {
            if let Some((_, job)) = self.transition(id, Event::Revive)? {
                (job.waits_for, job.flow) = (left.waits_for, left.flow);
                revived.push(Followed::of(job, FollowedBy::Revived));
            }
        }
        for (id, (waits_for, flow)) in back.revived {
            if let Some((_, job)) = self.transition(id, Event::Revive)? {
                (job.waits_for, job.flow) = (waits_for, flow);
                job.canceled_because = None;
                job.terminated_at = None;
                revived.push(Followed::of(job, FollowedBy::Revived));
                self.await_again(id, now);
            }
        }
        Ok(revived)
    }

    /// What came of the jobs that this one waited for.
    pub(super) fn inputs_of(&self, job: &JobRecord) -> Vec<Input> {
        if !job.flow.has(JobFlags::INPUTS) {
            return Vec::new();
        }
        let mut edges: Vec<&Edge> =
            self.edges.values().filter(|edge| edge.child == job.id && edge.state == EdgeState::Held).collect();
        edges.sort_by_key(|edge| edge.order);
        let input = |parent: &JobRecord| Input {
            job_id: parent.id,
            kind: parent.spec.kind.clone(),
            step: parent.step.clone(),
            state: parent.state,
            result: parent.result.clone(),
            error: parent.last_error.clone().filter(|_| parent.state == JobState::Failed),
        };
        // A parent that was retried since is live again; what it came to then is gone.
        let ended = |parent: &&JobRecord| parent.state.is_terminal();
        edges.iter().filter_map(|edge| self.job_anywhere(edge.parent)).filter(ended).map(input).collect()
    }

    /// Why a failed job must not be retried, if that is because nobody can tell whether it is to run.
    pub(super) fn undecidable(&self, job: &JobRecord) -> Option<String> {
        let before = self.edges.values().filter(|edge| edge.child == job.id);
        undecidable(job, before.map(|edge| (edge, self.job_anywhere(edge.parent))))
    }

    fn has_attempts(&self, id: JobId) -> bool {
        self.attempts.range((id, 0)..=(id, u64::MAX)).next().is_some()
    }

    /// A job that needs this one when it is retried, or when the one is that had canceled it.
    pub(super) fn needed_again_by(&self, id: JobId) -> Option<JobId> {
        let ended = |job: &JobRecord| Some(job.state).filter(|state| state.is_terminal());
        let cause = |id: JobId| self.jobs.get(&id).map(|cause| (id, ended(cause)));
        let tied = |edge: &Edge| {
            self.jobs.get(&edge.child).map(|child| TiedChild {
                id: child.id,
                awaits_end: edge.condition == Condition::Ended,
                ended: ended(child),
                canceled_because: child.canceled_because.and_then(cause),
            })
        };
        let mut tied = self.edges.values().filter(|edge| edge.parent == id).filter_map(tied);
        tied.find(|child| child.needs_again(id)).map(|child| child.id)
    }

    /// Whether a job is there and has failed, or is live again and may.
    pub(super) fn may_be_retried(&self, id: JobId) -> bool {
        let ended = |job: &JobRecord| Some(job.state).filter(|state| state.is_terminal());
        self.jobs.get(&id).is_some_and(|job| brings_back(ended(job)))
    }

    /// Whether a live job waits for this one or has its input from it.
    pub(super) fn is_needed(&self, id: JobId) -> bool {
        let live = |child: &JobId| self.jobs.get(child).is_some_and(|child| !child.state.is_terminal());
        self.edges.values().any(|edge| edge.parent == id && live(&edge.child))
    }

    /// The jobs at the ends of edges that wait.
    fn waiting(&self, edges: &[Edge]) -> BTreeMap<JobId, WaitState> {
        let children = edges.iter().filter_map(|edge| self.jobs.get(&edge.child));
        children.filter(|child| child.state == JobState::Waiting).map(|child| (child.id, child.waiting())).collect()
    }

    fn edges_of(&self, workflow: Option<JobId>) -> Vec<Edge> {
        self.edges.values().filter(|edge| Some(edge.workflow) == workflow).cloned().collect()
    }
}

pub(super) fn dependent(job: &JobRecord) -> Dependent {
    let batch = batch_of(job.flow, job.parent);
    Dependent { waiting: job.waiting(), release_delay: job.release_delay, batch }
}
