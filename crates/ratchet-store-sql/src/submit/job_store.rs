//! Jobs going in, found and deleted.

use std::sync::Arc;

use async_trait::async_trait;
use ratchet_core::store::{JobStore, SubmitOutcome, SubmitUnit};
use ratchet_core::{BusinessKey, ErrorKind, IdempotencyKey, JobId, JobRecord, StoreError};

use crate::archive::archived;
use crate::job_row;
use crate::store::{Backend, SqlStore};
use crate::submit;
use crate::submit::plain;
use crate::waist::transact::Intent;
use crate::work;

#[async_trait]
impl<B: Backend> JobStore for SqlStore<B> {
    async fn submit(&self, units: &[SubmitUnit]) -> Result<Vec<SubmitOutcome>, StoreError> {
        let units: Arc<[SubmitUnit]> = units.into();
        if plain::is_plain(self.dialect(), &units) {
            let all = units.clone();
            let plain = work!([all], |conn| plain::submit_plain(conn, &all));
            match self.transact(Intent::Statement, plain).await {
                Err(error) if *error.kind() == ErrorKind::Conflict => {}
                outcomes => return outcomes,
            }
        }
        let hopeful = units.clone();
        let in_bulk = work!([hopeful], |conn| submit::submit_in_bulk(conn, &hopeful));
        match self.write(in_bulk).await {
            Err(error) if *error.kind() == ErrorKind::Conflict => {
                let carefully = work!([units], |conn| submit::submit_carefully(conn, &units));
                self.write(carefully).await
            }
            outcomes => outcomes,
        }
    }

    async fn find(&self, ids: &[JobId]) -> Result<Vec<JobRecord>, StoreError> {
        let ids: Arc<[JobId]> = ids.into();
        self.read(work!([ids], |conn| archived::find(conn, &ids))).await
    }

    async fn find_by_business_key(&self, key: &BusinessKey) -> Result<Option<JobId>, StoreError> {
        let key = key.clone();
        self.read(work!([key], |conn| job_row::find_by_business_key(conn, &key))).await
    }

    async fn find_by_idempotency_key(&self, key: &IdempotencyKey) -> Result<Option<JobId>, StoreError> {
        let key = key.clone();
        self.read(work!([key], |conn| job_row::find_by_idempotency_key(conn, &key))).await
    }

    async fn delete(&self, id: JobId) -> Result<bool, StoreError> {
        self.write(work!([], |conn| archived::delete(conn, id))).await
    }
}
