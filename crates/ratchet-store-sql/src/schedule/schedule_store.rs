//! Schedules.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use ratchet_core::page::{JobCursor, Page};
use ratchet_core::schedule::{ArchiveReason, Firing, NewSchedule, ScheduleFilter, ScheduleRecord};
use ratchet_core::store::{Declared, Fired, ScheduleStore};
use ratchet_core::{JobId, StoreError, Timestamp};

use crate::schedule;
use crate::schedule::fire;
use crate::store::{Backend, SqlStore};
use crate::work;

#[async_trait]
impl<B: Backend> ScheduleStore for SqlStore<B> {
    async fn create_schedule(&self, new: &NewSchedule) -> Result<(), StoreError> {
        let new = Arc::new(new.clone());
        self.write(work!([new], |conn| schedule::create(conn, &new))).await
    }

    async fn declare_schedules(&self, all: &[NewSchedule]) -> Result<Vec<Declared>, StoreError> {
        if all.is_empty() {
            return Ok(Vec::new());
        }
        let all: Arc<[NewSchedule]> = all.into();
        self.write(work!([all], |conn| schedule::declare(conn, &all))).await
    }

    async fn find_schedules(&self, ids: &[JobId]) -> Result<Vec<ScheduleRecord>, StoreError> {
        let ids: Arc<[JobId]> = ids.into();
        self.read(work!([ids], |conn| schedule::find(conn, &ids))).await
    }

    async fn list_schedules(
        &self,
        filter: &ScheduleFilter,
        after: Option<JobCursor>,
        limit: usize,
    ) -> Result<Page<ScheduleRecord>, StoreError> {
        let filter = Arc::new(filter.clone());
        let list = work!([filter], |conn| schedule::list(conn, &filter, after, limit));
        self.read(list).await
    }

    async fn next_fire(&self) -> Result<Option<Duration>, StoreError> {
        self.read(work!([], |conn| schedule::next_fire(conn))).await
    }

    async fn due_schedules(&self, limit: usize) -> Result<(Timestamp, Vec<ScheduleRecord>), StoreError> {
        self.read(work!([], |conn| schedule::due(conn, limit))).await
    }

    async fn fire_schedules(&self, firings: &[Firing]) -> Result<Vec<Fired>, StoreError> {
        let firings: Arc<[Firing]> = firings.into();
        self.write(work!([firings], |conn| fire::fire(conn, &firings))).await
    }

    async fn pause_schedule(&self, id: JobId) -> Result<bool, StoreError> {
        self.write(work!([], |conn| schedule::pause(conn, id))).await
    }

    async fn resume_schedule(&self, id: JobId, next_fire: Option<Timestamp>) -> Result<bool, StoreError> {
        self.write(work!([], |conn| schedule::resume(conn, id, next_fire))).await
    }

    async fn cancel_schedule(
        &self,
        id: JobId,
        reason: ArchiveReason,
        idle_for: Option<Duration>,
    ) -> Result<bool, StoreError> {
        let cancel = work!([], |conn| schedule::cancel(conn, id, reason, idle_for));
        self.write(cancel).await
    }
}
