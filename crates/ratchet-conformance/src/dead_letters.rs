//! The dead letter queue: looking through it, and giving much of it a new life at once.

use std::time::Duration;

use ratchet_core::error::ErrorKind;
use ratchet_core::flow::{Condition, Operator};
use ratchet_core::limits::RETRY_ALL_MAX;
use ratchet_core::page::{ArchiveScope, JobFilter};
use ratchet_core::store::RetriedAll;
use ratchet_core::{DeadLetter, DeadLetterFilter, HeldKey, JobId, JobState, Kind, Priority, Tag};

use crate::batches;
use crate::bench::{
    Bench, KIND, assert_about, assert_refused, business_key, failure, mins, new_job, pool, request, work,
    work_with_key, works,
};
use crate::workflows::{Plan, test};

use JobState::{Canceled, Failed, Pending, Waiting};

async fn letters(bench: &Bench, filter: &JobFilter) -> Vec<DeadLetter> {
    bench.store.dead_letters(filter, None, 1_000).await.unwrap().items
}

async fn retry_all(bench: &Bench, filter: &DeadLetterFilter) -> RetriedAll {
    bench.store.retry_all(filter, RETRY_ALL_MAX).await.unwrap()
}

fn of_jobs(jobs: JobFilter) -> DeadLetterFilter {
    DeadLetterFilter { jobs, ..DeadLetterFilter::default() }
}

/// A failed job of a kind with tags.
async fn failed(bench: &Bench, kind: &str, tags: &[&str], error: &str) -> JobId {
    let mut job = new_job(kind);
    job.spec.tags = tags.iter().map(|tag| Tag::new(tag).unwrap()).collect();
    let id = bench.submit(job).await;
    let claim = bench.claim(&request(bench.node, vec![pool("default", &[kind])])).await.remove(0);
    bench.fail(&claim, error).await;
    id
}

pub(crate) async fn dead_letters_say_why_they_failed(bench: Bench) {
    let first = bench.failed(work(), "card 17 declined").await;
    let never_ran = bench.submit(crate::signals::awaiting("door", Some(mins(1)))).await;
    bench.submit(work()).await;
    bench.advance(mins(2));
    bench.store.expire(10).await.unwrap();
    let second = bench.store.dead_letters(&JobFilter::default(), None, 1_000).await.unwrap();
    assert_eq!(second.next, None);
    let [late, letter] = &second.items[..] else { panic!("{second:?}") };
    assert_eq!((late.id, late.error_class.as_deref()), (never_ran, None));
    let job = bench.job(first).await;
    let expected = DeadLetter {
        id: first,
        kind: job.spec.kind,
        queue: job.spec.queue,
        error_class: Some("Broken".to_owned()),
        error: "card 17 declined".to_owned(),
        failed_at: job.terminated_at.unwrap(),
    };
    assert_eq!(*letter, expected);
    let page = bench.store.dead_letters(&JobFilter::default(), None, 1).await.unwrap();
    assert_eq!(page.items.iter().collect::<Vec<_>>(), [late]);
    let rest = bench.store.dead_letters(&JobFilter::default(), page.next, 1).await.unwrap();
    assert_eq!((rest.items, rest.next), (vec![expected], None));
    for limit in [0, 1_001] {
        assert_refused(bench.store.dead_letters(&JobFilter::default(), None, limit).await, &ErrorKind::Invalid);
    }
}

pub(crate) async fn dead_letters_are_filtered(bench: Bench) {
    let one = failed(&bench, "one", &["red"], "boom").await;
    let two = failed(&bench, "two", &["red", "blue"], "boom").await;
    let all = JobFilter::default();
    let check = async |filter: JobFilter, expected: &[JobId]| {
        let found: Vec<JobId> = letters(&bench, &filter).await.iter().map(|letter| letter.id).collect();
        assert_eq!(found, expected, "{filter:?}");
    };
    check(all.clone(), &[two, one]).await;
    check(JobFilter { kind: Some(Kind::new("one").unwrap()), ..all.clone() }, &[one]).await;
    check(JobFilter { tag: Some(Tag::new("blue").unwrap()), ..all.clone() }, &[two]).await;
    check(JobFilter { tag: Some(Tag::new("red").unwrap()), ..all.clone() }, &[two, one]).await;
    check(JobFilter { queue: Some(crate::bench::queue("other")), ..all.clone() }, &[]).await;
    check(JobFilter { states: vec![Canceled], ..all.clone() }, &[]).await;
    check(JobFilter { states: vec![Canceled, Failed], ..all.clone() }, &[two, one]).await;
    check(JobFilter { archive: ArchiveScope::Archived, ..all }, &[]).await;
}

