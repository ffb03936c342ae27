//! Schedules whose fires wait for each other: one runs at a time, whatever happens to those that wait.

use ratchet_core::JobState::{Canceled, Pending, Running, Waiting};
use ratchet_core::recurring::{ArchiveReason, NewRecurring};
use ratchet_core::schedule::OverlapPolicy;
use ratchet_core::{Flow, JobId};

use crate::bench::{Bench, mins};
use crate::recurring::{children, created, declare, done, every_ten, fire, found};
use crate::workflows::{claims, states};

async fn queueing(bench: &Bench) -> NewRecurring {
    NewRecurring { overlap: OverlapPolicy::Queue, ..every_ten(bench).await }
}

async fn fired(bench: &Bench, id: JobId) -> Vec<JobId> {
    children(bench, id).await.iter().map(|job| job.id).collect()
}

pub(crate) async fn a_schedule_that_begins_to_queue_waits_for_the_job_that_runs(bench: Bench) {
    let new = NewRecurring { declared: true, overlap: OverlapPolicy::Skip, ..every_ten(&bench).await };
    declare(&*bench.store, &new).await.unwrap();
    bench.advance(mins(11));
    assert_eq!(fire(&bench).await, [done(1, 0)]);
    let first = bench.claim_one().await;
    declare(&*bench.store, &NewRecurring { overlap: OverlapPolicy::Queue, ..new.clone() }).await.unwrap();
    bench.advance(mins(10));
    assert_eq!(fire(&bench).await, [done(1, 0)]);
    let jobs = fired(&bench, new.id).await;
    assert_eq!(states(&bench, &jobs).await, [Running, Waiting]);
    let waited_for = bench.job(jobs[0]).await;
    assert!(waited_for.flow.has(Flow::DEPENDANTS), "it is known that another waits for it");
    assert_eq!(waited_for.workflow, Some(new.id));
    bench.succeed(&first).await;
    let second = claims(&bench, &jobs[1..]).await;
    bench.fail(&second[0], "boom").await;
}

pub(crate) async fn a_schedule_may_begin_to_queue_while_its_last_job_ends(bench: Bench) {
    const ROUNDS: usize = 20;
    for _ in 0..ROUNDS {
        let new = NewRecurring { declared: true, overlap: OverlapPolicy::Skip, ..every_ten(&bench).await };
        declare(&*bench.store, &new).await.unwrap();
        bench.advance(mins(11));
        fire(&bench).await;
        let first = bench.claim_one().await;
        declare(&*bench.store, &NewRecurring { overlap: OverlapPolicy::Queue, ..new.clone() }).await.unwrap();
        bench.advance(mins(10));
        let (now, due) = bench.store.due_recurring(10).await.unwrap();
        let firings: Vec<_> = due.iter().filter_map(|one| one.firing(now)).collect();
        let (firing, settling) = (bench.store.clone(), bench.store.clone());
        let end = crate::bench::success(&first);
        let fire = tokio::spawn(async move { firing.fire_recurring(&firings).await });
        let settle = tokio::spawn(async move { settling.turn(&[end], None).await });
        assert_eq!(fire.await.unwrap().unwrap(), [done(1, 0)]);
        settle.await.unwrap().unwrap();
        let jobs = fired(&bench, new.id).await;
        let second = claims(&bench, &jobs[1..]).await;
        bench.succeed(&second[0]).await;
        bench.store.cancel_recurring(new.id, ArchiveReason::Canceled, None).await.unwrap();
    }
}

pub(crate) async fn a_cancelled_fire_lets_none_run_beside_the_one_that_runs(bench: Bench) {
    let one = created(&bench, queueing(&bench).await).await;
    bench.advance(mins(11));
    fire(&bench).await;
    let first = bench.claim_one().await;
    bench.advance(mins(20));
    assert_eq!(fire(&bench).await, [done(2, 0)]);
    let jobs = fired(&bench, one.id).await;
    let canceled = bench.store.cancel(jobs[1]).await.unwrap().expect("what waits can be cancelled");
    assert_eq!(canceled.followed, [], "what waits behind it has another before it");
    assert_eq!(states(&bench, &jobs).await, [Running, Canceled, Waiting]);
    claims(&bench, &[]).await;
    bench.succeed(&first).await;
    let third = claims(&bench, &jobs[2..]).await;
    bench.succeed(&third[0]).await;
    bench.advance(mins(10));
    assert_eq!(fire(&bench).await, [done(1, 0)]);
    assert_eq!(bench.state(fired(&bench, one.id).await[3]).await, Pending, "nothing is before it");
}

