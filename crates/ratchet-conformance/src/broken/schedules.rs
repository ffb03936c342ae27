use std::time::Duration;

use jiff::Timestamp;
use ratchet_core::page::{JobCursor, Page};
use ratchet_core::schedule::{ArchiveReason, Firing, NewSchedule, ScheduleFilter, ScheduleRecord};
use ratchet_core::schedule::{MisfirePolicy, OverlapPolicy};
use ratchet_core::store::{Declared, Fired, StoreDecorator};
use ratchet_core::{JobId, JobState, Store, StoreError};

use super::{Broken, Flaw, Layer};

#[derive(Debug)]
pub(super) enum Schedules {}

impl StoreDecorator for Layer<Schedules> {
    fn inner(&self) -> &dyn Store {
        self.below()
    }

    async fn create_schedule(&self, new: &NewSchedule) -> Result<(), StoreError> {
        self.good.create_schedule(&self.spoilt(new)).await
    }

    async fn declare_schedules(&self, all: &[NewSchedule]) -> Result<Vec<Declared>, StoreError> {
        let mut declared = Vec::with_capacity(all.len());
        for new in all {
            if self.has(Flaw::DeclaresAnew) {
                self.good.cancel_schedule(new.id, ArchiveReason::Canceled, None).await?;
            }
            if self.has(Flaw::ForgetsTheRetired) && self.good.find_schedules(&[new.id]).await?.is_empty() {
                self.good.create_schedule(new).await?;
                declared.push(Declared::Created);
            } else {
                declared.extend(self.good.declare_schedules(&[self.spoilt(new)]).await?);
            }
        }
        Ok(declared)
    }

    async fn list_schedules(
        &self,
        filter: &ScheduleFilter,
        after: Option<JobCursor>,
        limit: usize,
    ) -> Result<Page<ScheduleRecord>, StoreError> {
        let all = ScheduleFilter::default();
        let filter = if self.has(Flaw::IgnoresFilters) { &all } else { filter };
        self.good.list_schedules(filter, after, limit).await
    }

    async fn next_fire(&self) -> Result<Option<Duration>, StoreError> {
        if self.has(Flaw::NeverDue) { Ok(None) } else { self.good.next_fire().await }
    }

    async fn due_schedules(&self, limit: usize) -> Result<(Timestamp, Vec<ScheduleRecord>), StoreError> {
        let limit = if self.has(Flaw::IgnoresLimit) { 1_000 } else { limit };
        let (now, mut due) = self.good.due_schedules(limit).await?;
        if self.has(Flaw::ReversesClaims) {
            due.reverse();
        }
        Ok((now, due))
    }

    async fn fire_schedules(&self, firings: &[Firing]) -> Result<Vec<Fired>, StoreError> {
        let mut firings = firings.to_vec();
        if self.has(Flaw::FiresBlindly) {
            for firing in &mut firings {
                let known = self.good.find_schedules(&[firing.id]).await?;
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
                let known = self.good.find_schedules(&[firing.id]).await?;
                if let Some(last) = known.first().and_then(|one| one.last_job)
                    && self.inner_job(last).await.is_some_and(|job| job.state == JobState::Paused)
                {
                    firing.jobs.clear();
                }
            }
        }
        let fired = self.good.fire_schedules(&firings).await?;
        if self.has(Flaw::FiresRenew) {
            for firing in &firings {
                self.good.pause_schedule(firing.id).await?;
                self.good.resume_schedule(firing.id, firing.next).await?;
            }
        }
        Ok(if self.has(Flaw::SaysApplied) { vec![Fired::Done { jobs: 1, skipped: 0 }; fired.len()] } else { fired })
    }

    async fn pause_schedule(&self, id: JobId) -> Result<bool, StoreError> {
        if self.has(Flaw::ControlsNothing) { Ok(true) } else { self.good.pause_schedule(id).await }
    }

    async fn resume_schedule(&self, id: JobId, next_fire: Option<Timestamp>) -> Result<bool, StoreError> {
        if self.has(Flaw::ControlsNothing) { Ok(true) } else { self.good.resume_schedule(id, next_fire).await }
    }

    async fn cancel_schedule(
        &self,
        id: JobId,
        reason: ArchiveReason,
        idle_for: Option<Duration>,
    ) -> Result<bool, StoreError> {
        if self.has(Flaw::DeletesNothing) {
            return Ok(true);
        }
        let idle_for = idle_for.filter(|_| !self.has(Flaw::RetiresAnything));
        self.good.cancel_schedule(id, reason, idle_for).await
    }
}

impl Broken {
    fn spoilt(&self, new: &NewSchedule) -> NewSchedule {
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
