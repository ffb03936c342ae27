//! What a streaming batch holds in memory: a chunk, however many children it has.
//!
//! A binary of its own, because its allocator counts: the size of a process tells little, as allocators and SQLite keep what
//! they once had, and SQLite's own memory, which has a bound of its own, is not meant.
#![expect(clippy::unwrap_used, reason = "helpers of tests")]

use std::alloc::System;
use std::path::Path;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use futures_util::stream;
use ratchet::sqlite::{SqliteStore, Synchronous};
use ratchet::{Failure, Job, JobContext, Ratchet, Store};
use ratchet_chaos::database::{Database, OwnServer};
use serde::{Deserialize, Serialize};
use stats_alloc::{INSTRUMENTED_SYSTEM, StatsAlloc};

#[global_allocator]
static ALLOCATOR: &StatsAlloc<System> = &INSTRUMENTED_SYSTEM;

#[derive(Debug, Serialize, Deserialize)]
struct Idle(u64);

impl Job for Idle {
    const KIND: &'static str = "idle";
    type Output = ();

    async fn run(self, _: JobContext) -> Result<(), Failure> {
        Ok(())
    }
}

/// Bytes that are allocated and not freed.
fn live() -> usize {
    let stats = ALLOCATOR.stats();
    stats.bytes_allocated - stats.bytes_deallocated
}

/// The memory of this process that is resident, in bytes.
fn resident() -> usize {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).unwrap();
    line.trim().trim_end_matches(" kB").parse::<usize>().unwrap() * 1_024
}

/// The least memory that was live near the end of a stream, and after its batch has ended; how large the process was.
#[derive(Debug, Clone, Copy)]
struct Held {
    streaming: usize,
    ended: usize,
    resident: usize,
    streamed_in: Duration,
    ended_in: Duration,
}

/// Near the end of a stream, in children: some chunks, as a part of one is held at any moment.
const WINDOW: u64 = 1_000;

/// Streams a batch while its children run.
async fn stream(ratchet: &Ratchet, children: u64) -> Held {
    let least = Arc::new(Mutex::new(usize::MAX));
    let seen = least.clone();
    let begun = Instant::now();
    let idle = (0..children).map(move |child| {
        if child + WINDOW >= children && child % 10 == 0 {
            let mut seen = seen.lock().unwrap();
            *seen = live().min(*seen);
        }
        Idle(child)
    });
    let batch = ratchet.batch().stream(stream::iter(idle)).await.unwrap();
    let streamed_in = begun.elapsed();
    let summary = batch.summary().await.unwrap();
    assert_eq!((summary.total, summary.succeeded), (children, children));
    let ended_in = begun.elapsed();
    // Heartbeats and scans go on beside it, so the least of some moments.
    let mut ended = usize::MAX;
    for _ in 0..50 {
        tokio::time::sleep(Duration::from_millis(5)).await;
        ended = live().min(ended);
    }
    let streaming = *least.lock().unwrap();
    Held { streaming, ended, resident: resident(), streamed_in, ended_in }
}

async fn node(store: Arc<dyn Store>, slots: usize) -> Ratchet {
    Ratchet::builder().store(store).job::<Idle>().queue("default", slots).start().await.unwrap()
}

async fn sqlite(dir: &Path, synchronous: Synchronous) -> Arc<dyn Store> {
    let options = SqliteStore::options(dir.join("jobs.db")).synchronous(synchronous);
    Arc::new(options.open().await.unwrap()) as Arc<dyn Store>
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_stream_holds_as_much_for_many_children_as_for_few() {
    const FEW: u64 = 4_000;
    const MANY: u64 = 16_000;
    // An id has 16.
    const BYTES_A_CHILD: u64 = 12;
    let dir = tempfile::tempdir().unwrap();
    // Few slots, so that lists have few lengths: the driver keeps the texts of statements.
    let ratchet = node(sqlite(dir.path(), Synchronous::Normal).await, 8).await;
    // What is kept for later is filled by a first one: pools, and the driver's statements.
    let first = stream(&ratchet, MANY).await;
    let few = stream(&ratchet, FEW).await;
    let many = stream(&ratchet, MANY).await;
    println!("first {first:?}\nfew {few:?}\nmany {many:?}");
    let most = usize::try_from(BYTES_A_CHILD * (MANY - FEW)).unwrap();
    for (what, few, many) in [("near its end", few.streaming, many.streaming), ("after it", few.ended, many.ended)] {
        assert!(many < few + most, "{what} a stream of {MANY} holds {many} bytes, one of {FEW} {few}");
    }
    ratchet.shutdown().await;
}

/// Prints how memory grows; one database a process, as what one has left would count for the next.
async fn print_growth(store: Arc<dyn Store>) {
    let ratchet = node(store, 50).await;
    let kib = |bytes: usize| bytes / 1_024;
    println!(
        "{:>9} {:>14} {:>10} {:>9} {:>9} {:>9}",
        "children", "heap streaming", "heap ended", "resident", "streamed", "ended"
    );
    println!("{:>9} {:>14} {:>10} {:>9}", 0, "", kib(live()), kib(resident()));
    for children in [10_000, 50_000, 100_000, 100_000, 200_000] {
        let held = stream(&ratchet, children).await;
        println!(
            "{children:>9} {:>14} {:>10} {:>9} {:>8.1}s {:>8.1}s",
            kib(held.streaming),
            kib(held.ended),
            kib(held.resident),
            held.streamed_in.as_secs_f64(),
            held.ended_in.as_secs_f64(),
        );
    }
    ratchet.shutdown().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "a measurement: cargo test --release -p ratchet-chaos --test memory -- --ignored --nocapture growth_on_sqlite"]
async fn growth_on_sqlite() {
    let dir = tempfile::tempdir().unwrap();
    print_growth(sqlite(dir.path(), Synchronous::Full).await).await;
}

async fn print_growth_on(database: Database) {
    let server = tokio::task::block_in_place(|| OwnServer::start_new(database)).unwrap();
    print_growth(ratchet::open_store(&server.url(), true).await.unwrap()).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "a measurement, as growth_on_sqlite"]
async fn growth_on_postgres() {
    print_growth_on(Database::Postgres).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "a measurement, as growth_on_sqlite"]
async fn growth_on_mysql() {
    print_growth_on(Database::Mysql).await;
}
