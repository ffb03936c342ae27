//! Random workflows, batches, signals and schedules, with all that may happen to their jobs.

use std::fmt::Debug;

use fastrand::Rng;
use ratchet_core::JobState::{Canceled, Failed, Paused, Pending, Running, Succeeded, Waiting};
use ratchet_core::batch::{BATCH_KIND, NewBatch, tie_child};
use ratchet_core::flow::{Condition, Edge, Operator, ResultTest};
use ratchet_core::page::JobFilter;
use ratchet_core::schedule::{ArchiveReason, NewSchedule};
use ratchet_core::schedule::{Every, MisfirePolicy, OverlapPolicy, Schedule};
use ratchet_core::signal::{Delivery, SignalTarget};
use ratchet_core::store::SubmitUnit;
use ratchet_core::{
    DeliveryId, Followed, JobFlags, JobId, JobRecord, JobState, JsonText, NewJob, SignalKey, SignalWait,
};
use uuid::Uuid;

use super::days;
use super::operation::{ClaimDraft, KINDS, Operation, World, new_id};
use super::side::{Answer, Side, kind_of, said};
use crate::harness::{new_job, spec};

const SIGNALS: [&str; 2] = ["go", "stop"];

/// Something that ties jobs together, or happens to what does.
#[derive(Debug, Clone)]
pub(super) enum Tie {
    Workflow { steps: Vec<Step>, edges: Vec<(usize, usize, Condition)> },
    Batch { id: JobId, children: Vec<JobId>, follower: Option<JobId>, sealed: bool },
    Extend(JobId, Vec<JobId>),
    Seal(JobId),
    CancelChildren(JobId, usize),
    Deliver { target: SignalTarget, keep: Option<u64>, id: DeliveryId },
    Expire,
    Declare { id: JobId, every: u64, overlap: OverlapPolicy, anchor: jiff::Timestamp },
    Fire,
    PauseSchedule(JobId),
    ResumeSchedule(JobId),
    EndSchedule(JobId, ArchiveReason, Option<u64>),
}

/// A step of a workflow.
#[derive(Debug, Clone)]
pub(super) struct Step {
    id: JobId,
    any: bool,
    signal: Option<(&'static str, Option<u64>)>,
}

/// What there is so far that ties jobs together.
#[derive(Default)]
pub(super) struct Ties {
    batches: Vec<JobId>,
    schedules: Vec<JobId>,
}

pub(super) enum Next {
    Plain(Operation),
    Tied(Tie),
}

impl Ties {
    /// What comes next; `jobs` are all that there are, as they stand.
    pub(super) fn next(&mut self, world: &mut World, jobs: &[JobRecord], anchor: jiff::Timestamp) -> Next {
        if world.nodes.is_empty() {
            return Next::Plain(world.next_operation());
        }
        let any = |rng: &mut Rng, wanted: &[JobState]| {
            let found: Vec<JobId> =
                jobs.iter().rev().filter(|job| wanted.contains(&job.state)).take(12).map(|job| job.id).collect();
            rng.choice(found).unwrap_or_else(|| new_id(rng))
        };
        let choice = world.rng.u8(..100);
        let plain = match choice {
            0..18 => Operation::Turn { endings: Vec::new(), claim: Some(claim(world)) },
            18..36 => Operation::Turn { endings: world.endings(), claim: None },
            36..41 => Operation::Cancel(any(&mut world.rng, &[Pending, Running, Waiting])),
            41..43 => Operation::Pause(any(&mut world.rng, &[Pending, Failed])),
            43..45 => Operation::Resume(any(&mut world.rng, &[Paused])),
            45..56 => Operation::Retry(any(&mut world.rng, &[Failed])),
            56..57 => Operation::Release(any(&mut world.rng, &[Waiting])),
            57..59 => Operation::Delete(any(&mut world.rng, &[Succeeded, Failed, Canceled])),
            _ => return Next::Tied(self.tie(world, choice, any(&mut world.rng.clone(), &[Waiting]), anchor)),
        };
        Next::Plain(plain)
    }

