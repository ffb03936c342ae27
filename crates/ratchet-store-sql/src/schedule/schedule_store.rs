//! Schedules.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use ratchet_core::page::{JobCursor, Page};
use ratchet_core::recurring::{ArchiveReason, Firing, NewRecurring, RecurringFilter, RecurringRecord};
use ratchet_core::store::{Declared, Fired, RecurringStore};
use ratchet_core::{JobId, StoreError, Timestamp};

use crate::schedule;
use crate::schedule::fire;
use crate::store::{Backend, SqlStore};
use crate::work;

#[async_trait]
impl<B: Backend> RecurringStore for SqlStore<B> {
    async fn create_recurring(&self, new: &NewRecurring) -> Result<(), StoreError> {
        let new = Arc::new(new.clone());
        self.write(work!([new], |conn| schedule::create(conn, &new))).await
    }

    async fn declare_recurring(&self, all: &[NewRecurring]) -> Result<Vec<Declared>, StoreError> {
        if all.is_empty() {
            return Ok(Vec::new());
        }
        let all: Arc<[NewRecurring]> = all.into();
        self.write(work!([all], |conn| schedule::declare(conn, &all))).await
    }

    async fn find_recurring(&self, ids: &[JobId]) -> Result<Vec<RecurringRecord>, StoreError> {
        let ids: Arc<[JobId]> = ids.into();
        self.read(work!([ids], |conn| schedule::find(conn, &ids))).await
    }

    async fn list_recurring(
        &self,
        filter: &RecurringFilter,
        after: Option<JobCursor>,
        limit: usize,
    ) -> Result<Page<RecurringRecord>, StoreError> {
        let filter = Arc::new(filter.clone());
        let list = work!([filter], |conn| schedule::list(conn, &filter, after, limit));
        self.read(list).await
    }

    async fn next_fire(&self) -> Result<Option<Duration>, StoreError> {
        self.read(work!([], |conn| schedule::next_fire(conn))).await
    }

    async fn due_recurring(&self, limit: usize) -> Result<(Timestamp, Vec<RecurringRecord>), StoreError> {
        self.read(work!([], |conn| schedule::due(conn, limit))).await
    }

    async fn fire_recurring(&self, firings: &[Firing]) -> Result<Vec<Fired>, StoreError> {
        let firings: Arc<[Firing]> = firings.into();
        self.write(work!([firings], |conn| fire::fire(conn, &firings))).await
    }

    async fn pause_recurring(&self, id: JobId) -> Result<bool, StoreError> {
        self.write(work!([], |conn| schedule::pause(conn, id))).await
    }

    async fn resume_recurring(&self, id: JobId, next_fire: Option<Timestamp>) -> Result<bool, StoreError> {
        self.write(work!([], |conn| schedule::resume(conn, id, next_fire))).await
    }

    async fn cancel_recurring(
        &self,
        id: JobId,
        reason: ArchiveReason,
        idle_for: Option<Duration>,
    ) -> Result<bool, StoreError> {
        let cancel = work!([], |conn| schedule::cancel(conn, id, reason, idle_for));
        self.write(cancel).await
    }
}
