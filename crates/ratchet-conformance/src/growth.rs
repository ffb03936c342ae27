//! Batches that grow, are sealed, and tell how far they are.

use ratchet_core::JobState::{Succeeded, Waiting};
use ratchet_core::NewJob;
use ratchet_core::batch::{ProgressEvery, tie_child};
use ratchet_core::error::ErrorKind;
use ratchet_core::page::JobFilter;
use ratchet_core::store::Submitted;

use crate::batches::{Plan, ROUNDS, batch, claim_parents, claim_told, counts, extend, run_parent};
use crate::bench::{Bench, assert_refused, business_key, new_id, success, work, work_once, work_with_key, works};

pub(crate) async fn a_batch_without_children_is_through_at_once(bench: Bench) {
    let (id, _, _) = Plan::of(Vec::new()).submit(&bench).await;
    run_parent(&bench, id).await;
    let found = batch(&bench, id).await;
    assert_eq!((found.state, found.counts.total), (Succeeded, 0));
    let (open, _, _) = Plan::open().submit(&bench).await;
    assert_eq!(claim_parents(&bench).await, [], "an open one waits");
    bench.store.seal_batch(open).await.unwrap();
    run_parent(&bench, open).await;
}

pub(crate) async fn a_batch_grows_while_its_children_run(bench: Bench) {
    let (id, _, _) = Plan::open().submit(&bench).await;
    for round in 1..=3 {
        let chunk = works(4);
        let submitted = extend(&bench, id, &chunk).await.unwrap();
        assert_eq!(submitted, chunk.iter().map(|job| Submitted::Created(job.id)).collect::<Vec<_>>());
        let claimed = bench.claim_all().await;
        let ends: Vec<_> = claimed.iter().map(success).collect();
        let turn = bench.turn(&ends, None).await;
        assert_eq!(turn.followed, [], "nothing is through before the seal");
        assert_eq!(counts(&bench, id).await, [4 * round, 4 * round, 0, 0]);
    }
    assert_eq!(bench.state(id).await, Waiting);
    let followed = bench.store.seal_batch(id).await.unwrap();
    assert_eq!(followed.iter().map(|followed| followed.id).collect::<Vec<_>>(), [id]);
    run_parent(&bench, id).await;
}

pub(crate) async fn a_sealed_batch_waits_for_its_last_child(bench: Bench) {
    let (id, _, _) = Plan::open().submit(&bench).await;
    extend(&bench, id, &works(2)).await.unwrap();
    assert_eq!(bench.store.seal_batch(id).await.unwrap(), []);
    assert_eq!(bench.store.seal_batch(id).await.unwrap(), [], "sealing again changes nothing");
    for claim in bench.claim_all().await {
        assert_eq!(bench.state(id).await, Waiting);
        bench.succeed(&claim).await;
    }
    run_parent(&bench, id).await;
}

pub(crate) async fn children_given_again_are_neither_stored_nor_counted_again(bench: Bench) {
    let (id, _, _) = Plan::open().submit(&bench).await;
    let chunk = works(3);
    let first = extend(&bench, id, &chunk).await.unwrap();
    assert_eq!(extend(&bench, id, &chunk).await.unwrap(), first);
    assert_eq!(counts(&bench, id).await[0], 3);
    let more: Vec<NewJob> = chunk.iter().cloned().chain(works(1)).collect();
    extend(&bench, id, &more).await.unwrap();
    assert_eq!(counts(&bench, id).await[0], 4, "of these only the new one");
    bench.store.seal_batch(id).await.unwrap();
    assert_eq!(extend(&bench, id, &chunk).await.unwrap(), first, "even after the seal");
    let filter = JobFilter { parent: Some(id), ..JobFilter::default() };
    assert_eq!(bench.store.list(&filter, None, 100).await.unwrap().items.len(), 4);
    // A whole batch, as after a lost reply.
    let unit = Plan::of(works(2)).unit();
    for _ in 0..2 {
        bench.store.submit(std::slice::from_ref(&unit)).await.unwrap().remove(0).unwrap();
    }
    assert_eq!(counts(&bench, unit.jobs[0].id).await[0], 2);
}

pub(crate) async fn a_chunk_is_stored_as_a_whole_or_not_at_all(bench: Bench) {
    let holder = bench.submit(work_with_key("taken")).await;
    let (id, _, _) = Plan::open().submit(&bench).await;
    let chunk = [work(), work_with_key("taken")];
    let refused = extend(&bench, id, &chunk).await;
    assert_refused(refused, &ErrorKind::Duplicate { business_key: business_key("taken"), holder });
    assert!(!bench.exists(chunk[0].id).await);
    assert_eq!(counts(&bench, id).await[0], 0);
    let plan = Plan::of(vec![work(), work_with_key("taken")]);
    let parent = plan.parent.id;
    assert!(bench.store.submit(&[plan.unit()]).await.unwrap().remove(0).is_err());
    assert!(!bench.exists(parent).await);
    assert_eq!(bench.store.find_batches(&[parent]).await.unwrap(), []);
}

