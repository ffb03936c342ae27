//! Batches that grow, are sealed, and tell how far they are.

use ratchet_core::JobState::{Succeeded, Waiting};
use ratchet_core::NewJob;
use ratchet_core::batch::{ProgressEvery, tie_child};
use ratchet_core::error::ErrorKind;
use ratchet_core::page::JobFilter;
use ratchet_core::store::Submitted;

use crate::batches::{Plan, ROUNDS, batch, claim_parents, claim_told, counts, extend, run_parent};
use crate::harness::{Harness, assert_refused, business_key, new_id, success, work, work_once, work_with_key, works};

pub(crate) async fn a_batch_without_children_is_through_at_once(harness: Harness) {
    let (id, _, _) = Plan::of(Vec::new()).submit(&harness).await;
    run_parent(&harness, id).await;
    let found = batch(&harness, id).await;
    assert_eq!((found.state, found.counts.total), (Succeeded, 0));
    let (open, _, _) = Plan::open().submit(&harness).await;
    assert_eq!(claim_parents(&harness).await, [], "an open one waits");
    harness.store.seal_batch(open).await.unwrap();
    run_parent(&harness, open).await;
}

pub(crate) async fn a_batch_grows_while_its_children_run(harness: Harness) {
    let (id, _, _) = Plan::open().submit(&harness).await;
    for round in 1..=3 {
        let chunk = works(4);
        let submitted = extend(&harness, id, &chunk).await.unwrap();
        assert_eq!(submitted, chunk.iter().map(|job| Submitted::Created(job.id)).collect::<Vec<_>>());
        let claimed = harness.claim_all().await;
        let ends: Vec<_> = claimed.iter().map(success).collect();
        let turn = harness.turn(&ends, None).await;
        assert_eq!(turn.followed, [], "nothing is through before the seal");
        assert_eq!(counts(&harness, id).await, [4 * round, 4 * round, 0, 0]);
    }
    assert_eq!(harness.state(id).await, Waiting);
    let followed = harness.store.seal_batch(id).await.unwrap();
    assert_eq!(followed.iter().map(|followed| followed.id).collect::<Vec<_>>(), [id]);
    run_parent(&harness, id).await;
}

pub(crate) async fn a_sealed_batch_waits_for_its_last_child(harness: Harness) {
    let (id, _, _) = Plan::open().submit(&harness).await;
    extend(&harness, id, &works(2)).await.unwrap();
    assert_eq!(harness.store.seal_batch(id).await.unwrap(), []);
    assert_eq!(harness.store.seal_batch(id).await.unwrap(), [], "sealing again changes nothing");
    for claim in harness.claim_all().await {
        assert_eq!(harness.state(id).await, Waiting);
        harness.succeed(&claim).await;
    }
    run_parent(&harness, id).await;
}

pub(crate) async fn children_given_again_are_neither_stored_nor_counted_again(harness: Harness) {
    let (id, _, _) = Plan::open().submit(&harness).await;
    let chunk = works(3);
    let first = extend(&harness, id, &chunk).await.unwrap();
    assert_eq!(extend(&harness, id, &chunk).await.unwrap(), first);
    assert_eq!(counts(&harness, id).await[0], 3);
    let more: Vec<NewJob> = chunk.iter().cloned().chain(works(1)).collect();
    extend(&harness, id, &more).await.unwrap();
    assert_eq!(counts(&harness, id).await[0], 4, "of these only the new one");
    harness.store.seal_batch(id).await.unwrap();
    assert_eq!(extend(&harness, id, &chunk).await.unwrap(), first, "even after the seal");
    let filter = JobFilter { parent: Some(id), ..JobFilter::default() };
    assert_eq!(harness.store.list(&filter, None, 100).await.unwrap().items.len(), 4);
    // A whole batch, as after a lost reply.
    let unit = Plan::of(works(2)).unit();
    for _ in 0..2 {
        harness.store.submit(std::slice::from_ref(&unit)).await.unwrap().remove(0).unwrap();
    }
    assert_eq!(counts(&harness, unit.jobs[0].id).await[0], 2);
}

pub(crate) async fn a_chunk_is_stored_as_a_whole_or_not_at_all(harness: Harness) {
    let holder = harness.submit(work_with_key("taken")).await;
    let (id, _, _) = Plan::open().submit(&harness).await;
    let chunk = [work(), work_with_key("taken")];
    let refused = extend(&harness, id, &chunk).await;
    assert_refused(refused, &ErrorKind::Duplicate { business_key: business_key("taken"), holder });
    assert!(!harness.exists(chunk[0].id).await);
    assert_eq!(counts(&harness, id).await[0], 0);
    let plan = Plan::of(vec![work(), work_with_key("taken")]);
    let parent = plan.parent.id;
    assert!(harness.store.submit(&[plan.unit()]).await.unwrap().remove(0).is_err());
    assert!(!harness.exists(parent).await);
    assert_eq!(harness.store.find_batches(&[parent]).await.unwrap(), []);
}

