//! Every form of `#[job]`.

use std::sync::Arc;
use std::time::Duration;

use ratchet::prelude::*;
use ratchet::schedule::{DstGap, DstOverlap, DstPolicy, Schedule};
use ratchet::{JobDefaults, MemoryStore, Requirement, ScheduleFilter, SystemClock};
use serde::{Deserialize, Serialize};

use crate::node::live;

type Number = State<u32>;
type AppResult<T> = Result<T, std::num::ParseIntError>;

#[derive(Debug, PartialEq, Serialize, Deserialize)]
struct Receipt {
    cents: u64,
}

/// Charges an invoice.
#[job(
    kind = "billing.charge",
    queue = "billing",
    priority = "high",
    max_retries = 5,
    backoff = "exponential 2s",
    timeout = "30s"
)]
async fn charge(ctx: &JobContext, fee: State<u32>, invoice: String, mut cents: u64) -> Result<Receipt, std::io::Error> {
    ctx.progress(0.5);
    cents += u64::from(*fee);
    if invoice.is_empty() { Err(std::io::Error::other("no invoice")) } else { Ok(Receipt { cents }) }
}

#[job]
async fn nothing() {}

#[job]
async fn value(text: String) -> usize {
    text.len()
}

#[job(blocking, backoff = "fixed 500ms")]
fn sum(numbers: Vec<u64>) -> u64 {
    // As blocking clients do; a thread that drives a runtime may not.
    tokio::runtime::Handle::current().block_on(async { numbers.iter().sum() })
}

#[job(backoff = "none")]
async fn aliased(#[state] number: Number, ctx: JobContext, text: ratchet::State<String>) -> (u32, String, u32) {
    (*number, text.to_string(), ctx.attempt())
}

#[job]
async fn result_alias(text: String) -> AppResult<u32> {
    text.parse()
}

#[job]
async fn io_result() -> std::io::Result<()> {
    Ok(())
}

#[job]
async fn anyhow_result(text: String) -> anyhow::Result<u32> {
    Ok(text.parse()?)
}

#[job]
async fn optional(some: bool) -> Option<u8> {
    some.then_some(1)
}

#[job]
async fn r#type(r#in: u8) -> u8 {
    r#in
}

#[job]
async fn evolved(name: String, #[serde(default)] added_later: Option<u8>) -> String {
    format!("{name} {added_later:?}")
}

mod elsewhere {
    pub(crate) use ratchet as renamed;

    #[renamed::job(crate = "crate::job_forms::elsewhere::renamed")]
    pub(crate) async fn visible() -> u8 {
        7
    }
}

macro_rules! job_by_macro {
    ($name:ident, $kind:literal, $argument:ty, $returned:ty) => {
        #[job(kind = $kind)]
        async fn $name(argument: $argument) -> $returned {
            Ok(argument)
        }
    };
}

job_by_macro!(by_macro, "by.macro", u8, Result<u8, std::fmt::Error>);

#[tokio::test]
async fn the_body_can_be_called_directly() {
    assert_eq!(ValueJob::call("four".into()).await, 4);
    NothingJob::call().await;
    assert_eq!(ResultAliasJob::call("x".into()).await.unwrap_err().to_string(), "invalid digit found in string");
}

