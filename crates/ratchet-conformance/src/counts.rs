//! How many jobs there are, by what they have in common.

use std::collections::BTreeMap;
use std::time::Duration;

use ratchet_core::page::{ArchiveScope, JobFilter};
use ratchet_core::store::{ArchiveRequest, Removal};
use ratchet_core::{CountBy, Counted, JobState, JobType, NewJob, Priority, Tag};

use crate::harness::{Harness, KIND, new_job, queue, work, works};

async fn counted(harness: &Harness, filter: &JobFilter, by: CountBy) -> Counted {
    let counted = harness.store.count(filter, &by).await.unwrap();
    assert!(!counted.more, "few jobs are counted to the last");
    counted
}

#[track_caller]
fn check(counted: &Counted, jobs: u64, groups: &[(&str, u64)]) {
    let groups: BTreeMap<String, u64> = groups.iter().map(|(group, count)| ((*group).to_owned(), *count)).collect();
    assert_eq!((counted.jobs, &counted.groups), (jobs, &groups));
}

fn tagged(tag: &str) -> NewJob {
    let mut job = work();
    job.spec.tags = vec![Tag::new(tag).unwrap()];
    job
}

fn of_tag(tag: &str) -> JobFilter {
    JobFilter { tag: Some(Tag::new(tag).unwrap()), ..JobFilter::default() }
}

pub(crate) async fn jobs_are_counted_by_what_they_have_in_common(harness: Harness) {
    let all = JobFilter::default();
    check(&counted(&harness, &all, CountBy::State).await, 0, &[]);
    let mut elsewhere = new_job("other");
    elsewhere.spec.queue = queue("elsewhere");
    harness.failed(work(), "boom").await;
    harness.submit_each(vec![work(), elsewhere]).await;
    check(
        &counted(&harness, &all, CountBy::State).await,
        3,
        &[(JobState::Failed.as_str(), 1), (JobState::Pending.as_str(), 2)],
    );
    check(&counted(&harness, &all, CountBy::Kind).await, 3, &[(KIND, 2), ("other", 1)]);
    check(&counted(&harness, &all, CountBy::Queue).await, 3, &[("default", 2), ("elsewhere", 1)]);
}

pub(crate) async fn pending_jobs_are_counted_by_priority_and_type(harness: Harness) {
    let of = |priority, job_type| {
        let mut job = NewJob { job_type, ..work() };
        job.spec.priority = priority;
        job
    };
    harness.running(of(Priority::High, JobType::Single)).await;
    harness.failed(of(Priority::Critical, JobType::Callback), "boom").await;
    let pending =
        [of(Priority::High, JobType::Single), of(Priority::Low, JobType::Single), of(Priority::Low, JobType::Callback)];
    harness.submit_each(pending.into()).await;
    let filter = JobFilter { states: vec![JobState::Pending], ..JobFilter::default() };
    check(&counted(&harness, &filter, CountBy::Priority).await, 3, &[("HIGH", 1), ("LOW", 2)]);
    check(&counted(&harness, &filter, CountBy::JobType).await, 3, &[("SINGLE", 2), ("CALLBACK", 1)]);
}

pub(crate) async fn jobs_of_a_tag_are_counted_by_state_and_by_node(harness: Harness) {
    harness.failed(tagged("blue"), "boom").await;
    harness.running(tagged("blue")).await;
    harness.submit_each(vec![tagged("blue"), work(), tagged("red")]).await;
    let blue = of_tag("blue");
    let states = [(JobState::Failed.as_str(), 1), (JobState::Running.as_str(), 1), (JobState::Pending.as_str(), 1)];
    check(&counted(&harness, &blue, CountBy::State).await, 3, &states);
    let node = harness.node.to_string();
    check(&counted(&harness, &blue, CountBy::Node).await, 3, &[(&node, 2)]);
    let other = harness.another_node().await;
    harness.submit(tagged("green")).await;
    let ran_twice = loop {
        let claim = harness.claim_one_as(other).await;
        if claim.job.spec.tags == [Tag::new("green").unwrap()] {
            break claim;
        }
    };
    harness.reschedule(&ran_twice, Duration::ZERO).await;
    check(&counted(&harness, &of_tag("green"), CountBy::Node).await, 1, &[(&other.to_string(), 1)]);
    let again = harness.claim_one().await;
    assert_eq!(again.job.id, ran_twice.job.id);
    check(&counted(&harness, &of_tag("green"), CountBy::Node).await, 1, &[(&node, 1)]);
}

