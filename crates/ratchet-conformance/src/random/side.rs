//! One of two stores that must agree, and its answers in a form that can be compared.

use std::fmt::Debug;
use std::sync::Arc;
use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use ratchet_core::claim::{Boost, ClaimRequest, Fence};
use ratchet_core::node::{NodeInfo, NodeRegistration, NodeVitals};
use ratchet_core::record::{AttemptTiming, JobRecord};
use ratchet_core::settlement::DeadLetterReason;
use ratchet_core::signal::Delivery;
use ratchet_core::store::{Progress, Replacement, SubmitUnit, Transitioned};
use ratchet_core::{
    AttemptRecord, AttemptStatus, Change, Claim, DeliveryId, Due, ErrorKind, ErrorReport, JobState, JobType, JsonText,
    NewJob, NodeName, Settlement, Store, StoreError,
};

use super::operation::{ChangeDraft, ClaimDraft, Draft, DueDraft, Ending, KEYS, KINDS, Operation, QUEUES, World};
use super::ties::told;
use super::{TICK, days};
use crate::harness::{business_key, idempotency_key, new_job, pool, request};
use crate::signals::{to_job, wait};

/// A store and the time at which its part of the walk began.
pub(super) struct Side {
    pub(super) store: Arc<dyn Store>,
    start: Timestamp,
}

/// A claim of more than this is one of all there is, in whatever order.
const CLAIM_MAX: usize = 100;

/// What an operation came to.
#[derive(Debug, PartialEq)]
pub(super) struct Answer {
    text: String,
    /// The claims among it.
    pub(super) fences: Vec<Fence>,
}

pub(super) fn said(value: impl Debug) -> Answer {
    Answer { text: format!("{value:?}"), fences: Vec::new() }
}

pub(super) fn kind_of<T>(result: Result<T, StoreError>) -> Result<T, ErrorKind> {
    result.map_err(|error| error.kind().clone())
}

impl Side {
    pub(super) async fn new(store: Arc<dyn Store>) -> Self {
        let start = store.database_time().await.unwrap();
        Self { store, start }
    }

    pub(super) const fn start(&self) -> Timestamp {
        self.start
    }

    pub(super) async fn perform(&self, operation: &Operation) -> Answer {
        let store = &self.store;
        match operation {
            Operation::Submit(units) => {
                let unit = |drafts: &Vec<Draft>| SubmitUnit::of(drafts.iter().map(|d| self.new_job(d)).collect());
                let units: Vec<_> = units.iter().map(unit).collect();
                let outcomes = store.submit(&units).await.unwrap();
                said(outcomes.into_iter().map(kind_of).collect::<Vec<_>>())
            }
            Operation::Turn { endings, claim } => {
                let mut settlements = Vec::new();
                for ending in endings {
                    settlements.push(self.settlement(ending).await);
                }
                let limit = claim.as_ref().map_or(0, |claim| claim.limit);
                let claim = claim.as_ref().map(claim_request);
                let turn = kind_of(store.settle_and_claim(&settlements, claim.as_ref()).await);
                let mut fences: Vec<_> = turn.iter().flat_map(|turn| &turn.claimed).map(|claim| claim.fence).collect();
                if limit > CLAIM_MAX {
                    fences.sort_unstable_by_key(|fence| fence.job_id);
                }
                let turn = turn.map(|turn| {
                    let mut jobs: Vec<_> = turn.claimed.iter().map(|claim| self.shown_claim(claim)).collect();
                    if limit > CLAIM_MAX {
                        jobs.sort_unstable();
                    }
                    (turn.settled, jobs, told(&turn.followed))
                });
                Answer { fences, ..said(turn) }
            }
            Operation::Cancel(id) => self.transitioned(store.cancel(*id).await),
            Operation::Pause(id) => self.transitioned(store.pause(*id).await),
            Operation::Resume(id) => self.transitioned(store.resume(*id).await),
            Operation::Retry(id) => self.transitioned(store.retry(*id).await),
            Operation::Release(id) => {
                let go = Delivery { id: DeliveryId(id.0), ..to_job(*id) };
                said(told(&store.deliver(&go).await.unwrap().jobs))
            }
            Operation::Replace(old, new) => match store.replace(*old, &self.new_job(new)).await {
                Ok(Replacement::Replaced(transitioned)) => self.transitioned(Ok(Some(transitioned))),
                other => said(kind_of(other)),
            },
            Operation::Delete(id) => said(kind_of(store.delete(*id).await)),
            Operation::PauseQueue(queue) => said(store.pause_queue(queue).await.unwrap()),
            Operation::ResumeQueue(queue) => said(store.resume_queue(queue).await.unwrap()),
            Operation::Register(node) => {
                let name = NodeName::new("walker").unwrap();
                said(kind_of(store.register(&NodeRegistration { id: *node, name, info: NodeInfo::default() }).await))
            }
            Operation::Deregister(node) => said(kind_of(store.deregister(*node).await)),
            Operation::Beat(node) => {
                said(store.open_heartbeat().await.unwrap().beat(*node, NodeVitals::default()).await.unwrap())
            }
            Operation::Orphans { observer, grace } => {
                let found = kind_of(store.orphans(*observer, days(*grace), 1_000).await);
                said(found.map(|mut found| {
                    found.declared_dead.sort();
                    found.jobs.sort_by_key(|orphan| orphan.job.id);
                    let jobs: Vec<_> = found.jobs.iter().map(|o| (o.fence, self.shown(&o.job))).collect();
                    (found.declared_dead, jobs)
                }))
            }
            Operation::Reconcile { node, progress } => {
                let report = |(fence, percent): &(Fence, u8)| Progress {
                    job_id: fence.job_id,
                    version: fence.version,
                    fraction: f64::from(*percent) / 100.0,
                };
                let progress: Vec<_> = progress.iter().map(report).collect();
                let mut running = store.reconcile(*node, &progress).await.unwrap();
                running.sort_by_key(|running| running.job_id);
                said(running)
            }
            Operation::AcquireLease(name, node, ttl) => {
                said(store.acquire_lease(name, *node, days(*ttl)).await.unwrap())
            }
            Operation::ReleaseLease(name, node) => said(kind_of(store.release_lease(name, *node).await)),
        }
    }

