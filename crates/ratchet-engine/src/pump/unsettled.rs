//! Attempts that have ended and whose settlements are not written yet.

use std::sync::Arc;

use ratchet_core::{DeferReason, Fence, JobRecord, Settlement};

use crate::pump::slots::PoolIndex;
use crate::run::executor::Held;

/// An attempt that has ended.
pub(super) struct EndedAttempt {
    pub(super) job: Arc<JobRecord>,
    pub(super) pool: PoolIndex,
    pub(super) defer: Option<DeferReason>,
    pub(super) own_commit: Option<Settlement>,
    pub(super) held: Option<Held>,
    /// The number of times that not even the smallest form of its settlement could be written.
    refusals: u32,
}

impl EndedAttempt {
    pub(super) fn new(
        job: Arc<JobRecord>,
        pool: PoolIndex,
        defer: Option<DeferReason>,
        own_commit: Option<Settlement>,
        held: Option<Held>,
    ) -> Self {
        Self { job, pool, defer, own_commit, held, refusals: 0 }
    }
}

/// Settlements that are not written yet, each with its attempt, which keeps its slot until then.
///
/// Settlements and attempts are two vectors in the same order, so that a store borrows a contiguous slice of settlements
/// without a copy. Only this file sees the two apart.
#[derive(Default)]
pub(super) struct Unsettled {
    /// Shared with the store while it writes them, and with nothing else.
    settlements: Arc<Vec<Settlement>>,
    attempts: Vec<EndedAttempt>,
}

impl Unsettled {
    /// The settlements, to change them. The store has returned before that, so nothing is copied.
    fn settlements_mut(&mut self) -> &mut Vec<Settlement> {
        Arc::make_mut(&mut self.settlements)
    }

    /// Returns the settlements, for a call of the store.
    pub(super) fn shared(&self) -> Arc<Vec<Settlement>> {
        self.settlements.clone()
    }

    pub(super) fn len(&self) -> usize {
        self.settlements.len()
    }

    pub(super) fn is_empty(&self) -> bool {
        self.settlements.is_empty()
    }

    /// Adds a settlement behind the others.
    pub(super) fn push(&mut self, settlement: Settlement, attempt: EndedAttempt) {
        self.settlements_mut().push(settlement);
        self.attempts.push(attempt);
    }

    /// Returns the first `count` settlements, for the store.
    pub(super) fn as_slice(&self, count: usize) -> &[Settlement] {
        &self.settlements[..count]
    }

