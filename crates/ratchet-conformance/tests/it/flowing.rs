//! The store in memory by a clock that runs, as a database's does: no case may rest on a time that stands still.

use std::sync::Arc;
use std::time::Instant;

use ratchet_conformance::Fixture;
use ratchet_core::{Clock, MemoryStore, Timestamp};

/// Twenty times as fast as real time, as if the database were very slow.
#[derive(Debug)]
struct Flowing(Instant);

impl Clock for Flowing {
    fn now(&self) -> Timestamp {
        // Not before the suite's ids: what was made later than it ended is never archived.
        Timestamp::from_second(1_767_225_600).expect("a second of our time") + self.0.elapsed() * 20
    }
}

async fn fresh() -> Fixture {
    Fixture::new(MemoryStore::new(Arc::new(Flowing(Instant::now()))), ())
}

ratchet_conformance::suite!(fresh);
