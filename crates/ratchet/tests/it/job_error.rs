//! What errors say about another attempt, through every way that they travel.

use std::error::Error;
use std::fmt;
use std::time::Duration;

use ratchet::prelude::*;

use crate::node::live;

type BoxError = Box<dyn Error + Send + Sync>;

#[derive(Debug, thiserror::Error, JobError)]
enum Charge {
    #[error("declined")]
    #[do_not_retry("declined by the issuer")]
    Declined,
    #[error("no such card")]
    #[do_not_retry]
    NoSuchCard { number: u64 },
    #[error("unreachable")]
    Unreachable(#[source] std::io::Error),
    #[error("busy")]
    Busy,
}

#[derive(Debug, thiserror::Error, JobError)]
enum Order {
    #[error(transparent)]
    Charge(#[from] Charge),
    #[error("boxed")]
    Boxed(#[source] Box<Charge>),
    #[error("maybe")]
    Maybe(#[source] Option<Charge>),
    #[error("named {why}")]
    Named { why: u8, source: Charge },
    #[error("anything")]
    Anything(#[source] BoxError),
    #[error(transparent)]
    TransparentAnything(BoxError),
    #[error("anyhow")]
    Anyhow(#[source] anyhow::Error),
    #[error("plain")]
    Plain(#[source] Plain),
    #[error("failure")]
    Failure(#[from] Failure),
    #[error("marked over its source")]
    #[do_not_retry("mark")]
    Marked(#[source] Charge),
    #[error("not a source")]
    Unrelated(Charge),
}

#[derive(Debug, thiserror::Error)]
#[error("plain")]
struct Plain(#[source] BoxError);

#[derive(Debug, thiserror::Error, JobError)]
#[error("whole")]
#[do_not_retry("whole type")]
struct Whole;

#[derive(Debug, thiserror::Error, JobError)]
#[do_not_retry("all of them")]
enum All {
    #[error("one")]
    #[do_not_retry("this one")]
    One,
    #[error("another")]
    Another,
}

#[derive(Debug, thiserror::Error, JobError)]
#[error(transparent)]
struct Wrapper(Charge);

#[derive(Debug, thiserror::Error, JobError)]
enum Never {}

#[derive(Debug, thiserror::Error, JobError)]
#[error("generic")]
struct Generic<T>(#[source] T);

/// By hand: no thiserror, no derive.
#[derive(Debug)]
struct ByHand;

impl fmt::Display for ByHand {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("by hand")
    }
}

impl Error for ByHand {}

impl JobError for ByHand {
    fn do_not_retry(&self) -> Option<std::borrow::Cow<'static, str>> {
        Some("written by hand".into())
    }
}

fn marked() -> Failure {
    Failure::do_not_retry("broken", "deep inside")
}

#[test]
fn a_derived_error_asks_its_mark_then_its_source() {
    let check = |error: &dyn JobError, expected: Option<&str>| {
        assert_eq!(error.do_not_retry().as_deref(), expected, "{error:?}");
    };
    let io = || std::io::Error::other("x");
    check(&Charge::Declined, Some("declined by the issuer"));
    check(&Charge::NoSuchCard { number: 4 }, Some("NoSuchCard is marked do_not_retry"));
    check(&Charge::Unreachable(io()), None);
    check(&Charge::Busy, None);
    check(&Order::Charge(Charge::Declined), Some("declined by the issuer"));
    check(&Order::Charge(Charge::Busy), None);
    check(&Order::Boxed(Box::new(Charge::Declined)), Some("declined by the issuer"));
    check(&Order::Maybe(Some(Charge::Declined)), Some("declined by the issuer"));
    check(&Order::Maybe(None), None);
    check(&Order::Named { why: 1, source: Charge::Declined }, Some("declined by the issuer"));
    check(&Order::Anything(marked().into()), Some("deep inside"));
    check(&Order::Anything(Plain(marked().into()).into()), Some("deep inside"));
    check(&Order::Anything("text".into()), None);
    check(&Order::TransparentAnything(marked().into()), Some("deep inside"));
    check(&Order::Anyhow(marked().into()), Some("deep inside"));
    check(&Order::Anyhow(anyhow::Error::from(marked()).context("while charging")), Some("deep inside"));
    check(&Order::Plain(Plain(marked().into())), Some("deep inside"));
    check(&Order::Failure(marked()), Some("deep inside"));
    check(&Order::Marked(Charge::Busy), Some("mark"));
    check(&Order::Unrelated(Charge::Declined), None);
    check(&Whole, Some("whole type"));
    check(&All::One, Some("this one"));
    check(&All::Another, Some("all of them"));
    check(&Wrapper(Charge::Declined), Some("declined by the issuer"));
    check(&Generic(marked()), Some("deep inside"));
    check(&Generic(Charge::Busy), None);
}

#[job]
async fn derived(declined: bool) -> Result<(), Order> {
    if declined { Err(Charge::Declined)? } else { Err(Charge::Busy)? }
}

#[job]
async fn never() -> Result<u8, Never> {
    Ok(1)
}

#[job]
async fn by_hand() -> Result<(), ByHand> {
    Err(ByHand)
}

#[job]
async fn failure() -> Result<(), Failure> {
    Err(marked())
}

#[job]
async fn boxed() -> Result<(), BoxError> {
    Err(marked())?
}

#[job]
async fn boxed_deep() -> Result<(), BoxError> {
    Err(Plain(marked().into()))?
}

#[job]
async fn anyhow_plain() -> anyhow::Result<()> {
    Err(marked())?
}

#[job]
async fn anyhow_context() -> anyhow::Result<()> {
    Err(anyhow::Error::from(marked()).context("while charging"))
}

#[job]
async fn text() -> Result<(), &'static str> {
    Err("just words")
}

#[job]
async fn snoozing(ctx: &JobContext) -> anyhow::Result<bool> {
    if ctx.job().deferred_until.is_none() {
        return Err(Failure::snooze(Duration::from_millis(1)).into());
    }
    Ok(true)
}

#[tokio::test]
async fn advice_reaches_the_engine_however_it_travels() {
    assert_eq!(live(derived(true)).await.do_not_retry(), Some("declined by the issuer"));
    assert_eq!(live(derived(false)).await.do_not_retry(), None);
    assert_eq!(live(never()).await.result, Some(1));
    assert_eq!(live(by_hand()).await.do_not_retry(), Some("written by hand"));
    assert_eq!(live(failure()).await.do_not_retry(), Some("deep inside"));
    assert_eq!(live(boxed()).await.do_not_retry(), Some("deep inside"));
    assert_eq!(live(boxed_deep()).await.do_not_retry(), Some("deep inside"));
    assert_eq!(live(anyhow_plain()).await.do_not_retry(), Some("deep inside"));
    assert_eq!(live(anyhow_context()).await.do_not_retry(), Some("deep inside"));
    let life = live(anyhow_context()).await;
    assert_eq!(life.record.last_error.as_deref(), Some("anyhow::Error: while charging: broken"));
    assert_eq!(live(text()).await.record.last_error.as_deref(), Some("Error: just words"));
}

#[tokio::test]
async fn a_snooze_inside_anyhow_puts_the_job_off() {
    let life = live(snoozing()).await;
    assert_eq!((life.result, life.record.attempts), (Some(true), 1));
}
