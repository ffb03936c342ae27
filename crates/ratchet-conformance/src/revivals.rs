//! What the retry of a step brings back.

use ratchet_core::JobState::{Canceled, Failed, Pending, Succeeded, Waiting};
use ratchet_core::error::ErrorKind;
use ratchet_core::flow::{Condition, EdgeState, Join, Operator};
use ratchet_core::{FollowedBy, JobFlags, Settled};

use crate::harness::{Harness, assert_refused, business_key, mins, success, work, work_with_key};
use crate::signals::awaiting;
use crate::workflows::{Plan, claims, states, test};

pub(crate) async fn a_retry_revives_what_the_failure_had_canceled(harness: Harness) {
    let plan = Plan::from(vec![work(), work_with_key("second"), work()]);
    let steps = plan.edge(0, 1, Condition::Success).edge(1, 2, Condition::Success).submit(&harness).await;
    let first = harness.claim_one().await;
    harness.fail(&first, "boom").await;
    let retried = harness.store.retry(steps[0]).await.unwrap().expect("a failed step can be retried");
    let revived: Vec<_> = retried.followed.iter().map(|followed| (followed.id, followed.what.clone())).collect();
    assert_eq!(revived, [(steps[1], FollowedBy::Revived), (steps[2], FollowedBy::Revived)]);
    let second = harness.job(steps[1]).await;
    assert_eq!((second.state, second.waits_for, second.version), (Waiting, 1, 2));
    assert_eq!((second.canceled_because, second.terminated_at), (None, None));
    assert_eq!(harness.holder("second").await, Some(steps[1]), "it has its key again");
    for step in &steps {
        let claimed = claims(&harness, &[*step]).await;
        harness.succeed(&claimed[0]).await;
    }
    assert_eq!(states(&harness, &steps).await, [Succeeded; 3]);
}

pub(crate) async fn a_retry_is_refused_while_another_job_holds_a_key_of_what_it_would_revive(harness: Harness) {
    let plan = Plan::from(vec![work_with_key("first"), work_with_key("second")]);
    let steps = plan.edge(0, 1, Condition::Success).submit(&harness).await;
    let first = harness.claim_one().await;
    harness.fail(&first, "boom").await;
    let holder = harness.submit(work_with_key("second")).await;
    let before = harness.store.find(&steps).await.unwrap();
    assert_refused(
        harness.store.retry(steps[0]).await,
        &ErrorKind::Duplicate { business_key: business_key("second"), holder },
    );
    assert_eq!(harness.store.find(&steps).await.unwrap(), before, "nothing has changed");
    assert_eq!(harness.holder("first").await, None);
}

pub(crate) async fn a_join_comes_back_when_the_last_of_its_failed_parents_is_retried(harness: Harness) {
    let steps = Plan::join(Join::All).submit(&harness).await;
    let parents = claims(&harness, &steps[..2]).await;
    for parent in &parents {
        harness.fail(parent, "boom").await;
    }
    harness.store.retry(steps[0]).await.unwrap().unwrap();
    assert_eq!(harness.state(steps[2]).await, Canceled, "the other parent still forbids it");
    let first = harness.claim_one().await;
    harness.succeed(&first).await;
    harness.store.retry(steps[1]).await.unwrap().unwrap();
    let join = harness.job(steps[2]).await;
    assert_eq!((join.state, join.waits_for), (Waiting, 1), "the first has already ended well");
    let second = harness.claim_one().await;
    harness.succeed(&second).await;
    claims(&harness, &steps[2..]).await;
}

pub(crate) async fn what_a_person_canceled_is_not_revived(harness: Harness) {
    let steps = Plan::chain(3).submit(&harness).await;
    harness.store.cancel(steps[2]).await.unwrap().unwrap();
    let first = harness.claim_one().await;
    harness.fail(&first, "boom").await;
    harness.store.retry(steps[0]).await.unwrap().unwrap();
    assert_eq!(states(&harness, &steps).await, [Pending, Waiting, Canceled]);
}

