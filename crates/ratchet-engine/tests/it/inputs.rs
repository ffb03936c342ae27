//! Bad input: a typed error that names field and limit, and nothing written.

use std::time::Duration;

use ratchet_core::{Backoff, Clock, Timestamp};
use ratchet_engine::{Enqueue, Failure, Job, JobContext, Ratchet, SubmitError, SystemClock};

use crate::support::{Play, engine, memory};

type Set = Box<dyn Fn(Enqueue<Play>) -> Enqueue<Play>>;

fn set(set: impl Fn(Enqueue<Play>) -> Enqueue<Play> + 'static) -> Set {
    Box::new(set)
}

#[tokio::test]
async fn limits_hold_at_the_limit_and_one_past_it_is_refused_with_field_and_limit() {
    let years = ratchet_core::limits::DURATION_MAX;
    let s = |n: usize| "x".repeat(n);
    let later = |by: Duration| ratchet_core::clock::later(SystemClock.now(), by);
    let tags = |n: usize| (0..n).map(|n| format!("tag{n}")).collect::<Vec<_>>();
    let with_params = |n: usize| set(move |e| (0..n).fold(e, |e, n| e.param(format!("k{n}"), "v")));
    // Field and limit in the error's text, what is accepted, what is refused.
    let rows: Vec<(&str, &str, Set, Set)> = vec![
        ("`queue`", "64", set(move |e| e.queue("q".repeat(64))), set(move |e| e.queue("q".repeat(65)))),
        ("`queue`", "a-z", set(|e| e.queue("a.b_c-1")), set(|e| e.queue("A"))),
        ("`queue`", "1 to 64", set(|e| e.queue("a")), set(|e| e.queue(""))),
        ("`tag`", "64", set(move |e| e.tags([s(64)])), set(move |e| e.tags([s(65)]))),
        ("`tags`", "32", set(move |e| e.tags(tags(32))), set(move |e| e.tags(tags(33)))),
        ("`tag`", "NUL", set(|e| e.tags(["a"])), set(|e| e.tags(["a\0b"]))),
        ("`idempotency_key`", "255", set(move |e| e.idempotency_key(s(255))), set(move |e| e.idempotency_key(s(256)))),
        ("`idempotency_key`", "NUL", set(|e| e.idempotency_key("i")), set(|e| e.idempotency_key("\0"))),
        (
            "`business_key`",
            "255",
            set(move |e| e.business_key("é".repeat(255))),
            set(move |e| e.business_key("é".repeat(256))),
        ),
        ("`business_key`", "NUL", set(|e| e.business_key("b")), set(|e| e.business_key("b\0"))),
        ("`resource`", "100", set(move |e| e.resource(s(100))), set(move |e| e.resource(s(101)))),
        ("`resource`", "space", set(|e| e.resource("printer 2")), set(|e| e.resource(" printer"))),
        ("`resource`", "control", set(|e| e.resource("é")), set(|e| e.resource("prin\tter"))),
        ("`principal`", "255", set(move |e| e.principal(s(255))), set(move |e| e.principal(s(256)))),
        ("`params`", "64", with_params(64), with_params(65)),
        ("`params key`", "64", set(move |e| e.param(s(64), "v")), set(move |e| e.param(s(65), "v"))),
        ("`params value of \"k\"`", "1024", set(move |e| e.param("k", s(1_024))), set(move |e| e.param("k", s(1_025)))),
        ("`params value of \"k\"`", "NUL", set(|e| e.param("k", "")), set(|e| e.param("k", "\0"))),
        ("`delay`", "10 years", set(move |e| e.delay(years)), set(move |e| e.delay(years + Duration::from_nanos(1)))),
        (
            "`at`",
            "10 years",
            set(move |e| e.at(later(years))),
            set(move |e| e.at(later(years + Duration::from_mins(1)))),
        ),
        ("`at`", "1970", set(|e| e.at(Timestamp::UNIX_EPOCH).queue("elsewhere")), set(|e| e.at(Timestamp::MIN))),
        (
            "`timeout`",
            "10 years",
            set(move |e| e.timeout(years)),
            set(move |e| e.timeout(years + Duration::from_nanos(1))),
        ),
        (
            "`timeout`",
            "1ms",
            set(|e| e.timeout(Duration::from_millis(1))),
            set(|e| e.timeout(Duration::from_micros(999))),
        ),
        (
            "`backoff`",
            "10 years",
            set(move |e| e.backoff(Backoff::Fixed(years))),
            set(move |e| e.backoff(Backoff::Fixed(years * 2))),
        ),
        ("`max_retries`", "10000", set(|e| e.max_retries(10_000)), set(|e| e.max_retries(10_001))),
        (
            "`on_failure.timeout`",
            "1ms",
            set(|e| e.on_failure(Play::Gate)),
            set(|e| {
                use ratchet_engine::JobExt;
                e.on_failure(Play::Gate.with(|step| step.timeout(Duration::ZERO)))
            }),
        ),
    ];
    let (ratchet, _) = engine().await;
    let base = || ratchet.enqueue(Play::Return("x".into())).delay(years);
    for (field, limit, accepted, refused) in &rows {
        if let Err(error) = accepted(base()).submit().await {
            panic!("{field} at its limit was refused: {error}");
        }
        let before = ratchet.count_by_state().await.unwrap();
        let error = refused(base()).submit().await.expect_err(field);
        assert!(matches!(error, SubmitError::Invalid(_)), "{error:?}");
        let text = error.to_string();
        assert!(text.contains(field) && text.contains(limit), "{text:?} lacks {field} or {limit}");
        assert_eq!(ratchet.count_by_state().await.unwrap(), before, "{field}: nothing is written");
    }
}