    fn tie(&mut self, world: &mut World, choice: u8, waiting: JobId, anchor: jiff::Timestamp) -> Tie {
        let rng = &mut world.rng;
        let batch = rng.choice(&self.batches).copied().unwrap_or_else(|| new_id(rng));
        let schedule = rng.choice(&self.schedules).copied().unwrap_or_else(|| new_id(rng));
        match choice {
            59..69 => workflow(rng),
            69..72 => Tie::Batch {
                id: new_id(rng),
                children: (0..rng.usize(..4)).map(|_| new_id(rng)).collect(),
                follower: rng.bool().then(|| new_id(rng)),
                sealed: rng.bool(),
            },
            72..74 => Tie::Extend(batch, (0..rng.usize(1..3)).map(|_| new_id(rng)).collect()),
            74..76 => Tie::Seal(batch),
            76..78 => Tie::CancelChildren(batch, rng.usize(1..3)),
            78..83 => {
                let key = SignalKey::new(SIGNALS[rng.usize(..2)]).unwrap();
                let target = if rng.bool() { SignalTarget::Job(waiting) } else { SignalTarget::Key(key) };
                let keep = rng.bool().then(|| rng.u64(1..10));
                Tie::Deliver { target, keep, id: DeliveryId(Uuid::from_u128(rng.u128(..))) }
            }
            83..85 => Tie::Expire,
            85..90 => {
                let id = if self.schedules.len() < 3 { new_id(rng) } else { schedule };
                let policies = [OverlapPolicy::Allow, OverlapPolicy::Skip, OverlapPolicy::Queue, OverlapPolicy::Queue];
                Tie::Declare { id, every: [2, 5][rng.usize(..2)], overlap: policies[rng.usize(..4)], anchor }
            }
            90..96 => Tie::Fire,
            96 => Tie::PauseSchedule(schedule),
            97 => Tie::ResumeSchedule(schedule),
            _ => {
                let reason = if rng.bool() { ArchiveReason::Retired } else { ArchiveReason::Canceled };
                Tie::EndSchedule(schedule, reason, rng.bool().then(|| rng.u64(1..30)))
            }
        }
    }

