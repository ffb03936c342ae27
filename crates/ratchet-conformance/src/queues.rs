//! Queues: pausing them, looking at them.

use ratchet_core::node::QueueRecord;
use ratchet_core::{JobState, NewJob};

use crate::harness::{Harness, KIND, ids, mins, pool, queue, request, work, works};

fn work_in(name: &str) -> NewJob {
    let mut job = work();
    job.spec.queue = queue(name);
    job
}

pub(crate) async fn a_paused_queue_is_passed_by(harness: Harness) {
    let here = harness.submit(work_in("here")).await;
    let there = harness.submit(work_in("there")).await;
    let both = request(harness.node, vec![pool("here", &[KIND]), pool("there", &[KIND])]);
    assert!(harness.store.pause_queue(&queue("here")).await.unwrap());
    assert_eq!(ids(&harness.claim(&both).await), [there]);
    assert_eq!(harness.job(here).await.version, 0, "pausing a queue touches no job");
    assert!(harness.store.resume_queue(&queue("here")).await.unwrap());
    assert_eq!(ids(&harness.claim(&both).await), [here]);
}

pub(crate) async fn pausing_and_resuming_say_whether_they_did(harness: Harness) {
    let queue = queue("default");
    assert!(!harness.store.resume_queue(&queue).await.unwrap());
    assert!(harness.store.pause_queue(&queue).await.unwrap());
    assert!(!harness.store.pause_queue(&queue).await.unwrap());
    assert!(harness.store.resume_queue(&queue).await.unwrap());
    assert!(!harness.store.resume_queue(&queue).await.unwrap());
}

pub(crate) async fn a_job_that_runs_goes_on_when_its_queue_is_paused(harness: Harness) {
    let claim = harness.running(work()).await;
    harness.store.pause_queue(&queue("default")).await.unwrap();
    harness.reschedule(&claim, mins(1)).await;
    harness.advance(mins(2));
    assert!(harness.claim_all().await.is_empty(), "but it is not claimed again");
    harness.store.resume_queue(&queue("default")).await.unwrap();
    assert_eq!(ids(&harness.claim_all().await), [claim.job.id]);
}

pub(crate) async fn a_queue_can_be_paused_before_its_first_job(harness: Harness) {
    assert!(harness.store.pause_queue(&queue("default")).await.unwrap());
    let late = harness.submit(work()).await;
    assert!(harness.claim_all().await.is_empty());
    assert_eq!(harness.state(late).await, JobState::Pending);
}

pub(crate) async fn queues_are_listed_with_their_live_jobs(harness: Harness) {
    assert_eq!(harness.store.queues().await.unwrap(), []);
    harness.failed(work(), "boom").await;
    harness.submit_each(works(2)).await;
    harness.claim_one().await;
    harness.submit(work_in("busy")).await;
    let paused_job = harness.submit(work_in("busy")).await;
    harness.store.pause(paused_job).await.unwrap();
    let over = harness.submit(work_in("over")).await;
    harness.store.cancel(over).await.unwrap();
    harness.store.pause_queue(&queue("empty")).await.unwrap();
    harness.store.pause_queue(&queue("busy")).await.unwrap();
    let record = |name, paused, live: &[(JobState, u64)]| QueueRecord {
        name: queue(name),
        paused,
        live: live.iter().copied().collect(),
    };
    let expected = [
        record("busy", true, &[(JobState::Pending, 1), (JobState::Paused, 1)]),
        record("default", false, &[(JobState::Pending, 1), (JobState::Running, 1)]),
        record("empty", true, &[]),
    ];
    assert_eq!(harness.store.queues().await.unwrap(), expected);
}
