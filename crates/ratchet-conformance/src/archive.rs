//! The archive: what goes there and when, how it is found there, and when it goes for good.

use std::sync::Arc;
use std::time::Duration;

use ratchet_core::limits::{ERROR_CHARS_MAX, SIGNAL_BYTES_MAX};
use ratchet_core::page::{ArchiveScope, JobFilter};
use ratchet_core::schedule::ArchiveReason;
use ratchet_core::store::{ArchiveRequest, Archived, Removal, Submitted};
use ratchet_core::{Claim, JobId, JobState, Kind, NewJob, Principal, Settled, Store, Tag};
use serde_json::json as value;

use crate::harness::{
    Harness, KIND, another_try, assert_about, json, mins, new_id, new_job, success, success_with, work, work_once,
    work_with_key, works,
};
use crate::schedules::every_ten;
use crate::signals::to_job;
use crate::signals::{awaiting, saying, to_key};
use crate::workflows::{Plan, claims};
use crate::{batches, races};

use JobState::{Canceled, Failed, Pending, Succeeded};

/// How long jobs are kept in these cases.
const AGE: Duration = mins(10);

fn request(state: JobState) -> ArchiveRequest {
    ArchiveRequest { removal: Removal::Archive, state, age: AGE, after: None, limit: 1_000, only: None }
}

async fn archive(harness: &Harness, state: JobState) -> u64 {
    harness.store.archive(&request(state)).await.unwrap().moved
}

async fn is_archived(harness: &Harness, id: JobId) -> bool {
    harness.job(id).await.archived_at.is_some()
}

async fn succeeded(harness: &Harness, job: NewJob) -> JobId {
    let claim = harness.running(job).await;
    harness.succeed(&claim).await;
    claim.job.id
}

async fn listed(harness: &Harness, filter: &JobFilter) -> Vec<JobId> {
    harness.store.list(filter, None, 1_000).await.unwrap().items.iter().map(|job| job.id).collect()
}

pub(crate) async fn a_job_is_archived_when_it_ended_long_enough_ago(harness: Harness) {
    let ended = succeeded(&harness, work()).await;
    let failed = harness.failed(work(), "boom").await;
    let canceled = harness.submit(work()).await;
    harness.store.cancel(canceled).await.unwrap();
    harness.advance(mins(9));
    let recent = succeeded(&harness, work()).await;
    for state in [Succeeded, Failed, Canceled] {
        assert_eq!(archive(&harness, state).await, 0, "{state} is not old enough");
    }
    harness.advance(mins(2));
    for (state, id) in [(Succeeded, ended), (Failed, failed), (Canceled, canceled)] {
        assert!(!is_archived(&harness, id).await);
        assert_eq!(archive(&harness, state).await, 1, "{state}, and nothing else");
        assert!(is_archived(&harness, id).await);
        assert_eq!(archive(&harness, state).await, 0, "once");
    }
    assert!(!is_archived(&harness, recent).await);
}

pub(crate) async fn an_archived_job_is_found_as_it_was(harness: Harness) {
    let mut job = NewJob { idempotency_key: Some(crate::harness::idempotency_key("once")), ..work_with_key("key") };
    job.spec.tags = vec![Tag::new("a").unwrap(), Tag::new("é").unwrap()];
    job.spec.params = [("tenant".to_owned(), "acme".to_owned())].into();
    job.spec.principal = Some(Principal::new("ann").unwrap());
    job.on_failure = Some(crate::harness::spec("clean"));
    let claim = harness.running(job).await;
    harness.reschedule(&claim, Duration::ZERO).await;
    let claim = harness.claim_one().await;
    let settlement = success_with(&claim, Some(json(&value!({"n": [1, 2.5, "é"]}))));
    assert_eq!(harness.settle(settlement).await, Settled::Applied);
    let failed = harness.failed(work(), "böse").await;
    let waiting = harness.submit(awaiting("door", Some(mins(60)))).await;
    harness.store.deliver(&to_key("door")).await.unwrap();
    let signaled = harness.claim_one().await;
    harness.succeed(&signaled).await;
    let ids = [claim.job.id, failed, waiting];
    let before = harness.store.find(&ids).await.unwrap();
    let mut attempts = Vec::new();
    for id in ids {
        attempts.push(harness.attempts(id).await);
    }
    let signals = harness.store.signals(&ids).await.unwrap();
    assert_eq!((attempts[0].len(), signals.len()), (2, 1));
    harness.advance(mins(11));
    assert_eq!((archive(&harness, Succeeded).await, archive(&harness, Failed).await), (2, 1));
    let now = harness.now().await;
    for (mut before, after) in before.into_iter().zip(harness.store.find(&ids).await.unwrap()) {
        assert_about(after.archived_at.expect("it says that it is archived"), now);
        before.archived_at = after.archived_at;
        assert_eq!(before, after);
    }
    for (id, attempts) in ids.into_iter().zip(attempts) {
        assert_eq!(harness.attempts(id).await, attempts);
    }
    assert_eq!(harness.store.signals(&ids).await.unwrap(), signals);
}