    /// Remembers what a tie brought into the world.
    pub(super) fn learn(&mut self, tie: &Tie, world: &mut World) {
        match tie {
            Tie::Workflow { steps, .. } => {
                world.jobs.extend(steps.iter().map(|step| step.id));
            }
            Tie::Batch { id, children, follower, .. } => {
                self.batches.push(*id);
                world.jobs.push(*id);
                world.jobs.extend(children.iter().chain(follower));
            }
            Tie::Extend(_, children) => world.jobs.extend(children),
            Tie::Declare { id, .. } if !self.schedules.contains(id) => self.schedules.push(*id),
            _ => {}
        }
    }
}

fn claim(world: &mut World) -> ClaimDraft {
    let kinds = KINDS.into_iter().chain([BATCH_KIND]).filter(|_| world.rng.bool()).collect();
    let node = world.node();
    // All of some kinds: which of two that one transaction has released was first is a store's own matter.
    ClaimDraft { node, queue: "default", kinds, limit: 1_000, probation: true, boost: 0 }
}

fn job(id: JobId) -> NewJob {
    NewJob { id, ..new_job(KINDS[usize::from(id.as_bytes()[15]) % KINDS.len()]) }
}

fn workflow(rng: &mut Rng) -> Tie {
    let count = rng.usize(2..6);
    let step = |rng: &mut Rng| Step {
        id: new_id(rng),
        any: rng.bool(),
        signal: (rng.u8(..5) == 0).then(|| (SIGNALS[rng.usize(..2)], rng.bool().then(|| rng.u64(1..20)))),
    };
    let steps = (0..count).map(|_| step(rng)).collect();
    let mut edges = Vec::new();
    for child in 1..count {
        for parent in 0..child {
            if rng.u8(..3) > 0 {
                continue;
            }
            let condition = match rng.u8(..8) {
                0..3 => Condition::Success,
                3..5 => Condition::Failure,
                5 => Condition::Finished,
                6 => Condition::Ended,
                _ => Condition::Result(ResultTest::new("", Operator::AtLeast, 2).unwrap()),
            };
            edges.push((parent, child, condition));
        }
    }
    Tie::Workflow { steps, edges }
}

fn job_of(step: &Step, workflow: JobId) -> NewJob {
    let mut job = NewJob { workflow: Some(workflow), ..job(step.id) };
    if let Some((key, timeout)) = step.signal {
        job = job.awaiting(SignalWait { key: SignalKey::new(key).unwrap(), timeout: timeout.map(days) });
    }
    if step.any {
        job.flow = job.flow.with(JobFlags::JOIN_ANY);
    }
    job
}

/// What others' ends came to, whoever is told first.
pub(super) fn told(followed: &[Followed]) -> Vec<String> {
    let mut told: Vec<_> = followed.iter().map(|followed| format!("{} {:?}", followed.id, followed.what)).collect();
    told.sort_unstable();
    told
}

impl Side {
    pub(super) async fn tie(&self, tie: &Tie) -> Answer {
        let store = &self.store;
        match tie {
            Tie::Workflow { steps, edges } => {
                let id = steps[0].id;
                let jobs = steps.iter().map(|step| job_of(step, id)).collect();
                let edge = |(order, (parent, child, condition)): (usize, &(usize, usize, Condition))| Edge {
                    order: u32::try_from(order).unwrap(),
                    ..Edge::new(id, steps[*parent].id, steps[*child].id, condition.clone())
                };
                let unit = SubmitUnit::workflow(jobs, edges.iter().enumerate().map(edge).collect()).unwrap();
                said(kind_of(store.submit(&[unit]).await.unwrap().remove(0)))
            }
            Tie::Batch { id, children, follower, sealed } => {
                let parent = NewJob { id: *id, workflow: Some(*id), ..new_job(BATCH_KIND) };
                let next = follower.map(|follower| NewJob { workflow: Some(*id), ..job(follower) });
                let edges = follower.map(|follower| Edge::new(*id, *id, follower, Condition::Success));
                let jobs = std::iter::once(parent).chain(next).collect();
                let unit = SubmitUnit::workflow(jobs, edges.into_iter().collect()).unwrap();
                let children = children.iter().copied().map(job).collect();
                let batch = NewBatch { id: *id, sealed: *sealed, hook: None };
                let unit = unit.with_batch(batch, children).unwrap();
                said(kind_of(store.submit(&[unit]).await.unwrap().remove(0)))
            }
            Tie::Extend(batch, children) => {
                let mut children: Vec<_> = children.iter().copied().map(job).collect();
                for child in &mut children {
                    tie_child(*batch, child).unwrap();
                }
                said(kind_of(store.extend_batch(*batch, &children).await))
            }
            Tie::Seal(batch) => said(kind_of(store.seal_batch(*batch).await).map(|followed| told(&followed))),
            Tie::CancelChildren(batch, limit) => {
                let mut all = Vec::new();
                let mut after = None;
                loop {
                    let portion = store.cancel_children(*batch, after, *limit).await.unwrap();
                    all.push((told(&portion.children), portion.next));
                    after = portion.next;
                    if after.is_none() {
                        return said(all);
                    }
                }
            }
            Tie::Deliver { target, keep, id } => {
                let payload = JsonText::parse("payload", "1", 10).unwrap();
                let keep_for = keep.map(days);
                let delivery =
                    Delivery { id: *id, target: target.clone(), payload, decision: None, by: None, keep_for };
                let delivered = store.deliver(&delivery).await.unwrap();
                said((told(&delivered.jobs), delivered.kept))
            }
            Tie::Expire => {
                let expired = store.expire(1_000).await.unwrap();
                let mut jobs: Vec<_> = expired.jobs.iter().map(|job| self.shown(job)).collect();
                jobs.sort_unstable();
                said((jobs, told(&expired.followed)))
            }
            Tie::Declare { id, every, overlap, anchor } => {
                let now = store.database_time().await.unwrap();
                let schedule = Schedule::Every(Every::new(days(*every), *anchor).unwrap());
                let new = NewSchedule {
                    id: *id,
                    spec: spec(KINDS[0]),
                    on_success: None,
                    on_failure: None,
                    next_fire: schedule.next_after(now),
                    schedule,
                    misfire: MisfirePolicy::default(),
                    overlap: *overlap,
                    business_key: None,
                    declared: true,
                };
                said(kind_of(store.declare_schedules(&[new]).await))
            }
            Tie::Fire => {
                let (now, due) = store.due_schedules(10).await.unwrap();
                let firings: Vec<_> = due.iter().filter_map(|one| one.firing(now)).collect();
                said(store.fire_schedules(&firings).await.unwrap())
            }
            Tie::PauseSchedule(id) => said(store.pause_schedule(*id).await.unwrap()),
            Tie::ResumeSchedule(id) => {
                let now = store.database_time().await.unwrap();
                let one = store.find_schedules(&[*id]).await.unwrap().pop();
                let next = one.and_then(|one| one.schedule.next_after(now));
                said(store.resume_schedule(*id, next).await.unwrap())
            }
            Tie::EndSchedule(id, reason, idle) => {
                said(store.cancel_schedule(*id, *reason, idle.map(days)).await.unwrap())
            }
        }
    }

