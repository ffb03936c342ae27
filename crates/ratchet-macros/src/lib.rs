//! Sugar for Ratchet jobs. Use it through the `ratchet` crate, which re-exports everything here.
//!
//! Whatever these macros write can be written by hand: a payload struct, an impl of `ratchet::Job`, an impl of
//! `ratchet::JobError`.

use proc_macro::TokenStream;

mod condition;
mod duration;
mod job;
mod job_error;
mod problems;

/// Makes a job of a function.
///
/// ```
/// use ratchet::prelude::*;
/// # struct Gateway;
/// # #[derive(serde::Serialize, serde::Deserialize)]
/// # pub struct Receipt;
/// # impl Gateway {
/// #     async fn charge(&self, _: u64, _: u64) -> std::io::Result<Receipt> { Ok(Receipt) }
/// # }
///
/// #[job(kind = "billing.charge", max_retries = 5, backoff = "exponential 2s", timeout = "30s")]
/// async fn charge(ctx: &JobContext, gateway: State<Gateway>, invoice: u64, cents: u64) -> std::io::Result<Receipt> {
///     ctx.log().info("charging");
///     gateway.charge(invoice, cents).await
/// }
///
/// let job: ChargeJob = charge(17, 4_200);
/// assert_eq!(jobs![charge][0].kind(), ChargeJob::KIND);
/// ```
///
/// It leaves three things behind:
///
/// - `ChargeJob`, the payload that is stored, with an impl of `Job`: the function's name in camel case and `Job`;
/// - `charge(invoice, cents)`, which makes one: the function's own name with its payload arguments. Enqueue what it
///   returns, and name it in `jobs![charge]`;
/// - `ChargeJob::call(&ctx, gateway, invoice, cents)`, the body with its original parameters, for unit tests.
///
/// # Parameters
///
/// | parameter | is |
/// |---|---|
/// | `&JobContext` or `JobContext` | the running attempt; at most one |
/// | `State<T>` | a value that was given to the builder |
/// | `#[state] name: Alias` | the same, where the type is an alias of a `State<T>` |
/// | `Prev<T>` | the result of the step before, in a chain or a workflow; at most one |
/// | anything else | payload: owned, named, and able to go through serde |
///
/// A payload parameter may carry `#[serde(…)]`, which goes to its field. Jobs outlive deployments: give a parameter
/// that you add later a `#[serde(default)]`, so that jobs that are already stored can still be read.
///
/// # The returned type
///
/// A type whose name ends in `Result` (`Result<T, E>`, `anyhow::Result<T>`, `io::Result<T>`) makes a job that can fail:
/// `T` is its result and `E` any error. Every other type is the result of a job that cannot.
///
/// # Options
///
/// | option | meaning | if left out |
/// |---|---|---|
/// | `kind = "billing.charge"` | the stable name under which jobs are stored: `[a-z0-9._-]`, at most 128 characters | the function's name |
/// | `queue = "billing"` | the queue: `[a-z0-9._-]`, at most 64 characters | `default` |
/// | `priority = "high"` | `lowest`, `low`, `normal`, `high` or `critical` | `normal` |
/// | `max_retries = 5` | how many attempts may follow the first, at most 10,000 | 3 |
/// | `backoff = "exponential 2s"` | or `"fixed 500ms"`, or `"none"` | `"exponential 1s"` |
/// | `timeout = "30s"` | how long one attempt may take; units are `ms`, `s`, `m`, `h`, `d` | no limit |
/// | `blocking` | for a plain `fn`: it runs on the blocking pool | the function is `async` |
/// | `resource = "printer"` | a limited resource that a job needs a permit for while it runs | none |
/// | `service = "payments"` | what the job calls: kinds of one service share a circuit breaker | the kind |
/// | `breaker = "fast"` | how that breaker judges: `default`, `fast`, `critical` or `external-api` | as the node says, else `default` |
/// | `cron = "0 0 2 * * ?"` | fired by itself: Quartz cron, six or seven fields, the first being seconds | not fired by itself |
/// | `every = "5m"` | the same by elapsed time, at least `1s` | |
/// | `zone = "Europe/Berlin"` | whose clock `cron` means | UTC |
/// | `dst = "gap:skip, overlap:last"` | what happens when that clock is put forward (`at_shift`, `skip`) or back (`by_pattern`, `first`, `last`, `both`) | `gap:at_shift, overlap:by_pattern` |
/// | `misfire = "fire_once"` | what becomes of several overdue fires: `skip`, `fire_once`, `catch_up:3` | `catch_up:11` |
/// | `overlap = "skip"` | what becomes of a fire while the last job has not ended: `allow`, `skip`, `queue` | `allow` |
/// | `crate = "path"` | where the `ratchet` crate is, if not at `::ratchet` | `::ratchet` |
///
/// A job that is fired by itself has no payload arguments. Its schedule is declared by every node that registers it, and is
/// there once, however many nodes there are.
#[proc_macro_attribute]
pub fn job(options: TokenStream, item: TokenStream) -> TokenStream {
    job::expand(options.into(), item.into()).into()
}

