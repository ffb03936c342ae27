//! Why a job does not run now.

use std::fmt;

use jiff::Timestamp;
use serde::Serialize;

use crate::claim::Boost;
use crate::error::StoreError;
use crate::flow::{EdgeState, Flow};
use crate::id::{JobId, NodeId};
use crate::insight::{COUNTED_MAX, Depth, LaneRange};
use crate::name::{Kind, QueueName, ResourceName, SignalKey};
use crate::node::{NodeInfo, NodeRecord, NodeVitals};
use crate::record::JobRecord;
use crate::service::ServiceStand;
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
    /// The circuit breaker of its service is open, on every living node that could run it.
    Breaker {
        /// The service.
        service: String,
        /// How many nodes.
        nodes: usize,
        /// When the first of them tries it again; `None` if somebody has to reset it.
        until: Option<Timestamp>,
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
            Self::Breaker { service, nodes, until } => {
                write!(f, "the circuit breaker of {service} is open on ")?;
                match nodes {
                    1 => f.write_str("the only node that could run it")?,
                    _ => write!(f, "all {nodes} nodes that could run it")?,
                }
                match until {
                    Some(until) => write!(f, ", until {until:.3}"),
                    None => f.write_str(", until somebody resets it"),
                }
            }
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
    /// The node that is asked, and how it is now: it knows that better than its last heartbeat.
    pub node: Option<(NodeId, NodeVitals)>,
}