pub(crate) async fn retrying_all_gives_each_a_new_life(bench: Bench) {
    let alone = bench.failed(work(), "boom").await;
    let urgent = NewPriority(Priority::High).of(work_with_key("key"));
    let mut ids = vec![bench.failed(urgent, "boom").await];
    ids.push(bench.failed(work(), "other").await);
    bench.advance(mins(1));
    bench.store.retry(alone).await.unwrap().unwrap();
    let retried = retry_all(&bench, &DeadLetterFilter::default()).await;
    assert_eq!(retried, RetriedAll { count: 2, revived: 0, passed_over: 0, priority: Some(Priority::High) });
    let now = bench.now().await;
    let lone = bench.job(alone).await;
    for id in &ids {
        let job = bench.job(*id).await;
        assert_eq!((job.state, job.attempts, job.crash_count, &job.last_error), (Pending, 0, 0, &None));
        assert_eq!((job.version, job.terminated_at, &job.timing, &job.result), (lone.version, None, &None, &None));
        assert_about(job.scheduled_time, now);
        assert_eq!(bench.attempts(*id).await.len(), 1, "its history stays");
    }
    assert_eq!(bench.holder("key").await, Some(ids[0]));
    assert_eq!(retry_all(&bench, &DeadLetterFilter::default()).await, RetriedAll::default());
    assert_eq!(bench.claim_all().await.len(), 3);
}

struct NewPriority(Priority);

impl NewPriority {
    fn of(self, mut job: ratchet_core::NewJob) -> ratchet_core::NewJob {
        job.spec.priority = self.0;
        job
    }
}

pub(crate) async fn retrying_all_keeps_to_its_filter_and_its_limit(bench: Bench) {
    let one = failed(&bench, "one", &[], "boom").await;
    let two = failed(&bench, "two", &["blue"], "boom").await;
    let three = failed(&bench, "two", &["blue"], "boom").await;
    let canceled = JobFilter { states: vec![Canceled], ..JobFilter::default() };
    assert_eq!(retry_all(&bench, &of_jobs(canceled)).await.count, 0, "it lets no dead letter through");
    let blue = of_jobs(JobFilter { tag: Some(Tag::new("blue").unwrap()), ..JobFilter::default() });
    assert_eq!(bench.store.retry_all(&blue, 1).await.unwrap().count, 1);
    let states = async |ids: [JobId; 3]| bench.store.find(&ids).await.unwrap().iter().map(|job| job.state).collect();
    let found: Vec<JobState> = states([one, two, three]).await;
    assert_eq!(found, [Failed, Failed, Pending], "the newest first");
    assert_eq!(retry_all(&bench, &blue).await.count, 1);
    let found: Vec<JobState> = states([one, two, three]).await;
    assert_eq!(found, [Failed, Pending, Pending]);
}

pub(crate) async fn dead_letters_of_one_fingerprint_are_retried(bench: Bench) {
    let first = bench.failed(work(), "order 1 is gone").await;
    let other = bench.failed(work(), "order 2 is late").await;
    let second = bench.failed(work(), "order 3 is gone").await;
    let letter = letters(&bench, &JobFilter::default()).await.remove(0);
    let filter = DeadLetterFilter { fingerprint: Some(letter.fingerprint()), ..DeadLetterFilter::default() };
    assert_eq!(retry_all(&bench, &filter).await.count, 2);
    assert_eq!(bench.state(other).await, Failed);
    assert_eq!((bench.state(first).await, bench.state(second).await), (Pending, Pending));
}

pub(crate) async fn one_taken_key_refuses_all(bench: Bench) {
    let mut ids = vec![bench.failed(work_with_key("free"), "boom").await];
    ids.push(bench.failed(work_with_key("taken"), "boom").await);
    ids.push(bench.failed(work(), "boom").await);
    let holder = bench.submit(work_with_key("taken")).await;
    let before = bench.store.find(&ids).await.unwrap();
    let refused = bench.store.retry_all(&DeadLetterFilter::default(), 10).await;
    assert_refused(refused, &ErrorKind::Duplicate { business_key: business_key("taken"), holder });
    assert_eq!(bench.store.find(&ids).await.unwrap(), before, "nothing has changed");
    assert_eq!(bench.holder("free").await, None);
    bench.store.cancel(holder).await.unwrap();
    assert_eq!(retry_all(&bench, &DeadLetterFilter::default()).await.count, 3);
}

