//! Real concurrency: whoever comes first, exactly one wins and nothing is lost.

use std::collections::BTreeSet;
use std::sync::Arc;

use futures_util::future::join_all;
use ratchet_core::claim::ClaimRequest;
use ratchet_core::store::{SubmitUnit, Submitted};
use ratchet_core::{ErrorKind, JobId, JobState, NewJob, Settled};
use tokio::sync::Barrier;

use crate::harness::{
    Harness, another_try, business_key, failure, mins, queue, success, work, work_once, work_with_key, works,
};

/// How often each race is run.
const ROUNDS: usize = 20;

/// Runs all tasks at the same moment, each on a task of its own.
pub(crate) async fn race<T: Send + 'static>(tasks: Vec<impl Future<Output = T> + Send + 'static>) -> Vec<T> {
    let barrier = Arc::new(Barrier::new(tasks.len()));
    let started: Vec<_> = tasks
        .into_iter()
        .map(|task| {
            let barrier = barrier.clone();
            tokio::spawn(async move {
                barrier.wait().await;
                task.await
            })
        })
        .collect();
    join_all(started).await.into_iter().map(|joined| joined.expect("no racer panics")).collect()
}

/// A racer of any kind, so that different ones fit in one race.
fn racer<T>(task: impl Future<Output = T> + Send + 'static) -> std::pin::Pin<Box<dyn Future<Output = T> + Send>> {
    Box::pin(task)
}

/// Two racers; every fourth round the one is through before the other starts, and every fourth the other way round, so
/// that both orders are seen however fast they are.
pub(crate) async fn duel<T: Send + 'static>(
    round: usize,
    one: impl Future<Output = T> + Send + 'static,
    other: impl Future<Output = T> + Send + 'static,
) -> Vec<T> {
    match round % 4 {
        0 => vec![one.await, other.await],
        1 => {
            let other = other.await;
            vec![one.await, other]
        }
        _ => race(vec![racer(one), racer(other)]).await,
    }
}

pub(crate) async fn racing_nodes_claim_disjoint_sets_and_miss_nothing(harness: Harness) {
    let all: BTreeSet<_> = harness.submit_each(works(120)).await.into_iter().collect();
    let mut tasks = Vec::new();
    for _ in 0..6 {
        let (store, node) = (harness.store.clone(), harness.another_node().await);
        let request = ClaimRequest { node, limit: 7, ..harness.request() };
        tasks.push(async move {
            let mut mine = Vec::new();
            // A poll may come back empty while others hold what it saw; ten in a row mean that nothing is left.
            let mut empty = 0;
            while empty < 10 && mine.len() <= 120 {
                let claimed = store.settle_and_claim(&[], Some(&request)).await.unwrap().claimed;
                empty = if claimed.is_empty() { empty + 1 } else { 0 };
                assert!(claimed.iter().all(|claim| claim.job.picked_by == Some(node)));
                mine.extend(claimed.into_iter().map(|claim| claim.job.id));
            }
            mine
        });
    }
    let claimed: Vec<JobId> = race(tasks).await.concat();
    assert_eq!(claimed.len(), 120, "none twice");
    assert_eq!(claimed.into_iter().collect::<BTreeSet<_>>(), all, "none lost");
}

pub(crate) async fn of_racing_settlements_of_one_claim_one_is_applied(harness: Harness) {
    for _ in 0..ROUNDS {
        let claim = harness.running(work_with_key("mine")).await;
        let settlements = [success(&claim), failure(&claim, "boom"), another_try(&claim, mins(60)), success(&claim)];
        let tasks = settlements.map(|settlement| {
            let store = harness.store.clone();
            async move { store.settle_and_claim(&[settlement], None).await.unwrap().settled[0] }
        });
        let settled = race(tasks.into_iter().collect()).await;
        assert_eq!(settled.iter().filter(|settled| **settled == Settled::Applied).count(), 1, "{settled:?}");
        assert_eq!(settled.iter().filter(|settled| **settled == Settled::Conflict).count(), 3, "{settled:?}");
        let job = harness.job(claim.job.id).await;
        assert_eq!((job.version, harness.attempts(job.id).await.len()), (2, 1));
        let live = job.state == JobState::Pending;
        assert_eq!(harness.holder("mine").await, live.then_some(job.id));
        harness.store.cancel(job.id).await.unwrap();
    }
}

