//! Signals.

use std::sync::Arc;

use async_trait::async_trait;
use ratchet_core::signal::Delivery;
use ratchet_core::store::{Delivered, Expired, SignalStore, Swept};
use ratchet_core::{JobId, SignalKey, SignalRecord, StoreError};

use crate::archive::archived;
use crate::signal;
use crate::store::{Backend, SqlStore};
use crate::waist::transact::Intent;
use crate::work;

#[async_trait]
impl<B: Backend> SignalStore for SqlStore<B> {
    async fn deliver(&self, delivery: &Delivery) -> Result<Delivered, StoreError> {
        let delivery = Arc::new(delivery.clone());
        self.write(work!([delivery], |conn| signal::deliver(conn, &delivery))).await
    }

    async fn expire(&self, limit: usize) -> Result<Expired, StoreError> {
        self.transact(Intent::MaybeWrite, work!([], |conn| signal::expire(conn, limit))).await
    }

    async fn signals(&self, ids: &[JobId]) -> Result<Vec<SignalRecord>, StoreError> {
        let ids: Arc<[JobId]> = ids.into();
        self.read(work!([ids], |conn| archived::signals(conn, &ids))).await
    }

    async fn sweep_signals(&self, after: Option<&SignalKey>, limit: usize) -> Result<Swept, StoreError> {
        let after = after.cloned();
        let sweep = work!([after], |conn| signal::sweep(conn, after.as_ref(), limit));
        self.transact(Intent::MaybeWrite, sweep).await
    }
}