pub(crate) async fn of_an_archived_jobs_attempts_the_last_fifty_are_kept(harness: Harness) {
    let mut claim = harness.running(work()).await;
    for _ in 0..60 {
        harness.reschedule(&claim, Duration::ZERO).await;
        claim = harness.claim_one().await;
    }
    harness.succeed(&claim).await;
    let before = harness.attempts(claim.job.id).await;
    harness.advance(mins(11));
    assert_eq!(archive(&harness, Succeeded).await, 1);
    assert_eq!(harness.attempts(claim.job.id).await, before[before.len() - 50..]);
}

/// Of each sort several, which a store may write together.
pub(crate) async fn long_histories_and_large_signals_are_archived_as_they_are(harness: Harness) {
    let mut ids = harness.submit_each(works(3)).await;
    let mut claims = harness.claim_all().await;
    for _ in 0..40 {
        let again = |claim: &Claim| {
            let mut settlement = another_try(claim, Duration::ZERO);
            settlement.attempt.as_mut().unwrap().error = Some("é".repeat(ERROR_CHARS_MAX));
            settlement
        };
        harness.turn(&claims.iter().map(again).collect::<Vec<_>>(), None).await;
        claims = harness.claim_all().await;
    }
    for door in ["front", "back"] {
        ids.push(harness.submit(awaiting(door, None)).await);
        harness.store.deliver(&saying(&"x".repeat(SIGNAL_BYTES_MAX - 2), to_key(door))).await.unwrap();
    }
    claims.extend(harness.claim_all().await);
    harness.turn(&claims.iter().map(success).collect::<Vec<_>>(), None).await;
    let signals = harness.store.signals(&ids).await.unwrap();
    let mut attempts = Vec::new();
    for id in &ids {
        attempts.push(harness.attempts(*id).await);
    }
    assert_eq!((attempts[0].len(), signals.len()), (41, 2));
    harness.advance(mins(11));
    assert_eq!(archive(&harness, Succeeded).await, 5);
    for (id, attempts) in ids.iter().zip(attempts) {
        assert!(is_archived(&harness, *id).await);
        assert_eq!(harness.attempts(*id).await, attempts);
    }
    assert_eq!(harness.store.signals(&ids).await.unwrap(), signals);
}

pub(crate) async fn live_jobs_are_not_archived(harness: Harness) {
    let running = harness.running(work()).await.job.id;
    let retried = harness.failed(work(), "boom").await;
    let paused = harness.failed(work(), "boom").await;
    harness.store.pause(paused).await.unwrap();
    harness.advance(mins(11));
    harness.store.retry(retried).await.unwrap();
    let pending = harness.submit(work()).await;
    harness.advance(mins(11));
    for state in JobState::ALL {
        assert_eq!(archive(&harness, state).await, 0, "{state}");
    }
    for id in [running, retried, paused, pending] {
        assert!(!harness.job(id).await.state.is_terminal());
        assert!(!is_archived(&harness, id).await);
    }
}

pub(crate) async fn a_job_that_a_live_one_depends_on_is_not_archived(harness: Harness) {
    let steps = Plan::chain(3).submit(&harness).await;
    let first = harness.claim_one().await;
    harness.succeed(&first).await;
    harness.advance(mins(11));
    assert_eq!(archive(&harness, Succeeded).await, 0, "the second waits for a slot");
    let second = harness.claim_one().await;
    harness.succeed(&second).await;
    assert_eq!(archive(&harness, Succeeded).await, 1, "the third depends on the second");
    assert!(is_archived(&harness, steps[0]).await && !is_archived(&harness, steps[1]).await);
    let workflow = harness.store.workflow(steps[0]).await.unwrap().expect("it is still there");
    assert_eq!(workflow.steps.iter().map(|step| step.id).collect::<Vec<_>>(), steps, "with all its steps");
    let third = claims(&harness, &steps[2..]).await.remove(0);
    harness.succeed(&third).await;
    harness.advance(mins(11));
    assert_eq!(archive(&harness, Succeeded).await, 2);
    assert_eq!(harness.store.edges_from(&steps).await.unwrap(), []);
}

