//! The archive.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use ratchet_core::StoreError;
use ratchet_core::store::{ArchiveRequest, ArchiveStore, Archived};

use crate::archive;
use crate::archive::purge;
use crate::store::{Backend, SqlStore};
use crate::waist::transact::Intent;
use crate::work;

#[async_trait]
impl<B: Backend> ArchiveStore for SqlStore<B> {
    async fn archive(&self, request: &ArchiveRequest) -> Result<Archived, StoreError> {
        let request = Arc::new(request.clone());
        self.transact(Intent::MaybeWrite, work!([request], |conn| archive::archive(conn, &request))).await
    }

    async fn purge_archive(&self, age: Duration, limit: usize) -> Result<u64, StoreError> {
        self.transact(Intent::MaybeWrite, work!([], |conn| purge::purge_archive(conn, age, limit))).await
    }

    async fn purge_schedules(&self, age: Duration, limit: usize) -> Result<u64, StoreError> {
        self.transact(Intent::MaybeWrite, work!([], |conn| purge::purge_schedules(conn, age, limit))).await
    }
}
