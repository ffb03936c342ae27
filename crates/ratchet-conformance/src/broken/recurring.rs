use std::time::Duration;

use jiff::Timestamp;
use ratchet_core::page::{JobCursor, Page};
use ratchet_core::recurring::{ArchiveReason, Firing, NewRecurring, RecurringFilter, RecurringRecord};
use ratchet_core::schedule::{MisfirePolicy, OverlapPolicy};
use ratchet_core::store::{Declared, Fired, StoreDecorator};
use ratchet_core::{JobId, JobState, Store, StoreError};

use super::{Broken, Flaw, Layer};

#[derive(Debug)]
pub(super) enum Recurring {}

impl StoreDecorator for Layer<Recurring> {
    fn inner(&self) -> &dyn Store {
        self.below()
    }

    async fn create_recurring(&self, new: &NewRecurring) -> Result<(), StoreError> {
        self.good.create_recurring(&self.spoilt(new)).await
    }

    async fn declare_recurring(&self, all: &[NewRecurring]) -> Result<Vec<Declared>, StoreError> {
        let mut declared = Vec::with_capacity(all.len());
        for new in all {
            if self.has(Flaw::DeclaresAnew) {
                self.good.cancel_recurring(new.id, ArchiveReason::Canceled, None).await?;
            }
            if self.has(Flaw::ForgetsTheRetired) && self.good.find_recurring(&[new.id]).await?.is_empty() {
                self.good.create_recurring(new).await?;
                declared.push(Declared::Created);
            } else {
                declared.extend(self.good.declare_recurring(&[self.spoilt(new)]).await?);
            }
        }
        Ok(declared)
    }

    async fn list_recurring(
        &self,
        filter: &RecurringFilter,
        after: Option<JobCursor>,
        limit: usize,
    ) -> Result<Page<RecurringRecord>, StoreError> {
        let all = RecurringFilter::default();
        let filter = if self.has(Flaw::IgnoresFilters) { &all } else { filter };
        self.good.list_recurring(filter, after, limit).await
    }

    async fn next_fire(&self) -> Result<Option<Duration>, StoreError> {
        if self.has(Flaw::NeverDue) { Ok(None) } else { self.good.next_fire().await }
    }

    async fn due_recurring(&self, limit: usize) -> Result<(Timestamp, Vec<RecurringRecord>), StoreError> {
        let limit = if self.has(Flaw::IgnoresLimit) { 1_000 } else { limit };
        let (now, mut due) = self.good.due_recurring(limit).await?;
        if self.has(Flaw::ReversesClaims) {
            due.reverse();
        }
        Ok((now, due))
    }

    async fn fire_recurring(&self, firings: &[Firing]) -> Result<Vec<Fired>, StoreError> {
        let mut firings = firings.to_vec();
        if self.has(Flaw::FiresBlindly) {
            for firing in &mut firings {
                let known = self.good.find_recurring(&[firing.id]).await?;
                if let Some(next) = known.first().and_then(|one| one.next_fire) {
                    firing.expected = next;
                }
            }
        }
        if self.has(Flaw::ClampsTime) {
            for job in firings.iter_mut().flat_map(|firing| &mut firing.jobs) {
                job.due = ratchet_core::Due::NOW;
            }
        }
        if self.has(Flaw::WaitsForThePaused) {
            for firing in &mut firings {
                let known = self.good.find_recurring(&[firing.id]).await?;
                if let Some(last) = known.first().and_then(|one| one.last_job)
                    && self.inner_job(last).await.is_some_and(|job| job.state == JobState::Paused)
                {
                    firing.jobs.clear();
                }
            }
        }
        let fired = self.good.fire_recurring(&firings).await?;
        if self.has(Flaw::FiresRenew) {
            for firing in &firings {
                self.good.pause_recurring(firing.id).await?;
                self.good.resume_recurring(firing.id, firing.next).await?;
            }
        }
        Ok(if self.has(Flaw::SaysApplied) { vec![Fired::Done { jobs: 1, skipped: 0 }; fired.len()] } else { fired })
    }

    async fn pause_recurring(&self, id: JobId) -> Result<bool, StoreError> {
        if self.has(Flaw::ControlsNothing) { Ok(true) } else { self.good.pause_recurring(id).await }
    }

    async fn resume_recurring(&self, id: JobId, next_fire: Option<Timestamp>) -> Result<bool, StoreError> {
        if self.has(Flaw::ControlsNothing) { Ok(true) } else { self.good.resume_recurring(id, next_fire).await }
    }

    async fn cancel_recurring(
        &self,
        id: JobId,
        reason: ArchiveReason,
        idle_for: Option<Duration>,
    ) -> Result<bool, StoreError> {
        if self.has(Flaw::DeletesNothing) {
            return Ok(true);
        }
        let idle_for = idle_for.filter(|_| !self.has(Flaw::RetiresAnything));
        self.good.cancel_recurring(id, reason, idle_for).await
    }
}

impl Broken {
    fn spoilt(&self, new: &NewRecurring) -> NewRecurring {
        let mut new = new.clone();
        match self.flaw {
            Flaw::LosesSpec => new.spec.tags.clear(),
            Flaw::ForgetsBusinessKeys => new.business_key = None,
            Flaw::AlwaysOverlaps => new.overlap = OverlapPolicy::Allow,
            Flaw::AlwaysCatchesUp => new.misfire = MisfirePolicy::default(),
            _ => {}
        }
        new
    }
}
