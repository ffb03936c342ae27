//! What is done at random.

use std::collections::BTreeSet;

use fastrand::Rng;
use ratchet_core::claim::Fence;
use ratchet_core::{BusinessKey, IdempotencyKey, JobId, NodeId, Priority, QueueName};
use uuid::Uuid;

use super::side::Answer;
use crate::harness::{business_key, idempotency_key, new_id_from, queue};

pub(super) const QUEUES: [&str; 2] = ["default", "other"];
pub(super) const KINDS: [&str; 3] = ["one", "two", "three"];
pub(super) const KEYS: [&str; 4] = ["a", "b", "c", "d"];
pub(super) const LEASES: [&str; 2] = ["purge", "archive"];

/// One operation, with all durations in days, counted from the start of the store that performs it.
#[derive(Debug, Clone)]
pub(super) enum Operation {
    Submit(Vec<Vec<Draft>>),
    Turn { endings: Vec<Ending>, claim: Option<ClaimDraft> },
    Cancel(JobId),
    Pause(JobId),
    Resume(JobId),
    Retry(JobId),
    Release(JobId),
    Replace(JobId, Draft),
    Delete(JobId),
    PauseQueue(QueueName),
    ResumeQueue(QueueName),
    Register(NodeId),
    Deregister(NodeId),
    Beat(NodeId),
    Orphans { observer: NodeId, grace: u64 },
    Reconcile { node: NodeId, progress: Vec<(Fence, u8)> },
    AcquireLease(&'static str, NodeId, u64),
    ReleaseLease(&'static str, NodeId),
}

/// A job to submit.
#[derive(Debug, Clone)]
pub(super) struct Draft {
    pub(super) id: JobId,
    pub(super) kind: &'static str,
    pub(super) queue: &'static str,
    pub(super) priority: Priority,
    pub(super) due: DueDraft,
    pub(super) waiting: bool,
    pub(super) business_key: Option<BusinessKey>,
    pub(super) idempotency_key: Option<IdempotencyKey>,
}

#[derive(Debug, Clone, Copy)]
pub(super) enum DueDraft {
    After(u64),
    At(i64),
}

/// The end of an attempt, by a fence that may be stale.
#[derive(Debug, Clone)]
pub(super) struct Ending {
    pub(super) fence: Fence,
    pub(super) change: ChangeDraft,
    pub(super) callback: Option<JobId>,
    pub(super) maybe_applied: bool,
    /// Most endings have an attempt to record.
    pub(super) recorded: bool,
}

#[derive(Debug, Clone, Copy)]
pub(super) enum ChangeDraft {
    Succeed { attempts: u32, result: u8 },
    Reschedule { attempts: u32, delay: u64 },
    Defer { delay: u64 },
    Fail { attempts: u32, error: u8, crashes: Option<u32> },
    Rescue { crashes: u32 },
}

#[derive(Debug, Clone)]
pub(super) struct ClaimDraft {
    pub(super) node: NodeId,
    pub(super) queue: &'static str,
    pub(super) kinds: Vec<&'static str>,
    pub(super) limit: usize,
    pub(super) probation: bool,
    pub(super) boost: u64,
}

/// A new id: its second half follows from the seed, as does all that depends on it.
pub(super) fn new_id(rng: &mut Rng) -> JobId {
    new_id_from(rng.u64(..))
}

/// What has happened so far, so that operations meet what is there.
pub(super) struct World {
    pub(super) rng: Rng,
    pub(super) jobs: Vec<JobId>,
    pub(super) nodes: Vec<NodeId>,
    fences: Vec<Fence>,
    /// Jobs that may have failed.
    failed: Vec<JobId>,
    last_submit: Vec<Vec<Draft>>,
}

impl World {
    pub(super) fn new(rng: Rng) -> Self {
        Self {
            rng,
            jobs: Vec::new(),
            nodes: Vec::new(),
            fences: Vec::new(),
            failed: Vec::new(),
            last_submit: Vec::new(),
        }
    }

    /// Mostly none, so that alerts repeat within their quiet time; sometimes enough to make jobs due, nodes silent and leases
    /// expire.
    pub(super) fn extra_days(&mut self) -> u64 {
        if self.rng.u8(..5) == 0 { self.rng.u64(1..20) } else { 0 }
    }

    pub(super) fn next_operation(&mut self) -> Operation {
        if self.nodes.len() < 2 {
            return Operation::Register(NodeId(Uuid::from_u128(self.rng.u128(..))));
        }
        match self.rng.u8(..100) {
            0..18 => Operation::Submit(self.units()),
            18..20 => Operation::Submit(self.last_submit.clone()),
            20..38 => Operation::Turn { endings: Vec::new(), claim: Some(self.claim()) },
            38..52 => Operation::Turn { endings: self.endings(), claim: None },
            52..60 => Operation::Turn { endings: self.endings(), claim: Some(self.claim()) },
            60..63 => Operation::Cancel(self.job()),
            63..67 => Operation::Pause(self.job()),
            67..72 => Operation::Resume(self.job()),
            72..77 => Operation::Retry(self.failed_job()),
            77..80 => Operation::Release(self.job()),
            80..82 => Operation::Replace(self.job(), Draft { idempotency_key: None, ..self.draft() }),
            82..84 => Operation::Delete(self.job()),
            84..85 => Operation::PauseQueue(self.queue()),
            85..87 => Operation::ResumeQueue(self.queue()),
            87..88 => Operation::Register(NodeId(Uuid::from_u128(self.rng.u128(..)))),
            88 => Operation::Deregister(self.node()),
            89..92 => Operation::Beat(self.node()),
            92..94 => Operation::Orphans { observer: self.node(), grace: self.rng.u64(5..60) },
            94..97 => Operation::Reconcile { node: self.node(), progress: self.progress() },
            97..99 => Operation::AcquireLease(LEASES[self.rng.usize(..2)], self.node(), self.rng.u64(1..20)),
            _ => Operation::ReleaseLease(LEASES[self.rng.usize(..2)], self.node()),
        }
    }

    /// Remembers what an operation brought into the world.
    pub(super) fn learn(&mut self, operation: &Operation, answer: &Answer) {
        match operation {
            Operation::Submit(units) => {
                self.jobs.extend(units.iter().flatten().map(|draft| draft.id));
                self.last_submit.clone_from(units);
            }
            Operation::Turn { endings, .. } => {
                self.jobs.extend(endings.iter().filter_map(|ending| ending.callback));
                let failed = endings.iter().filter(|ending| matches!(ending.change, ChangeDraft::Fail { .. }));
                self.failed.extend(failed.map(|ending| ending.fence.job_id));
            }
            Operation::Replace(_, draft) => self.jobs.push(draft.id),
            Operation::Register(node) => self.nodes.push(*node),
            // A unit that is only half there is nothing that a lost reply leaves behind.
            Operation::Delete(_) => self.last_submit.clear(),
            _ => {}
        }
        self.jobs.sort();
        self.jobs.dedup();
        self.fences.extend(&answer.fences);
    }

    fn units(&mut self) -> Vec<Vec<Draft>> {
        (0..self.rng.usize(1..3)).map(|_| (0..self.rng.usize(1..4)).map(|_| self.draft()).collect()).collect()
    }

    fn draft(&mut self) -> Draft {
        let due = match self.rng.u8(..4) {
            0 => DueDraft::After(self.rng.u64(1..30)),
            1 => DueDraft::At(self.rng.i64(-60..60)),
            _ => DueDraft::After(0),
        };
        Draft {
            id: new_id(&mut self.rng),
            kind: KINDS[self.rng.usize(..KINDS.len())],
            queue: QUEUES[self.rng.usize(..QUEUES.len())],
            priority: Priority::ALL[self.rng.usize(..5)],
            due,
            waiting: self.rng.u8(..8) == 0,
            business_key: (self.rng.u8(..4) == 0).then(|| business_key(KEYS[self.rng.usize(..KEYS.len())])),
            idempotency_key: (self.rng.u8(..6) == 0).then(|| idempotency_key(KEYS[self.rng.usize(..KEYS.len())])),
        }
    }

    fn claim(&mut self) -> ClaimDraft {
        ClaimDraft {
            node: self.node(),
            queue: QUEUES[self.rng.usize(..QUEUES.len())],
            kinds: KINDS.into_iter().filter(|_| self.rng.u8(..4) > 0).collect(),
            limit: self.rng.usize(1..6),
            probation: self.rng.bool(),
            boost: [0, 3, 15][self.rng.usize(..3)],
        }
    }

    pub(super) fn endings(&mut self) -> Vec<Ending> {
        let mut endings: Vec<_> = (0..self.rng.usize(1..4)).filter_map(|_| self.ending()).collect();
        endings.sort_by_key(|ending| ending.fence.job_id);
        // One statement writes all that wait again, row by row in an order of its own: their times must not be the same.
        let mut delays = BTreeSet::new();
        for ending in &mut endings {
            if let ChangeDraft::Reschedule { delay, .. } = &mut ending.change {
                while !delays.insert(*delay) {
                    *delay += 1;
                }
            }
        }
        endings
    }

    fn ending(&mut self) -> Option<Ending> {
        let fence = self.fence()?;
        let (attempts, delay) = (self.rng.u32(1..5), self.rng.u64(0..20));
        let change = match self.rng.u8(..10) {
            0..3 => ChangeDraft::Succeed { attempts, result: self.rng.u8(..3) },
            3..5 => ChangeDraft::Reschedule { attempts, delay },
            5 => ChangeDraft::Defer { delay },
            6..9 => {
                let crashes = (self.rng.u8(..4) == 0).then_some(3);
                ChangeDraft::Fail { attempts, error: self.rng.u8(..2), crashes }
            }
            _ => ChangeDraft::Rescue { crashes: self.rng.u32(1..3) },
        };
        Some(Ending {
            fence,
            change,
            callback: (self.rng.u8(..6) == 0).then(|| new_id(&mut self.rng)),
            maybe_applied: self.rng.u8(..4) == 0,
            recorded: self.rng.u8(..8) > 0,
        })
    }

    fn progress(&mut self) -> Vec<(Fence, u8)> {
        (0..self.rng.usize(..3)).filter_map(|_| Some((self.fence()?, self.rng.u8(..101)))).collect()
    }

    /// Mostly a recent claim, sometimes an old one or one that never was.
    fn fence(&mut self) -> Option<Fence> {
        let recent = self.fences.len().saturating_sub(8);
        let from = if self.rng.u8(..4) == 0 { 0 } else { recent };
        let mut fence = *self.rng.choice(&self.fences[from..])?;
        match self.rng.u8(..16) {
            0 => fence.version += 1,
            1 => fence.node = self.node(),
            _ => {}
        }
        Some(fence)
    }

    fn job(&mut self) -> JobId {
        let recent = self.jobs.len().saturating_sub(25);
        self.rng.choice(&self.jobs[recent..]).copied().unwrap_or_else(|| new_id(&mut self.rng))
    }

    fn failed_job(&mut self) -> JobId {
        let recent = self.failed.len().saturating_sub(5);
        self.rng.choice(&self.failed[recent..]).copied().unwrap_or_else(|| new_id(&mut self.rng))
    }

    pub(super) fn node(&mut self) -> NodeId {
        let recent = self.nodes.len().saturating_sub(4);
        *self.rng.choice(&self.nodes[recent..]).expect("two nodes come first")
    }

    fn queue(&mut self) -> QueueName {
        queue(QUEUES[self.rng.usize(..QUEUES.len())])
    }
}
