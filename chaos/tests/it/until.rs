//! Waiting for something to hold.

use std::time::{Duration, Instant};

/// Waits until something holds; this is far more than anything here takes.
const LIMIT: Duration = Duration::from_secs(90);

pub(crate) async fn until(what: &str, mut holds: impl AsyncFnMut() -> bool) {
    let deadline = Instant::now() + LIMIT;
    while !holds().await {
        assert!(Instant::now() < deadline, "waited in vain for {what}");
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}
