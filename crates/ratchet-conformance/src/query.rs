//! Looking at what is there.

use std::time::Duration;

use ratchet_core::page::{ArchiveScope, JobFilter, ListCursor, ListOrder, PAGE_LIMIT_MAX};
use ratchet_core::store::{ArchiveRequest, Removal, StateCounts};
use ratchet_core::{ErrorKind, JobId, JobState, JobType, Kind, NewJob, Principal, Priority, Tag, Timestamp};

use crate::harness::{Harness, KIND, assert_refused, business_key, new_job, queue, work, work_with_key, works};

async fn listed(harness: &Harness, filter: &JobFilter) -> Vec<JobId> {
    let page = harness.store.list(filter, None, 1_000).await.unwrap();
    assert_eq!(page.next, None);
    page.items.iter().map(|job| job.id).collect()
}

fn tagged(tags: &[&str]) -> NewJob {
    let mut job = work();
    job.spec.tags = tags.iter().map(|tag| Tag::new(tag).unwrap()).collect();
    job
}

pub(crate) async fn jobs_are_listed_newest_first(harness: Harness) {
    assert!(listed(&harness, &JobFilter::default()).await.is_empty());
    let mut all = harness.submit_each(works(5)).await;
    all.reverse();
    assert_eq!(listed(&harness, &JobFilter::default()).await, all);
    let page = harness.store.list(&JobFilter::default(), None, 10).await.unwrap();
    assert_eq!(page.items, harness.store.find(&all).await.unwrap(), "with everything there is to know");
}

pub(crate) async fn pages_show_every_job_once(harness: Harness) {
    let mut all = harness.submit_each(works(7)).await;
    all.reverse();
    for limit in [1, 2, 3, 7, 8] {
        let (mut seen, mut after) = (Vec::new(), None);
        for _ in 0..10 {
            let page = harness.store.list(&JobFilter::default(), after, limit).await.unwrap();
            assert!((1..=limit).contains(&page.items.len()));
            seen.extend(page.items.iter().map(|job| job.id));
            after = page.next;
            if after.is_none() {
                break;
            }
        }
        assert_eq!(seen, all, "pages of {limit}");
    }
}

pub(crate) async fn a_page_is_not_moved_by_newer_jobs(harness: Harness) {
    let all = harness.submit_each(works(4)).await;
    let first = harness.store.list(&JobFilter::default(), None, 2).await.unwrap();
    harness.submit_each(works(2)).await;
    let second = harness.store.list(&JobFilter::default(), first.next, 2).await.unwrap();
    assert_eq!(second.items.iter().map(|job| job.id).collect::<Vec<_>>(), [all[1], all[0]]);
}

pub(crate) async fn a_page_has_one_to_a_thousand_jobs(harness: Harness) {
    harness.submit_each(works(2)).await;
    for limit in [0, PAGE_LIMIT_MAX + 1] {
        assert_refused(harness.store.list(&JobFilter::default(), None, limit).await, &ErrorKind::Invalid);
    }
    for limit in [1, PAGE_LIMIT_MAX] {
        harness.store.list(&JobFilter::default(), None, limit).await.expect("within the limits");
    }
}

pub(crate) async fn jobs_are_filtered_by_state(harness: Harness) {
    let failed = harness.failed(work(), "boom").await;
    let running = harness.running(work()).await.job.id;
    let pending = harness.submit(work()).await;
    let by = |states: &[JobState]| JobFilter { states: states.to_vec(), ..JobFilter::default() };
    assert_eq!(listed(&harness, &by(&[JobState::Failed])).await, [failed]);
    assert_eq!(listed(&harness, &by(&[JobState::Running])).await, [running]);
    assert_eq!(listed(&harness, &by(&[JobState::Pending, JobState::Failed])).await, [pending, failed]);
    assert!(listed(&harness, &by(&[JobState::Canceled])).await.is_empty());
}

pub(crate) async fn jobs_are_filtered_by_kind_and_queue(harness: Harness) {
    let other_kind = harness.submit(new_job("other")).await;
    let mut elsewhere = work();
    elsewhere.spec.queue = queue("elsewhere");
    let elsewhere = harness.submit(elsewhere).await;
    let plain = harness.submit(work()).await;
    let kind = |kind: &str| JobFilter { kind: Some(Kind::new(kind).unwrap()), ..JobFilter::default() };
    assert_eq!(listed(&harness, &kind("other")).await, [other_kind]);
    assert_eq!(listed(&harness, &kind(KIND)).await, [plain, elsewhere]);
    let both = JobFilter { queue: Some(queue("elsewhere")), ..kind(KIND) };
    assert_eq!(listed(&harness, &both).await, [elsewhere], "every field narrows");
    let neither = JobFilter { queue: Some(queue("elsewhere")), ..kind("other") };
    assert!(listed(&harness, &neither).await.is_empty());
}

