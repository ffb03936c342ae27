//! The store in memory passes.

use ratchet_conformance::Fixture;
use ratchet_core::MemoryStore;

pub(crate) async fn fresh() -> Fixture {
    let (store, _clock) = MemoryStore::manual();
    Fixture::new(store, ())
}

ratchet_conformance::suite!(fresh);
