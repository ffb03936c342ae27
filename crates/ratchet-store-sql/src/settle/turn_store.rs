//! Turns: settling and claiming.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use ratchet_core::store::{Turn, TurnStore};
use ratchet_core::{ClaimRequest, Settlement, StoreError};

use crate::claim::next_due;
use crate::settle::turn;
use crate::store::{Backend, SqlStore};
use crate::waist::transact::Intent;
use crate::work;

#[async_trait]
impl<B: Backend> TurnStore for SqlStore<B> {
    async fn settle_and_claim(
        &self,
        settlements: &[Settlement],
        claim: Option<&ClaimRequest>,
    ) -> Result<Turn, StoreError> {
        // A poll that finds nothing writes nothing.
        let intent = if settlements.is_empty() { Intent::MaybeWrite } else { Intent::Write };
        let settlements: Arc<[Settlement]> = settlements.into();
        let claim = claim.cloned().map(Arc::new);
        let turn = work!([settlements, claim], |conn| turn::settle_and_claim(conn, &settlements, claim.as_deref()));
        self.transact(intent, turn).await
    }

    async fn next_due(&self, request: &ClaimRequest) -> Result<Option<Duration>, StoreError> {
        let request = Arc::new(request.clone());
        self.read(work!([request], |conn| next_due::next_due(conn, &request))).await
    }
}
