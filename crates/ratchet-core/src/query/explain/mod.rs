//! Why a job does not run now.

mod gates;
mod reason;

use jiff::Timestamp;
use serde::Serialize;

pub use self::reason::{Reason, WithheldScope};

use self::gates::{Gates, HeldUp};
use crate::claim::Boost;
use crate::error::StoreError;
use crate::flow::{EdgeState, JobFlags};
use crate::id::{JobId, NodeId};
use crate::insight::{COUNTED_MAX, Depth, LaneRange};
use crate::node::NodeVitals;
use crate::page::{JobFilter, PAGE_LIMIT_MAX};
use crate::record::JobRecord;
use crate::state::JobState;
use crate::store::Store;

/// Why a job does not run now.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Explanation {
    /// The job.
    pub job_id: JobId,
    /// Where it stands.
    pub state: JobState,
    /// Everything that holds it up, in the order in which it is asked, if paused also what would if it were not; nothing if
    /// the next claim takes it.
    pub reasons: Vec<Reason>,
    /// When it is expected to begin; `None` if that depends on what nobody knows.
    pub expected: Option<Timestamp>,
}

/// What is known here and not in the store.
#[derive(Debug, Clone, Default)]
pub struct LocalNode {
    /// Ageing, as nodes are configured.
    pub boost: Boost,
    /// The node that is asked, and how it is now: it knows that better than its last heartbeat.
    pub node: Option<(NodeId, NodeVitals)>,
}

/// Says why a job does not run now: asks every gate, in order; `None` if there is no such job.
///
/// # Errors
/// If the store cannot be asked.
pub async fn explain(store: &dyn Store, id: JobId, here: &LocalNode) -> Result<Option<Explanation>, StoreError> {
    let Some(job) = store.find(&[id]).await?.pop() else { return Ok(None) };
    let now = store.database_time().await?;
    // What holds up a paused job besides holds it up once it is resumed.
    let (mut reasons, mut expected) = match job.paused_from.unwrap_or(job.state) {
        state @ (JobState::Succeeded | JobState::Failed | JobState::Canceled) => {
            (vec![Reason::Ended { state, archived: job.archived_at.is_some() }], None)
        }
        JobState::Running => (runs(store, &job, now, here).await?, None),
        JobState::Paused => (Vec::new(), None),
        JobState::Waiting => (waits_for(store, &job).await?, None),
        JobState::Pending => pending(store, &job, now, here).await?,
    };
    if job.state == JobState::Paused {
        reasons.insert(0, Reason::Paused);
        expected = None;
    }
    Ok(Some(Explanation { job_id: id, state: job.state, reasons, expected }))
}

/// It runs, unless its node does not.
async fn runs(store: &dyn Store, job: &JobRecord, now: Timestamp, here: &LocalNode) -> Result<Vec<Reason>, StoreError> {
    let running = Reason::Running { node: job.picked_by, since: job.picked_at };
    let Some(node) = job.picked_by else { return Ok(vec![running]) };
    let nodes = store.nodes().await?;
    let its_node = nodes.iter().find(|one| one.id == node);
    if its_node.is_some_and(|node| node.is_living(now)) {
        return Ok(vec![running]);
    }
    let heard = its_node.map(|node| node.last_heartbeat);
    let gates = Gates::among(nodes, store, now, here).await?;
    let orphaned = Reason::Orphaned { node, heard, living: gates.living() };
    Ok([orphaned].into_iter().chain(gates.nowhere(&job.spec.kind, &job.spec.queue)).collect())
}

async fn waits_for(store: &dyn Store, job: &JobRecord) -> Result<Vec<Reason>, StoreError> {
    let mut reasons = Vec::new();
    let edges = store.edges_to(job.id).await?;
    let open: Vec<JobId> = edges.iter().filter(|edge| edge.state == EdgeState::Open).map(|edge| edge.parent).collect();
    if !open.is_empty() {
        reasons.push(Reason::Dependency { jobs: open });
    }
    if job.flow.has(JobFlags::BATCH)
        && let Some(batch) = store.find_batches(&[job.id]).await?.pop()
    {
        let left = batch.counts.total.saturating_sub(batch.counts.done());
        reasons.push(Reason::Children { left, open: !batch.counts.sealed });
    }
    let signals = store.signals(&[job.id]).await?;
    let awaited = signals.into_iter().filter(|record| record.signal.is_none());
    reasons.extend(awaited.map(|record| Reason::Signal { key: record.key, expires_at: record.expires_at }));
    Ok(reasons)
}