pub(crate) async fn jobs_are_filtered_by_tag(harness: Harness) {
    let one = harness.submit(tagged(&["blue", "round"])).await;
    let two = harness.submit(tagged(&["blue", "blue"])).await;
    harness.submit(work()).await;
    let by = |tag: &str| JobFilter { tag: Some(Tag::new(tag).unwrap()), ..JobFilter::default() };
    assert_eq!(listed(&harness, &by("blue")).await, [two, one], "each once, also if tagged twice");
    assert_eq!(listed(&harness, &by("round")).await, [one]);
    assert!(listed(&harness, &by("blu")).await.is_empty());
    harness.store.cancel(one).await.unwrap();
    assert_eq!(listed(&harness, &by("round")).await, [one], "also after its end");
}

pub(crate) async fn pages_of_filtered_jobs_show_every_job_once(harness: Harness) {
    let jobs = (0..12).map(|n| if n % 3 == 0 { tagged(&["third", "all"]) } else { tagged(&["all"]) }).collect();
    let all = harness.submit_each(jobs).await;
    let filter = JobFilter { tag: Some(Tag::new("third").unwrap()), ..JobFilter::default() };
    let first = harness.store.list(&filter, None, 3).await.unwrap();
    let second = harness.store.list(&filter, first.next, 3).await.unwrap();
    let seen: Vec<_> = first.items.iter().chain(&second.items).map(|job| job.id).collect();
    assert_eq!(seen, [all[9], all[6], all[3], all[0]]);
    assert_eq!(second.next, None);
}

pub(crate) async fn jobs_are_filtered_by_business_key_held_or_once_held(harness: Harness) {
    let first = harness.failed(work_with_key("mine"), "boom").await;
    let second = harness.submit(work_with_key("mine")).await;
    harness.submit(work_with_key("other")).await;
    let by = |key: &str| JobFilter { business_key: Some(business_key(key)), ..JobFilter::default() };
    assert_eq!(listed(&harness, &by("mine")).await, [second, first]);
    assert!(listed(&harness, &by("none")).await.is_empty());
}

pub(crate) async fn jobs_are_filtered_by_when_they_were_made(harness: Harness) {
    let at = |ms: i64| Timestamp::from_millisecond(1_700_000_000_000 + ms).unwrap();
    let made = |ms: i64| NewJob { id: JobId::floor(at(ms)), ..work() };
    let [one, two, three] = harness.submit_each(vec![made(0), made(10), made(20)]).await[..] else { panic!("three") };
    let check = async |from: Option<i64>, until: Option<i64>, expected: &[JobId]| {
        let (made_from, made_until) = (from.map(at), until.map(at));
        let filter = JobFilter { made_from, made_until, ..JobFilter::default() };
        assert_eq!(listed(&harness, &filter).await, expected, "{from:?} to {until:?}");
    };
    check(None, None, &[three, two, one]).await;
    check(Some(10), None, &[three, two]).await;
    check(None, Some(10), &[one]).await;
    check(Some(1), Some(20), &[two]).await;
    check(Some(21), None, &[]).await;
    check(Some(20), Some(10), &[]).await;
}

pub(crate) async fn jobs_are_filtered_by_when_they_ended(harness: Harness) {
    let first = harness.failed(work(), "boom").await;
    harness.advance(Duration::from_mins(1));
    let between = harness.now().await;
    harness.advance(Duration::from_mins(1));
    let second = harness.failed(work(), "boom").await;
    let live = harness.submit(work()).await;
    let check = async |ended_from: Option<Timestamp>, ended_until: Option<Timestamp>, expected: &[JobId]| {
        let filter = JobFilter { ended_from, ended_until, ..JobFilter::default() };
        assert_eq!(listed(&harness, &filter).await, expected);
        let letters = harness.store.dead_letters(&filter, None, 10).await.unwrap().items;
        let failed: Vec<JobId> = expected.iter().copied().filter(|id| *id != live).collect();
        assert_eq!(letters.iter().map(|letter| letter.id).collect::<Vec<_>>(), failed);
    };
    check(None, None, &[live, second, first]).await;
    check(Some(between), None, &[second]).await;
    check(None, Some(between), &[first]).await;
    let ended = harness.job(second).await.terminated_at;
    check(ended, None, &[second]).await;
    check(None, ended, &[first]).await;
    harness.store.retry(second).await.unwrap();
    check(Some(between), None, &[]).await;
}

