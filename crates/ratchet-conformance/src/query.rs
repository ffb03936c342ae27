//! Looking at what is there.

use ratchet_core::page::{JobFilter, PAGE_LIMIT_MAX};
use ratchet_core::store::StateCounts;
use ratchet_core::{ErrorKind, JobId, JobState, Kind, NewJob, Principal, Tag};

use crate::bench::{Bench, KIND, assert_refused, business_key, new_job, queue, work, work_with_key, works};

async fn listed(bench: &Bench, filter: &JobFilter) -> Vec<JobId> {
    let page = bench.store.list(filter, None, 1_000).await.unwrap();
    assert_eq!(page.next, None);
    page.items.iter().map(|job| job.id).collect()
}

fn tagged(tags: &[&str]) -> NewJob {
    let mut job = work();
    job.spec.tags = tags.iter().map(|tag| Tag::new(tag).unwrap()).collect();
    job
}

pub(crate) async fn jobs_are_listed_newest_first(bench: Bench) {
    assert!(listed(&bench, &JobFilter::default()).await.is_empty());
    let mut all = bench.submit_each(works(5)).await;
    all.reverse();
    assert_eq!(listed(&bench, &JobFilter::default()).await, all);
    let page = bench.store.list(&JobFilter::default(), None, 10).await.unwrap();
    assert_eq!(page.items, bench.store.find(&all).await.unwrap(), "with everything there is to know");
}

