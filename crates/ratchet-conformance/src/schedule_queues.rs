//! Schedules whose fires wait for each other: one runs at a time, whatever happens to those that wait.

use ratchet_core::JobState::{Canceled, Pending, Running, Waiting};
use ratchet_core::schedule::OverlapPolicy;
use ratchet_core::schedule::{ArchiveReason, NewSchedule};
use ratchet_core::{JobFlags, JobId};

use crate::harness::{Harness, mins};
use crate::schedules::{children, created, declare, done, every_ten, fire, found};
use crate::workflows::{claims, states};

async fn queueing(harness: &Harness) -> NewSchedule {
    NewSchedule { overlap: OverlapPolicy::Queue, ..every_ten(harness).await }
}

async fn fired(harness: &Harness, id: JobId) -> Vec<JobId> {
    children(harness, id).await.iter().map(|job| job.id).collect()
}

pub(crate) async fn a_schedule_that_begins_to_queue_waits_for_the_job_that_runs(harness: Harness) {
    let new = NewSchedule { declared: true, overlap: OverlapPolicy::Skip, ..every_ten(&harness).await };
    declare(&*harness.store, &new).await.unwrap();
    harness.advance(mins(11));
    assert_eq!(fire(&harness).await, [done(1, 0)]);
    let first = harness.claim_one().await;
    declare(&*harness.store, &NewSchedule { overlap: OverlapPolicy::Queue, ..new.clone() }).await.unwrap();
    harness.advance(mins(10));
    assert_eq!(fire(&harness).await, [done(1, 0)]);
    let jobs = fired(&harness, new.id).await;
    assert_eq!(states(&harness, &jobs).await, [Running, Waiting]);
    let waited_for = harness.job(jobs[0]).await;
    assert!(waited_for.flow.has(JobFlags::DEPENDANTS), "it is known that another waits for it");
    assert_eq!(waited_for.workflow, Some(new.id));
    harness.succeed(&first).await;
    let second = claims(&harness, &jobs[1..]).await;
    harness.fail(&second[0], "boom").await;
}

pub(crate) async fn a_schedule_may_begin_to_queue_while_its_last_job_ends(harness: Harness) {
    const ROUNDS: usize = 20;
    for _ in 0..ROUNDS {
        let new = NewSchedule { declared: true, overlap: OverlapPolicy::Skip, ..every_ten(&harness).await };
        declare(&*harness.store, &new).await.unwrap();
        harness.advance(mins(11));
        fire(&harness).await;
        let first = harness.claim_one().await;
        declare(&*harness.store, &NewSchedule { overlap: OverlapPolicy::Queue, ..new.clone() }).await.unwrap();
        harness.advance(mins(10));
        let (now, due) = harness.store.due_schedules(10).await.unwrap();
        let firings: Vec<_> = due.iter().filter_map(|one| one.firing(now)).collect();
        let (firing, settling) = (harness.store.clone(), harness.store.clone());
        let end = crate::harness::success(&first);
        let fire = tokio::spawn(async move { firing.fire_schedules(&firings).await });
        let settle = tokio::spawn(async move { settling.settle_and_claim(&[end], None).await });
        assert_eq!(fire.await.unwrap().unwrap(), [done(1, 0)]);
        settle.await.unwrap().unwrap();
        let jobs = fired(&harness, new.id).await;
        let second = claims(&harness, &jobs[1..]).await;
        harness.succeed(&second[0]).await;
        harness.store.cancel_schedule(new.id, ArchiveReason::Canceled, None).await.unwrap();
    }
}

pub(crate) async fn a_canceled_fire_lets_none_run_beside_the_one_that_runs(harness: Harness) {
    let one = created(&harness, queueing(&harness).await).await;
    harness.advance(mins(11));
    fire(&harness).await;
    let first = harness.claim_one().await;
    harness.advance(mins(20));
    assert_eq!(fire(&harness).await, [done(2, 0)]);
    let jobs = fired(&harness, one.id).await;
    let canceled = harness.store.cancel(jobs[1]).await.unwrap().expect("what waits can be canceled");
    assert_eq!(canceled.followed, [], "what waits behind it has another before it");
    assert_eq!(states(&harness, &jobs).await, [Running, Canceled, Waiting]);
    claims(&harness, &[]).await;
    harness.succeed(&first).await;
    let third = claims(&harness, &jobs[2..]).await;
    harness.succeed(&third[0]).await;
    harness.advance(mins(10));
    assert_eq!(fire(&harness).await, [done(1, 0)]);
    assert_eq!(harness.state(fired(&harness, one.id).await[3]).await, Pending, "nothing is before it");
}