/// A node that could run the job.
struct Serving {
    slots: u64,
    running: u64,
    /// What the job calls there.
    service: String,
    /// How that stands there, if not as usual.
    stand: Option<ServiceStand>,
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
    let serving: Vec<Serving> =
        living.iter().filter_map(|node| serves(node, &job.spec.kind, &job.spec.queue, here)).collect();
    if serving.is_empty() {
        let (kind, queue) = (job.spec.kind.clone(), job.spec.queue.clone());
        reasons.push(Reason::NoNode { kind, queue, living: living.len() });
    }
    reasons.extend(breaker(&serving, now));
    reasons.extend(permit(store, job).await?);
    let ahead = ahead_of(store, job, now, here.boost).await?;
    if job.crash_count > 0 {
        reasons.push(Reason::Probation { crash_count: job.crash_count, ahead });
    }
    if !serving.is_empty() && serving.iter().all(|node| node.running >= node.slots) {
        let slots = serving.iter().map(|node| node.slots).sum();
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

/// What a node has to do with a job of this kind and queue; `None` if it could not run it.
fn serves(node: &NodeRecord, kind: &Kind, queue: &QueueName, here: &Here) -> Option<Serving> {
    let info = NodeInfo::of(node);
    let does = info.kinds.iter().any(|one| one == kind.as_str()) && info.queues.iter().any(|one| one == queue.as_str());
    let fresh = here.node.as_ref().filter(|(id, _)| *id == node.id).map(|(_, vitals)| vitals);
    let vitals = fresh.unwrap_or(&node.vitals);
    let service = info.service_of(kind.as_str()).to_owned();
    let stand = vitals.services.stand(&service);
    does.then(|| Serving { slots: info.slots, running: u64::from(vitals.running), service, stand })
}

/// The breaker is the reason if every node leaves the service alone: one that only tries it, or calls it, takes the job.
fn breaker(serving: &[Serving], now: Timestamp) -> Option<Reason> {
    let first = serving.first()?;
    let all_refuse = serving.iter().all(|node| node.stand.is_some_and(|stand| stand.refuses(now)));
    let until = serving.iter().filter_map(|node| node.stand?.until()).min();
    all_refuse.then(|| Reason::Breaker { service: first.service.clone(), nodes: serving.len(), until })
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::json::JsonText;
    use crate::name::NodeName;
    use crate::service::{NodeServices, ServiceVitals};

    const NOW: i64 = 1_000;

    fn at(second: i64) -> Timestamp {
        Timestamp::from_second(second).unwrap()
    }

    fn vitals(service: &str, stand: Option<ServiceStand>) -> NodeVitals {
        let services = stand.map(|stand| ServiceVitals { service: service.to_owned(), stand });
        NodeVitals { services: NodeServices::of(services), ..NodeVitals::default() }
    }

    /// A node that runs `charge`, which calls `payments`, and `mail`, which names no service.
    fn node(number: u8, vitals: NodeVitals) -> NodeRecord {
        let id = NodeId(uuid::Uuid::from_bytes([number; 16]));
        let info = r#"{"kinds":["charge","mail"],"queues":["default"],"slots":1,"services":{"charge":"payments"}}"#;
        let (name, info) = (NodeName::new("node").unwrap(), JsonText::from_store(info));
        NodeRecord::from_parts(id, name, info, at(0), at(0), vitals, None)
    }

    fn reason(nodes: &[NodeRecord], kind: &str, here: &Here) -> Option<Reason> {
        let (kind, queue) = (Kind::new(kind).unwrap(), QueueName::default());
        let serving: Vec<Serving> = nodes.iter().filter_map(|node| serves(node, &kind, &queue, here)).collect();
        breaker(&serving, at(NOW))
    }

    const FORCED: Option<ServiceStand> = Some(ServiceStand::ForcedOpen);
    const HALF: Option<ServiceStand> = Some(ServiceStand::HalfOpen);

    #[test]
    fn a_breaker_is_the_reason_if_it_is_open_wherever_the_job_could_run() {
        let check = |stands: &[Option<ServiceStand>], expected: Option<Option<i64>>, why: &str| {
            let nodes: Vec<_> = (0..).zip(stands).map(|(n, stand)| node(n, vitals("payments", *stand))).collect();
            let until = |until: Option<i64>| Reason::Breaker {
                service: "payments".to_owned(),
                nodes: stands.len(),
                until: until.map(at),
            };
            assert_eq!(reason(&nodes, "charge", &Here::default()), expected.map(until), "{why}");
        };
        let open = |until| Some(ServiceStand::Open { until: at(until) });
        check(&[], None, "no node could run it, which is another reason");
        check(&[None], None, "closed");
        check(&[open(NOW + 10)], Some(Some(NOW + 10)), "open on the only node");
        check(&[open(NOW)], None, "its time is over: it is tried");
        check(&[HALF], None, "it is tried");
        check(&[FORCED], Some(None), "by hand: nobody knows until when");
        check(&[open(NOW + 30), open(NOW + 10)], Some(Some(NOW + 10)), "the first that tries it again");
        check(&[FORCED, open(NOW + 10)], Some(Some(NOW + 10)), "the other one tries it");
        check(&[open(NOW + 10), None], None, "the other one calls it");
        check(&[open(NOW + 10), HALF], None, "the other one tries it now");
    }

    #[test]
    fn a_kind_that_names_no_service_is_its_own() {
        let check = |kind: &str, service: &str, told: bool| {
            let found = reason(&[node(1, vitals(service, FORCED))], kind, &Here::default());
            assert_eq!(found.is_some(), told, "{kind} while {service} is open");
        };
        check("mail", "mail", true);
        check("mail", "payments", false);
        check("charge", "payments", true);
        check("charge", "charge", false);
        check("unknown", "unknown", false);
    }

    #[test]
    fn a_node_knows_itself_better_than_its_last_heartbeat() {
        let check = |told: Option<ServiceStand>, now: Option<ServiceStand>, is_reason: bool| {
            let node = node(1, vitals("payments", told));
            let here = Here { node: Some((node.id, vitals("payments", now))), ..Here::default() };
            assert_eq!(reason(&[node], "charge", &here).is_some(), is_reason, "{told:?}, now {now:?}");
        };
        check(None, FORCED, true);
        check(FORCED, None, false);
        let other = Here { node: Some((NodeId(uuid::Uuid::nil()), vitals("payments", None))), ..Here::default() };
        assert!(reason(&[node(1, vitals("payments", FORCED))], "charge", &other).is_some(), "not what others say");
    }

    #[test]
    fn a_breaker_is_told_with_where_and_until_when() {
        let check = |nodes, until: Option<i64>, text: &str| {
            let reason = Reason::Breaker { service: "payments".to_owned(), nodes, until: until.map(at) };
            assert_eq!(reason.to_string(), format!("the circuit breaker of payments is open on {text}"));
        };
        check(1, None, "the only node that could run it, until somebody resets it");
        check(3, Some(NOW), "all 3 nodes that could run it, until 1970-01-01T00:16:40.000Z");
    }
}