    /// The jobs that schedules have fired.
    pub(super) async fn fired(&self, ties: &Ties) -> Vec<JobId> {
        let mut fired = Vec::new();
        for schedule in &ties.schedules {
            let filter = JobFilter { parent: Some(*schedule), ..JobFilter::default() };
            let page = self.store.list(&filter, None, 1_000).await.unwrap();
            fired.extend(page.items.iter().map(|job| job.id));
        }
        fired
    }

    /// All that there is to see of what ties jobs together.
    pub(super) async fn ties(&self, ties: &Ties, world: &World) -> Vec<String> {
        let store = &self.store;
        let tied = |job: &JobRecord| {
            let waits = (job.state == JobState::Waiting).then_some((job.waits_for, job.flow));
            format!("{} waits {waits:?} of {:?} because {:?}", job.id, job.workflow, job.canceled_because)
        };
        let jobs = store.find(&world.jobs).await.unwrap();
        let mut lines: Vec<_> = jobs.iter().flat_map(|job| [self.shown(job), tied(job)]).collect();
        let mut edges = store.edges_from(&world.jobs).await.unwrap();
        edges.sort_by_key(|edge| (edge.parent, edge.child));
        lines
            .extend(edges.iter().map(|edge| format!("{} {} {} {:?}", edge.parent, edge.child, edge.order, edge.state)));
        let batch = |batch: &ratchet_core::Batch| {
            let counts = &batch.counts;
            let numbers = [counts.total, counts.succeeded, counts.failed, counts.canceled];
            let ended = batch.completed_at.map(|at| self.tick(at));
            format!("{} {} {numbers:?} {} {} {ended:?}", batch.id, batch.state, counts.sealed, batch.canceling)
        };
        lines.extend(store.find_batches(&ties.batches).await.unwrap().iter().map(batch));
        // When a wait that is over would have ended is a store's own matter.
        let waits = |id| jobs.iter().any(|job| job.id == id && job.state == JobState::Waiting);
        for wait in store.signals(&world.jobs).await.unwrap() {
            let until = wait.expires_at.filter(|_| waits(wait.job_id)).map(|at| self.tick(at));
            let came = wait.signal.map(|signal| signal.delivery_id);
            lines.push(format!("{} {} {until:?} {came:?}", wait.job_id, wait.key));
        }
        for one in store.find_schedules(&ties.schedules).await.unwrap() {
            let tick = |at: Option<jiff::Timestamp>| at.map(|at| self.tick(at));
            let times = (tick(one.next_fire), tick(one.last_fire), self.tick(one.updated_at));
            lines.push(format!("{} {} {:?} {times:?} {:?}", one.id, one.overlap, one.history(), one.schedule));
        }
        lines.push(format!("{:?}", store.workflows(None, 1_000).await.unwrap().items));
        lines
    }
}

/// Something that can be looked at in a failure.
impl Debug for Next {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Plain(operation) => operation.fmt(f),
            Self::Tied(tie) => tie.fmt(f),
        }
    }
}