pub(crate) async fn an_end_and_a_retry_at_the_same_time_leave_no_join_stuck(harness: Harness) {
    const ROUNDS: usize = 30;
    for _ in 0..ROUNDS {
        let steps = Plan::join(Join::All).submit(&harness).await;
        let parents = claims(&harness, &steps[..2]).await;
        harness.fail(&parents[0], "boom").await;
        let (retrying, settling) = (harness.store.clone(), harness.store.clone());
        let (first, end) = (steps[0], success(&parents[1]));
        let retry = tokio::spawn(async move { retrying.retry(first).await });
        let settle = tokio::spawn(async move { settling.settle_and_claim(&[end], None).await });
        retry.await.unwrap().unwrap().expect("it had failed");
        assert_eq!(settle.await.unwrap().unwrap().settled, [Settled::Applied]);
        let join = harness.job(steps[2]).await;
        assert_eq!((join.state, join.waits_for), (Waiting, 1), "it waits for what was retried, and for nothing else");
        let again = claims(&harness, &steps[..1]).await;
        harness.succeed(&again[0]).await;
        let last = claims(&harness, &steps[2..]).await;
        harness.succeed(&last[0]).await;
    }
}

pub(crate) async fn a_join_of_any_that_still_waits_waits_for_a_retried_parent_again(harness: Harness) {
    let steps = Plan::join(Join::Any).submit(&harness).await;
    let parents = claims(&harness, &steps[..2]).await;
    let of = |id| parents.iter().find(|claim| claim.job.id == id).unwrap();
    harness.fail(of(steps[0]), "boom").await;
    assert_eq!(harness.job(steps[2]).await.waits_for, 1);
    let retried = harness.store.retry(steps[0]).await.unwrap().unwrap();
    assert_eq!(retried.followed, [], "nothing was canceled, nothing comes back");
    let join = harness.job(steps[2]).await;
    assert_eq!((join.state, join.waits_for, join.version), (Waiting, 2, 0));
    assert!(harness.store.edges_from(&steps[..1]).await.unwrap().iter().all(|edge| edge.state == EdgeState::Open));
    let again = claims(&harness, &steps[..1]).await;
    harness.succeed(&again[0]).await;
    harness.fail(of(steps[1]), "boom").await;
    claims(&harness, &steps[2..]).await;
}

pub(crate) async fn a_join_that_still_waits_heeds_the_new_end_of_a_retried_parent(harness: Harness) {
    for join in [Join::All, Join::Any] {
        let mut plan = Plan::of(3);
        if join == Join::Any {
            plan.jobs[2].flow = JobFlags::JOIN_ANY;
        }
        let plan = plan.edge(0, 2, Condition::Failure).edge(1, 2, Condition::Success);
        let steps = plan.submit(&harness).await;
        let parents = claims(&harness, &steps[..2]).await;
        let of = |id| parents.iter().find(|claim| claim.job.id == id).unwrap();
        harness.fail(of(steps[0]), "boom").await;
        harness.store.retry(steps[0]).await.unwrap().unwrap();
        let again = claims(&harness, &steps[..1]).await;
        harness.succeed(&again[0]).await;
        if join == Join::Any {
            harness.fail(of(steps[1]), "boom").await;
        }
        assert_eq!(harness.state(steps[2]).await, Canceled, "{join:?}: the first has not failed after all");
    }
}

pub(crate) async fn what_waits_behind_a_revived_step_waits_for_it_again(harness: Harness) {
    let mut plan = Plan::of(4);
    plan.jobs[3].flow = JobFlags::JOIN_ANY;
    let plan = plan.edge(0, 1, Condition::Success).edge(1, 3, Condition::Success).edge(2, 3, Condition::Success);
    let steps = plan.submit(&harness).await;
    let first = claims(&harness, &[steps[0], steps[2]]).await;
    let of = |id| first.iter().find(|claim| claim.job.id == id).unwrap();
    harness.fail(of(steps[0]), "boom").await;
    assert_eq!(harness.job(steps[3]).await.waits_for, 1, "the other branch still runs");
    harness.store.retry(steps[0]).await.unwrap().unwrap();
    assert_eq!(harness.job(steps[3]).await.waits_for, 2);
    harness.fail(of(steps[2]), "boom").await;
    for step in [0, 1, 3] {
        let claimed = claims(&harness, &steps[step..=step]).await;
        harness.succeed(&claimed[0]).await;
    }
}

pub(crate) async fn the_time_of_a_step_stops_while_it_waits_for_a_retried_parent(harness: Harness) {
    let plan = Plan::from(vec![work(), awaiting("go", Some(mins(5)))]);
    let steps = plan.edge(0, 1, Condition::Finished).submit(&harness).await;
    let first = harness.claim_one().await;
    harness.fail(&first, "boom").await;
    assert!(harness.store.signals(&steps[1..]).await.unwrap()[0].expires_at.is_some(), "it is reached");
    harness.store.retry(steps[0]).await.unwrap().unwrap();
    assert_eq!(harness.job(steps[1]).await.waits_for, 2);
    assert_eq!(harness.store.signals(&steps[1..]).await.unwrap()[0].expires_at, None);
    harness.advance(mins(10));
    assert_eq!(harness.store.expire(10).await.unwrap().jobs, []);
    let again = harness.claim_one().await;
    harness.succeed(&again).await;
    assert!(harness.store.signals(&steps[1..]).await.unwrap()[0].expires_at.is_some());
}

