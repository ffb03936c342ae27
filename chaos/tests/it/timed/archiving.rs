//! A great many ended jobs go to the archive while others flow.

use std::collections::HashSet;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, LazyLock, Mutex, PoisonError};
use std::time::{Duration, Instant};

use ratchet::prelude::*;
use ratchet::{ArchiveScope, BulkEventKind, JobFilter, JobId, Retention, Timing};
use tokio::task::JoinSet;

use crate::cluster::Cluster;

const A_SECOND: u32 = 200;
/// Waits are looked at in windows: one hiccup of the machine spoils one of them.
const WINDOW: Duration = Duration::from_secs(3);
/// Windows before and after.
const ALONE: usize = 2;
/// Shorter than this a wait says more about the machine than about who else is at work.
const UNNOTICED: Duration = Duration::from_millis(15);
/// It takes less than a minute.
const LONGEST: Duration = Duration::from_mins(5);

static BEGAN: LazyLock<Instant> = LazyLock::new(Instant::now);
static WAITS: Mutex<Vec<Duration>> = Mutex::new(Vec::new());

fn waits() -> std::sync::MutexGuard<'static, Vec<Duration>> {
    WAITS.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Knows when it was submitted, and notes how long it took to start.
#[job(kind = "chaos.flows")]
async fn flows(submitted: Duration) {
    waits().push(BEGAN.elapsed().saturating_sub(submitted));
}

/// Archives all that has ended. Others flow alone, then beside that, then alone again: beside it they wait less than twice as long, and
/// every job is found once afterwards.
pub(crate) async fn they_are_archived_while_jobs_flow(cluster: &Cluster, mut all: HashSet<JobId>) {
    let ended = all.len();
    let quiet = node(cluster, Retention::keep_everything(), Arc::default()).await;
    let mut alone = Vec::new();
    for _ in 0..ALONE {
        alone.push(flow(&quiet, &mut all).await);
    }
    quiet.shutdown().await;

    let archived = Arc::new(AtomicUsize::new(0));
    // Not zero: that would delete them.
    let at_once = Retention { succeeded: Some(Duration::from_micros(1)), ..Retention::keep_everything() };
    let begun = Instant::now();
    let busy = node(cluster, at_once, archived.clone()).await;
    let mut beside = Vec::new();
    while archived.load(Ordering::SeqCst) < ended {
        assert!(begun.elapsed() < LONGEST, "{archived:?} archived");
        beside.push(flow(&busy, &mut all).await);
    }
    println!("{archived:?} archived in {:.1} s", begun.elapsed().as_secs_f64());
    busy.shutdown().await;
    let quiet = node(cluster, Retention::keep_everything(), Arc::default()).await;
    for _ in 0..ALONE {
        alone.push(flow(&quiet, &mut all).await);
    }
    quiet.shutdown().await;

    println!("p99 from submit to start: alone {alone:?}, beside the archiving {beside:?}");
    let (alone, beside) = (median(alone), median(beside));
    assert!(beside < alone.max(UNNOTICED) * 2, "{beside:?} against {alone:?}");
    let listed = list(cluster, ArchiveScope::Both).await;
    assert_eq!(listed.len(), all.len(), "nothing is lost, and nothing is there twice");
    assert_eq!(listed.into_iter().collect::<HashSet<_>>(), all);
    assert!(list(cluster, ArchiveScope::Archived).await.len() >= ended);
}

async fn node(cluster: &Cluster, retention: Retention, archived: Arc<AtomicUsize>) -> Ratchet {
    let store = ratchet::open_store(&cluster.server.url(), false).await.unwrap();
    let builder = Ratchet::builder().store(store).jobs(jobs![flows]).retention(retention);
    let counted = move |event: &ratchet::BulkEvent| {
        if let BulkEventKind::JobsArchived { count, .. } = event.what {
            archived.fetch_add(usize::try_from(count).unwrap(), Ordering::SeqCst);
        }
    };
    let timing = Timing { retention_interval: Duration::from_millis(10), ..Timing::default() };
    builder.timing(timing).on_bulk_event(counted).start().await.unwrap()
}

/// Submits jobs at a steady rate for a window; says how long all but one in a hundred waited at most.
async fn flow(node: &Ratchet, all: &mut HashSet<JobId>) -> Duration {
    waits().clear();
    let mut ticks = tokio::time::interval(Duration::from_secs(1) / A_SECOND);
    let (mut submits, begun) = (JoinSet::new(), Instant::now());
    while begun.elapsed() < WINDOW {
        ticks.tick().await;
        let client: Client = (**node).clone();
        submits.spawn(async move { client.enqueue(flows(BEGAN.elapsed())).submit().await.unwrap().id() });
    }
    let submitted = submits.join_all().await;
    crate::until::until("the last of them to begin", async || waits().len() == submitted.len()).await;
    all.extend(submitted);
    let mut waits = std::mem::take(&mut *waits());
    waits.sort_unstable();
    waits[waits.len() * 99 / 100]
}

fn median(mut of: Vec<Duration>) -> Duration {
    of.sort_unstable();
    of[of.len() / 2]
}

async fn list(cluster: &Cluster, archive: ArchiveScope) -> Vec<JobId> {
    let filter = JobFilter { archive, ..JobFilter::default() };
    let (mut found, mut after) = (Vec::new(), None);
    loop {
        let page = cluster.client.list(&filter, after, 1_000).await.unwrap();
        found.extend(page.items.iter().map(|job| job.id));
        after = page.next;
        if after.is_none() {
            return found;
        }
    }
}
