//! The dead letter queue: listing it, and retrying many jobs at once.

use std::time::Duration;

use ratchet_core::error::ErrorKind;
use ratchet_core::flow::{Condition, Operator};
use ratchet_core::limits::RETRY_ALL_MAX;
use ratchet_core::page::{ArchiveScope, JobFilter};
use ratchet_core::store::RetriedAll;
use ratchet_core::{DeadLetter, DeadLetterFilter, HeldKey, JobId, JobState, Kind, Priority, Tag};

use crate::batches;
use crate::harness::{
    Harness, KIND, assert_about, assert_refused, business_key, failure, mins, new_job, pool, request, work,
    work_with_key, works,
};
use crate::workflows::{Plan, test};

use JobState::{Canceled, Failed, Pending, Waiting};

async fn letters(harness: &Harness, filter: &JobFilter) -> Vec<DeadLetter> {
    harness.store.dead_letters(filter, None, 1_000).await.unwrap().items
}

async fn retry_all(harness: &Harness, filter: &DeadLetterFilter) -> RetriedAll {
    harness.store.retry_all(filter, RETRY_ALL_MAX).await.unwrap()
}

fn of_jobs(jobs: JobFilter) -> DeadLetterFilter {
    DeadLetterFilter { jobs, ..DeadLetterFilter::default() }
}

/// A failed job of a kind with tags.
async fn failed(harness: &Harness, kind: &str, tags: &[&str], error: &str) -> JobId {
    let mut job = new_job(kind);
    job.spec.tags = tags.iter().map(|tag| Tag::new(tag).unwrap()).collect();
    let id = harness.submit(job).await;
    let claim = harness.claim(&request(harness.node, vec![pool("default", &[kind])])).await.remove(0);
    harness.fail(&claim, error).await;
    id
}

pub(crate) async fn dead_letters_say_why_they_failed(harness: Harness) {
    let first = harness.failed(work(), "card 17 declined").await;
    let never_ran = harness.submit(crate::signals::awaiting("door", Some(mins(1)))).await;
    harness.submit(work()).await;
    harness.advance(mins(2));
    harness.store.expire(10).await.unwrap();
    let second = harness.store.dead_letters(&JobFilter::default(), None, 1_000).await.unwrap();
    assert_eq!(second.next, None);
    let [late, letter] = &second.items[..] else { panic!("{second:?}") };
    assert_eq!((late.id, late.error_class.as_deref()), (never_ran, None));
    let job = harness.job(first).await;
    let expected = DeadLetter {
        id: first,
        kind: job.spec.kind,
        queue: job.spec.queue,
        error_class: Some("Broken".to_owned()),
        error: "card 17 declined".to_owned(),
        failed_at: job.terminated_at.unwrap(),
    };
    assert_eq!(*letter, expected);
    let page = harness.store.dead_letters(&JobFilter::default(), None, 1).await.unwrap();
    assert_eq!(page.items.iter().collect::<Vec<_>>(), [late]);
    let rest = harness.store.dead_letters(&JobFilter::default(), page.next, 1).await.unwrap();
    assert_eq!((rest.items, rest.next), (vec![expected], None));
    for limit in [0, 1_001] {
        assert_refused(harness.store.dead_letters(&JobFilter::default(), None, limit).await, &ErrorKind::Invalid);
    }
}

pub(crate) async fn dead_letters_are_filtered(harness: Harness) {
    let one = failed(&harness, "one", &["red"], "boom").await;
    let two = failed(&harness, "two", &["red", "blue"], "boom").await;
    let all = JobFilter::default();
    let check = async |filter: JobFilter, expected: &[JobId]| {
        let found: Vec<JobId> = letters(&harness, &filter).await.iter().map(|letter| letter.id).collect();
        assert_eq!(found, expected, "{filter:?}");
    };
    check(all.clone(), &[two, one]).await;
    check(JobFilter { kind: Some(Kind::new("one").unwrap()), ..all.clone() }, &[one]).await;
    check(JobFilter { tag: Some(Tag::new("blue").unwrap()), ..all.clone() }, &[two]).await;
    check(JobFilter { tag: Some(Tag::new("red").unwrap()), ..all.clone() }, &[two, one]).await;
    check(JobFilter { queue: Some(crate::harness::queue("other")), ..all.clone() }, &[]).await;
    check(JobFilter { states: vec![Canceled], ..all.clone() }, &[]).await;
    check(JobFilter { states: vec![Canceled, Failed], ..all.clone() }, &[two, one]).await;
    check(JobFilter { archive: ArchiveScope::Archived, ..all }, &[]).await;
}

