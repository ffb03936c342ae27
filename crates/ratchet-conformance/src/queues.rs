//! Queues: pausing them, looking at them.

use ratchet_core::node::QueueRecord;
use ratchet_core::{JobState, NewJob};

use crate::bench::{Bench, KIND, ids, mins, pool, queue, request, work, works};

fn work_in(name: &str) -> NewJob {
    let mut job = work();
    job.spec.queue = queue(name);
    job
}

pub(crate) async fn a_paused_queue_is_passed_by(bench: Bench) {
    let here = bench.submit(work_in("here")).await;
    let there = bench.submit(work_in("there")).await;
    let both = request(bench.node, vec![pool("here", &[KIND]), pool("there", &[KIND])]);
    assert!(bench.store.pause_queue(&queue("here")).await.unwrap());
    assert_eq!(ids(&bench.claim(&both).await), [there]);
    assert_eq!(bench.job(here).await.version, 0, "pausing a queue touches no job");
    assert!(bench.store.resume_queue(&queue("here")).await.unwrap());
    assert_eq!(ids(&bench.claim(&both).await), [here]);
}

pub(crate) async fn pausing_and_resuming_say_whether_they_did(bench: Bench) {
    let queue = queue("default");
    assert!(!bench.store.resume_queue(&queue).await.unwrap());
    assert!(bench.store.pause_queue(&queue).await.unwrap());
    assert!(!bench.store.pause_queue(&queue).await.unwrap());
    assert!(bench.store.resume_queue(&queue).await.unwrap());
    assert!(!bench.store.resume_queue(&queue).await.unwrap());
}

pub(crate) async fn a_job_that_runs_goes_on_when_its_queue_is_paused(bench: Bench) {
    let claim = bench.running(work()).await;
    bench.store.pause_queue(&queue("default")).await.unwrap();
    bench.reschedule(&claim, mins(1)).await;
    bench.advance(mins(2));
    assert!(bench.claim_all().await.is_empty(), "but it is not claimed again");
    bench.store.resume_queue(&queue("default")).await.unwrap();
    assert_eq!(ids(&bench.claim_all().await), [claim.job.id]);
}

pub(crate) async fn a_queue_can_be_paused_before_its_first_job(bench: Bench) {
    assert!(bench.store.pause_queue(&queue("default")).await.unwrap());
    let late = bench.submit(work()).await;
    assert!(bench.claim_all().await.is_empty());
    assert_eq!(bench.state(late).await, JobState::Pending);
}

pub(crate) async fn queues_are_listed_with_their_live_jobs(bench: Bench) {
    assert_eq!(bench.store.queues().await.unwrap(), []);
    bench.failed(work(), "boom").await;
    bench.submit_each(works(2)).await;
    bench.claim_one().await;
    bench.submit(work_in("busy")).await;
    let paused_job = bench.submit(work_in("busy")).await;
    bench.store.pause(paused_job).await.unwrap();
    let over = bench.submit(work_in("over")).await;
    bench.store.cancel(over).await.unwrap();
    bench.store.pause_queue(&queue("empty")).await.unwrap();
    bench.store.pause_queue(&queue("busy")).await.unwrap();
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
    assert_eq!(bench.store.queues().await.unwrap(), expected);
}