pub(crate) async fn a_fire_waits_although_all_that_waited_were_cancelled(bench: Bench) {
    let one = created(&bench, queueing(&bench).await).await;
    bench.advance(mins(11));
    fire(&bench).await;
    let first = bench.claim_one().await;
    bench.advance(mins(20));
    fire(&bench).await;
    let jobs = fired(&bench, one.id).await;
    for waiting in &jobs[1..] {
        bench.store.cancel(*waiting).await.unwrap().expect("what waits can be cancelled");
    }
    bench.advance(mins(10));
    assert_eq!(fire(&bench).await, [done(1, 0)]);
    let last = fired(&bench, one.id).await[3];
    assert_eq!(bench.state(last).await, Waiting, "the first still runs");
    bench.succeed(&first).await;
    claims(&bench, &[last]).await;
}

pub(crate) async fn the_end_and_a_cancellation_at_the_same_time_leave_no_fire_stuck(bench: Bench) {
    const ROUNDS: usize = 20;
    for _ in 0..ROUNDS {
        let one = created(&bench, queueing(&bench).await).await;
        bench.advance(mins(11));
        fire(&bench).await;
        let first = bench.claim_one().await;
        bench.advance(mins(20));
        fire(&bench).await;
        let jobs = fired(&bench, one.id).await;
        let (canceling, settling) = (bench.store.clone(), bench.store.clone());
        let (second, end) = (jobs[1], crate::bench::success(&first));
        let cancel = tokio::spawn(async move { canceling.cancel(second).await });
        let settle = tokio::spawn(async move { settling.turn(&[end], None).await });
        cancel.await.unwrap().unwrap().expect("it was live");
        settle.await.unwrap().unwrap();
        let third = claims(&bench, &jobs[2..]).await;
        bench.succeed(&third[0]).await;
        bench.store.cancel_recurring(one.id, ArchiveReason::Canceled, None).await.unwrap();
    }
}

pub(crate) async fn a_job_paused_after_its_failure_holds_up_no_fire(bench: Bench) {
    for overlap in [OverlapPolicy::Skip, OverlapPolicy::Queue] {
        let one = created(&bench, NewRecurring { overlap, ..every_ten(&bench).await }).await;
        bench.advance(mins(11));
        fire(&bench).await;
        let first = bench.claim_one().await;
        bench.fail(&first, "boom").await;
        bench.store.pause(first.job.id).await.unwrap().expect("a failed job can be paused");
        bench.advance(mins(10));
        assert_eq!(fire(&bench).await, [done(1, 0)], "{overlap:?}");
        let jobs = fired(&bench, one.id).await;
        assert_eq!(bench.state(jobs[1]).await, Pending, "{overlap:?}");
        bench.claim_one().await;
        bench.store.cancel_recurring(one.id, ArchiveReason::Canceled, None).await.unwrap();
    }
}

pub(crate) async fn a_fire_whose_job_is_there_already_counts_nothing_and_holds_nobody_up(bench: Bench) {
    let new = queueing(&bench).await;
    let one = created(&bench, new.clone()).await;
    bench.advance(mins(11));
    assert_eq!(fire(&bench).await, [done(1, 0)]);
    let first = bench.claim_one().await;
    bench.succeed(&first).await;
    bench.store.cancel_recurring(one.id, ArchiveReason::Canceled, None).await.unwrap();
    bench.store.create_recurring(&new).await.unwrap();
    bench.advance(mins(10));
    assert_eq!(fire(&bench).await, [done(1, 0)], "of two instants one has its job");
    let after = found(&bench, one.id).await;
    let jobs = fired(&bench, one.id).await;
    assert_eq!((after.fired, after.last_job, jobs.len()), (1, Some(jobs[1]), 2));
    claims(&bench, &jobs[1..]).await;
}

pub(crate) async fn a_schedule_whose_fires_wait_is_no_workflow(bench: Bench) {
    let workflow = crate::workflows::Plan::chain(2).submit(&bench).await;
    bench.claim_one().await;
    let one = created(&bench, queueing(&bench).await).await;
    bench.advance(mins(21));
    fire(&bench).await;
    assert_eq!(states(&bench, &fired(&bench, one.id).await).await, [Pending, Waiting]);
    let listed = bench.store.workflows(None, 10).await.unwrap();
    assert_eq!((listed.items, listed.next), (vec![workflow[0]], None));
}