pub(crate) async fn all_letters_whose_keys_are_held_are_named(bench: Bench) {
    let plain = bench.failed(work(), "boom").await;
    let one = bench.failed(work_with_key("one"), "boom").await;
    let two = bench.failed(work_with_key("two"), "boom").await;
    let older = bench.failed(work_with_key("twice"), "boom").await;
    let newer = bench.failed(work_with_key("twice"), "boom").await;
    let held = |job, key: &str, holder, same_call| HeldKey { job, business_key: business_key(key), holder, same_call };
    let mut expected = vec![held(older, "twice", newer, true)];
    for (job, key) in [(two, "two"), (one, "one")] {
        expected.push(held(job, key, bench.submit(work_with_key(key)).await, false));
    }
    let mut filter = DeadLetterFilter::default();
    let refused = bench.store.retry_all(&filter, 10).await.unwrap_err();
    assert_eq!(refused.held(), expected, "the newest first");
    assert!(expected.iter().all(|held| refused.to_string().contains(&held.to_string())), "{refused}");
    filter.except.extend(refused.held().iter().map(|held| held.job));
    assert_eq!(retry_all(&bench, &filter).await.count, 2);
    assert_eq!((bench.state(plain).await, bench.state(newer).await), (Pending, Pending));
    for held in expected {
        assert_eq!(bench.state(held.job).await, Failed);
    }
}

pub(crate) async fn a_letter_that_would_revive_what_cannot_be_is_named(bench: Bench) {
    let plan = Plan::from(vec![work(), work_with_key("taken")]);
    let steps = plan.edge(0, 1, Condition::Success).submit(&bench).await;
    let first = bench.claim_one().await;
    bench.fail(&first, "boom").await;
    let holder = bench.submit(work_with_key("taken")).await;
    let refused = bench.store.retry_all(&DeadLetterFilter::default(), 10).await.unwrap_err();
    let held = |holder, same_call| HeldKey { job: steps[0], business_key: business_key("taken"), holder, same_call };
    assert_eq!(refused.held(), [held(holder, false)]);
    // The holder dies too: now both letters need the key, and only one can have it.
    let newer = bench.claim_one().await;
    bench.fail(&newer, "boom").await;
    let refused = bench.store.retry_all(&DeadLetterFilter::default(), 10).await.unwrap_err();
    assert_eq!(refused.held(), [held(holder, true)]);
}

pub(crate) async fn dead_letters_that_are_left_out_stay(bench: Bench) {
    let mut ids = Vec::new();
    for _ in 0..4 {
        ids.push(bench.failed(work(), "boom").await);
    }
    let except = [ids[3], ids[1]].into();
    let filter = DeadLetterFilter { except, ..DeadLetterFilter::default() };
    assert_eq!(bench.store.retry_all(&filter, 1).await.unwrap().count, 1, "the limit is of those that are meant");
    let states = async || bench.store.find(&ids).await.unwrap().iter().map(|job| job.state).collect::<Vec<_>>();
    assert_eq!(states().await, [Failed, Failed, Pending, Failed]);
    assert_eq!(retry_all(&bench, &filter).await.count, 1);
    assert_eq!(states().await, [Pending, Failed, Pending, Failed]);
}

pub(crate) async fn two_dead_letters_with_one_key_refuse_all(bench: Bench) {
    let mut ids = vec![bench.failed(work_with_key("key"), "boom").await];
    ids.push(bench.failed(work_with_key("key"), "boom").await);
    ids.push(bench.failed(work(), "boom").await);
    let before = bench.store.find(&ids).await.unwrap();
    let refused = bench.store.retry_all(&DeadLetterFilter::default(), 10).await.unwrap_err();
    let ErrorKind::Duplicate { business_key: named, .. } = refused.kind() else { panic!("{refused}") };
    assert_eq!(*named, business_key("key"));
    assert_eq!(bench.store.find(&ids).await.unwrap(), before);
    assert_eq!(bench.holder("key").await, None);
}