#[test]
fn the_payload_survives_its_json() {
    let text = serde_json::to_string(&charge("A-1".into(), 4_200)).unwrap();
    assert_eq!(text, r#"{"invoice":"A-1","cents":4200}"#);
    let again: ChargeJob = serde_json::from_str(&text).unwrap();
    assert_eq!(serde_json::to_string(&again).unwrap(), text);
    assert_eq!(serde_json::to_string(&nothing()).unwrap(), "{}");
    assert_eq!(serde_json::to_string(&r#type(1)).unwrap(), r#"{"in":1}"#);
}

#[test]
fn arguments_do_not_leak_into_debug_output() {
    assert_eq!(format!("{:?}", charge("secret".into(), 1)), "ChargeJob { .. }");
}

#[tokio::test]
async fn a_payload_of_an_older_version_can_be_read() {
    let old: EvolvedJob = serde_json::from_str(r#"{"name":"Ada","removed_since":1}"#).unwrap();
    assert_eq!(live(old).await.result.as_deref(), Some("Ada None"));
}

#[test]
fn options_are_the_defaults_of_the_kind() {
    let expected = JobDefaults::default()
        .queue("billing")
        .priority(Priority::High)
        .max_retries(5)
        .backoff(Backoff::Exponential(Duration::from_secs(2)))
        .timeout(Duration::from_secs(30));
    assert_eq!(ChargeJob::defaults(), expected);
    assert_eq!(NothingJob::defaults(), JobDefaults::default());
    assert_eq!(
        SumJob::defaults(),
        JobDefaults::default().blocking().backoff(Backoff::Fixed(Duration::from_millis(500)))
    );
    assert_eq!(AliasedJob::defaults().backoff, Backoff::None);
}

#[test]
fn states_are_required() {
    assert_eq!(ChargeJob::requires(), [Requirement::state::<u32>()]);
    assert_eq!(AliasedJob::requires(), [Requirement::state::<u32>(), Requirement::state::<String>()]);
    assert_eq!(ValueJob::requires(), []);
}

#[test]
fn kinds_are_named_or_taken_from_the_function() {
    let registered = jobs![charge, nothing, r#type, elsewhere::visible, by_macro];
    let kinds: Vec<_> = registered.iter().map(ratchet::Registration::kind).collect();
    assert_eq!(kinds, ["billing.charge", "nothing", "type", "visible", "by.macro"]);
}

#[test]
fn a_job_may_be_local_to_a_function() {
    struct Local;

    #[job]
    async fn local(_local: State<Local>, here: bool) -> bool {
        here
    }

    assert_eq!(jobs![local][0].kind(), "local");
    assert_eq!(LocalJob::requires(), [Requirement::state::<Local>()]);
}

#[tokio::test]
async fn every_form_runs() {
    assert_eq!(live(charge("A-1".into(), 4_200)).await.result, Some(Receipt { cents: 4_205 }));
    assert_eq!(live(nothing()).await.result, Some(()));
    assert_eq!(live(value("four".into())).await.result, Some(4));
    assert_eq!(live(sum(vec![1, 2, 3])).await.result, Some(6));
    assert_eq!(live(aliased()).await.result, Some((5, "a text".to_owned(), 1)));
    assert_eq!(live(result_alias("7".into())).await.result, Some(7));
    assert_eq!(live(io_result()).await.result, Some(()));
    assert_eq!(live(anyhow_result("7".into())).await.result, Some(7));
    assert_eq!(live(optional(true)).await.result, Some(Some(1)));
    assert_eq!(live(optional(false)).await.result, Some(None));
    assert_eq!(live(r#type(3)).await.result, Some(3));
    assert_eq!(live(elsewhere::visible()).await.result, Some(7));
    assert_eq!(live(by_macro(9)).await.result, Some(9));
}

#[tokio::test]
async fn an_error_of_any_sort_fails_the_job() {
    let check = |error: Option<&str>, expected: &str| assert_eq!(error, Some(expected));
    check(live(charge(String::new(), 1)).await.record.last_error.as_deref(), "io::Error: no invoice");
    let life = live(result_alias("x".into())).await;
    check(life.record.last_error.as_deref(), "ParseIntError: invalid digit found in string");
    let life = live(anyhow_result("x".into())).await;
    check(life.record.last_error.as_deref(), "anyhow::Error: invalid digit found in string");
    assert_eq!(life.do_not_retry(), None);
}

#[job(cron = "0 30 2 * * ?", zone = "Europe/Berlin", dst = "gap:skip, overlap:last")]
async fn strict() {}

#[job(cron = "0 30 2 * * ?", dst = "never")]
async fn wrong_dst() {}

#[tokio::test]
async fn a_schedule_says_what_happens_when_the_clock_is_shifted() {
    let node = || Ratchet::builder().store(MemoryStore::new(Arc::new(SystemClock)));
    let ratchet = node().jobs(jobs![strict]).start().await.unwrap();
    let all = ratchet.schedules(&ScheduleFilter::default(), None, 10).await.unwrap().items;
    let Schedule::Cron(cron) = &all[0].schedule else { panic!("{all:?}") };
    assert_eq!(cron.dst, DstPolicy { gap: DstGap::Skip, overlap: DstOverlap::Last });
    let refused = node().jobs(jobs![wrong_dst]).start().await.unwrap_err();
    assert!(refused.to_string().contains("`schedule of wrong_dst: dst` is \"never\""), "{refused}");
}