pub(crate) async fn jobs_are_filtered_by_priority_and_type(harness: Harness) {
    let [low, high] = harness.submit_each(vec![of_priority(Priority::Low), of_priority(Priority::High)]).await[..]
    else {
        panic!("two")
    };
    let callback = harness.submit(NewJob { job_type: JobType::Callback, ..of_priority(Priority::High) }).await;
    let by = |priority, job_type| JobFilter { priority, job_type, ..JobFilter::default() };
    assert_eq!(listed(&harness, &by(Some(Priority::Low), None)).await, [low]);
    assert_eq!(listed(&harness, &by(Some(Priority::High), None)).await, [callback, high]);
    assert_eq!(listed(&harness, &by(None, Some(JobType::Callback))).await, [callback]);
    assert_eq!(listed(&harness, &by(Some(Priority::High), Some(JobType::Single))).await, [high]);
    assert!(listed(&harness, &by(None, Some(JobType::BatchParent))).await.is_empty());
    let pending = JobFilter { states: vec![JobState::Pending], ..by(Some(Priority::High), None) };
    assert_eq!(listed(&harness, &pending).await, [callback, high], "of live rows too");
}

fn of_priority(priority: Priority) -> NewJob {
    let mut job = work();
    job.spec.priority = priority;
    job
}

/// Every job of a filter, page by page.
async fn walked(harness: &Harness, filter: &JobFilter, limit: usize) -> Vec<JobId> {
    let (mut seen, mut after) = (Vec::new(), None);
    for _ in 0..50 {
        let page = harness.store.list(filter, after, limit).await.unwrap();
        assert!(page.items.len() <= limit);
        seen.extend(page.items.iter().map(|job| job.id));
        after = page.next;
        if after.is_none() {
            return seen;
        }
    }
    panic!("the list comes to no end");
}

pub(crate) async fn jobs_are_listed_oldest_first_if_asked(harness: Harness) {
    let jobs = (0..7).map(|n| if n % 2 == 0 { tagged(&["even"]) } else { work() }).collect();
    let all = harness.submit_each(jobs).await;
    let oldest = JobFilter { order: ListOrder::Oldest, ..JobFilter::default() };
    let even = JobFilter { tag: Some(Tag::new("even").unwrap()), ..oldest.clone() };
    let pending = JobFilter { states: vec![JobState::Pending], ..oldest.clone() };
    for limit in [1, 2, 3, 7, 8] {
        assert_eq!(walked(&harness, &oldest, limit).await, all, "pages of {limit}");
        assert_eq!(walked(&harness, &even, limit).await, [all[0], all[2], all[4], all[6]]);
        assert_eq!(walked(&harness, &pending, limit).await, all);
    }
    let first = harness.store.list(&oldest, None, 7).await.unwrap();
    assert_eq!(first.next, None, "after the last page there is none");
}

pub(crate) async fn jobs_are_listed_by_priority_if_asked(harness: Harness) {
    use Priority::{Critical, Low, Normal};
    let made: Vec<NewJob> = [Normal, Low, Critical, Normal, Critical].map(of_priority).into();
    let all = harness.submit_each(made).await;
    let by_priority = JobFilter { order: ListOrder::Priority, ..JobFilter::default() };
    let expected = [all[4], all[2], all[3], all[0], all[1]];
    let normal = JobFilter { priority: Some(Normal), ..by_priority.clone() };
    for limit in [1, 2, 3, 5, 6] {
        assert_eq!(walked(&harness, &by_priority, limit).await, expected, "pages of {limit}");
        assert_eq!(walked(&harness, &normal, limit).await, [all[3], all[0]]);
    }
}

