//! The kinds of jobs that the demo runs, each with its own way to end.

use std::time::Duration;

use ratchet::Registration;
use ratchet::prelude::*;

pub(super) fn all() -> Vec<Registration> {
    jobs![thumbnail, email, import, checksum, charge, apologize, report, parse, export]
}

async fn work(millis: std::ops::Range<u64>) {
    tokio::time::sleep(Duration::from_millis(fastrand::u64(millis))).await;
}

/// Short, many, and always good.
#[job(kind = "demo.thumbnail")]
pub(super) async fn thumbnail(picture: u32) -> String {
    work(5..60).await;
    format!("thumbnail-{picture}.png")
}

#[derive(Debug, thiserror::Error)]
#[error("the mail server said: try again later")]
pub(super) struct TryLater;

/// Fails as often as it is told to, then succeeds: retries with a growing wait.
#[job(kind = "demo.email", max_retries = 4, backoff = "exponential 150ms")]
pub(super) async fn email(ctx: &JobContext, fails: u32) -> Result<(), TryLater> {
    work(10..80).await;
    if ctx.attempt() > fails {
        return Ok(());
    }
    ctx.log().field("of", fails).warn("the mail server is busy");
    Err(TryLater)
}

/// Long enough to show how far it is.
#[job(kind = "demo.import")]
pub(super) async fn import(ctx: &JobContext, rows: u32) -> u32 {
    ctx.log().field("rows", rows).info("importing");
    for done in 1..=10 {
        work(60..120).await;
        ctx.progress(f64::from(done) / 10.0);
    }
    ctx.log().info("done");
    rows
}

/// Holds a thread: it runs on the blocking pool.
#[job(kind = "demo.checksum", blocking)]
pub(super) fn checksum(seed: u64) -> u64 {
    (0..3_000_000_u64).fold(seed, |sum, n| sum.rotate_left(5) ^ n)
}

#[derive(Debug, thiserror::Error, JobError)]
pub(super) enum ChargeError {
    #[error("card declined")]
    #[do_not_retry("declined by the issuer")]
    Declined,
}

/// An error that says that another attempt cannot help goes to the dead letter queue at once.
#[job(kind = "demo.charge", max_retries = 5)]
pub(super) async fn charge(cents: u32, declined: bool) -> Result<u32, ChargeError> {
    work(20..120).await;
    if declined { Err(ChargeError::Declined) } else { Ok(cents) }
}

/// The failure callback of a charge.
#[job(kind = "demo.apologize")]
pub(super) async fn apologize(ctx: &JobContext) -> String {
    work(5..20).await;
    let error = ctx.origin().and_then(|charge| charge.error.clone());
    format!("sorry: {}", error.unwrap_or_default())
}

/// Takes longer than its timeout as often as it is told to.
#[job(kind = "demo.report", timeout = "300ms", max_retries = 1, backoff = "fixed 200ms")]
pub(super) async fn report(ctx: &JobContext, slow: u32) {
    let pages = if ctx.attempt() <= slow { 100 } else { 3 };
    for _ in 0..pages {
        work(20..40).await;
    }
}

/// A bug: the panic fails the attempt and nothing else.
#[job(kind = "demo.parse", max_retries = 1, backoff = "fixed 300ms")]
pub(super) async fn parse(text: String) -> i64 {
    work(5..20).await;
    text.parse().expect("a number")
}

/// Runs until it is canceled. If its node stops instead, the error gives it back to its queue; if the demo that would cancel it was
/// killed, the timeout ends it.
#[job(kind = "demo.export", timeout = "20s")]
pub(super) async fn export(ctx: &JobContext) -> Result<(), BrokenOff> {
    ctx.canceled().await;
    Err(BrokenOff)
}

#[derive(Debug, thiserror::Error)]
#[error("the export was broken off")]
pub(super) struct BrokenOff;