pub(crate) async fn a_retried_step_finds_its_input_in_the_archive(harness: Harness) {
    let steps = Plan::chain(2).submit(&harness).await;
    let first = harness.claim_one().await;
    let result = json(&value!([7]));
    assert_eq!(harness.settle(success_with(&first, Some(result.clone()))).await, Settled::Applied);
    let second = harness.claim_one().await;
    harness.fail(&second, "boom").await;
    harness.advance(mins(11));
    assert_eq!(archive(&harness, Succeeded).await, 1);
    harness.store.retry(steps[1]).await.unwrap().expect("it can be retried");
    let again = harness.claim_one().await;
    assert_eq!(again.inputs.len(), 1);
    assert_eq!((again.inputs[0].job_id, again.inputs[0].result.as_ref()), (steps[0], Some(&result)));
}

pub(crate) async fn what_a_retry_can_bring_back_is_not_archived(harness: Harness) {
    let steps = Plan::chain(3).submit(&harness).await;
    let first = harness.claim_one().await;
    harness.fail(&first, "boom").await;
    harness.advance(mins(11));
    assert_eq!(archive(&harness, Canceled).await, 0, "the first can be retried");
    harness.store.retry(steps[0]).await.unwrap().expect("it has failed");
    for step in &steps {
        let claimed = claims(&harness, &[*step]).await;
        harness.succeed(&claimed[0]).await;
    }
    let steps = Plan::chain(3).submit(&harness).await;
    let first = harness.claim_one().await;
    harness.fail(&first, "boom").await;
    harness.advance(mins(11));
    assert_eq!((archive(&harness, Failed).await, archive(&harness, Canceled).await), (1, 2), "then it cannot any more");
    assert!(is_archived(&harness, steps[2]).await);
}

pub(crate) async fn a_workflow_is_listed_while_one_of_its_steps_is_not_archived(harness: Harness) {
    let steps = Plan::chain(3).submit(&harness).await;
    let first = harness.claim_one().await;
    harness.succeed(&first).await;
    let second = harness.claim_one().await;
    harness.advance(mins(11));
    harness.succeed(&second).await;
    assert_eq!(archive(&harness, Succeeded).await, 1);
    assert!(is_archived(&harness, steps[0]).await);
    assert_eq!(harness.store.workflows(None, 10).await.unwrap().items, steps[..1]);
    let third = harness.claim_one().await;
    harness.succeed(&third).await;
    harness.advance(mins(11));
    assert_eq!(archive(&harness, Succeeded).await, 2);
    assert_eq!(harness.store.workflows(None, 10).await.unwrap().items, [], "all of it is in the archive");
}

pub(crate) async fn a_batch_is_archived_after_its_last_child(harness: Harness) {
    let (parent, children, _) = batches::Plan::of(works(3)).submit(&harness).await;
    for _ in 0..2 {
        let child = harness.claim_one().await;
        harness.succeed(&child).await;
    }
    harness.advance(mins(11));
    assert_eq!(archive(&harness, Succeeded).await, 0, "the batch is live");
    harness.store.cancel(parent).await.unwrap().unwrap();
    harness.advance(mins(11));
    assert_eq!(archive(&harness, Canceled).await, 0, "its last child is not canceled yet");
    while harness.store.cancel_children(parent, None, 10).await.unwrap().next.is_some() {}
    harness.advance(mins(11));
    assert_eq!((archive(&harness, Succeeded).await, archive(&harness, Canceled).await), (2, 2));
    for id in children.iter().chain([&parent]) {
        assert!(is_archived(&harness, *id).await);
    }
    let of_batch = JobFilter { parent: Some(parent), archive: ArchiveScope::Archived, ..JobFilter::default() };
    assert_eq!(listed(&harness, &of_batch).await.len(), 3);
    assert_eq!(harness.store.find_batches(&[parent]).await.unwrap(), []);
}

