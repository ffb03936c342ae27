//! A shared store is a decorator that overrides nothing: it passes if every call is passed on as it came.

use std::sync::Arc;

use ratchet_conformance::Fixture;

async fn fresh() -> Fixture {
    let good = crate::memory::fresh().await;
    Fixture { store: Arc::new(good.store), ..good }
}

ratchet_conformance::suite!(fresh);