pub(crate) async fn retrying_all_gives_each_a_new_life(harness: Harness) {
    let alone = harness.failed(work(), "boom").await;
    let urgent = NewPriority(Priority::High).of(work_with_key("key"));
    let mut ids = vec![harness.failed(urgent, "boom").await];
    ids.push(harness.failed(work(), "other").await);
    harness.advance(mins(1));
    harness.store.retry(alone).await.unwrap().unwrap();
    let retried = retry_all(&harness, &DeadLetterFilter::default()).await;
    assert_eq!(retried, RetriedAll { count: 2, revived: 0, passed_over: 0, priority: Some(Priority::High) });
    let now = harness.now().await;
    let lone = harness.job(alone).await;
    for id in &ids {
        let job = harness.job(*id).await;
        assert_eq!((job.state, job.attempts, job.crash_count, &job.last_error), (Pending, 0, 0, &None));
        assert_eq!((job.version, job.terminated_at, &job.timing, &job.result), (lone.version, None, &None, &None));
        assert_about(job.scheduled_time, now);
        assert_eq!(harness.attempts(*id).await.len(), 1, "its history stays");
    }
    assert_eq!(harness.holder("key").await, Some(ids[0]));
    assert_eq!(retry_all(&harness, &DeadLetterFilter::default()).await, RetriedAll::default());
    assert_eq!(harness.claim_all().await.len(), 3);
}

struct NewPriority(Priority);

impl NewPriority {
    fn of(self, mut job: ratchet_core::NewJob) -> ratchet_core::NewJob {
        job.spec.priority = self.0;
        job
    }
}

pub(crate) async fn retrying_all_keeps_to_its_filter_and_its_limit(harness: Harness) {
    let one = failed(&harness, "one", &[], "boom").await;
    let two = failed(&harness, "two", &["blue"], "boom").await;
    let three = failed(&harness, "two", &["blue"], "boom").await;
    let canceled = JobFilter { states: vec![Canceled], ..JobFilter::default() };
    assert_eq!(retry_all(&harness, &of_jobs(canceled)).await.count, 0, "it lets no dead letter through");
    let blue = of_jobs(JobFilter { tag: Some(Tag::new("blue").unwrap()), ..JobFilter::default() });
    assert_eq!(harness.store.retry_all(&blue, 1).await.unwrap().count, 1);
    let states = async |ids: [JobId; 3]| harness.store.find(&ids).await.unwrap().iter().map(|job| job.state).collect();
    let found: Vec<JobState> = states([one, two, three]).await;
    assert_eq!(found, [Failed, Failed, Pending], "the newest first");
    assert_eq!(retry_all(&harness, &blue).await.count, 1);
    let found: Vec<JobState> = states([one, two, three]).await;
    assert_eq!(found, [Failed, Pending, Pending]);
}

pub(crate) async fn dead_letters_of_one_fingerprint_are_retried(harness: Harness) {
    let first = harness.failed(work(), "order 1 is gone").await;
    let other = harness.failed(work(), "order 2 is late").await;
    let second = harness.failed(work(), "order 3 is gone").await;
    let letter = letters(&harness, &JobFilter::default()).await.remove(0);
    let filter = DeadLetterFilter { fingerprint: Some(letter.fingerprint()), ..DeadLetterFilter::default() };
    assert_eq!(retry_all(&harness, &filter).await.count, 2);
    assert_eq!(harness.state(other).await, Failed);
    assert_eq!((harness.state(first).await, harness.state(second).await), (Pending, Pending));
}

pub(crate) async fn one_taken_key_refuses_all(harness: Harness) {
    let mut ids = vec![harness.failed(work_with_key("free"), "boom").await];
    ids.push(harness.failed(work_with_key("taken"), "boom").await);
    ids.push(harness.failed(work(), "boom").await);
    let holder = harness.submit(work_with_key("taken")).await;
    let before = harness.store.find(&ids).await.unwrap();
    let refused = harness.store.retry_all(&DeadLetterFilter::default(), 10).await;
    assert_refused(refused, &ErrorKind::Duplicate { business_key: business_key("taken"), holder });
    assert_eq!(harness.store.find(&ids).await.unwrap(), before, "nothing has changed");
    assert_eq!(harness.holder("free").await, None);
    harness.store.cancel(holder).await.unwrap();
    assert_eq!(retry_all(&harness, &DeadLetterFilter::default()).await.count, 3);
}