pub(crate) async fn only_an_open_batch_takes_children(bench: Bench) {
    let child = || works(1);
    let (sealed, _, _) = Plan::of(works(1)).submit(&bench).await;
    let refused = child();
    assert_refused(extend(&bench, sealed, &refused).await, &ErrorKind::Conflict);
    assert!(!bench.exists(refused[0].id).await, "nothing was stored");
    let (canceled, _, _) = Plan::open().submit(&bench).await;
    bench.store.cancel(canceled).await.unwrap().unwrap();
    assert_refused(extend(&bench, canceled, &child()).await, &ErrorKind::Conflict);
    bench.store.cancel_children(canceled, None, 10).await.unwrap();
    assert_refused(extend(&bench, canceled, &child()).await, &ErrorKind::Conflict);
    assert_refused(bench.store.seal_batch(canceled).await, &ErrorKind::Conflict);
    assert_refused(extend(&bench, new_id(), &child()).await, &ErrorKind::NotFound);
    assert_refused(bench.store.seal_batch(new_id()).await, &ErrorKind::NotFound);
    assert_eq!(counts(&bench, sealed).await[0], 1);
}

pub(crate) async fn children_that_others_stand_for_may_be_given_again_when_the_batch_is_sealed(bench: Bench) {
    let first = bench.submit(work_once("once")).await;
    let (id, _, _) = Plan::open().submit(&bench).await;
    let child = vec![work_once("once")];
    assert_eq!(extend(&bench, id, &child).await.unwrap(), [Submitted::Existing(first)]);
    bench.store.seal_batch(id).await.unwrap();
    assert_eq!(extend(&bench, id, &child).await.unwrap(), [Submitted::Existing(first)], "its answer was lost");
    assert_refused(extend(&bench, new_id(), &child).await, &ErrorKind::NotFound);
    assert_eq!(counts(&bench, id).await[0], 0);
}

pub(crate) async fn progress_is_told_once_for_each_threshold(bench: Bench) {
    let (id, children, _) = Plan::of(works(5)).telling(ProgressEvery::Items(2)).submit(&bench).await;
    let claimed = bench.claim_all().await;
    bench.succeed(&claimed[0]).await;
    assert_eq!(claim_told(&bench).await, []);
    bench.fail(&claimed[1], "boom").await;
    let told = claim_told(&bench).await;
    assert_eq!(
        told.iter().map(|told| (told.batch, told.total, told.done, told.failed)).collect::<Vec<_>>(),
        [(id, 5, 2, 1)]
    );
    bench.store.retry(children[1]).await.unwrap().unwrap();
    let again = bench.claim_one().await;
    bench.fail(&again, "boom").await;
    assert_eq!(claim_told(&bench).await, [], "a threshold that was told is not told again");
    bench.succeed(&claimed[2]).await;
    bench.succeed(&claimed[3]).await;
    bench.succeed(&claimed[4]).await;
    let told = claim_told(&bench).await;
    assert_eq!(told.iter().map(|told| told.done).collect::<Vec<_>>(), [4]);
}

pub(crate) async fn of_thresholds_passed_at_once_the_last_is_told(bench: Bench) {
    let (_, _, _) = Plan::of(works(10)).telling(ProgressEvery::Percent(10)).submit(&bench).await;
    let claimed = bench.claim_all().await;
    let ends: Vec<_> = claimed[..3].iter().map(success).collect();
    bench.turn(&ends, None).await;
    assert_eq!(claim_told(&bench).await.iter().map(|told| told.done).collect::<Vec<_>>(), [3]);
    let ends: Vec<_> = claimed[3..].iter().map(success).collect();
    bench.turn(&ends, None).await;
    let told = claim_told(&bench).await;
    assert_eq!(told.iter().map(|told| (told.done, told.percent)).collect::<Vec<_>>(), [(10, 100.0)]);
}

pub(crate) async fn the_share_of_a_growing_batch_is_not_told_before_its_seal(bench: Bench) {
    let (id, _, _) = Plan::open().telling(ProgressEvery::Percent(50)).submit(&bench).await;
    extend(&bench, id, &works(4)).await.unwrap();
    let claimed = bench.claim_all().await;
    bench.turn(&[success(&claimed[0]), success(&claimed[1])], None).await;
    assert_eq!(claim_told(&bench).await, []);
    bench.store.seal_batch(id).await.unwrap();
    assert_eq!(claim_told(&bench).await.iter().map(|told| told.done).collect::<Vec<_>>(), [2]);
}

pub(crate) async fn growing_sealing_and_ending_at_the_same_time_lose_nothing(bench: Bench) {
    for _ in 0..ROUNDS {
        let (id, _, _) = Plan::open().submit(&bench).await;
        extend(&bench, id, &works(4)).await.unwrap();
        let claimed = bench.claim_all().await;
        let (growing, sealing, settling) = (bench.store.clone(), bench.store.clone(), bench.store.clone());
        let mut more = works(3);
        for child in &mut more {
            tie_child(id, child).unwrap();
        }
        let ends: Vec<_> = claimed.iter().map(success).collect();
        let grow = tokio::spawn(async move { growing.extend_batch(id, &more).await });
        let seal = tokio::spawn(async move { sealing.seal_batch(id).await });
        let settle = tokio::spawn(async move { settling.turn(&ends, None).await });
        let grown = grow.await.unwrap();
        seal.await.unwrap().unwrap();
        settle.await.unwrap().unwrap();
        let expected = if grown.is_ok() { 7 } else { 4 };
        assert_eq!(counts(&bench, id).await[..2], [expected, 4], "{grown:?}");
        for claim in bench.claim_all().await {
            bench.succeed(&claim).await;
        }
        run_parent(&bench, id).await;
        assert_eq!(counts(&bench, id).await[1], expected);
    }
}
