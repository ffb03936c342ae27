//! Why a job does not run now.

use std::collections::BTreeMap;
use std::fmt;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use crate::claim::Boost;
use crate::error::StoreError;
use crate::flow::{EdgeState, Flow};
use crate::id::{JobId, NodeId};
use crate::insight::{COUNTED_MAX, Depth, LaneRange};
use crate::name::{Kind, QueueName, ResourceName, SignalKey};
use crate::node::NodeRecord;
use crate::record::JobRecord;
use crate::state::JobState;
use crate::store::Store;

/// Something that keeps a job from running, in the order in which it is asked.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(tag = "reason", rename_all = "snake_case")]
#[non_exhaustive]
pub enum Reason {
    /// It has ended.
    Ended {
        /// As what.
        state: JobState,
    },
    /// It runs.
    Running {
        /// Where.
        node: Option<NodeId>,
        /// Since when.
        since: Option<Timestamp>,
    },
    /// Somebody has paused it.
    Paused,
    /// Other jobs have to end first.
    Dependency {
        /// Those that have not.
        jobs: Vec<JobId>,
    },
    /// Children of the batch have to end first.
    Children {
        /// How many of them are left.
        left: u64,
        /// Whether further ones may come.
        open: bool,
    },
    /// A signal has to come first.
    Signal {
        /// What it is called.
        key: SignalKey,
        /// Until when it waits.
        expires_at: Option<Timestamp>,
    },
    /// Its time has not come.
    NotDue {
        /// When it comes.
        at: Timestamp,
    },
    /// It was put off: by its handler, a breaker, or a node that stopped.
    PutOff {
        /// Until when.
        until: Timestamp,
    },
    /// Its queue is paused.
    QueuePaused {
        /// The queue.
        queue: QueueName,
    },
    /// No living node runs this kind in this queue.
    NoNode {
        /// The kind.
        kind: Kind,
        /// The queue.
        queue: QueueName,
        /// How many nodes live.
        living: usize,
    },
    /// The circuit breaker of its service is open, on the node that was asked.
    Breaker {
        /// The service.
        service: String,
    },
    /// No permit for its resource is left.
    Permit {
        /// The resource.
        resource: ResourceName,
        /// How many are out.
        in_use: u32,
        /// How many there are.
        max_concurrent: u32,
    },
    /// Its node died while running it: of such jobs each node runs one at a time.
    Probation {
        /// How many times in a row.
        crash_count: u32,
        /// How many others like it come before.
        ahead: Depth,
    },
    /// The nodes that could run it have no free slot.
    NoSlot {
        /// How many nodes.
        nodes: usize,
        /// How many slots they have.
        slots: u64,
    },
    /// Others are more urgent or older.
    Behind {
        /// How many, in its queue.
        jobs: Depth,
    },
}

impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Ended { state } => write!(f, "it has ended: {state}"),
            Self::Running { node: Some(node), .. } => write!(f, "it runs, on node {node}"),
            Self::Running { node: None, .. } => f.write_str("it runs"),
            Self::Paused => f.write_str("it is paused; resume it"),
            Self::Dependency { jobs } => match &jobs[..] {
                [] => f.write_str("it waits for other jobs"),
                [job] => write!(f, "it waits for job {job} to end"),
                [first, ..] => write!(f, "it waits for {} jobs to end, {first} among them", jobs.len()),
            },
            Self::Children { left, open: true } => {
                write!(
                    f,
                    "the batch is open: {left} children have not ended, and further ones may come until it is sealed"
                )
            }
            Self::Children { left, open: false } => write!(f, "{left} children of the batch have not ended"),
            Self::Signal { key, expires_at: Some(at) } => write!(f, "it waits for the signal {key:?}, until {at:.3}"),
            Self::Signal { key, expires_at: None } => write!(f, "it waits for the signal {key:?}"),
            Self::NotDue { at } => write!(f, "it is not due until {at:.3}"),
            Self::PutOff { until } => write!(f, "it was put off until {until:.3}"),
            Self::QueuePaused { queue } => write!(f, "its queue {queue} is paused; resume the queue"),
            Self::NoNode { kind, queue, living: 0 } => {
                write!(f, "no node lives; start one that runs {kind} in queue {queue}")
            }
            Self::NoNode { kind, queue, living } => write!(
                f,
                "none of the {living} living nodes runs {kind} in queue {queue}; register its handler and serve its queue"
            ),
            Self::Breaker { service } => write!(f, "the circuit breaker of {service} is open on this node"),
            Self::Permit { resource, in_use, max_concurrent } => {
                write!(f, "no permit for {resource} is left: {in_use} of {max_concurrent} in use")
            }
            Self::Probation { crash_count, ahead } => write!(
                f,
                "its node died {crash_count} times in a row while running it: each node runs one such job at a time, and {ahead} \
                 come before it"
            ),
            Self::NoSlot { nodes, slots } => {
                write!(f, "all {slots} slots of the {nodes} nodes that could run it were taken at their last heartbeat")
            }
            Self::Behind { jobs } => write!(f, "{jobs} jobs of its queue are more urgent or older"),
        }
    }
}

