//! Logs of jobs.

use std::sync::Arc;

use async_trait::async_trait;
use ratchet_core::store::{JobLogStore, PurgeLog, PurgedLog};
use ratchet_core::{ErrorKind, JobId, LogFilter, LogLine, LogPage, LogPlace, StoreError};

use crate::job_log;
use crate::store::{Backend, SqlStore};
use crate::waist::transact::Intent;
use crate::work;

#[async_trait]
impl<B: Backend> JobLogStore for SqlStore<B> {
    async fn append_log(&self, lines: Arc<[LogLine]>) -> Result<(), StoreError> {
        if lines.is_empty() {
            return Ok(());
        }
        let new = lines.clone();
        let append = work!([new], |conn| job_log::append_new(conn, &new));
        match self.transact(Intent::LongStatement, append).await {
            Err(error) if *error.kind() == ErrorKind::Conflict => {}
            done => return done,
        }
        let append = work!([lines], |conn| job_log::append_missing(conn, &lines));
        self.transact(Intent::LongStatement, append).await
    }

    async fn read_log(
        &self,
        id: JobId,
        filter: &LogFilter,
        after: Option<LogPlace>,
        limit: usize,
    ) -> Result<LogPage, StoreError> {
        let filter = *filter;
        let read = work!([], |conn| job_log::read(conn, id, &filter, after, limit));
        self.read(read).await
    }

    async fn purge_log(&self, request: &PurgeLog) -> Result<PurgedLog, StoreError> {
        let request = *request;
        self.transact(Intent::MaybeWrite, work!([], |conn| job_log::purge(conn, &request))).await
    }
}