async fn pending(
    store: &dyn Store,
    job: &JobRecord,
    now: Timestamp,
    here: &LocalNode,
) -> Result<(Vec<Reason>, Option<Timestamp>), StoreError> {
    let mut reasons = Vec::new();
    if job.scheduled_time > now {
        reasons.push(Reason::NotDue { at: job.scheduled_time });
    }
    if let Some(until) = job.deferred_until.filter(|until| *until > now) {
        reasons.push(Reason::PutOff { until });
    }
    let knows_when = reasons.len();
    if store.paused_queues().await?.contains(&job.spec.queue) {
        reasons.push(Reason::QueuePaused { queue: job.spec.queue.clone() });
    }
    let gates = Gates::look(store, now, here).await?;
    let standing = gates.standing(&job.spec.kind, &job.spec.queue, job.spec.resource.as_ref());
    reasons.extend(standing.held.iter().cloned());
    let ahead = ahead_of(store, job, &gates, &standing, here.boost).await?;
    if job.crash_count > 0 {
        let running = on_probation(store).await?;
        reasons.push(Reason::Probation { crash_count: job.crash_count, ahead, running });
    }
    let serving = &standing.serving;
    if !serving.is_empty() && serving.iter().all(|node| node.room.taken >= node.room.slots) {
        let slots = serving.iter().map(|node| node.room.slots).sum();
        reasons.push(Reason::NoSlot { nodes: serving.len(), slots });
    }
    if ahead.count > 0 && job.crash_count == 0 {
        reasons.push(Reason::Behind { jobs: ahead });
    }
    // Only time holds it up, or nothing does.
    let only_time = reasons.len() == knows_when;
    let due = job.due().max(now);
    Ok((reasons, only_time.then_some(due)))
}

/// The jobs on probation that run, of the first page of those that run.
async fn on_probation(store: &dyn Store) -> Result<Vec<JobId>, StoreError> {
    let running = JobFilter { states: vec![JobState::Running], ..JobFilter::default() };
    let page = store.list(&running, None, PAGE_LIMIT_MAX).await?;
    Ok(page.items.into_iter().filter(|job| job.crash_count > 0).map(|job| job.id).collect())
}

/// How many jobs of its queue a claim would take before this one: of those on probation if it is, else of all others.
async fn ahead_of(
    store: &dyn Store,
    job: &JobRecord,
    gates: &Gates,
    standing: &HeldUp,
    boost: Boost,
) -> Result<Depth, StoreError> {
    let (now, on_probation) = (gates.now, job.crash_count > 0);
    let mine = boost.effective(job.spec.priority, job.scheduled_time, now);
    let lanes = store.waiting_lanes().await?;
    let beside = lanes.iter().filter(|lane| lane.probation == on_probation && lane.queue == job.spec.queue);
    let ranges: Vec<LaneRange> = beside
        .filter(|lane| standing.yields_to(&gates.standing(&lane.kind, &lane.queue, lane.resource.as_ref())))
        .map(|lane| {
            // Those that have gained a level more, whenever they came; of those with as many, the older ones.
            let higher = boost.reaches(lane.priority, mine + 1, now);
            let equal = boost.reaches(lane.priority, mine, now).min(job.scheduled_time);
            LaneRange::of(lane, Some(higher.max(equal)))
        })
        .collect();
    let counts = store.count_waiting(&ranges, COUNTED_MAX).await?;
    let or_more = counts.iter().any(|count| *count >= COUNTED_MAX);
    Ok(Depth { count: counts.iter().sum(), or_more })
}
