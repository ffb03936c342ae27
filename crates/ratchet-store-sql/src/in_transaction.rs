//! Submitting and completing in a caller's own transaction, for the driver crates' extension traits.

use ratchet_core::prepare::{PrepareCompletion, PrepareSubmit};
use ratchet_core::{ErrorKind, Settled, StoreError};
use serde::Serialize;

use crate::settle::settle;
use crate::submit::submit_carefully;
use crate::waist::conn::Conn;

/// Writes a job with the caller's connection; a duplicate key leaves the transaction usable.
pub async fn submit<S: PrepareSubmit>(conn: &mut dyn Conn, submit: S) -> Result<S::Handle, S::Error> {
    let prepared = submit.prepare()?;
    let mut outcomes = submit_carefully(conn, &[prepared.unit]).await?;
    let outcome = outcomes
        .pop()
        .unwrap_or_else(|| Err(StoreError::new(ErrorKind::Invalid, "submitting a job", "the unit had no outcome")));
    (prepared.finish)(outcome)
}

/// Writes the end of a running attempt with the caller's connection.
pub async fn complete<C: PrepareCompletion, R: Serialize + Sync>(
    conn: &mut dyn Conn,
    completion: &C,
    result: &R,
) -> Result<(), StoreError> {
    const DOING: &str = "completing a job in its handler's transaction";
    let settlement = completion.prepare_completion(result).map_err(|error| {
        StoreError::new(ErrorKind::Invalid, DOING, "the result cannot be stored").with_source(error)
    })?;
    let settlements = [settlement];
    let (mut settled, _) = settle(conn, &settlements).await?;
    let settled = settled.pop().unwrap_or(Settled::Conflict);
    let [settlement] = settlements;
    let job_id = settlement.fence.job_id;
    completion.completion_written(settlement, settled);
    if settled == Settled::Conflict {
        let problem = format!("the attempt of job {job_id} has lost its right to write; roll back");
        return Err(StoreError::new(ErrorKind::Conflict, DOING, problem));
    }
    Ok(())
}