pub(crate) async fn all_letters_whose_keys_are_held_are_named(harness: Harness) {
    let plain = harness.failed(work(), "boom").await;
    let one = harness.failed(work_with_key("one"), "boom").await;
    let two = harness.failed(work_with_key("two"), "boom").await;
    let older = harness.failed(work_with_key("twice"), "boom").await;
    let newer = harness.failed(work_with_key("twice"), "boom").await;
    let held = |job, key: &str, holder, same_call| HeldKey { job, business_key: business_key(key), holder, same_call };
    let mut expected = vec![held(older, "twice", newer, true)];
    for (job, key) in [(two, "two"), (one, "one")] {
        expected.push(held(job, key, harness.submit(work_with_key(key)).await, false));
    }
    let mut filter = DeadLetterFilter::default();
    let refused = harness.store.retry_all(&filter, 10).await.unwrap_err();
    assert_eq!(refused.held(), expected, "the newest first");
    assert!(expected.iter().all(|held| refused.to_string().contains(&held.to_string())), "{refused}");
    filter.except.extend(refused.held().iter().map(|held| held.job));
    assert_eq!(retry_all(&harness, &filter).await.count, 2);
    assert_eq!((harness.state(plain).await, harness.state(newer).await), (Pending, Pending));
    for held in expected {
        assert_eq!(harness.state(held.job).await, Failed);
    }
}

pub(crate) async fn a_letter_that_would_revive_what_cannot_be_is_named(harness: Harness) {
    let plan = Plan::from(vec![work(), work_with_key("taken")]);
    let steps = plan.edge(0, 1, Condition::Success).submit(&harness).await;
    let first = harness.claim_one().await;
    harness.fail(&first, "boom").await;
    let holder = harness.submit(work_with_key("taken")).await;
    let refused = harness.store.retry_all(&DeadLetterFilter::default(), 10).await.unwrap_err();
    let held = |holder, same_call| HeldKey { job: steps[0], business_key: business_key("taken"), holder, same_call };
    assert_eq!(refused.held(), [held(holder, false)]);
    // The holder dies too: now both letters need the key, and only one can have it.
    let newer = harness.claim_one().await;
    harness.fail(&newer, "boom").await;
    let refused = harness.store.retry_all(&DeadLetterFilter::default(), 10).await.unwrap_err();
    assert_eq!(refused.held(), [held(holder, true)]);
}

pub(crate) async fn dead_letters_that_are_left_out_stay(harness: Harness) {
    let mut ids = Vec::new();
    for _ in 0..4 {
        ids.push(harness.failed(work(), "boom").await);
    }
    let except = [ids[3], ids[1]].into();
    let filter = DeadLetterFilter { except, ..DeadLetterFilter::default() };
    assert_eq!(harness.store.retry_all(&filter, 1).await.unwrap().count, 1, "the limit is of those that are meant");
    let states = async || harness.store.find(&ids).await.unwrap().iter().map(|job| job.state).collect::<Vec<_>>();
    assert_eq!(states().await, [Failed, Failed, Pending, Failed]);
    assert_eq!(retry_all(&harness, &filter).await.count, 1);
    assert_eq!(states().await, [Pending, Failed, Pending, Failed]);
}

pub(crate) async fn two_dead_letters_with_one_key_refuse_all(harness: Harness) {
    let mut ids = vec![harness.failed(work_with_key("key"), "boom").await];
    ids.push(harness.failed(work_with_key("key"), "boom").await);
    ids.push(harness.failed(work(), "boom").await);
    let before = harness.store.find(&ids).await.unwrap();
    let refused = harness.store.retry_all(&DeadLetterFilter::default(), 10).await.unwrap_err();
    let ErrorKind::Duplicate { business_key: named, .. } = refused.kind() else { panic!("{refused}") };
    assert_eq!(*named, business_key("key"));
    assert_eq!(harness.store.find(&ids).await.unwrap(), before);
    assert_eq!(harness.holder("key").await, None);
}

