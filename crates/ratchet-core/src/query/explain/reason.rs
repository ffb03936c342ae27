//! What keeps a job from running, and how it is told.

use std::fmt;

use jiff::Timestamp;
use serde::Serialize;

use crate::id::{JobId, NodeId};
use crate::insight::Depth;
use crate::name::{Kind, QueueName, ResourceName, SignalKey};
use crate::state::JobState;

/// Something that keeps a job from running, in the order in which it is asked.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(tag = "reason", rename_all = "snake_case")]
#[non_exhaustive]
pub enum Reason {
    /// It has ended.
    Ended {
        /// As what.
        state: JobState,
        /// Whether it is archived, so that nothing can be asked of it any more.
        archived: bool,
    },
    /// It runs.
    Running {
        /// Where.
        node: Option<NodeId>,
        /// Since when.
        since: Option<Timestamp>,
    },
    /// It ran on a node that does not live any more; one that does puts it back into its queue.
    Orphaned {
        /// Where it ran.
        node: NodeId,
        /// When that node was last heard of; `None` if nothing is known of it any more.
        heard: Option<Timestamp>,
        /// How many nodes live.
        living: usize,
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
        /// Those like it that run now, of the last [`PAGE_LIMIT_MAX`](crate::page::PAGE_LIMIT_MAX) jobs that do.
        running: Vec<JobId>,
    },
    /// The nodes that could run it have no free slot.
    NoSlot {
        /// How many nodes.
        nodes: usize,
        /// How many slots they have for jobs of its queue and sort of handler.
        slots: u64,
    },
    /// Others are more urgent or older.
    Behind {
        /// How many, of those in its queue that go the same way: what only they are held up by lets this one pass.
        jobs: Depth,
    },
    /// Something that whoever asks may not look at.
    Withheld {
        /// Where it is.
        beyond: WithheldScope,
    },
}

/// What a reason tells of that is not the job's own.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum WithheldScope {
    /// Its queue, with the jobs of others.
    Queue,
    /// The nodes.
    Nodes,
    /// The service that it calls.
    Service,
    /// The resource that it needs.
    Resource,
}

impl Reason {
    /// What it tells of beyond the job; `None` if it tells of nothing else.
    pub fn beyond(&self) -> Option<WithheldScope> {
        match self {
            Self::QueuePaused { .. } | Self::Probation { .. } | Self::Behind { .. } => Some(WithheldScope::Queue),
            Self::NoNode { .. } | Self::NoSlot { .. } | Self::Orphaned { .. } => Some(WithheldScope::Nodes),
            Self::Breaker { .. } => Some(WithheldScope::Service),
            Self::Permit { .. } => Some(WithheldScope::Resource),
            Self::Withheld { beyond } => Some(*beyond),
            Self::Ended { .. }
            | Self::Running { .. }
            | Self::Paused
            | Self::Dependency { .. }
            | Self::Children { .. }
            | Self::Signal { .. }
            | Self::NotDue { .. }
            | Self::PutOff { .. } => None,
        }
    }
}

impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Ended { state, archived: true } => write!(f, "it has ended: {state}, and is archived"),
            Self::Ended { state: state @ JobState::Failed, .. } => {
                write!(f, "it has ended: {state}; only a retry can run it again")
            }
            Self::Ended { state, .. } => write!(f, "it has ended: {state}"),
            Self::Running { node: Some(node), .. } => write!(f, "it runs, on node {node}"),
            Self::Running { node: None, .. } => f.write_str("it runs"),
            Self::Orphaned { node, heard, living } => {
                write!(f, "node {node}, on which it ran, ")?;
                match heard {
                    Some(at) => write!(f, "has not been heard of since {at:.3}")?,
                    None => f.write_str("is gone")?,
                }
                match living {
                    0 => f.write_str(", and no node lives that could put it back into its queue"),
                    _ => f.write_str(
                        "; living nodes put it back into its queue when they have missed it for their grace",
                    ),
                }
            }
            Self::Paused => f.write_str("it is paused; resume it"),
            Self::Dependency { jobs } => match &jobs[..] {
                [] => f.write_str("it waits for other jobs"),
                [job] => write!(f, "it waits for job {job} to end"),
                [first, ..] => write!(f, "it waits for {} jobs to end, {first} among them", jobs.len()),
            },
            Self::Children { left, open: true } => {
                let children = counted(*left, "child has", "children have");
                write!(f, "the batch is open: {children} not ended, and further ones may come until it is sealed")
            }
            Self::Children { left, open: false } => {
                write!(f, "{} not ended", counted(*left, "child of the batch has", "children of the batch have"))
            }
            Self::Signal { key, expires_at: Some(at) } => write!(f, "it waits for the signal {key:?}, until {at:.3}"),
            Self::Signal { key, expires_at: None } => write!(f, "it waits for the signal {key:?}"),
            Self::NotDue { at } => write!(f, "it is not due until {at:.3}"),
            Self::PutOff { until } => write!(f, "it was put off until {until:.3}"),
            Self::QueuePaused { queue } => write!(f, "its queue {queue} is paused; resume the queue"),
            Self::NoNode { kind, queue, living: 0 } => {
                write!(f, "no node lives; start one that runs {kind} in queue {queue}")
            }
            Self::NoNode { kind, queue, living } => {
                match living {
                    1 => f.write_str("the only living node does not run")?,
                    _ => write!(f, "none of the {living} living nodes runs")?,
                }
                write!(f, " {kind} in queue {queue}; register its handler and serve its queue")
            }
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
            Self::Probation { crash_count, ahead, running } => {
                let times = counted(u64::from(*crash_count), "time", "times");
                write!(f, "its node died {times} in a row while running it: each node runs one such job at a time, ")?;
                match &running[..] {
                    [] => {}
                    [one] => write!(f, "now {one}, ")?,
                    [one, others @ ..] => write!(f, "now {one} and {} more, ", others.len())?,
                }
                match ahead {
                    Depth { count: 0, .. } => f.write_str("and none that waits is more urgent or older"),
                    Depth { count: 1, or_more: false } => f.write_str("and one comes before it"),
                    many => write!(f, "and {many} come before it"),
                }
            }
            Self::NoSlot { nodes, slots } => {
                let slots = counted(*slots, "slot", "slots");
                let nodes = counted(*nodes as u64, "node", "nodes");
                write!(f, "of the {nodes} that could run it no slot was free at the last heartbeat, of {slots}")
            }
            Self::Behind { jobs: Depth { count: 1, or_more: false } } => {
                f.write_str("one job of its queue is more urgent or older")
            }
            Self::Behind { jobs } => write!(f, "{jobs} jobs of its queue are more urgent or older"),
            Self::Withheld { beyond: WithheldScope::Queue } => f.write_str("its queue holds it up"),
            Self::Withheld { beyond: WithheldScope::Nodes } => f.write_str("no node can run it now"),
            Self::Withheld { beyond: WithheldScope::Service } => f.write_str("the service that it calls is left alone"),
            Self::Withheld { beyond: WithheldScope::Resource } => f.write_str("no permit for its resource is left"),
        }
    }
}