    /// All that there is to see of the store, a line each.
    pub(super) async fn everything(&self, world: &World) -> Vec<String> {
        let store = &self.store;
        let mut lines: Vec<_> = store.find(&world.jobs).await.unwrap().iter().map(|job| self.shown(job)).collect();
        lines.push(format!("{:?}", store.count_by_state().await.unwrap()));
        lines.push(format!("{:?}", store.queues().await.unwrap()));
        for key in KEYS {
            let holder = store.find_by_business_key(&business_key(key)).await.unwrap();
            let first = store.find_by_idempotency_key(&idempotency_key(key)).await.unwrap();
            lines.push(format!("{key}: held by {holder:?}, first {first:?}"));
        }
        // The history of the youngest jobs is enough: older ones were looked at when they were young.
        for id in world.jobs.iter().rev().take(10) {
            let attempts: Vec<_> = store.attempts(*id).await.unwrap().iter().map(|a| self.shown_attempt(a)).collect();
            lines.push(format!("{id}: {} alerts, {attempts:?}", store.alert_count(*id).await.unwrap()));
        }
        let mut nodes = store.nodes().await.unwrap();
        nodes.retain(|node| world.nodes.contains(&node.id));
        let node = |node: &ratchet_core::node::NodeRecord| {
            (node.id, self.tick(node.last_heartbeat), node.dead_at.map(|at| self.tick(at)))
        };
        lines.push(format!("{:?}", nodes.iter().map(node).collect::<Vec<_>>()));
        if let Some(node) = world.nodes.last() {
            let pools = QUEUES.map(|queue| pool(queue, &KINDS)).to_vec();
            let due = store.next_due(&request(*node, pools)).await.unwrap();
            lines.push(format!("next due {:?}", due.map(whole)));
        }
        lines
    }

    fn transitioned(&self, result: Result<Option<Transitioned>, StoreError>) -> Answer {
        said(kind_of(result).map(|done| done.map(|done| (done.from, self.shown(&done.job), told(&done.followed)))))
    }

    /// The number of ticks since the start.
    pub(super) fn tick(&self, at: Timestamp) -> i128 {
        ticks(at.duration_since(self.start))
    }

    /// A job without what stores may keep as they like: what is over, or not begun, has no owner to show.
    pub(super) fn shown(&self, job: &JobRecord) -> String {
        let tick = |at: Option<Timestamp>| at.map(|at| self.tick(at));
        let running = job.state == JobState::Running;
        let terminal = job.state.is_terminal();
        let owner = running.then(|| (job.picked_by, tick(job.picked_at), job.progress));
        let end = terminal.then(|| (tick(job.terminated_at), job.timing.map(|timing| self.shown_timing(timing))));
        let waiting = matches!(job.state, JobState::Pending | JobState::Paused).then(|| self.tick(job.due()));
        format!(
            "{} {} v{} attempts {} crashes {} scheduled {} due {waiting:?} owner {owner:?} end {end:?} error {:?} \
             result {:?} keys {:?} {:?} by {:?} {:?}",
            job.id,
            job.place(),
            job.version,
            job.attempts,
            job.crash_count,
            self.tick(job.scheduled_time),
            job.last_error,
            job.result,
            job.business_key,
            job.idempotency_key,
            job.superseded_by,
            job.job_type,
        )
    }