pub(crate) async fn a_cancellation_and_a_settlement_have_one_winner(harness: Harness) {
    for round in 0..ROUNDS {
        let claim = harness.running(work_with_key("mine")).await;
        let id = claim.job.id;
        let (canceler, settler) = (harness.store.clone(), harness.store.clone());
        let canceling = async move { canceler.cancel(id).await.unwrap().is_some() };
        let settling = async move {
            settler.settle_and_claim(&[success(&claim)], None).await.unwrap().settled[0] == Settled::Applied
        };
        let won = duel(round, canceling, settling).await;
        let job = harness.job(id).await;
        let expected = if won[0] { JobState::Canceled } else { JobState::Succeeded };
        assert!(won[0] != won[1], "one and only one won: {won:?}");
        assert_eq!((job.state, job.version), (expected, 2));
        assert_eq!(harness.attempts(id).await.len(), 1);
        assert_eq!(harness.holder("mine").await, None);
    }
}

pub(crate) async fn racing_retries_revive_a_job_once(harness: Harness) {
    for _ in 0..ROUNDS {
        let id = harness.failed(work(), "boom").await;
        let tasks = (0..3).map(|_| {
            let store = harness.store.clone();
            async move { store.retry(id).await.unwrap().is_some() }
        });
        let won = race(tasks.collect()).await;
        assert_eq!(won.iter().filter(|won| **won).count(), 1);
        assert_eq!(harness.job(id).await.version, 3);
        harness.store.cancel(id).await.unwrap();
    }
}

pub(crate) async fn after_retry_and_cancellation_the_key_fits_the_state(harness: Harness) {
    for round in 0..ROUNDS {
        let id = harness.failed(work_with_key("mine"), "boom").await;
        let (retrier, canceler) = (harness.store.clone(), harness.store.clone());
        let retrying = async move { retrier.retry(id).await.unwrap().is_some() };
        let canceling = async move { canceler.cancel(id).await.unwrap().is_some() };
        let won = duel(round, retrying, canceling).await;
        assert!(won[0], "nobody else retries it");
        // The cancellation came too early, or ended the job after its retry.
        let (state, holder) = if won[1] { (JobState::Canceled, None) } else { (JobState::Pending, Some(id)) };
        assert_eq!((harness.state(id).await, harness.holder("mine").await), (state, holder));
        harness.store.cancel(id).await.unwrap();
    }
}

pub(crate) async fn after_pause_and_cancellation_the_job_is_canceled(harness: Harness) {
    for round in 0..ROUNDS {
        let id = harness.submit(work_with_key("mine")).await;
        let (pauser, canceler) = (harness.store.clone(), harness.store.clone());
        let pausing = async move { pauser.pause(id).await.unwrap().is_some() };
        let canceling = async move { canceler.cancel(id).await.unwrap().is_some() };
        let won = duel(round, pausing, canceling).await;
        assert!(won[1], "a paused job can be canceled too");
        let job = harness.job(id).await;
        assert_eq!((job.state, job.version), (JobState::Canceled, if won[0] { 2 } else { 1 }));
        assert_eq!(harness.holder("mine").await, None);
    }
}

pub(crate) async fn a_pause_and_a_claim_have_one_winner(harness: Harness) {
    for round in 0..ROUNDS {
        let id = harness.submit(work()).await;
        let (pauser, claimer, request) = (harness.store.clone(), harness.store.clone(), harness.request());
        let pausing = async move { pauser.pause(id).await.unwrap().is_some() };
        let claiming = async move { !claimer.settle_and_claim(&[], Some(&request)).await.unwrap().claimed.is_empty() };
        let won = duel(round, pausing, claiming).await;
        let job = harness.job(id).await;
        assert!(won[0] || won[1], "one of them found it");
        assert!(!(won[0] && won[1]), "a running job cannot be paused, a paused one not claimed");
        assert_eq!(job.state, if won[0] { JobState::Paused } else { JobState::Running });
        harness.store.cancel(id).await.unwrap();
    }
}

