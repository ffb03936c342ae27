//! Putting jobs in and reading them back.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use ratchet_core::record::JobRecord;
use ratchet_core::store::Submitted;
use ratchet_core::{
    Backoff, Due, ErrorKind, JobSpec, JobState, JobType, NewJob, Origin, Principal, Priority, ResourceName, StartState,
    Tag, TraceContext, limits,
};
use serde_json::{Value, json};

use crate::harness::{
    Harness, assert_about, assert_refused, business_key, idempotency_key, json as text, mins, new_id, queue, spec,
    work, work_after, work_once, work_with_key, works,
};

fn trace() -> TraceContext {
    let header = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";
    TraceContext::parse(header, Some("vendor=a b,other@x=1")).unwrap()
}

/// A job with every option set.
pub(crate) fn full_job() -> NewJob {
    let full = JobSpec {
        queue: queue("reports"),
        priority: Priority::High,
        payload: text(&json!({"invoice": 7, "lines": [1, 2]})),
        params: BTreeMap::from([("tenant".to_owned(), "acme".to_owned()), ("empty".to_owned(), String::new())]),
        tags: vec![Tag::new("billing").unwrap(), Tag::new("monthly").unwrap()],
        max_retries: 7,
        backoff: Backoff::Fixed(Duration::from_millis(1_250)),
        timeout: Some(Duration::from_millis(30_500)),
        resource: Some(ResourceName::new("printer").unwrap()),
        principal: Some(Principal::new("ann").unwrap()),
        trace: Some(trace()),
        ..spec("report.print")
    };
    NewJob {
        business_key: Some(business_key("report-7")),
        idempotency_key: Some(idempotency_key("request-7")),
        on_success: Some(JobSpec { priority: Priority::Low, ..spec("report.mail") }),
        on_failure: Some(JobSpec { max_retries: 1, ..spec("report.mourn") }),
        ..NewJob::new(new_id(), full)
    }
}

/// Asserts that two specs mean the same: JSON by value, tags as a set.
#[track_caller]
pub(crate) fn assert_same_spec(actual: &JobSpec, expected: &JobSpec) {
    let value = |spec: &JobSpec| spec.payload.decode::<Value>().expect("a payload is JSON");
    let tags = |spec: &JobSpec| spec.tags.iter().cloned().collect::<BTreeSet<_>>();
    assert_eq!(value(actual), value(expected), "payload");
    assert_eq!(tags(actual), tags(expected), "tags");
    let rest = |spec: &JobSpec| JobSpec { payload: ratchet_core::JsonText::null(), tags: vec![], ..spec.clone() };
    assert_eq!(rest(actual), rest(expected));
}

#[track_caller]
fn assert_as_given(actual: &JobRecord, given: &NewJob) {
    assert_same_spec(&actual.spec, &given.spec);
    assert_eq!(actual.job_type, given.job_type);
    assert_eq!(actual.business_key, given.business_key);
    assert_eq!(actual.idempotency_key, given.idempotency_key);
    for (actual, given) in [(&actual.on_success, &given.on_success), (&actual.on_failure, &given.on_failure)] {
        assert_eq!(actual.is_some(), given.is_some());
        if let (Some(actual), Some(given)) = (actual, given) {
            assert_same_spec(actual, given);
        }
    }
    assert_eq!(actual.origin, given.origin);
}

pub(crate) async fn a_submitted_job_comes_back_as_it_was_given(harness: Harness) {
    for given in [full_job(), work()] {
        let id = harness.submit(given.clone()).await;
        assert_as_given(&harness.job(id).await, &given);
    }
}

/// A store may write jobs without options in a shorter way; it must notice each option.
pub(crate) async fn each_option_alone_comes_back(harness: Harness) {
    let full = full_job();
    let alone = |set: &dyn Fn(&mut NewJob)| {
        let mut job = work();
        set(&mut job);
        job
    };
    let jobs = [
        alone(&|job| job.spec.params.clone_from(&full.spec.params)),
        alone(&|job| job.spec.tags.clone_from(&full.spec.tags)),
        alone(&|job| job.spec.timeout = full.spec.timeout),
        alone(&|job| job.spec.resource.clone_from(&full.spec.resource)),
        alone(&|job| job.spec.principal.clone_from(&full.spec.principal)),
        alone(&|job| job.spec.trace.clone_from(&full.spec.trace)),
        alone(&|job| job.spec.max_retries = full.spec.max_retries),
        alone(&|job| job.spec.backoff = full.spec.backoff),
        alone(&|job| job.business_key.clone_from(&full.business_key)),
        alone(&|job| job.idempotency_key.clone_from(&full.idempotency_key)),
        alone(&|job| job.on_success.clone_from(&full.on_success)),
        alone(&|job| job.on_failure.clone_from(&full.on_failure)),
    ];
    for given in jobs {
        let id = harness.submit(given.clone()).await;
        assert_as_given(&harness.job(id).await, &given);
    }
}

