//! A node in memory, for one job.

use std::sync::Arc;

use ratchet::prelude::*;
use ratchet::{DeadLetterReason, JobRecord, MemoryStore, Registration, SystemClock};

/// What a job's life came to.
#[derive(Debug)]
pub(crate) struct Life<T> {
    pub(crate) record: JobRecord,
    pub(crate) result: Option<T>,
    pub(crate) dead_letter: Option<DeadLetterReason>,
}

impl<T> Life<T> {
    /// Why the job was not tried again, in the error's words.
    pub(crate) fn do_not_retry(&self) -> Option<&str> {
        match &self.dead_letter {
            Some(DeadLetterReason::DoNotRetry(reason)) => Some(reason),
            _ => None,
        }
    }
}

/// Runs one job to its end, without retries, on a node that has `5_u32` and a text as states.
#[expect(clippy::unwrap_used, reason = "only tests call it")]
pub(crate) async fn live<J: Job>(job: J) -> Life<J::Output> {
    let node = Ratchet::builder()
        .store(MemoryStore::new(Arc::new(SystemClock)))
        .jobs([Registration::of::<J>()])
        .state(5_u32)
        .state("a text".to_owned())
        .start()
        .await
        .unwrap();
    let mut events = node.events();
    let handle = node.enqueue(job).max_retries(0).submit().await.unwrap();
    let record = handle.wait().await.unwrap();
    let mut dead_letter = None;
    if record.state == JobState::Failed {
        while dead_letter.is_none() {
            if let JobEventKind::DeadLettered { reason, .. } = &events.next().await.unwrap().what {
                dead_letter = Some(reason.clone());
            }
        }
    }
    let result = handle.result().await.ok();
    node.shutdown().await;
    Life { record, result, dead_letter }
}