pub(crate) async fn archiving_goes_on_where_it_was(harness: Harness) {
    let steps = Plan::chain(2).submit(&harness).await;
    let first = harness.claim_one().await;
    harness.succeed(&first).await;
    let running = claims(&harness, &steps[1..]).await;
    let mut ids = Vec::new();
    for _ in 0..4 {
        ids.push(succeeded(&harness, work()).await);
    }
    harness.advance(mins(11));
    let (mut after, mut moved) = (None, Vec::new());
    for _ in 0..10 {
        let done = harness.store.archive(&ArchiveRequest { after, limit: 2, ..request(Succeeded) }).await.unwrap();
        moved.push(done.moved);
        after = done.last;
        if !done.more {
            break;
        }
    }
    assert_eq!(moved, [1, 2, 1], "the step that is needed is looked at and stays");
    assert_eq!(after, ids.last().copied());
    harness.succeed(&running[0]).await;
    let done = harness.store.archive(&ArchiveRequest { after, ..request(Succeeded) }).await.unwrap();
    assert_eq!(done, Archived { last: after, ..Archived::default() }, "what stayed is behind");
    assert_eq!(archive(&harness, Succeeded).await, 1, "and is found from the start");
}

pub(crate) async fn of_jobs_that_are_named_no_others_are_archived(harness: Harness) {
    let steps = Plan::chain(2).submit(&harness).await;
    let first = harness.claim_one().await;
    harness.succeed(&first).await;
    let running = claims(&harness, &steps[1..]).await;
    let mut ids = Vec::new();
    for _ in 0..3 {
        ids.push(succeeded(&harness, work()).await);
    }
    let failed = harness.failed(work(), "boom").await;
    harness.advance(mins(3));
    let recent = succeeded(&harness, work()).await;
    harness.advance(mins(8));
    // In any order, more than the limit, and some that may not go.
    let only = Some(vec![ids[2], running[0].job.id, recent, failed, steps[0], ids[0], new_id()]);
    let named = ArchiveRequest { limit: 1, after: Some(ids[2]), only, ..request(Succeeded) };
    let done = harness.store.archive(&named).await.unwrap();
    assert_eq!(done, Archived { moved: 2, last: Some(ids[2]), ..Archived::default() });
    for (id, archived) in [(ids[0], true), (ids[1], false), (ids[2], true), (recent, false), (failed, false)] {
        assert_eq!(is_archived(&harness, id).await, archived);
    }
    assert_eq!(harness.store.archive(&ArchiveRequest { only: Some(Vec::new()), ..named }).await.unwrap().moved, 0);
}

pub(crate) async fn hundreds_of_jobs_are_archived_at_once(harness: Harness) {
    let jobs = works(600).into_iter().map(|mut job| {
        job.spec.tags = vec![Tag::new("bulk").unwrap()];
        job
    });
    let ids = harness.submit_each(jobs.collect()).await;
    loop {
        let claims = harness.claim_all().await;
        if claims.is_empty() {
            break;
        }
        harness.turn(&claims.iter().map(success).collect::<Vec<_>>(), None).await;
    }
    harness.advance(mins(11));
    assert_eq!(archive(&harness, Succeeded).await, 600);
    let found = harness.store.find(&ids).await.unwrap();
    assert!(found.len() == 600 && found.iter().all(|job| job.archived_at.is_some()));
    let bulk = Some(Tag::new("bulk").unwrap());
    for (archive, count) in [(ArchiveScope::Live, 0), (ArchiveScope::Archived, 600), (ArchiveScope::Both, 600)] {
        assert_eq!(
            listed(&harness, &JobFilter { tag: bulk.clone(), archive, ..JobFilter::default() }).await.len(),
            count
        );
    }
}