/// Makes a condition of a function that judges a job's result, for `.when(…)`.
///
/// ```
/// use ratchet::prelude::*;
/// # #[derive(serde::Serialize, serde::Deserialize)]
/// # pub struct Receipt { cents: u64 }
/// # #[job] async fn charge() -> Receipt { Receipt { cents: 1 } }
/// # #[job] async fn audit(receipt: Prev<Receipt>) { let _ = receipt.cents; }
///
/// /// Large sums are looked at by a person.
/// #[condition]
/// fn is_large(receipt: &Receipt) -> bool {
///     receipt.cents >= 100_000
/// }
///
/// # fn example(client: &ratchet::Client) {
/// let submit = client.enqueue(charge()).when(is_large, audit());
/// # drop(submit);
/// # }
/// # let _ = (jobs![charge, audit], conditions![is_large]);
/// assert!(!is_large::call(&Receipt { cents: 7 }));
/// ```
///
/// The function takes the result, by reference or by value, and returns `bool` or a `Result<bool, E>`. The compiler checks
/// that it is used on jobs whose result is of that type. It is stored by its name and asked on a node that has it: name it in
/// `.jobs(conditions![is_large])`. `name = "…"` gives it another name than the function's, `crate = "path"` says where the
/// `ratchet` crate is.
#[proc_macro_attribute]
pub fn condition(options: TokenStream, item: TokenStream) -> TokenStream {
    condition::expand(options.into(), item.into()).into()
}

/// Lets an error say which of its cases are not worth another attempt.
///
/// ```
/// use ratchet::prelude::*;
///
/// #[derive(Debug, thiserror::Error, JobError)]
/// enum ChargeError {
///     #[error("card declined")]
///     #[do_not_retry("declined by the issuer")]
///     Declined,
///     #[error("gateway unreachable")]
///     Gateway(#[source] std::io::Error),
///     #[error(transparent)]
///     Ledger(#[from] LedgerError),
/// }
///
/// #[derive(Debug, thiserror::Error, JobError)]
/// #[error("the books are closed")]
/// #[do_not_retry]
/// struct LedgerError;
///
/// assert_eq!(ChargeError::Declined.do_not_retry().as_deref(), Some("declined by the issuer"));
/// assert!(ChargeError::Gateway(std::io::Error::other("timeout")).do_not_retry().is_none());
/// assert!(ChargeError::from(LedgerError).do_not_retry().is_some());
/// ```
///
/// `#[do_not_retry]` and `#[do_not_retry("reason")]` go on the whole type or on a variant. What is not marked asks its
/// source (`#[source]`, `#[from]`, a field called `source`, the field of `#[error(transparent)]`): another `JobError`
/// there speaks for itself, and in any other error a `ratchet::Failure` is looked for along the chain.
///
/// The type implements [`std::error::Error`] on its own or with `thiserror`. `#[job_error(crate = "path")]` says where
/// the `ratchet` crate is, if not at `::ratchet`.
#[proc_macro_derive(JobError, attributes(do_not_retry, job_error, source))]
pub fn derive_job_error(item: TokenStream) -> TokenStream {
    job_error::expand(item.into()).into()
}