    /// Returns the attempts, in the order of the settlements.
    pub(super) fn attempts(&self) -> &[EndedAttempt] {
        &self.attempts
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = (&Settlement, &EndedAttempt)> {
        self.settlements.iter().zip(&self.attempts)
    }

    /// Returns whether the settlement of an attempt is among them.
    pub(super) fn contains(&self, fence: &Fence) -> bool {
        self.settlements.iter().any(|settlement| settlement.fence == *fence)
    }

    /// Takes the first `count` settlements out, each with its attempt.
    pub(super) fn drain(&mut self, count: usize) -> Vec<(Settlement, EndedAttempt)> {
        Arc::make_mut(&mut self.settlements).drain(..count).zip(self.attempts.drain(..count)).collect()
    }

    /// Takes the first `count` out, with their order.
    pub(super) fn take(&mut self, count: usize) -> Self {
        let settlements = self.settlements_mut().drain(..count).collect();
        Self { settlements: Arc::new(settlements), attempts: self.attempts.drain(..count).collect() }
    }

    /// Puts what was taken out back in front of the others.
    pub(super) fn put_back(&mut self, mut taken: Self) {
        taken.settlements_mut().append(self.settlements_mut());
        taken.attempts.append(&mut self.attempts);
        *self = taken;
    }

    /// Marks the first `count` settlements as perhaps written already: the store's answer was lost.
    pub(super) fn may_be_applied(&mut self, count: usize) {
        for settlement in &mut self.settlements_mut()[..count] {
            settlement.maybe_applied = true;
        }
    }

    /// Puts another settlement of the same attempt in the place of the first; returns the one that was there.
    ///
    /// # Panics
    /// If there is none.
    pub(super) fn replace_first(&mut self, settlement: Settlement) -> Settlement {
        debug_assert_eq!(self.settlements[0].fence, settlement.fence, "of the same attempt");
        std::mem::replace(&mut self.settlements_mut()[0], settlement)
    }

    /// Counts that not even the smallest form of the first settlement could be written; returns how often that was.
    ///
    /// # Panics
    /// If there is none.
    pub(super) fn refuse_first(&mut self) -> u32 {
        self.attempts[0].refusals += 1;
        self.attempts[0].refusals
    }

    /// Moves the first settlement behind the others.
    pub(super) fn rotate(&mut self) {
        let first = usize::from(!self.is_empty());
        self.settlements_mut().rotate_left(first);
        self.attempts.rotate_left(first);
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;
    use std::time::Duration;

    use jiff::Timestamp;
    use ratchet_core::batch::BATCH_KIND;
    use ratchet_core::{Change, JobId, JobSpec, JobState, JobType, JsonText, Kind, QueueName};

    use super::*;
    use crate::job::inject::StateMap;
    use crate::job::registry::Registry;
    use crate::pump::slots::{INTERNAL_QUEUE, SlotPools};

    fn unsettled(jobs: usize) -> Unsettled {
        let registry = Registry::build(Vec::new(), &StateMap::default()).unwrap();
        let mut slots = SlotPools::new(&registry, &BTreeMap::new());
        let (queue, kind) = (QueueName::new(INTERNAL_QUEUE).unwrap(), Kind::new(BATCH_KIND).unwrap());
        let pool = slots.take(&queue, &kind).unwrap();
        let mut unsettled = Unsettled::default();
        for _ in 0..jobs {
            let spec = JobSpec::new(Kind::new("print").unwrap(), JsonText::null());
            let (id, now) = (crate::new_job_id(), Timestamp::UNIX_EPOCH);
            let job = Arc::new(JobRecord::stored(id, spec, JobType::Single, JobState::Running, now, now));
            let fence = Fence { job_id: id, version: 1, node: crate::new_node_id() };
            let settlement = Settlement::of(fence, Change::Defer { delay: Duration::ZERO });
            unsettled.push(settlement, EndedAttempt::new(job, pool, None, None, None));
        }
        unsettled
    }

    fn ids(unsettled: &Unsettled) -> Vec<JobId> {
        assert!(
            unsettled.iter().all(|(settlement, attempt)| settlement.fence.job_id == attempt.job.id),
            "they belong together"
        );
        assert_eq!(unsettled.len(), unsettled.attempts().len());
        unsettled.iter().map(|(_, attempt)| attempt.job.id).collect()
    }

    #[test]
    fn a_settlement_stays_with_its_attempt() {
        let mut unsettled = unsettled(4);
        let before = ids(&unsettled);
        unsettled.rotate();
        assert_eq!(ids(&unsettled), [before[1], before[2], before[3], before[0]]);
        let minimal = unsettled.as_slice(1)[0].minimal();
        let full = unsettled.replace_first(minimal);
        assert_eq!(unsettled.replace_first(full.clone()).fence, full.fence);
        assert_eq!([unsettled.refuse_first(), unsettled.refuse_first()], [1, 2]);
        let drained: Vec<_> = unsettled
            .drain(2)
            .into_iter()
            .map(|(settlement, attempt)| (settlement.fence.job_id, attempt.job.id))
            .collect();
        assert_eq!(drained, [(before[1], before[1]), (before[2], before[2])]);
        assert_eq!(ids(&unsettled), [before[3], before[0]]);
        unsettled.may_be_applied(1);
        assert_eq!(unsettled.iter().map(|(settlement, _)| settlement.maybe_applied).collect::<Vec<_>>(), [true, false]);
    }
}