pub(crate) async fn one_to_a_thousand_are_retried_at_once(harness: Harness) {
    harness.failed(work(), "boom").await;
    for limit in [0, RETRY_ALL_MAX + 1] {
        assert_refused(harness.store.retry_all(&DeadLetterFilter::default(), limit).await, &ErrorKind::Invalid);
    }
    assert_eq!(harness.store.retry_all(&DeadLetterFilter::default(), 1).await.unwrap().count, 1);
}

pub(crate) async fn retrying_all_revives_what_was_canceled(harness: Harness) {
    let steps = Plan::chain(3).submit(&harness).await;
    let first = harness.claim_one().await;
    harness.fail(&first, "boom").await;
    let plain = harness.failed(work(), "boom").await;
    let retried = retry_all(&harness, &DeadLetterFilter::default()).await;
    assert_eq!((retried.count, retried.revived), (2, 2));
    let found: Vec<_> = harness.store.find(&steps).await.unwrap().iter().map(|job| job.state).collect();
    assert_eq!(found, [Pending, Waiting, Waiting]);
    assert_eq!(harness.state(plain).await, Pending);
}

pub(crate) async fn children_of_a_batch_are_retried_while_it_is_open(harness: Harness) {
    let (open, children, _) = batches::Plan::of(works(2)).submit(&harness).await;
    let child = harness.claim_one().await;
    harness.fail(&child, "boom").await;
    let retried = retry_all(&harness, &DeadLetterFilter::default()).await;
    assert_eq!((retried.count, retried.passed_over), (1, 0));
    assert_eq!(batches::batch(&harness, open).await.counts.failed, 0);
    for _ in 0..2 {
        let child = harness.claim_one().await;
        harness.fail(&child, "boom").await;
    }
    let retried = retry_all(&harness, &DeadLetterFilter::default()).await;
    assert_eq!((retried.count, retried.passed_over), (0, 2), "the batch is over");
    for child in children {
        assert_eq!(harness.state(child).await, Failed);
    }
}

pub(crate) async fn letters_that_cannot_be_retried_do_not_count(harness: Harness) {
    let oldest = harness.failed(work(), "boom").await;
    let older = harness.failed(work(), "boom").await;
    batches::Plan::of(works(3)).submit(&harness).await;
    for _ in 0..3 {
        let child = harness.claim_one().await;
        harness.fail(&child, "boom").await;
    }
    let retried = harness.store.retry_all(&DeadLetterFilter::default(), 1).await.unwrap();
    assert_eq!((retried.count, retried.passed_over), (1, 3));
    assert_eq!((harness.state(older).await, harness.state(oldest).await), (Pending, Failed));
    let retried = harness.store.retry_all(&DeadLetterFilter::default(), 1).await.unwrap();
    assert_eq!((retried.count, retried.passed_over), (1, 3));
    assert_eq!(harness.state(oldest).await, Pending);
}

pub(crate) async fn hundreds_of_dead_letters_are_retried_at_once(harness: Harness) {
    let jobs = (0..600).map(|n| work_with_key(&format!("key {n}"))).collect();
    harness.submit_each(jobs).await;
    loop {
        let claims = harness.claim_all().await;
        if claims.is_empty() {
            break;
        }
        harness.turn(&claims.iter().map(|claim| failure(claim, "boom")).collect::<Vec<_>>(), None).await;
    }
    harness.advance(Duration::from_secs(1));
    let of_kind = of_jobs(JobFilter { kind: Some(Kind::new(KIND).unwrap()), ..JobFilter::default() });
    assert_eq!(retry_all(&harness, &of_kind).await.count, 600);
    let counts = harness.store.count_by_state().await.unwrap();
    assert_eq!((counts.get(&Pending), counts.get(&Failed)), (Some(&600), None));
    assert!(harness.holder("key 599").await.is_some());
}

pub(crate) async fn a_dead_letter_that_nobody_can_judge_is_passed_over(harness: Harness) {
    let steps = Plan::of(2).edge(0, 1, test("/nothing", Operator::Is, 1)).submit(&harness).await;
    let first = harness.claim_one().await;
    harness.succeed(&first).await;
    let other = harness.failed(work(), "boom").await;
    let retried = retry_all(&harness, &DeadLetterFilter::default()).await;
    assert_eq!((retried.count, retried.passed_over), (1, 1));
    assert_eq!((harness.state(steps[1]).await, harness.state(other).await), (Failed, Pending));
}
