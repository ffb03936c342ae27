//! Lists, counts and history.

use std::sync::Arc;

use async_trait::async_trait;
use ratchet_core::flow::{Edge, Workflow};
use ratchet_core::page::{JobCursor, JobFilter, ListCursor, Page};
use ratchet_core::store::{LastAttempts, QueryStore, StateCounts};
use ratchet_core::{AttemptRecord, CountBy, Counted, JobId, JobRecord, Principal, StoreError};

use crate::archive::archived;
use crate::flow::edges;
use crate::list;
use crate::list::count;
use crate::list::query;
use crate::store::{Backend, SqlStore};
use crate::work;

#[async_trait]
impl<B: Backend> QueryStore for SqlStore<B> {
    async fn list(
        &self,
        filter: &JobFilter,
        after: Option<ListCursor>,
        limit: usize,
    ) -> Result<Page<JobRecord, ListCursor>, StoreError> {
        let filter = Arc::new(filter.clone());
        let list = work!([filter], |conn| list::list(conn, &filter, after, limit));
        self.read(list).await
    }

    async fn count(&self, filter: &JobFilter, by: &CountBy) -> Result<Counted, StoreError> {
        let asked = Arc::new((filter.clone(), by.clone()));
        let count = work!([asked], |conn| count::count(conn, &asked.0, &asked.1));
        self.read(count).await
    }

    async fn count_by_state(&self) -> Result<StateCounts, StoreError> {
        self.read(work!([], |conn| query::count_by_state(conn))).await
    }

    async fn count_by_state_of(&self, principal: &Principal) -> Result<StateCounts, StoreError> {
        let principal = principal.clone();
        let count = work!([principal], |conn| query::count_by_state_of(conn, &principal));
        self.read(count).await
    }

    async fn attempts(&self, id: JobId) -> Result<Vec<AttemptRecord>, StoreError> {
        self.read(work!([], |conn| archived::attempts(conn, id))).await
    }

    async fn last_attempts(&self, id: JobId, before: Option<u64>, limit: usize) -> Result<LastAttempts, StoreError> {
        let read = work!([], |conn| archived::last_attempts(conn, id, before, limit));
        self.read(read).await
    }

    async fn workflow(&self, id: JobId) -> Result<Option<Workflow>, StoreError> {
        self.read(work!([], |conn| query::workflow(conn, id))).await
    }

    async fn workflows(&self, after: Option<JobCursor>, limit: usize) -> Result<Page<JobId>, StoreError> {
        self.read(work!([], |conn| query::workflows(conn, after, limit))).await
    }

    async fn edges_from(&self, ids: &[JobId]) -> Result<Vec<Edge>, StoreError> {
        let ids: Arc<[JobId]> = ids.into();
        self.read(work!([ids], |conn| edges::from(conn, &ids))).await
    }

    async fn alert_count(&self, id: JobId) -> Result<u64, StoreError> {
        self.read(work!([], |conn| query::alert_count(conn, id))).await
    }
}
