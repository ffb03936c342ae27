//! Batches.

use std::sync::Arc;

use async_trait::async_trait;
use ratchet_core::page::{JobCursor, Page};
use ratchet_core::store::{BatchStore, CanceledChildren, Submitted};
use ratchet_core::{Batch, ErrorKind, Followed, JobId, NewJob, StoreError};

use crate::flow::batches;
use crate::flow::cancel_children;
use crate::store::{Backend, SqlStore};
use crate::submit::plain;
use crate::waist::transact::Intent;
use crate::work;

#[async_trait]
impl<B: Backend> BatchStore for SqlStore<B> {
    async fn extend_batch(&self, id: JobId, children: &[NewJob]) -> Result<Vec<Submitted>, StoreError> {
        let children: Arc<[NewJob]> = children.into();
        if plain::is_plain_extension(self.dialect(), &children) {
            let all = children.clone();
            let plain = work!([all], |conn| plain::extend_plain(conn, id, &all));
            match self.transact(Intent::Statement, plain).await {
                Err(error) if *error.kind() == ErrorKind::Conflict => {}
                outcome => return outcome,
            }
        }
        let hopeful = children.clone();
        let in_bulk = work!([hopeful], |conn| batches::extend_in_bulk(conn, id, &hopeful));
        match self.write(in_bulk).await {
            Err(error) if *error.kind() == ErrorKind::Conflict => {
                let carefully = work!([children], |conn| batches::extend_carefully(conn, id, &children));
                self.write(carefully).await
            }
            outcome => outcome,
        }
    }

    async fn seal_batch(&self, id: JobId) -> Result<Vec<Followed>, StoreError> {
        self.write(work!([], |conn| batches::seal(conn, id))).await
    }

    async fn find_batches(&self, ids: &[JobId]) -> Result<Vec<Batch>, StoreError> {
        let ids: Arc<[JobId]> = ids.into();
        self.read(work!([ids], |conn| batches::find(conn, &ids))).await
    }

    async fn list_batches(&self, after: Option<JobCursor>, limit: usize) -> Result<Page<Batch>, StoreError> {
        self.read(work!([], |conn| batches::list(conn, after, limit))).await
    }

    async fn canceling_batches(&self, limit: usize) -> Result<Vec<JobId>, StoreError> {
        self.read(work!([], |conn| cancel_children::canceling(conn, limit))).await
    }

    async fn cancel_children(
        &self,
        id: JobId,
        after: Option<JobId>,
        limit: usize,
    ) -> Result<CanceledChildren, StoreError> {
        let cancel = work!([], |conn| cancel_children::cancel_children(conn, id, after, limit));
        self.write(cancel).await
    }
}