pub(crate) async fn lists_look_into_the_archive_if_asked(harness: Harness) {
    let mut tagged = NewJob { business_key: Some(crate::harness::business_key("key")), ..new_job(KIND) };
    tagged.spec.tags = vec![Tag::new("red").unwrap()];
    tagged.spec.principal = Some(Principal::new("ann").unwrap());
    let old = [succeeded(&harness, tagged.clone()).await, harness.failed(work(), "boom").await];
    harness.advance(mins(11));
    assert_eq!((archive(&harness, Succeeded).await, archive(&harness, Failed).await), (1, 1));
    tagged.id = crate::harness::new_id();
    let new = harness.submit(tagged).await;
    let check = async |filter: JobFilter, live: &[JobId], archived: &[JobId]| {
        let both: Vec<JobId> = live.iter().chain(archived).copied().collect();
        for (archive, expected) in
            [(ArchiveScope::Live, live), (ArchiveScope::Archived, archived), (ArchiveScope::Both, &both)]
        {
            let filter = JobFilter { archive, ..filter.clone() };
            assert_eq!(listed(&harness, &filter).await, expected, "{filter:?}");
        }
    };
    let all = JobFilter::default();
    check(all.clone(), &[new], &[old[1], old[0]]).await;
    check(JobFilter { states: vec![Failed, Pending], ..all.clone() }, &[new], &[old[1]]).await;
    check(JobFilter { states: vec![Canceled], ..all.clone() }, &[], &[]).await;
    check(JobFilter { kind: Some(Kind::new("other").unwrap()), ..all.clone() }, &[], &[]).await;
    check(JobFilter { queue: Some(crate::harness::queue("other")), ..all.clone() }, &[], &[]).await;
    let red = JobFilter { tag: Some(Tag::new("red").unwrap()), ..all.clone() };
    check(red.clone(), &[new], &[old[0]]).await;
    check(JobFilter { states: vec![Pending], ..red }, &[new], &[]).await;
    check(JobFilter { business_key: Some(crate::harness::business_key("key")), ..all.clone() }, &[new], &[old[0]])
        .await;
    let ann = JobFilter { principal: Some(Principal::new("ann").unwrap()), ..all.clone() };
    check(ann.clone(), &[new], &[old[0]]).await;
    check(JobFilter { states: vec![Succeeded], ..ann }, &[], &[old[0]]).await;
    check(JobFilter { principal: Some(Principal::new("bob").unwrap()), ..all }, &[], &[]).await;
}

pub(crate) async fn pages_over_both_show_every_job_once_while_jobs_are_archived(harness: Harness) {
    let mut all = Vec::new();
    for _ in 0..12 {
        all.push(succeeded(&harness, work()).await);
    }
    harness.advance(mins(11));
    all.reverse();
    let filter = JobFilter { archive: ArchiveScope::Both, ..JobFilter::default() };
    let (mut seen, mut after) = (Vec::new(), None);
    for _ in 0..12 {
        let page = harness.store.list(&filter, after, 2).await.unwrap();
        seen.extend(page.items.iter().map(|job| job.id));
        after = page.next;
        if after.is_none() {
            break;
        }
        // The oldest go, and then those of the pages before and to come.
        harness.store.archive(&ArchiveRequest { limit: 3, ..request(Succeeded) }).await.unwrap();
    }
    assert_eq!(seen, all);
}

pub(crate) async fn nothing_can_be_asked_of_an_archived_job(harness: Harness) {
    let id = harness.failed(work_with_key("key"), "boom").await;
    harness.advance(mins(11));
    assert_eq!(archive(&harness, Failed).await, 1);
    let before = harness.job(id).await;
    assert_eq!(harness.store.retry(id).await.unwrap(), None);
    assert_eq!(harness.store.pause(id).await.unwrap(), None);
    assert_eq!(harness.store.resume(id).await.unwrap(), None);
    assert_eq!(harness.store.cancel(id).await.unwrap(), None);
    assert_eq!(harness.count(&to_job(id)).await, 0);
    assert_eq!(harness.job(id).await, before);
    assert!(harness.store.delete(id).await.unwrap(), "but it can be deleted");
    assert!(!harness.exists(id).await && !harness.store.delete(id).await.unwrap());
}

pub(crate) async fn the_keys_of_an_archived_job_are_what_they_were(harness: Harness) {
    let once = NewJob { business_key: Some(crate::harness::business_key("key")), ..work_once("once") };
    let id = succeeded(&harness, once).await;
    harness.advance(mins(11));
    assert_eq!(archive(&harness, Succeeded).await, 1);
    assert_eq!(harness.first_with("once").await, Some(id));
    assert_eq!(harness.try_submit(work_once("once")).await.unwrap(), [Submitted::Existing(id)]);
    let next = harness.submit(work_with_key("key")).await;
    assert_eq!(harness.holder("key").await, Some(next));
    harness.advance(mins(11));
    assert_eq!(harness.store.purge_archive(AGE, 10).await.unwrap(), 1);
    assert_eq!(harness.first_with("once").await, Some(id), "it outlives the archive too");
    assert_eq!(harness.holder("key").await, Some(next));
}

