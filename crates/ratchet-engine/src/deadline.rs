//! No call of a store may last for ever.

use std::future::Future;
use std::time::Duration;

use ratchet_core::{ErrorKind, StoreError};

/// Waits for a call of the store, but not longer than `deadline`; what it asked for may or may not have happened then.
pub(crate) async fn within<T>(
    deadline: Duration,
    doing: &'static str,
    call: impl Future<Output = Result<T, StoreError>>,
) -> Result<T, StoreError> {
    tokio::time::timeout(deadline, call).await.unwrap_or_else(|_| {
        let problem = format!("the database did not answer within {deadline:?}");
        Err(StoreError::new(ErrorKind::Unavailable, doing, problem))
    })
}