pub(crate) async fn orders_go_through_the_archive_too(harness: Harness) {
    use Priority::{High, Low};
    let mut ids = Vec::new();
    for priority in [Low, High, Low, High] {
        ids.push(harness.failed(of_priority(priority), "boom").await);
    }
    harness.advance(Duration::from_mins(2));
    let (age, only) = (Duration::from_mins(1), Some(vec![ids[0], ids[3]]));
    let request =
        ArchiveRequest { removal: Removal::Archive, state: JobState::Failed, age, after: None, limit: 10, only };
    assert_eq!(harness.store.archive(&request).await.unwrap().moved, 2);
    let both = |order| JobFilter { order, archive: ArchiveScope::Both, ..JobFilter::default() };
    for limit in [1, 2, 4, 5] {
        assert_eq!(walked(&harness, &both(ListOrder::Newest), limit).await, [ids[3], ids[2], ids[1], ids[0]]);
        assert_eq!(walked(&harness, &both(ListOrder::Oldest), limit).await, ids);
        assert_eq!(walked(&harness, &both(ListOrder::Priority), limit).await, [ids[3], ids[1], ids[2], ids[0]]);
    }
}

pub(crate) async fn a_cursor_of_another_order_is_refused(harness: Harness) {
    let id = harness.submit_each(works(3)).await[1];
    let cursors = [ListCursor::newest(id), ListCursor::oldest(id), ListCursor::of_priority(Priority::Normal, id)];
    for (asked, order) in ListOrder::ALL.into_iter().enumerate() {
        let filter = JobFilter { order, ..JobFilter::default() };
        for (from, cursor) in cursors.into_iter().enumerate() {
            let page = harness.store.list(&filter, Some(cursor), 10).await;
            if from == asked {
                assert_eq!(page.unwrap().items.len(), 1);
            } else {
                assert_refused(page, &ErrorKind::Invalid);
            }
        }
    }
}

pub(crate) async fn jobs_are_counted_by_state(harness: Harness) {
    assert_eq!(harness.store.count_by_state().await.unwrap(), StateCounts::new());
    harness.failed(work(), "boom").await;
    harness.running(work()).await;
    let ids = harness.submit_each(works(5)).await;
    harness.store.cancel(ids[0]).await.unwrap();
    harness.store.pause(ids[1]).await.unwrap();
    let expected = StateCounts::from([
        (JobState::Failed, 1),
        (JobState::Running, 1),
        (JobState::Canceled, 1),
        (JobState::Paused, 1),
        (JobState::Pending, 3),
    ]);
    assert_eq!(harness.store.count_by_state().await.unwrap(), expected, "states without jobs are left out");
}

pub(crate) async fn the_jobs_of_a_principal_are_counted_by_state(harness: Harness) {
    let of = |name: &str| {
        let mut job = work();
        job.spec.principal = Some(Principal::new(name).unwrap());
        job
    };
    let counts = async |name: &str| harness.store.count_by_state_of(&Principal::new(name).unwrap()).await.unwrap();
    assert_eq!(counts("ann").await, StateCounts::new());
    harness.failed(of("ann"), "boom").await;
    harness.running(of("ann")).await;
    let ids = harness.submit_each(vec![of("ann"), of("bob"), work(), of("ann"), of("Ann")]).await;
    harness.store.cancel(ids[1]).await.unwrap();
    let expected = [(JobState::Failed, 1), (JobState::Running, 1), (JobState::Pending, 2)];
    assert_eq!(counts("ann").await, StateCounts::from(expected));
    assert_eq!(counts("bob").await, StateCounts::from([(JobState::Canceled, 1)]));
    assert_eq!(counts("an").await, StateCounts::new());
}

pub(crate) async fn a_list_by_a_rare_kind_finds_everything_in_the_end(harness: Harness) {
    let old = harness.submit_each(vec![new_job("rare"), new_job("rare")]).await;
    for _ in 0..7 {
        harness.submit_each(works(1_500)).await;
    }
    let new = harness.submit(new_job("rare")).await;
    let filter = JobFilter { kind: Some(Kind::new("rare").unwrap()), ..JobFilter::default() };
    let (mut found, mut after, mut pages) = (Vec::new(), None, 0);
    loop {
        let page = harness.store.list(&filter, after, 2).await.unwrap();
        found.extend(page.items.iter().map(|job| job.id));
        pages += 1;
        assert!(pages < 10, "it comes to an end");
        after = page.next;
        if after.is_none() {
            break;
        }
    }
    assert_eq!(found, [new, old[1], old[0]], "newest first, each once");
}