pub(crate) async fn a_fire_waits_although_all_that_waited_were_canceled(harness: Harness) {
    let one = created(&harness, queueing(&harness).await).await;
    harness.advance(mins(11));
    fire(&harness).await;
    let first = harness.claim_one().await;
    harness.advance(mins(20));
    fire(&harness).await;
    let jobs = fired(&harness, one.id).await;
    for waiting in &jobs[1..] {
        harness.store.cancel(*waiting).await.unwrap().expect("what waits can be canceled");
    }
    harness.advance(mins(10));
    assert_eq!(fire(&harness).await, [done(1, 0)]);
    let last = fired(&harness, one.id).await[3];
    assert_eq!(harness.state(last).await, Waiting, "the first still runs");
    harness.succeed(&first).await;
    claims(&harness, &[last]).await;
}

pub(crate) async fn the_end_and_a_cancellation_at_the_same_time_leave_no_fire_stuck(harness: Harness) {
    const ROUNDS: usize = 20;
    for _ in 0..ROUNDS {
        let one = created(&harness, queueing(&harness).await).await;
        harness.advance(mins(11));
        fire(&harness).await;
        let first = harness.claim_one().await;
        harness.advance(mins(20));
        fire(&harness).await;
        let jobs = fired(&harness, one.id).await;
        let (canceling, settling) = (harness.store.clone(), harness.store.clone());
        let (second, end) = (jobs[1], crate::harness::success(&first));
        let cancel = tokio::spawn(async move { canceling.cancel(second).await });
        let settle = tokio::spawn(async move { settling.settle_and_claim(&[end], None).await });
        cancel.await.unwrap().unwrap().expect("it was live");
        settle.await.unwrap().unwrap();
        let third = claims(&harness, &jobs[2..]).await;
        harness.succeed(&third[0]).await;
        harness.store.cancel_schedule(one.id, ArchiveReason::Canceled, None).await.unwrap();
    }
}

pub(crate) async fn a_job_paused_after_its_failure_holds_up_no_fire(harness: Harness) {
    for overlap in [OverlapPolicy::Skip, OverlapPolicy::Queue] {
        let one = created(&harness, NewSchedule { overlap, ..every_ten(&harness).await }).await;
        harness.advance(mins(11));
        fire(&harness).await;
        let first = harness.claim_one().await;
        harness.fail(&first, "boom").await;
        harness.store.pause(first.job.id).await.unwrap().expect("a failed job can be paused");
        harness.advance(mins(10));
        assert_eq!(fire(&harness).await, [done(1, 0)], "{overlap:?}");
        let jobs = fired(&harness, one.id).await;
        assert_eq!(harness.state(jobs[1]).await, Pending, "{overlap:?}");
        harness.claim_one().await;
        harness.store.cancel_schedule(one.id, ArchiveReason::Canceled, None).await.unwrap();
    }
}

pub(crate) async fn a_fire_whose_job_is_there_already_counts_nothing_and_holds_nobody_up(harness: Harness) {
    let new = queueing(&harness).await;
    let one = created(&harness, new.clone()).await;
    harness.advance(mins(11));
    assert_eq!(fire(&harness).await, [done(1, 0)]);
    let first = harness.claim_one().await;
    harness.succeed(&first).await;
    harness.store.cancel_schedule(one.id, ArchiveReason::Canceled, None).await.unwrap();
    harness.store.create_schedule(&new).await.unwrap();
    harness.advance(mins(10));
    assert_eq!(fire(&harness).await, [done(1, 0)], "of two instants one has its job");
    let after = found(&harness, one.id).await;
    let jobs = fired(&harness, one.id).await;
    assert_eq!((after.fired, after.last_job, jobs.len()), (1, Some(jobs[1]), 2));
    claims(&harness, &jobs[1..]).await;
}

pub(crate) async fn a_schedule_whose_fires_wait_is_no_workflow(harness: Harness) {
    let workflow = crate::workflows::Plan::chain(2).submit(&harness).await;
    harness.claim_one().await;
    let one = created(&harness, queueing(&harness).await).await;
    harness.advance(mins(21));
    fire(&harness).await;
    assert_eq!(states(&harness, &fired(&harness, one.id).await).await, [Pending, Waiting]);
    let listed = harness.store.workflows(None, 10).await.unwrap();
    assert_eq!((listed.items, listed.next), (vec![workflow[0]], None));
}