pub(crate) async fn jobs_are_counted_by_a_parameter_whose_name_means_nothing(harness: Harness) {
    let with = |name: &str, value: &str| {
        let mut job = tagged("blue");
        job.spec.params.insert(name.to_owned(), value.to_owned());
        job
    };
    let jobs = vec![with("a.b", "é\"1"), with("a.b", "2"), with("a.b", "2"), with("a", "3"), with("$.a['b']", "4")];
    harness.submit_each(jobs).await;
    harness.submit(work()).await;
    let by = |name: &str| CountBy::param(name).unwrap();
    let blue = of_tag("blue");
    check(&counted(&harness, &blue, by("a.b")).await, 5, &[("é\"1", 1), ("2", 2)]);
    check(&counted(&harness, &blue, by("a")).await, 5, &[("3", 1)]);
    check(&counted(&harness, &blue, by("$.a['b']")).await, 5, &[("4", 1)]);
    check(&counted(&harness, &blue, by("b")).await, 5, &[]);
}

pub(crate) async fn a_count_is_as_large_as_its_list(harness: Harness) {
    let old = harness.failed(tagged("blue"), "boom").await;
    let other = harness.failed(work(), "boom").await;
    harness.advance(Duration::from_mins(2));
    let request = ArchiveRequest {
        removal: Removal::Archive,
        state: JobState::Failed,
        age: Duration::from_mins(1),
        after: None,
        limit: 10,
        only: Some(vec![old, other]),
    };
    assert_eq!(harness.store.archive(&request).await.unwrap().moved, 2);
    harness.failed(tagged("blue"), "boom").await;
    harness.submit_each(vec![tagged("blue"), work()]).await;
    let states = [vec![], vec![JobState::Failed], vec![JobState::Failed, JobState::Pending]];
    let live = [[3, 2], [1, 1], [3, 2]];
    let archived = [[2, 1], [2, 1], [2, 1]];
    for (nth, states) in states.into_iter().enumerate() {
        for (of, narrow) in [JobFilter::default(), of_tag("blue")].into_iter().enumerate() {
            let (live, archived) = (live[nth][of], archived[nth][of]);
            for (archive, expected) in
                [(ArchiveScope::Live, live), (ArchiveScope::Archived, archived), (ArchiveScope::Both, live + archived)]
            {
                let filter = JobFilter { archive, states: states.clone(), ..narrow.clone() };
                let page = harness.store.list(&filter, None, 100).await.unwrap();
                let counted = counted(&harness, &filter, CountBy::Node).await;
                assert_eq!((counted.jobs, page.items.len() as u64), (expected, expected), "{filter:?}");
                let ran = page.items.iter().filter(|job| job.state == JobState::Failed).count() as u64;
                assert_eq!(counted.groups.values().sum::<u64>(), ran, "archived jobs know their node too");
            }
        }
    }
}

pub(crate) async fn thousands_of_jobs_are_counted(harness: Harness) {
    for _ in 0..8 {
        let mut jobs = works(1_500);
        for (n, job) in jobs.iter_mut().enumerate() {
            job.spec.tags = vec![Tag::new("many").unwrap()];
            job.spec.priority = if n % 3 == 0 { Priority::Low } else { Priority::High };
        }
        harness.submit_each(jobs).await;
    }
    let expected = [("LOW", 4_000), ("HIGH", 8_000)];
    for filter in
        [JobFilter::default(), of_tag("many"), JobFilter { kind: Some(new_job(KIND).spec.kind), ..of_tag("many") }]
    {
        check(&counted(&harness, &filter, CountBy::Priority).await, 12_000, &expected);
    }
}
