//! What the retry of a step brings back.

use ratchet_core::JobState::{Canceled, Pending, Succeeded, Waiting};
use ratchet_core::error::ErrorKind;
use ratchet_core::flow::{Condition, Join};
use ratchet_core::{FollowedBy, Settled};

use crate::bench::{Bench, assert_refused, business_key, success, work, work_with_key};
use crate::workflows::{Plan, claims, states};

pub(crate) async fn a_retry_revives_what_the_failure_had_cancelled(bench: Bench) {
    let plan = Plan::from(vec![work(), work_with_key("second"), work()]);
    let steps = plan.edge(0, 1, Condition::Success).edge(1, 2, Condition::Success).submit(&bench).await;
    let first = bench.claim_one().await;
    bench.fail(&first, "boom").await;
    let retried = bench.store.retry(steps[0]).await.unwrap().expect("a failed step can be retried");
    let revived: Vec<_> = retried.followed.iter().map(|followed| (followed.id, followed.what.clone())).collect();
    assert_eq!(revived, [(steps[1], FollowedBy::Revived), (steps[2], FollowedBy::Revived)]);
    let second = bench.job(steps[1]).await;
    assert_eq!((second.state, second.waits_for, second.version), (Waiting, 1, 2));
    assert_eq!((second.canceled_because, second.terminated_at), (None, None));
    assert_eq!(bench.holder("second").await, Some(steps[1]), "it has its key again");
    for step in &steps {
        let claimed = claims(&bench, &[*step]).await;
        bench.succeed(&claimed[0]).await;
    }
    assert_eq!(states(&bench, &steps).await, [Succeeded; 3]);
}

pub(crate) async fn a_retry_is_refused_while_another_job_holds_a_key_of_what_it_would_revive(bench: Bench) {
    let plan = Plan::from(vec![work_with_key("first"), work_with_key("second")]);
    let steps = plan.edge(0, 1, Condition::Success).submit(&bench).await;
    let first = bench.claim_one().await;
    bench.fail(&first, "boom").await;
    let holder = bench.submit(work_with_key("second")).await;
    let before = bench.store.find(&steps).await.unwrap();
    assert_refused(
        bench.store.retry(steps[0]).await,
        &ErrorKind::Duplicate { business_key: business_key("second"), holder },
    );
    assert_eq!(bench.store.find(&steps).await.unwrap(), before, "nothing has changed");
    assert_eq!(bench.holder("first").await, None);
}

pub(crate) async fn a_join_comes_back_when_the_last_of_its_failed_parents_is_retried(bench: Bench) {
    let steps = Plan::join(Join::All).submit(&bench).await;
    let parents = claims(&bench, &steps[..2]).await;
    for parent in &parents {
        bench.fail(parent, "boom").await;
    }
    bench.store.retry(steps[0]).await.unwrap().unwrap();
    assert_eq!(bench.state(steps[2]).await, Canceled, "the other parent still forbids it");
    let first = bench.claim_one().await;
    bench.succeed(&first).await;
    bench.store.retry(steps[1]).await.unwrap().unwrap();
    let join = bench.job(steps[2]).await;
    assert_eq!((join.state, join.waits_for), (Waiting, 1), "the first has already ended well");
    let second = bench.claim_one().await;
    bench.succeed(&second).await;
    claims(&bench, &steps[2..]).await;
}

pub(crate) async fn what_a_person_cancelled_is_not_revived(bench: Bench) {
    let steps = Plan::chain(3).submit(&bench).await;
    bench.store.cancel(steps[2]).await.unwrap().unwrap();
    let first = bench.claim_one().await;
    bench.fail(&first, "boom").await;
    bench.store.retry(steps[0]).await.unwrap().unwrap();
    assert_eq!(states(&bench, &steps).await, [Pending, Waiting, Canceled]);
}

pub(crate) async fn an_end_and_a_retry_at_the_same_time_leave_no_join_stuck(bench: Bench) {
    const ROUNDS: usize = 30;
    for _ in 0..ROUNDS {
        let steps = Plan::join(Join::All).submit(&bench).await;
        let parents = claims(&bench, &steps[..2]).await;
        bench.fail(&parents[0], "boom").await;
        let (retrying, settling) = (bench.store.clone(), bench.store.clone());
        let (first, end) = (steps[0], success(&parents[1]));
        let retry = tokio::spawn(async move { retrying.retry(first).await });
        let settle = tokio::spawn(async move { settling.turn(&[end], None).await });
        retry.await.unwrap().unwrap().expect("it had failed");
        assert_eq!(settle.await.unwrap().unwrap().settled, [Settled::Applied]);
        let join = bench.job(steps[2]).await;
        assert_eq!((join.state, join.waits_for), (Waiting, 1), "it waits for what was retried, and for nothing else");
        let again = claims(&bench, &steps[..1]).await;
        bench.succeed(&again[0]).await;
        let last = claims(&bench, &steps[2..]).await;
        bench.succeed(&last[0]).await;
    }
}