pub(crate) async fn a_callbacks_origin_comes_back_as_it_was_given(harness: Harness) {
    let origin = Origin {
        job_id: new_id(),
        kind: spec("report.print").kind,
        params: BTreeMap::from([("tenant".to_owned(), "acme".to_owned())]),
        result: Some(text(&json!(42))),
        error: None,
    };
    let given = NewJob { job_type: JobType::Callback, origin: Some(origin), ..work() };
    let mut traced = NewJob { id: new_id(), ..given.clone() };
    traced.spec.trace = Some(trace());
    for given in [given, traced] {
        let id = harness.submit(given.clone()).await;
        assert_as_given(&harness.job(id).await, &given);
    }
}

pub(crate) async fn a_new_job_is_pending_at_version_zero(harness: Harness) {
    let before = harness.now().await;
    let id = harness.submit(work()).await;
    let job = harness.job(id).await;
    assert_eq!((job.state, job.paused_from, job.version), (JobState::Pending, None, 0));
    assert_eq!((job.attempts, job.crash_count), (0, 0));
    assert_about(job.created_at, before);
    assert_eq!(job.scheduled_time, job.created_at, "a job without delay is due when it is stored");
    assert_eq!((job.picked_by, job.picked_at, job.progress, job.deferred_until), (None, None, None, None));
    assert_eq!((job.last_error, job.superseded_by, job.terminated_at), (None, None, None));
    assert_eq!((job.result, job.timing), (None, None));
}

pub(crate) async fn a_delayed_job_is_due_after_its_delay(harness: Harness) {
    let id = harness.submit(work_after(mins(90))).await;
    let job = harness.job(id).await;
    assert_eq!(job.scheduled_time.duration_since(job.created_at).as_mins(), 90);
}

pub(crate) async fn a_given_time_is_kept_even_in_the_past(harness: Harness) {
    let now = harness.now().await;
    let past = NewJob { due: Due::At(now - mins(180)), ..work() };
    let future = NewJob { due: Due::At(now + mins(180)), ..work() };
    let past = harness.submit(past).await;
    let future = harness.submit(future).await;
    assert_about(harness.job(past).await.scheduled_time, now - mins(180));
    assert_about(harness.job(future).await.scheduled_time, now + mins(180));
}

pub(crate) async fn a_job_may_start_waiting(harness: Harness) {
    let id = harness.submit(NewJob { start: StartState::Waiting, ..work() }).await;
    assert_eq!(harness.state(id).await, JobState::Waiting);
    assert!(harness.claim_all().await.is_empty(), "a waiting job is not claimed");
}

pub(crate) async fn jobs_are_found_in_the_order_of_the_ids(harness: Harness) {
    let ids = harness.submit_each(works(5)).await;
    let asked = [ids[3], ids[0], ids[4], ids[1]];
    let found: Vec<_> = harness.store.find(&asked).await.unwrap().iter().map(|job| job.id).collect();
    assert_eq!(found, asked);
}

pub(crate) async fn unknown_ids_are_left_out(harness: Harness) {
    let id = harness.submit(work()).await;
    assert!(harness.store.find(&[]).await.unwrap().is_empty());
    assert!(harness.store.find(&[new_id()]).await.unwrap().is_empty());
    assert_eq!(harness.store.find(&[new_id(), id, new_id()]).await.unwrap().len(), 1);
}

pub(crate) async fn two_thousand_jobs_are_stored_in_one_call_and_found(harness: Harness) {
    let ids = harness.submit_each(works(2_000)).await;
    let mut asked = ids.clone();
    asked.insert(700, new_id());
    let found: Vec<_> = harness.store.find(&asked).await.unwrap().iter().map(|job| job.id).collect();
    assert_eq!(found, ids, "none lost, none twice, in order");
    assert_eq!(harness.store.count_by_state().await.unwrap()[&JobState::Pending], 2_000);
}

