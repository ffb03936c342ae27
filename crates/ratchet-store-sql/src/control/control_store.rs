//! Requests of operators about one job.

use std::sync::Arc;

use async_trait::async_trait;
use ratchet_core::store::{ControlStore, Replacement, Transitioned};
use ratchet_core::{JobId, NewJob, StoreError};

use crate::control;
use crate::store::{Backend, SqlStore};
use crate::work;

#[async_trait]
impl<B: Backend> ControlStore for SqlStore<B> {
    async fn cancel(&self, id: JobId) -> Result<Option<Transitioned>, StoreError> {
        self.write(work!([], |conn| control::cancel(conn, id))).await
    }

    async fn pause(&self, id: JobId) -> Result<Option<Transitioned>, StoreError> {
        self.write(work!([], |conn| control::pause(conn, id))).await
    }

    async fn resume(&self, id: JobId) -> Result<Option<Transitioned>, StoreError> {
        self.write(work!([], |conn| control::resume(conn, id))).await
    }

    async fn retry(&self, id: JobId) -> Result<Option<Transitioned>, StoreError> {
        self.write(work!([], |conn| control::retry(conn, id))).await
    }

    async fn replace(&self, old: JobId, new: &NewJob) -> Result<Replacement, StoreError> {
        let new = Arc::new(new.clone());
        self.write(work!([new], |conn| control::replace(conn, old, &new))).await
    }
}