/// Neither with a signal to come nor without: nobody can tell whether it is to run, and a retry does not change that.
pub(crate) async fn a_step_whose_condition_could_not_be_told_is_not_retried(harness: Harness) {
    for step in [work(), awaiting("go", None)] {
        let plan = Plan::from(vec![work(), work(), step]);
        let plan = plan.edge(0, 2, test("/nothing", Operator::Is, 1)).edge(1, 2, Condition::Success);
        let steps = plan.submit(&harness).await;
        let parents = claims(&harness, &steps[..2]).await;
        let of = |id| parents.iter().find(|claim| claim.job.id == id).unwrap();
        harness.succeed(of(steps[0])).await;
        let failed = harness.job(steps[2]).await;
        assert_eq!(failed.state, Failed, "its condition could not be told");
        assert_refused(harness.store.retry(steps[2]).await, &ErrorKind::Conflict);
        harness.succeed(of(steps[1])).await;
        assert_refused(harness.store.retry(steps[2]).await, &ErrorKind::Conflict);
        assert_eq!(harness.job(steps[2]).await, failed, "nothing has changed");
        assert_eq!(harness.claim_all().await, []);
    }
}

pub(crate) async fn a_step_that_was_let_go_and_has_not_begun_waits_for_a_retried_parent_again(harness: Harness) {
    let plan = Plan::from(vec![work(), work_with_key("clean"), work(), work()]);
    let plan = plan.edge(0, 1, Condition::Failure).edge(0, 2, Condition::Finished).edge(0, 3, Condition::Success);
    let steps = plan.submit(&harness).await;
    let first = harness.claim_one().await;
    harness.fail(&first, "boom").await;
    assert_eq!(states(&harness, &steps).await, [Failed, Pending, Pending, Canceled]);
    let retried = harness.store.retry(steps[0]).await.unwrap().unwrap();
    let mut told: Vec<_> = retried.followed.iter().map(|followed| (followed.id, followed.what.clone())).collect();
    told.sort_by_key(|(id, _)| *id);
    assert_eq!(told, steps[1..].iter().map(|id| (*id, FollowedBy::Revived)).collect::<Vec<_>>());
    assert_eq!(states(&harness, &steps).await, [Pending, Waiting, Waiting, Waiting]);
    let branch = harness.job(steps[1]).await;
    assert_eq!((branch.waits_for, branch.version), (1, 2));
    assert_eq!(harness.holder("clean").await, Some(steps[1]), "it holds its key all the time");
    assert!(harness.store.edges_from(&steps[..1]).await.unwrap().iter().all(|edge| edge.state == EdgeState::Open));
    let again = claims(&harness, &steps[..1]).await;
    harness.succeed(&again[0]).await;
    assert_eq!(states(&harness, &steps).await, [Succeeded, Canceled, Pending, Pending], "it has not failed after all");
    assert_eq!(harness.holder("clean").await, None);
}

pub(crate) async fn a_step_that_has_begun_goes_on_when_the_job_before_it_is_retried(harness: Harness) {
    for began in [Began::Runs, Began::TriesAgain, Began::IsRetried] {
        let steps = Plan::of(2).edge(0, 1, Condition::Failure).submit(&harness).await;
        let first = harness.claim_one().await;
        harness.fail(&first, "boom").await;
        let branch = harness.claim_one().await;
        match began {
            Began::Runs => {}
            Began::TriesAgain => harness.reschedule(&branch, std::time::Duration::ZERO).await,
            Began::IsRetried => {
                harness.fail(&branch, "bang").await;
                harness.store.retry(steps[1]).await.unwrap().unwrap();
            }
        }
        let before = harness.job(steps[1]).await;
        assert_eq!(harness.store.retry(steps[0]).await.unwrap().unwrap().followed, []);
        assert_eq!(harness.job(steps[1]).await, before, "{began:?}");
        for id in steps {
            harness.store.cancel(id).await.unwrap();
        }
    }
}

#[derive(Debug)]
enum Began {
    Runs,
    TriesAgain,
    IsRetried,
}