pub(crate) async fn many_large_payloads_are_stored_in_one_call(harness: Harness) {
    let payload = text(&json!("x".repeat(limits::PAYLOAD_BYTES_MAX - 2)));
    let mut jobs = works(200);
    for job in &mut jobs {
        job.spec.payload = payload.clone();
    }
    let ids: Vec<_> = jobs.iter().map(|job| job.id).collect();
    harness.submit_units(vec![jobs]).await.remove(0).expect("all of them are stored");
    let found = harness.store.find(&ids).await.unwrap();
    assert_eq!(found.len(), 200);
    assert!(found.iter().all(|job| job.spec.payload == payload));
}

pub(crate) async fn submitting_nothing_is_no_error(harness: Harness) {
    assert!(harness.submit_units(vec![]).await.is_empty());
    let outcomes = harness.submit_units(vec![vec![], vec![work()]]).await;
    assert_eq!(outcomes[0].as_ref().unwrap(), &[]);
    assert_eq!(outcomes[1].as_ref().unwrap().len(), 1);
}

pub(crate) async fn a_unit_stands_or_falls_as_a_whole(harness: Harness) {
    let holder = harness.submit(work_with_key("taken")).await;
    let unit = vec![work(), work_with_key("taken"), work()];
    let ids: Vec<_> = unit.iter().map(|job| job.id).collect();
    let refused = harness.submit_units(vec![unit]).await.remove(0);
    assert_refused(refused, &ErrorKind::Duplicate { business_key: business_key("taken"), holder });
    assert!(harness.store.find(&ids).await.unwrap().is_empty(), "nothing of a refused unit is stored");
}

pub(crate) async fn a_unit_cannot_take_one_business_key_twice(harness: Harness) {
    let unit = vec![work_with_key("mine"), work_with_key("mine")];
    let ids: Vec<_> = unit.iter().map(|job| job.id).collect();
    let refused = harness.submit_units(vec![unit]).await.remove(0).unwrap_err();
    assert!(matches!(refused.kind(), ErrorKind::Duplicate { .. }), "{refused}");
    assert!(harness.store.find(&ids).await.unwrap().is_empty());
    assert_eq!(harness.holder("mine").await, None);
}

pub(crate) async fn a_refused_unit_leaves_its_keys_free(harness: Harness) {
    harness.submit(work_with_key("taken")).await;
    let unit = vec![work_with_key("mine"), work_once("once"), work_with_key("taken")];
    assert!(harness.submit_units(vec![unit]).await[0].is_err());
    assert_eq!(harness.holder("mine").await, None);
    assert_eq!(harness.first_with("once").await, None);
    harness.submit(work_with_key("mine")).await;
    harness.submit(work_once("once")).await;
}

pub(crate) async fn a_refused_unit_does_not_harm_its_neighbors(harness: Harness) {
    let holder = harness.submit(work_with_key("taken")).await;
    let (before, after) = (work(), work());
    let expected = [before.id, after.id];
    let outcomes = harness.submit_units(vec![vec![before], vec![work_with_key("taken")], vec![after]]).await;
    assert_eq!(outcomes[0].as_ref().unwrap(), &[Submitted::Created(expected[0])]);
    assert!(outcomes[1].is_err());
    assert_eq!(outcomes[2].as_ref().unwrap(), &[Submitted::Created(expected[1])]);
    assert_eq!(harness.store.find(&expected).await.unwrap().len(), 2);
    assert_eq!(harness.holder("taken").await, Some(holder));
}

pub(crate) async fn a_unit_submitted_again_is_reported_as_created(harness: Harness) {
    let unit = vec![full_job(), work_with_key("mine"), work()];
    let ids: Vec<_> = unit.iter().map(|job| job.id).collect();
    let created: Vec<_> = ids.iter().copied().map(Submitted::Created).collect();
    for round in ["first", "again"] {
        let outcome = harness.submit_units(vec![unit.clone()]).await.remove(0);
        assert_eq!(outcome.expect("its own keys do not refuse it"), created, "{round}");
    }
    assert_eq!(harness.store.count_by_state().await.unwrap()[&JobState::Pending], 3);
}

pub(crate) async fn a_job_submitted_again_keeps_what_became_of_it(harness: Harness) {
    let given = work();
    let claim = harness.running(given.clone()).await;
    harness.succeed(&claim).await;
    let ended = harness.job(given.id).await;
    harness.submit(given).await;
    assert_eq!(harness.job(ended.id).await, ended);
    assert!(harness.claim_all().await.is_empty());
}
