//! When the next job becomes due, so that a node can sleep until then.

use std::time::Duration;

use ratchet_core::claim::ClaimRequest;
use ratchet_core::{Due, NewJob, StartState};

use crate::bench::{Bench, KIND, mins, new_job, pool, queue, request, work, work_after};

async fn next_due(bench: &Bench) -> Option<Duration> {
    bench.store.next_due(&bench.request()).await.unwrap()
}

/// Asserts the time until the next job is due, but for what a slow database takes from it.
async fn assert_next(bench: &Bench, expected: Duration) {
    let left = next_due(bench).await.expect("a job waits");
    assert!(left <= expected && left + Duration::from_secs(30) >= expected, "{left:?} is not about {expected:?}");
}

pub(crate) async fn nothing_is_due_in_an_empty_store(bench: Bench) {
    assert_eq!(next_due(&bench).await, None);
    bench.running(work()).await;
    bench.failed(work(), "boom").await;
    bench.submit(NewJob { start: StartState::Waiting, ..work() }).await;
    assert_eq!(next_due(&bench).await, None, "only pending jobs become due");
}

pub(crate) async fn the_earliest_time_is_the_next(bench: Bench) {
    let later = bench.submit(work_after(mins(50))).await;
    bench.submit(work_after(mins(30))).await;
    bench.submit(work_after(mins(70))).await;
    assert_next(&bench, mins(30)).await;
    bench.advance(mins(40));
    bench.claim_one().await;
    assert_next(&bench, mins(10)).await;
    bench.store.pause(later).await.unwrap();
    assert_next(&bench, mins(30)).await;
}

pub(crate) async fn a_job_that_is_due_already_leaves_no_time(bench: Bench) {
    bench.submit(NewJob { due: Due::At(bench.now().await - mins(20)), ..work() }).await;
    bench.submit(work_after(mins(10))).await;
    assert_eq!(next_due(&bench).await, Some(Duration::ZERO));
}

pub(crate) async fn a_deferred_job_is_due_at_the_end_of_its_deferral(bench: Bench) {
    let claim = bench.running(work()).await;
    bench.defer(&claim, mins(25)).await;
    assert_next(&bench, mins(25)).await;
}

pub(crate) async fn only_jobs_that_the_node_can_claim_count_as_next(bench: Bench) {
    bench.submit(new_job("unknown.kind")).await;
    let mut elsewhere = work();
    elsewhere.spec.queue = queue("elsewhere");
    bench.submit(elsewhere).await;
    assert_eq!(next_due(&bench).await, None);
    let wider = request(bench.node, vec![pool("other", &[KIND]), pool("elsewhere", &[KIND])]);
    assert!(bench.store.next_due(&wider).await.unwrap().is_some());
    bench.store.pause_queue(&queue("elsewhere")).await.unwrap();
    assert_eq!(bench.store.next_due(&wider).await.unwrap(), None, "a paused queue has nothing due");
}

pub(crate) async fn a_job_on_probation_is_next_only_if_asked_for(bench: Bench) {
    let claim = bench.running(work()).await;
    bench.rescue(&claim).await;
    assert!(next_due(&bench).await.is_some());
    let without = ClaimRequest { probation: false, ..bench.request() };
    assert_eq!(bench.store.next_due(&without).await.unwrap(), None);
}