#[tokio::test]
async fn of_several_bad_options_the_first_is_reported() {
    let (ratchet, _) = engine().await;
    let field = |refused: Result<(), SubmitError>| match refused {
        Err(SubmitError::Invalid(refused)) => refused.field().to_owned(),
        other => panic!("{other:?}"),
    };
    let job = || ratchet.enqueue(Play::Return("x".into()));
    let jobs = [
        ("queue", job().queue("No Such").business_key("")),
        ("queue", job().queue("No Such").idempotency_key("")),
        ("queue", job().queue("No Such").await_signal("", None)),
        ("business_key", job().business_key("").await_signal("", None).queue("No Such")),
        ("idempotency_key", job().idempotency_key("").business_key("")),
        ("idempotency_key", job().idempotency_key("").idempotency_key("good")),
        ("signal key", job().await_signal("", None).idempotency_key("").tags([""])),
    ];
    for (expected, job) in jobs {
        assert_eq!(field(job.submit().await.map(drop)), expected);
    }
    let batches = [
        ("tag", ratchet.batch().tags([""]).idempotency_key("")),
        ("idempotency_key", ratchet.batch().idempotency_key("").idempotency_key("good")),
    ];
    for (expected, batch) in batches {
        assert_eq!(field(batch.child(Play::Gate).submit().await.map(drop)), expected);
    }
    let workflow = ratchet.workflow().step("a", Play::Gate).idempotency_key("").idempotency_key("good");
    assert_eq!(field(workflow.submit().await.map(drop)), "idempotency_key");
}

#[tokio::test]
async fn payloads_are_checked_for_size_and_nul() {
    let (ratchet, _) = engine().await;
    let around = r#"{"Return":""}"#.len();
    let limit = 100 * 1_024 - around;
    ratchet.enqueue(Play::Return("x".repeat(limit))).submit().await.unwrap();
    let error = ratchet.enqueue(Play::Return("x".repeat(limit + 1))).submit().await.unwrap_err().to_string();
    assert!(error.contains("`payload` is 102401 bytes of JSON; the limit is 102400"), "{error}");
    let error = ratchet.enqueue(Play::Return("\0".into())).submit().await.unwrap_err().to_string();
    assert!(error.contains("`payload` holds a NUL character"), "{error}");
    let error =
        ratchet.enqueue(Play::Gate).on_success(Play::Return("\0".into())).submit().await.unwrap_err().to_string();
    assert!(error.contains("`on_success.payload`"), "{error}");
}

/// A job whose kind has so many characters.
#[derive(serde::Serialize, serde::Deserialize)]
struct Named<const CHARS: usize>;

impl<const CHARS: usize> Job for Named<CHARS> {
    const KIND: &'static str =
        "kkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkk"
            .split_at(CHARS)
            .0;
    type Output = ();
    async fn run(self, _ctx: JobContext) -> Result<(), Failure> {
        Ok(())
    }
}

#[tokio::test]
async fn a_kind_is_checked_when_it_is_registered_and_when_it_is_submitted() {
    let (ratchet, _) = engine().await;
    ratchet.enqueue(Named::<128>).submit().await.unwrap();
    let error = ratchet.enqueue(Named::<129>).submit().await.unwrap_err().to_string();
    assert!(error.contains("`kind` is 129 characters long; the limit is 128"), "{error}");
    Ratchet::builder().store(memory()).job::<Named<128>>().start().await.unwrap();
    let error = Ratchet::builder().store(memory()).job::<Named<129>>().start().await.unwrap_err().to_string();
    assert!(error.contains("`kind` is 129 characters long; the limit is 128"), "{error}");
}

#[tokio::test]
async fn an_error_text_is_cut_on_a_character_boundary() {
    let (ratchet, _) = engine().await;
    let handle = ratchet.enqueue(Play::Leak("é".repeat(3_000))).max_retries(0).submit().await.unwrap();
    let error = handle.wait().await.unwrap().last_error.unwrap();
    assert_eq!((error.chars().count(), error.chars().last()), (2_000, Some('é')));
}

#[tokio::test]
async fn a_submit_of_many_takes_ten_thousand_and_stands_or_falls_as_a_whole() {
    let (ratchet, _) = engine().await;
    let many = |n: usize| (0..n).map(|_| ratchet.enqueue(Play::Gate).queue("elsewhere")).collect::<Vec<_>>();
    assert_eq!(ratchet.submit_all(many(10_000)).await.unwrap().len(), 10_000);
    let before = ratchet.count_by_state().await.unwrap();
    let error = ratchet.submit_all(many(10_001)).await.unwrap_err().to_string();
    assert!(error.contains("`jobs`") && error.contains("10000"), "{error}");
    let held = ratchet.enqueue(Play::Gate).queue("elsewhere").business_key("taken").submit().await.unwrap();
    let mut jobs = many(3);
    jobs[1] = ratchet.enqueue(Play::Gate).queue("elsewhere").business_key("taken");
    let error = ratchet.submit_all(jobs).await.unwrap_err();
    assert!(matches!(error, SubmitError::Duplicate { holder, .. } if holder == held.id()));
    let after = ratchet.count_by_state().await.unwrap();
    assert_eq!(after.values().sum::<u64>(), before.values().sum::<u64>() + 1);
    assert_eq!(ratchet.submit_all(many(0)).await.unwrap().len(), 0);
}