pub(crate) async fn the_archive_is_purged_by_age_and_in_portions(harness: Harness) {
    let mut ids = Vec::new();
    for _ in 0..3 {
        let mut job = work();
        job.spec.tags = vec![Tag::new("old").unwrap()];
        ids.push(succeeded(&harness, job).await);
    }
    harness.advance(mins(11));
    assert_eq!(archive(&harness, Succeeded).await, 3);
    harness.advance(mins(9));
    assert_eq!(harness.store.purge_archive(AGE, 10).await.unwrap(), 0, "not long enough in the archive");
    harness.advance(mins(2));
    let live = succeeded(&harness, work()).await;
    assert_eq!(harness.store.purge_archive(AGE, 2).await.unwrap(), 2);
    assert_eq!(harness.store.purge_archive(AGE, 2).await.unwrap(), 1);
    assert_eq!(harness.store.purge_archive(AGE, 2).await.unwrap(), 0);
    assert!(harness.store.find(&ids).await.unwrap().is_empty());
    assert!(harness.exists(live).await);
    let tag = JobFilter { tag: Some(Tag::new("old").unwrap()), archive: ArchiveScope::Both, ..JobFilter::default() };
    assert!(listed(&harness, &tag).await.is_empty());
}

pub(crate) async fn ended_schedules_are_purged_by_age_and_in_portions(harness: Harness) {
    for _ in 0..2 {
        let new = every_ten(&harness).await;
        harness.store.create_schedule(&new).await.unwrap();
        assert!(harness.store.cancel_schedule(new.id, ArchiveReason::Canceled, None).await.unwrap());
    }
    let live = every_ten(&harness).await;
    harness.store.create_schedule(&live).await.unwrap();
    harness.advance(mins(9));
    assert_eq!(harness.store.purge_schedules(AGE, 10).await.unwrap(), 0);
    harness.advance(mins(2));
    assert_eq!(harness.store.purge_schedules(AGE, 1).await.unwrap(), 1);
    assert_eq!(harness.store.purge_schedules(AGE, 10).await.unwrap(), 1);
    assert_eq!(harness.store.purge_schedules(AGE, 10).await.unwrap(), 0);
    assert_eq!(harness.store.find_schedules(&[live.id]).await.unwrap().len(), 1);
}

pub(crate) async fn an_archiving_and_a_retry_have_one_winner(harness: Harness) {
    for round in 0..6 {
        let mut ids = Vec::new();
        for _ in 0..10 {
            ids.push(harness.failed(work(), "boom").await);
        }
        harness.advance(mins(11));
        let store: Arc<dyn Store> = harness.store.clone();
        let retried = ids.clone();
        let retrying = async move {
            let mut count = 0;
            for id in retried.iter().rev() {
                count += u64::from(store.retry(*id).await.unwrap().is_some());
            }
            count
        };
        let store: Arc<dyn Store> = harness.store.clone();
        let archiving = async move {
            let (mut count, mut after) = (0, None);
            loop {
                let done = store.archive(&ArchiveRequest { after, limit: 3, ..request(Failed) }).await.unwrap();
                count += done.moved;
                after = done.last;
                if !done.more {
                    return count;
                }
            }
        };
        let done = races::duel(round, retrying, archiving).await;
        let [retried, archived] = done[..] else { panic!("both have an answer") };
        let jobs = harness.store.find(&ids).await.unwrap();
        let count = |state| jobs.iter().filter(|job| job.state == state).map(|_| 1).sum::<u64>();
        assert_eq!(jobs.len(), ids.len(), "no job is lost");
        assert_eq!((count(Pending), count(Failed)), (retried, ids.len() as u64 - retried));
        assert_eq!(jobs.iter().filter(|job| job.archived_at.is_some()).map(|_| 1).sum::<u64>(), archived);
        assert!(jobs.iter().all(|job| job.archived_at.is_none() || job.state == Failed), "one winner for each");
        for job in jobs.iter().filter(|job| job.state == Pending) {
            harness.store.cancel(job.id).await.unwrap();
        }
    }
}