    fn shown_claim(&self, claim: &Claim) -> String {
        let inputs: Vec<_> = claim.inputs.iter().map(|input| (input.job_id, input.state, &input.error)).collect();
        let signal = claim.signal.as_ref().map(|signal| signal.delivery_id);
        format!("{:?} {} {inputs:?} {signal:?}", claim.fence, self.shown(&claim.job))
    }

    fn shown_timing(&self, timing: AttemptTiming) -> (i128, i128, i128, i128) {
        let (started, ended) = (self.tick(timing.started_at), self.tick(timing.ended_at));
        (started, ended, whole(timing.duration), whole(timing.queue_wait))
    }

    fn shown_attempt(&self, attempt: &AttemptRecord) -> String {
        let timing = self.shown_timing(attempt.timing);
        format!("{:?}", (attempt.version, attempt.attempt, attempt.node, attempt.status, timing, &attempt.error))
    }

    fn new_job(&self, draft: &Draft) -> NewJob {
        let mut job = new_job(draft.kind);
        job.id = draft.id;
        job.spec.queue = crate::harness::queue(draft.queue);
        job.spec.priority = draft.priority;
        job.due = match draft.due {
            DueDraft::After(count) => Due::After(days(count)),
            DueDraft::At(day) => Due::At(self.start + SignedDuration::from_hours(24 * day)),
        };
        job.business_key.clone_from(&draft.business_key);
        job.idempotency_key.clone_from(&draft.idempotency_key);
        if draft.waiting { job.awaiting(wait("go", None)) } else { job }
    }

    async fn settlement(&self, ending: &Ending) -> Settlement {
        let report = |error: u8| ErrorReport::new("Random", &format!("error {error}"));
        let (change, status, error) = match ending.change {
            ChangeDraft::Succeed { attempts, result } => {
                let result = (result > 0).then(|| JsonText::parse("result", result.to_string(), 10).unwrap());
                (Change::Succeed { attempts, result }, AttemptStatus::Succeeded, None)
            }
            ChangeDraft::Reschedule { attempts, delay } => {
                let error = report(9);
                let change = Change::Reschedule { delay: days(delay), attempts, error: error.clone() };
                (change, AttemptStatus::Failed, Some(error))
            }
            ChangeDraft::Defer { delay } => (Change::Defer { delay: days(delay) }, AttemptStatus::Deferred, None),
            ChangeDraft::Fail { attempts, error, crashes } => {
                let error = report(error);
                let reason = crashes.map_or(DeadLetterReason::RetriesExhausted, |crash_count| {
                    DeadLetterReason::CrashLimit { crash_count }
                });
                (Change::Fail { attempts, error: error.clone(), reason }, AttemptStatus::Failed, Some(error))
            }
            ChangeDraft::Rescue { crashes } => {
                (Change::Rescue { crash_count: crashes }, AttemptStatus::Crashed, Some(report(8)))
            }
        };
        let now = self.store.database_time().await.unwrap();
        let attempt = ending.recorded.then(|| AttemptRecord {
            job_id: ending.fence.job_id,
            version: ending.fence.version,
            attempt: 1,
            node: ending.fence.node,
            status,
            timing: AttemptTiming { started_at: self.start, ended_at: now, duration: TICK * 3, queue_wait: TICK },
            error_class: error.as_ref().map(|error| error.class().to_owned()),
            error: error.as_ref().map(|error| error.text().to_owned()),
        });
        let callback = |id| NewJob { id, job_type: JobType::Callback, ..new_job(KINDS[0]) };
        Settlement {
            attempt,
            new_jobs: ending.callback.map(callback).into_iter().collect(),
            maybe_applied: ending.maybe_applied,
            ends_permit: true,
            ..Settlement::of(ending.fence, change)
        }
    }
}

/// The nearest whole number of ticks, which is the same on both sides.
fn ticks(duration: SignedDuration) -> i128 {
    let tick = i128::try_from(TICK.as_nanos()).expect("a tick is short");
    (duration.as_nanos() + tick / 2).div_euclid(tick)
}

fn whole(duration: Duration) -> i128 {
    ticks(duration.try_into().expect("a walk takes some years"))
}

fn claim_request(draft: &ClaimDraft) -> ClaimRequest {
    ClaimRequest {
        limit: draft.limit,
        probation: draft.probation,
        boost: Boost::every(days(draft.boost)),
        ..request(draft.node, vec![pool(draft.queue, &draft.kinds)])
    }
}