pub(crate) async fn one_to_a_thousand_are_retried_at_once(bench: Bench) {
    bench.failed(work(), "boom").await;
    for limit in [0, RETRY_ALL_MAX + 1] {
        assert_refused(bench.store.retry_all(&DeadLetterFilter::default(), limit).await, &ErrorKind::Invalid);
    }
    assert_eq!(bench.store.retry_all(&DeadLetterFilter::default(), 1).await.unwrap().count, 1);
}

pub(crate) async fn retrying_all_revives_what_was_cancelled(bench: Bench) {
    let steps = Plan::chain(3).submit(&bench).await;
    let first = bench.claim_one().await;
    bench.fail(&first, "boom").await;
    let plain = bench.failed(work(), "boom").await;
    let retried = retry_all(&bench, &DeadLetterFilter::default()).await;
    assert_eq!((retried.count, retried.revived), (2, 2));
    let found: Vec<_> = bench.store.find(&steps).await.unwrap().iter().map(|job| job.state).collect();
    assert_eq!(found, [Pending, Waiting, Waiting]);
    assert_eq!(bench.state(plain).await, Pending);
}

pub(crate) async fn children_of_a_batch_are_retried_while_it_is_open(bench: Bench) {
    let (open, children, _) = batches::Plan::of(works(2)).submit(&bench).await;
    let child = bench.claim_one().await;
    bench.fail(&child, "boom").await;
    let retried = retry_all(&bench, &DeadLetterFilter::default()).await;
    assert_eq!((retried.count, retried.passed_over), (1, 0));
    assert_eq!(batches::batch(&bench, open).await.counts.failed, 0);
    for _ in 0..2 {
        let child = bench.claim_one().await;
        bench.fail(&child, "boom").await;
    }
    let retried = retry_all(&bench, &DeadLetterFilter::default()).await;
    assert_eq!((retried.count, retried.passed_over), (0, 2), "the batch is over");
    for child in children {
        assert_eq!(bench.state(child).await, Failed);
    }
}

pub(crate) async fn letters_that_cannot_be_retried_do_not_count(bench: Bench) {
    let oldest = bench.failed(work(), "boom").await;
    let older = bench.failed(work(), "boom").await;
    batches::Plan::of(works(3)).submit(&bench).await;
    for _ in 0..3 {
        let child = bench.claim_one().await;
        bench.fail(&child, "boom").await;
    }
    let retried = bench.store.retry_all(&DeadLetterFilter::default(), 1).await.unwrap();
    assert_eq!((retried.count, retried.passed_over), (1, 3));
    assert_eq!((bench.state(older).await, bench.state(oldest).await), (Pending, Failed));
    let retried = bench.store.retry_all(&DeadLetterFilter::default(), 1).await.unwrap();
    assert_eq!((retried.count, retried.passed_over), (1, 3));
    assert_eq!(bench.state(oldest).await, Pending);
}

pub(crate) async fn hundreds_of_dead_letters_are_retried_at_once(bench: Bench) {
    let jobs = (0..600).map(|n| work_with_key(&format!("key {n}"))).collect();
    bench.submit_each(jobs).await;
    loop {
        let claims = bench.claim_all().await;
        if claims.is_empty() {
            break;
        }
        bench.turn(&claims.iter().map(|claim| failure(claim, "boom")).collect::<Vec<_>>(), None).await;
    }
    bench.advance(Duration::from_secs(1));
    let of_kind = of_jobs(JobFilter { kind: Some(Kind::new(KIND).unwrap()), ..JobFilter::default() });
    assert_eq!(retry_all(&bench, &of_kind).await.count, 600);
    let counts = bench.store.count_by_state().await.unwrap();
    assert_eq!((counts.get(&Pending), counts.get(&Failed)), (Some(&600), None));
    assert!(bench.holder("key 599").await.is_some());
}

pub(crate) async fn a_dead_letter_that_nobody_can_judge_is_passed_over(bench: Bench) {
    let steps = Plan::of(2).edge(0, 1, test("/nothing", Operator::Is, 1)).submit(&bench).await;
    let first = bench.claim_one().await;
    bench.succeed(&first).await;
    let other = bench.failed(work(), "boom").await;
    let retried = retry_all(&bench, &DeadLetterFilter::default()).await;
    assert_eq!((retried.count, retried.passed_over), (1, 1));
    assert_eq!((bench.state(steps[1]).await, bench.state(other).await), (Failed, Pending));
}
