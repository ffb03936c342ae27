//! When the next job becomes due, so that a node can sleep until then.

use std::time::Duration;

use ratchet_core::claim::ClaimRequest;
use ratchet_core::{Due, NewJob, StartState};

use crate::harness::{Harness, KIND, mins, new_job, pool, queue, request, work, work_after};

async fn next_due(harness: &Harness) -> Option<Duration> {
    harness.store.next_due(&harness.request()).await.unwrap()
}

/// Asserts the time until the next job is due, but for what a slow database takes from it.
async fn assert_next(harness: &Harness, expected: Duration) {
    let left = next_due(harness).await.expect("a job waits");
    assert!(left <= expected && left + Duration::from_secs(30) >= expected, "{left:?} is not about {expected:?}");
}

pub(crate) async fn nothing_is_due_in_an_empty_store(harness: Harness) {
    assert_eq!(next_due(&harness).await, None);
    harness.running(work()).await;
    harness.failed(work(), "boom").await;
    harness.submit(NewJob { start: StartState::Waiting, ..work() }).await;
    assert_eq!(next_due(&harness).await, None, "only pending jobs become due");
}

pub(crate) async fn the_earliest_time_is_the_next(harness: Harness) {
    let later = harness.submit(work_after(mins(50))).await;
    harness.submit(work_after(mins(30))).await;
    harness.submit(work_after(mins(70))).await;
    assert_next(&harness, mins(30)).await;
    harness.advance(mins(40));
    harness.claim_one().await;
    assert_next(&harness, mins(10)).await;
    harness.store.pause(later).await.unwrap();
    assert_next(&harness, mins(30)).await;
}

pub(crate) async fn a_job_that_is_due_already_leaves_no_time(harness: Harness) {
    harness.submit(NewJob { due: Due::At(harness.now().await - mins(20)), ..work() }).await;
    harness.submit(work_after(mins(10))).await;
    assert_eq!(next_due(&harness).await, Some(Duration::ZERO));
}

pub(crate) async fn a_deferred_job_is_due_at_the_end_of_its_deferral(harness: Harness) {
    let claim = harness.running(work()).await;
    harness.defer(&claim, mins(25)).await;
    assert_next(&harness, mins(25)).await;
}

pub(crate) async fn only_jobs_that_the_node_can_claim_count_as_next(harness: Harness) {
    harness.submit(new_job("unknown.kind")).await;
    let mut elsewhere = work();
    elsewhere.spec.queue = queue("elsewhere");
    harness.submit(elsewhere).await;
    assert_eq!(next_due(&harness).await, None);
    let wider = request(harness.node, vec![pool("other", &[KIND]), pool("elsewhere", &[KIND])]);
    assert!(harness.store.next_due(&wider).await.unwrap().is_some());
    harness.store.pause_queue(&queue("elsewhere")).await.unwrap();
    assert_eq!(harness.store.next_due(&wider).await.unwrap(), None, "a paused queue has nothing due");
}

pub(crate) async fn a_job_on_probation_is_next_only_if_asked_for(harness: Harness) {
    let claim = harness.running(work()).await;
    harness.rescue(&claim).await;
    assert!(next_due(&harness).await.is_some());
    let without = ClaimRequest { probation: false, ..harness.request() };
    assert_eq!(harness.store.next_due(&without).await.unwrap(), None);
}