pub(crate) async fn only_an_open_batch_takes_children(harness: Harness) {
    let child = || works(1);
    let (sealed, _, _) = Plan::of(works(1)).submit(&harness).await;
    let refused = child();
    assert_refused(extend(&harness, sealed, &refused).await, &ErrorKind::Conflict);
    assert!(!harness.exists(refused[0].id).await, "nothing was stored");
    let (canceled, _, _) = Plan::open().submit(&harness).await;
    harness.store.cancel(canceled).await.unwrap().unwrap();
    assert_refused(extend(&harness, canceled, &child()).await, &ErrorKind::Conflict);
    harness.store.cancel_children(canceled, None, 10).await.unwrap();
    assert_refused(extend(&harness, canceled, &child()).await, &ErrorKind::Conflict);
    assert_refused(harness.store.seal_batch(canceled).await, &ErrorKind::Conflict);
    assert_refused(extend(&harness, new_id(), &child()).await, &ErrorKind::NotFound);
    assert_refused(harness.store.seal_batch(new_id()).await, &ErrorKind::NotFound);
    assert_eq!(counts(&harness, sealed).await[0], 1);
}

pub(crate) async fn children_that_others_stand_for_may_be_given_again_when_the_batch_is_sealed(harness: Harness) {
    let first = harness.submit(work_once("once")).await;
    let (id, _, _) = Plan::open().submit(&harness).await;
    let child = vec![work_once("once")];
    assert_eq!(extend(&harness, id, &child).await.unwrap(), [Submitted::Existing(first)]);
    harness.store.seal_batch(id).await.unwrap();
    assert_eq!(extend(&harness, id, &child).await.unwrap(), [Submitted::Existing(first)], "its answer was lost");
    assert_refused(extend(&harness, new_id(), &child).await, &ErrorKind::NotFound);
    assert_eq!(counts(&harness, id).await[0], 0);
}

pub(crate) async fn progress_is_told_once_for_each_threshold(harness: Harness) {
    let (id, children, _) = Plan::of(works(5)).telling(ProgressEvery::Items(2)).submit(&harness).await;
    let claimed = harness.claim_all().await;
    harness.succeed(&claimed[0]).await;
    assert_eq!(claim_told(&harness).await, []);
    harness.fail(&claimed[1], "boom").await;
    let told = claim_told(&harness).await;
    assert_eq!(
        told.iter().map(|told| (told.batch, told.total, told.done, told.failed)).collect::<Vec<_>>(),
        [(id, 5, 2, 1)]
    );
    harness.store.retry(children[1]).await.unwrap().unwrap();
    let again = harness.claim_one().await;
    harness.fail(&again, "boom").await;
    assert_eq!(claim_told(&harness).await, [], "a threshold that was told is not told again");
    harness.succeed(&claimed[2]).await;
    harness.succeed(&claimed[3]).await;
    harness.succeed(&claimed[4]).await;
    let told = claim_told(&harness).await;
    assert_eq!(told.iter().map(|told| told.done).collect::<Vec<_>>(), [4]);
}

pub(crate) async fn of_thresholds_passed_at_once_the_last_is_told(harness: Harness) {
    let (_, _, _) = Plan::of(works(10)).telling(ProgressEvery::Percent(10)).submit(&harness).await;
    let claimed = harness.claim_all().await;
    let ends: Vec<_> = claimed[..3].iter().map(success).collect();
    harness.turn(&ends, None).await;
    assert_eq!(claim_told(&harness).await.iter().map(|told| told.done).collect::<Vec<_>>(), [3]);
    let ends: Vec<_> = claimed[3..].iter().map(success).collect();
    harness.turn(&ends, None).await;
    let told = claim_told(&harness).await;
    assert_eq!(told.iter().map(|told| (told.done, told.percent)).collect::<Vec<_>>(), [(10, 100.0)]);
}

pub(crate) async fn the_share_of_a_growing_batch_is_not_told_before_its_seal(harness: Harness) {
    let (id, _, _) = Plan::open().telling(ProgressEvery::Percent(50)).submit(&harness).await;
    extend(&harness, id, &works(4)).await.unwrap();
    let claimed = harness.claim_all().await;
    harness.turn(&[success(&claimed[0]), success(&claimed[1])], None).await;
    assert_eq!(claim_told(&harness).await, []);
    harness.store.seal_batch(id).await.unwrap();
    assert_eq!(claim_told(&harness).await.iter().map(|told| told.done).collect::<Vec<_>>(), [2]);
}

pub(crate) async fn growing_sealing_and_ending_at_the_same_time_lose_nothing(harness: Harness) {
    for _ in 0..ROUNDS {
        let (id, _, _) = Plan::open().submit(&harness).await;
        extend(&harness, id, &works(4)).await.unwrap();
        let claimed = harness.claim_all().await;
        let (growing, sealing, settling) = (harness.store.clone(), harness.store.clone(), harness.store.clone());
        let mut more = works(3);
        for child in &mut more {
            tie_child(id, child).unwrap();
        }
        let ends: Vec<_> = claimed.iter().map(success).collect();
        let grow = tokio::spawn(async move { growing.extend_batch(id, &more).await });
        let seal = tokio::spawn(async move { sealing.seal_batch(id).await });
        let settle = tokio::spawn(async move { settling.settle_and_claim(&ends, None).await });
        let grown = grow.await.unwrap();
        seal.await.unwrap().unwrap();
        settle.await.unwrap().unwrap();
        let expected = if grown.is_ok() { 7 } else { 4 };
        assert_eq!(counts(&harness, id).await[..2], [expected, 4], "{grown:?}");
        for claim in harness.claim_all().await {
            harness.succeed(&claim).await;
        }
        run_parent(&harness, id).await;
        assert_eq!(counts(&harness, id).await[1], expected);
    }
}