pub(crate) async fn pages_show_every_job_once(bench: Bench) {
    let mut all = bench.submit_each(works(7)).await;
    all.reverse();
    for limit in [1, 2, 3, 7, 8] {
        let (mut seen, mut after) = (Vec::new(), None);
        for _ in 0..10 {
            let page = bench.store.list(&JobFilter::default(), after, limit).await.unwrap();
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

pub(crate) async fn a_page_is_not_moved_by_newer_jobs(bench: Bench) {
    let all = bench.submit_each(works(4)).await;
    let first = bench.store.list(&JobFilter::default(), None, 2).await.unwrap();
    bench.submit_each(works(2)).await;
    let second = bench.store.list(&JobFilter::default(), first.next, 2).await.unwrap();
    assert_eq!(second.items.iter().map(|job| job.id).collect::<Vec<_>>(), [all[1], all[0]]);
}

pub(crate) async fn a_page_has_one_to_a_thousand_jobs(bench: Bench) {
    bench.submit_each(works(2)).await;
    for limit in [0, PAGE_LIMIT_MAX + 1] {
        assert_refused(bench.store.list(&JobFilter::default(), None, limit).await, &ErrorKind::Invalid);
    }
    for limit in [1, PAGE_LIMIT_MAX] {
        bench.store.list(&JobFilter::default(), None, limit).await.expect("within the limits");
    }
}

pub(crate) async fn jobs_are_filtered_by_state(bench: Bench) {
    let failed = bench.failed(work(), "boom").await;
    let running = bench.running(work()).await.job.id;
    let pending = bench.submit(work()).await;
    let by = |states: &[JobState]| JobFilter { states: states.to_vec(), ..JobFilter::default() };
    assert_eq!(listed(&bench, &by(&[JobState::Failed])).await, [failed]);
    assert_eq!(listed(&bench, &by(&[JobState::Running])).await, [running]);
    assert_eq!(listed(&bench, &by(&[JobState::Pending, JobState::Failed])).await, [pending, failed]);
    assert!(listed(&bench, &by(&[JobState::Canceled])).await.is_empty());
}

pub(crate) async fn jobs_are_filtered_by_kind_and_queue(bench: Bench) {
    let other_kind = bench.submit(new_job("other")).await;
    let mut elsewhere = work();
    elsewhere.spec.queue = queue("elsewhere");
    let elsewhere = bench.submit(elsewhere).await;
    let plain = bench.submit(work()).await;
    let kind = |kind: &str| JobFilter { kind: Some(Kind::new(kind).unwrap()), ..JobFilter::default() };
    assert_eq!(listed(&bench, &kind("other")).await, [other_kind]);
    assert_eq!(listed(&bench, &kind(KIND)).await, [plain, elsewhere]);
    let both = JobFilter { queue: Some(queue("elsewhere")), ..kind(KIND) };
    assert_eq!(listed(&bench, &both).await, [elsewhere], "every field narrows");
    let neither = JobFilter { queue: Some(queue("elsewhere")), ..kind("other") };
    assert!(listed(&bench, &neither).await.is_empty());
}

pub(crate) async fn jobs_are_filtered_by_tag(bench: Bench) {
    let one = bench.submit(tagged(&["blue", "round"])).await;
    let two = bench.submit(tagged(&["blue", "blue"])).await;
    bench.submit(work()).await;
    let by = |tag: &str| JobFilter { tag: Some(Tag::new(tag).unwrap()), ..JobFilter::default() };
    assert_eq!(listed(&bench, &by("blue")).await, [two, one], "each once, also if tagged twice");
    assert_eq!(listed(&bench, &by("round")).await, [one]);
    assert!(listed(&bench, &by("blu")).await.is_empty());
    bench.store.cancel(one).await.unwrap();
    assert_eq!(listed(&bench, &by("round")).await, [one], "also after its end");
}

pub(crate) async fn pages_of_filtered_jobs_show_every_job_once(bench: Bench) {
    let jobs = (0..12).map(|n| if n % 3 == 0 { tagged(&["third", "all"]) } else { tagged(&["all"]) }).collect();
    let all = bench.submit_each(jobs).await;
    let filter = JobFilter { tag: Some(Tag::new("third").unwrap()), ..JobFilter::default() };
    let first = bench.store.list(&filter, None, 3).await.unwrap();
    let second = bench.store.list(&filter, first.next, 3).await.unwrap();
    let seen: Vec<_> = first.items.iter().chain(&second.items).map(|job| job.id).collect();
    assert_eq!(seen, [all[9], all[6], all[3], all[0]]);
    assert_eq!(second.next, None);
}

pub(crate) async fn jobs_are_filtered_by_business_key_held_or_once_held(bench: Bench) {
    let first = bench.failed(work_with_key("mine"), "boom").await;
    let second = bench.submit(work_with_key("mine")).await;
    bench.submit(work_with_key("other")).await;
    let by = |key: &str| JobFilter { business_key: Some(business_key(key)), ..JobFilter::default() };
    assert_eq!(listed(&bench, &by("mine")).await, [second, first]);
    assert!(listed(&bench, &by("none")).await.is_empty());
}

pub(crate) async fn jobs_are_counted_by_state(bench: Bench) {
    assert_eq!(bench.store.count_by_state().await.unwrap(), StateCounts::new());
    bench.failed(work(), "boom").await;
    bench.running(work()).await;
    let ids = bench.submit_each(works(5)).await;
    bench.store.cancel(ids[0]).await.unwrap();
    bench.store.pause(ids[1]).await.unwrap();
    let expected = StateCounts::from([
        (JobState::Failed, 1),
        (JobState::Running, 1),
        (JobState::Canceled, 1),
        (JobState::Paused, 1),
        (JobState::Pending, 3),
    ]);
    assert_eq!(bench.store.count_by_state().await.unwrap(), expected, "states without jobs are left out");
}

pub(crate) async fn the_jobs_of_a_principal_are_counted_by_state(bench: Bench) {
    let of = |name: &str| {
        let mut job = work();
        job.spec.principal = Some(Principal::new(name).unwrap());
        job
    };
    let counts = async |name: &str| bench.store.count_by_state_of(&Principal::new(name).unwrap()).await.unwrap();
    assert_eq!(counts("ann").await, StateCounts::new());
    bench.failed(of("ann"), "boom").await;
    bench.running(of("ann")).await;
    let ids = bench.submit_each(vec![of("ann"), of("bob"), work(), of("ann"), of("Ann")]).await;
    bench.store.cancel(ids[1]).await.unwrap();
    let expected = [(JobState::Failed, 1), (JobState::Running, 1), (JobState::Pending, 2)];
    assert_eq!(counts("ann").await, StateCounts::from(expected));
    assert_eq!(counts("bob").await, StateCounts::from([(JobState::Canceled, 1)]));
    assert_eq!(counts("an").await, StateCounts::new());
}

pub(crate) async fn a_list_by_a_rare_kind_finds_everything_in_the_end(bench: Bench) {
    let old = bench.submit_each(vec![new_job("rare"), new_job("rare")]).await;
    for _ in 0..7 {
        bench.submit_each(works(1_500)).await;
    }
    let new = bench.submit(new_job("rare")).await;
    let filter = JobFilter { kind: Some(Kind::new("rare").unwrap()), ..JobFilter::default() };
    let (mut found, mut after, mut pages) = (Vec::new(), None, 0);
    loop {
        let page = bench.store.list(&filter, after, 2).await.unwrap();
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