pub(crate) async fn after_its_pause_a_queue_gives_no_more_jobs(harness: Harness) {
    let all = harness.submit_each(works(60)).await;
    let (pauser, request) = (harness.store.clone(), ClaimRequest { limit: 3, ..harness.request() });
    let mut tasks = vec![racer(async move {
        pauser.pause_queue(&queue("default")).await.unwrap();
        0
    })];
    for _ in 0..3 {
        let (store, request) = (harness.store.clone(), request.clone());
        tasks.push(racer(async move { store.settle_and_claim(&[], Some(&request)).await.unwrap().claimed.len() }));
    }
    let claimed: usize = race(tasks).await.into_iter().sum();
    assert!(harness.claim_all().await.is_empty(), "the pause is through");
    let jobs = harness.store.find(&all).await.unwrap();
    assert_eq!(jobs.iter().filter(|job| job.state == JobState::Running).count(), claimed);
}

pub(crate) async fn of_racing_submits_with_one_business_key_one_is_stored(harness: Harness) {
    for round in 0..ROUNDS {
        let key = format!("key {round}");
        let tasks = (0..4).map(|_| {
            let (store, job) = (harness.store.clone(), work_with_key(&key));
            async move {
                let unit = SubmitUnit::of(vec![job]);
                store.submit(&[unit]).await.unwrap().remove(0)
            }
        });
        let outcomes = race(tasks.collect()).await;
        let created: Vec<_> = outcomes.iter().filter_map(|outcome| outcome.as_ref().ok()).collect();
        assert_eq!(created.len(), 1, "{outcomes:?}");
        let holder = created[0][0].id();
        assert_eq!(harness.holder(&key).await, Some(holder));
        for refused in outcomes.iter().filter_map(|outcome| outcome.as_ref().err()) {
            assert_eq!(refused.kind(), &ErrorKind::Duplicate { business_key: business_key(&key), holder });
        }
    }
    assert_eq!(harness.store.count_by_state().await.unwrap()[&JobState::Pending], ROUNDS as u64);
}

pub(crate) async fn of_racing_submits_with_one_idempotency_key_one_is_stored(harness: Harness) {
    for round in 0..ROUNDS {
        let key = format!("key {round}");
        let tasks = (0..4).map(|_| {
            let (store, job) = (harness.store.clone(), work_once(&key));
            async move {
                let unit = SubmitUnit::of(vec![job]);
                store.submit(&[unit]).await.unwrap().remove(0).expect("nobody is refused")[0]
            }
        });
        let outcomes = race(tasks.collect()).await;
        let first = harness.first_with(&key).await.expect("one was stored");
        assert_eq!(outcomes.iter().filter(|outcome| **outcome == Submitted::Created(first)).count(), 1);
        assert_eq!(outcomes.iter().filter(|outcome| **outcome == Submitted::Existing(first)).count(), 3);
    }
    assert_eq!(harness.store.count_by_state().await.unwrap()[&JobState::Pending], ROUNDS as u64);
}

pub(crate) async fn a_retry_and_a_submit_have_one_winner_of_the_key(harness: Harness) {
    for round in 0..ROUNDS {
        let key = format!("key {round}");
        let failed = harness.failed(work_with_key(&key), "boom").await;
        let (retrier, submitter, new) = (harness.store.clone(), harness.store.clone(), work_with_key(&key));
        let new_id = new.id;
        let retrying = async move { retrier.retry(failed).await.is_ok() };
        let submitting = async move { submitter.submit(&[SubmitUnit::of(vec![new])]).await.unwrap().remove(0).is_ok() };
        let won = duel(round, retrying, submitting).await;
        assert!(won[0] != won[1], "one and only one won: {won:?}");
        let (holder, state) = if won[0] { (failed, JobState::Pending) } else { (new_id, JobState::Failed) };
        assert_eq!((harness.holder(&key).await, harness.state(failed).await), (Some(holder), state));
        assert_eq!(harness.exists(new_id).await, won[1]);
        harness.store.cancel(holder).await.unwrap();
    }
}

pub(crate) async fn of_racing_nodes_one_gets_the_lease(harness: Harness) {
    for round in 0..ROUNDS {
        let mut tasks = Vec::new();
        for _ in 0..3 {
            let (store, node, name) = (harness.store.clone(), harness.another_node().await, format!("lease {round}"));
            tasks.push(async move { store.acquire_lease(&name, node, mins(5)).await.unwrap() });
        }
        assert_eq!(race(tasks).await.into_iter().filter(|won| *won).count(), 1);
    }
}