/// Why a job does not run now.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Explanation {
    /// The job.
    pub job_id: JobId,
    /// Where it stands.
    pub state: JobState,
    /// Everything that holds it up, in the order in which it is asked; nothing if the next claim takes it.
    pub reasons: Vec<Reason>,
    /// When it is expected to begin; `None` if that depends on what nobody knows.
    pub expected: Option<Timestamp>,
}

/// What is known here and not in the store.
#[derive(Debug, Clone, Default)]
pub struct Here {
    /// Ageing, as nodes are configured.
    pub boost: Boost,
    /// Kinds that are not claimed here now, and the services that are the reason.
    pub refused: BTreeMap<Kind, String>,
}

/// What a node says of itself, as far as it matters here.
#[derive(Deserialize, Default)]
#[serde(default)]
struct NodeInfo {
    kinds: Vec<String>,
    queues: Vec<String>,
    slots: u64,
}

/// Says why a job does not run now: asks every gate, in order; `None` if there is no such job.
///
/// # Errors
/// If the store cannot be asked.
pub async fn explain(store: &dyn Store, id: JobId, here: &Here) -> Result<Option<Explanation>, StoreError> {
    let Some(job) = store.find(&[id]).await?.pop() else { return Ok(None) };
    let now = store.database_time().await?;
    let told = |reasons: Vec<Reason>, expected| Explanation { job_id: id, state: job.state, reasons, expected };
    let reasons = match job.state {
        JobState::Succeeded | JobState::Failed | JobState::Canceled => vec![Reason::Ended { state: job.state }],
        JobState::Running => vec![Reason::Running { node: job.picked_by, since: job.picked_at }],
        JobState::Paused => vec![Reason::Paused],
        JobState::Waiting => waits_for(store, &job).await?,
        JobState::Pending => {
            let (reasons, expected) = pending(store, &job, now, here).await?;
            return Ok(Some(told(reasons, expected)));
        }
    };
    Ok(Some(told(reasons, None)))
}

async fn waits_for(store: &dyn Store, job: &JobRecord) -> Result<Vec<Reason>, StoreError> {
    let mut reasons = Vec::new();
    let edges = store.edges_to(job.id).await?;
    let open: Vec<JobId> = edges.iter().filter(|edge| edge.state == EdgeState::Open).map(|edge| edge.parent).collect();
    if !open.is_empty() {
        reasons.push(Reason::Dependency { jobs: open });
    }
    if job.flow.has(Flow::BATCH)
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
    here: &Here,
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
    let nodes = store.nodes().await?;
    let living: Vec<&NodeRecord> = nodes.iter().filter(|node| node.dead_at.is_none()).collect();
    let serves = |node: &&NodeRecord| {
        let info: NodeInfo = node.info.decode().unwrap_or_default();
        let does = info.kinds.iter().any(|kind| kind == job.spec.kind.as_str())
            && info.queues.iter().any(|queue| queue == job.spec.queue.as_str());
        does.then_some((info.slots, u64::from(node.vitals.running)))
    };
    let serving: Vec<(u64, u64)> = living.iter().filter_map(serves).collect();
    if serving.is_empty() {
        let (kind, queue) = (job.spec.kind.clone(), job.spec.queue.clone());
        reasons.push(Reason::NoNode { kind, queue, living: living.len() });
    }
    if let Some(service) = here.refused.get(&job.spec.kind) {
        reasons.push(Reason::Breaker { service: service.clone() });
    }
    reasons.extend(permit(store, job).await?);
    let ahead = ahead_of(store, job, now, here.boost).await?;
    if job.crash_count > 0 {
        reasons.push(Reason::Probation { crash_count: job.crash_count, ahead });
    }
    if !serving.is_empty() && serving.iter().all(|(slots, running)| running >= slots) {
        let slots = serving.iter().map(|(slots, _)| slots).sum();
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

async fn permit(store: &dyn Store, job: &JobRecord) -> Result<Option<Reason>, StoreError> {
    let Some(name) = &job.spec.resource else { return Ok(None) };
    let resources = store.resources().await?;
    let Some(record) = resources.into_iter().find(|record| record.name == *name) else { return Ok(None) };
    let Some(limit) = record.limit.filter(|limit| record.in_use >= limit.max_concurrent) else { return Ok(None) };
    let max_concurrent = limit.max_concurrent;
    Ok(Some(Reason::Permit { resource: record.name, in_use: record.in_use, max_concurrent }))
}

/// How many jobs of its queue a claim would take before this one: of those on probation if it is, else of all others.
async fn ahead_of(store: &dyn Store, job: &JobRecord, now: Timestamp, boost: Boost) -> Result<Depth, StoreError> {
    let on_probation = job.crash_count > 0;
    let mine = boost.effective(job.spec.priority, job.scheduled_time, now);
    let lanes = store.waiting_lanes().await?;
    let beside = lanes.iter().filter(|lane| lane.probation == on_probation && lane.queue == job.spec.queue);
    let ranges: Vec<LaneRange> = beside
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
