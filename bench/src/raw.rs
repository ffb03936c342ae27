//! The ceiling: bare statements that write the same rows, with no engine, no fence and no rules.

use std::fmt::Write as _;
use std::sync::atomic::{AtomicU64, Ordering};

use anyhow::Result;
use async_trait::async_trait;
use ratchet::Job as _;
use ratchet_bench::noop::Noop;
use uuid::Uuid;

/// One bare connection.
#[async_trait]
pub(crate) trait Raw: Send {
    /// One row in one table, committed by itself.
    async fn insert_single(&mut self, job: &RawJob) -> Result<()>;

    /// The hot and the cold rows of all jobs, in one transaction.
    async fn insert(&mut self, jobs: &[RawJob]) -> Result<()>;

    /// In one transaction: ends those that were taken, with a record of each attempt, then takes the next ones.
    async fn turn(&mut self, finished: &[Uuid], take: &Take<'_>) -> Result<Vec<Uuid>>;

    /// Lets jobs that were taken wait again.
    async fn put_back(&mut self, ids: &[Uuid]) -> Result<()>;

    /// Gathers statistics and removes dead rows, as the server would do after a while.
    async fn tidy(&mut self) -> Result<()>;

    /// Bytes that the server has written to its log since it started, if it says so.
    async fn log_bytes(&mut self) -> Result<Option<u64>> {
        Ok(None)
    }

    /// Dead rows that lie in the queue, if there is such a thing.
    async fn dead_rows(&mut self) -> Result<Option<u64>> {
        Ok(None)
    }
}

/// A job as its rows hold it.
pub(crate) struct RawJob {
    pub(crate) id: Uuid,
    pub(crate) kind: String,
    pub(crate) priority: i16,
    pub(crate) payload: String,
}

/// Which jobs to take: the oldest of each lane, merged in the order of priority with ageing.
pub(crate) struct Take<'a> {
    pub(crate) lanes: &'a [Lane],
    pub(crate) most: usize,
}

/// One range of the claim index.
#[derive(Clone)]
pub(crate) struct Lane {
    pub(crate) kind: String,
    pub(crate) priority: i16,
}

const PRIORITY: i16 = 2;
const PRIORITIES: i16 = 5;

impl RawJob {
    /// As the product's jobs without options are.
    pub(crate) fn noops(count: usize) -> Vec<Self> {
        let job = |n| Self {
            id: next_id(),
            kind: Noop::KIND.to_owned(),
            priority: PRIORITY,
            payload: format!("{{\"n\":{n}}}"),
        };
        (0..count).map(job).collect()
    }

    /// Jobs of several kinds and of every priority.
    pub(crate) fn mixed(count: usize, kinds: usize) -> Vec<Self> {
        let job = |n: usize| Self {
            id: next_id(),
            kind: kind_name(n % kinds),
            priority: i16::try_from(n / kinds % 5).unwrap_or(0),
            payload: format!("{{\"n\":{n}}}"),
        };
        (0..count).map(job).collect()
    }
}

impl Lane {
    /// The only one that the jobs of [`RawJob::noops`] are in.
    pub(crate) fn noop() -> Vec<Self> {
        vec![Self { kind: Noop::KIND.to_owned(), priority: PRIORITY }]
    }

    /// All that the jobs of [`RawJob::mixed`] are in.
    pub(crate) fn mixed(kinds: usize) -> Vec<Self> {
        let of_kind = |kind| (0..PRIORITIES).map(move |priority| Self { kind: kind_name(kind), priority });
        (0..kinds).flat_map(of_kind).collect()
    }
}

pub(crate) fn kind_name(number: usize) -> String {
    format!("bench.kind-{number:02}")
}

/// Growing UUIDs of version 7, as the product's are, over all connections: some to the millisecond, with scattered ends.
fn next_id() -> Uuid {
    static IDS: AtomicU64 = AtomicU64::new(0);
    let number = u128::from(IDS.fetch_add(1, Ordering::Relaxed));
    let (millisecond, counter) = (0x01a1_e0f2_4674 + number / 16, (number % 16) << 8);
    let end = (number * 0x9e37_79b9_7f4a_7c15) & 0x3fff_ffff_ffff_ffff;
    Uuid::from_u128(millisecond << 80 | 7 << 76 | counter << 64 | 2 << 62 | end)
}

/// `head`, then `item` so many times with `between`, then `tail`.
pub(crate) fn repeated(head: &str, item: &str, between: &str, count: usize, tail: &str) -> String {
    let mut text = String::with_capacity(head.len() + count * (item.len() + between.len()) + tail.len());
    text.push_str(head);
    for n in 0..count {
        let _ = write!(text, "{}{item}", if n == 0 { "" } else { between });
    }
    text.push_str(tail);
    text
}