pub(crate) async fn of_racing_replacements_one_succeeds(harness: Harness) {
    for _ in 0..ROUNDS {
        let old = harness.submit(work_with_key("mine")).await;
        let tasks = (0..3).map(|_| {
            let (store, new): (_, NewJob) = (harness.store.clone(), work_with_key("mine"));
            async move { store.replace(old, &new).await.map(|_| new.id) }
        });
        let outcomes = race(tasks.collect()).await;
        let won: Vec<_> = outcomes.iter().filter_map(|outcome| outcome.as_ref().ok()).collect();
        assert_eq!(won.len(), 1, "{outcomes:?}");
        assert_eq!(harness.holder("mine").await, Some(*won[0]));
        assert_eq!(harness.job(old).await.superseded_by, Some(*won[0]));
        harness.store.cancel(*won[0]).await.unwrap();
    }
}

pub(crate) async fn submitting_settling_and_claiming_at_once_loses_nothing(harness: Harness) {
    let mut tasks = Vec::new();
    for _ in 0..3 {
        let store = harness.store.clone();
        tasks.push(racer(async move {
            for _ in 0..30 {
                store.submit(&[SubmitUnit::of(vec![work()])]).await.unwrap().remove(0).unwrap();
            }
        }));
    }
    for _ in 0..3 {
        let (store, node) = (harness.store.clone(), harness.another_node().await);
        let request = ClaimRequest { node, limit: 5, ..harness.request() };
        tasks.push(racer(async move {
            let mut finished = Vec::new();
            for _ in 0..40 {
                let turn = store.settle_and_claim(&finished, Some(&request)).await.unwrap();
                assert!(turn.settled.iter().all(|settled| *settled == Settled::Applied));
                finished = turn.claimed.iter().map(success).collect();
            }
            store.settle_and_claim(&finished, None).await.unwrap();
        }));
    }
    race(tasks).await;
    for _ in 0..90 {
        let left = harness.claim_all().await;
        if left.is_empty() {
            break;
        }
        let turn = harness.turn(&left.iter().map(success).collect::<Vec<_>>(), None).await;
        assert!(turn.settled.iter().all(|settled| *settled == Settled::Applied));
    }
    let counts = harness.store.count_by_state().await.unwrap();
    assert_eq!(counts, [(JobState::Succeeded, 90)].into(), "every job ran to its end, once");
}

/// The table runs nearly empty again and again: there a database changes its plans, locks rows in another order, and
/// claimers that each hold some wait for each other in a circle.
pub(crate) async fn claimers_drain_to_empty_again_and_again(harness: Harness) {
    const JOBS: usize = 200;
    const DRAINS: usize = 8;
    let mut requests = Vec::new();
    for _ in 0..4 {
        requests.push(ClaimRequest { node: harness.another_node().await, limit: 20, ..harness.request() });
    }
    for _ in 0..DRAINS {
        let all: BTreeSet<JobId> = harness.submit_each(works(JOBS)).await.into_iter().collect();
        let claimers = requests.iter().cloned().map(|request| {
            let store = harness.store.clone();
            async move {
                let (mut claimed, mut finished, mut idle) = (Vec::new(), Vec::new(), 0);
                while idle < 3 {
                    let turn = store.settle_and_claim(&finished, Some(&request)).await.unwrap();
                    assert!(turn.settled.iter().all(|settled| *settled == Settled::Applied));
                    idle = if turn.claimed.is_empty() { idle + 1 } else { 0 };
                    claimed.extend(turn.claimed.iter().map(|claim| claim.fence.job_id));
                    finished = turn.claimed.iter().map(success).collect();
                }
                claimed
            }
        });
        let claimed: Vec<JobId> = race(claimers.collect()).await.concat();
        assert_eq!(claimed.len(), JOBS, "nobody claims what another has claimed");
        assert_eq!(claimed.into_iter().collect::<BTreeSet<_>>(), all);
    }
    let counts = harness.store.count_by_state().await.unwrap();
    assert_eq!(counts, [(JobState::Succeeded, (JOBS * DRAINS) as u64)].into());
}