fn counted(count: u64, one: &str, many: &str) -> String {
    format!("{count} {}", if count == 1 { one } else { many })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_breaker_is_told_with_where_and_until_when() {
        let check = |nodes, until: Option<i64>, text: &str| {
            let reason = Reason::Breaker {
                service: "payments".to_owned(),
                nodes,
                until: until.map(|at| Timestamp::from_second(at).unwrap()),
            };
            assert_eq!(reason.to_string(), format!("the circuit breaker of payments is open on {text}"));
        };
        check(1, None, "the only node that could run it, until somebody resets it");
        check(3, Some(1_000), "all 3 nodes that could run it, until 1970-01-01T00:16:40.000Z");
    }

    #[test]
    fn a_job_without_its_node_is_told_with_who_takes_it_up() {
        let check = |heard: Option<i64>, living, text: &str| {
            let (node, heard) = (NodeId(uuid::Uuid::nil()), heard.map(|at| Timestamp::from_second(at).unwrap()));
            let told = Reason::Orphaned { node, heard, living }.to_string();
            assert_eq!(told, format!("node {node}, on which it ran, {text}"));
        };
        let silent = "has not been heard of since 1970-01-01T00:16:40.000Z";
        check(Some(1_000), 0, &format!("{silent}, and no node lives that could put it back into its queue"));
        let back = "living nodes put it back into its queue when they have missed it for their grace";
        check(Some(1_000), 1, &format!("{silent}; {back}"));
        check(None, 3, &format!("is gone; {back}"));
    }

    #[test]
    fn one_is_not_told_as_many() {
        let check = |reason: Reason, text: &str| assert_eq!(reason.to_string(), text);
        let depth = |count, or_more| Depth { count, or_more };
        check(Reason::Behind { jobs: depth(1, false) }, "one job of its queue is more urgent or older");
        check(Reason::Behind { jobs: depth(2, false) }, "2 jobs of its queue are more urgent or older");
        check(Reason::Children { left: 1, open: false }, "1 child of the batch has not ended");
        check(Reason::Children { left: 2, open: false }, "2 children of the batch have not ended");
        check(
            Reason::NoSlot { nodes: 1, slots: 1 },
            "of the 1 node that could run it no slot was free at the last heartbeat, of 1 slot",
        );
        let id = JobId(uuid::Uuid::nil());
        let probation = |crash_count, ahead, running: usize| {
            let running = vec![id; running];
            Reason::Probation { crash_count, ahead: depth(ahead, false), running }.to_string()
        };
        let rule = "in a row while running it: each node runs one such job at a time,";
        let first = "and none that waits is more urgent or older";
        assert_eq!(probation(1, 0, 0), format!("its node died 1 time {rule} {first}"));
        assert_eq!(probation(2, 1, 1), format!("its node died 2 times {rule} now {id}, and one comes before it"));
        assert_eq!(
            probation(2, 3, 3),
            format!("its node died 2 times {rule} now {id} and 2 more, and 3 come before it")
        );
        let (kind, queue) = (Kind::new("mail").unwrap(), QueueName::default());
        let nowhere = |living| Reason::NoNode { kind: kind.clone(), queue: queue.clone(), living };
        let what = "mail in queue default; register its handler and serve its queue";
        check(Reason::Withheld { beyond: WithheldScope::Queue }, "its queue holds it up");
        check(nowhere(1), &format!("the only living node does not run {what}"));
        check(nowhere(2), &format!("none of the 2 living nodes runs {what}"));
    }
}
