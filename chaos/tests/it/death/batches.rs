//! Batches: given at once, streamed, and canceled.

use std::sync::atomic::{AtomicUsize, Ordering};

use futures_util::stream;
use ratchet::{Batch, BatchSummary, ErrorKind, JobId, JobRecord, JobState};
use ratchet_chaos::deal::Deal;
use ratchet_chaos::errand::{AFTER, Errand, PROGRESS, quick};

use super::{Dying, all_ended, count_in, die_after_every_call};
use crate::until::until;

/// Children end one by one, so that there is a call for each and every threshold is told of.
const ONE_SLOT: [&str; 2] = ["--slots", "1"];

/// The only batch of a site, if it was stored.
async fn the_batch(dying: &Dying) -> Option<Batch> {
    let mut batches = dying.client().batches(None, 10).await.unwrap().items;
    assert!(batches.len() <= 1, "a batch is stored once: {batches:?}");
    batches.pop()
}

/// The numbers of the jobs that are no batches, in order.
fn serials<'a>(jobs: impl IntoIterator<Item = &'a JobRecord>) -> Vec<u64> {
    let serial = |job: &JobRecord| job.spec.payload.decode::<Deal>().ok().map(|deal| deal.serial);
    let mut serials: Vec<u64> = jobs.into_iter().filter_map(serial).collect();
    serials.sort_unstable();
    serials
}

/// What a batch says of its children is what they say of themselves.
fn is_counted_right(batch: &Batch, jobs: &[JobRecord]) {
    let children: Vec<_> = jobs.iter().filter(|job| job.parent == Some(batch.id)).cloned().collect();
    let counts = batch.counts;
    let counted = [counts.total, counts.succeeded, counts.failed, counts.canceled];
    let of = |state| count_in(&children, state) as u64;
    let found = [children.len() as u64, of(JobState::Succeeded), of(JobState::Failed), of(JobState::Canceled)];
    assert_eq!(counted, found, "{batch:?}");
}

/// Every child has succeeded and was counted once, and what follows has run once.
async fn has_ended_well(dying: &Dying, children: u64, told: usize) {
    let jobs = dying.jobs().await;
    let batch = the_batch(dying).await.unwrap();
    let expected: Vec<u64> = (0..children).chain([AFTER]).chain(std::iter::repeat_n(PROGRESS, told)).collect();
    assert_eq!(serials(&jobs), expected, "nothing is missing, nothing is there twice");
    is_counted_right(&batch, &jobs);
    assert_eq!((batch.counts.succeeded, batch.counts.sealed, batch.canceling), (children, true, false));
    let runs = dying.site.runs();
    for job in &jobs {
        assert_eq!((job.state, job.attempts), (JobState::Succeeded, 1), "{job:?}");
        if job.id == batch.id {
            let summary: BatchSummary = job.result.as_ref().unwrap().decode().unwrap();
            assert_eq!((summary.total, summary.clean), (children, true));
        } else {
            assert!(runs.contains_key(&job.id), "{job:?}");
        }
    }
    assert_eq!(dying.site.begun_after_success(&jobs), 0, "what has ended runs no more");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_batch_ends_once_and_tells_of_itself_once() {
    const CHILDREN: usize = 5;
    let errand = Errand::Batch { children: CHILDREN as u64 };
    die_after_every_call(async |dying: Dying| {
        // The children, the batch, what follows, and a job for every second child.
        let over = async || all_ended(&dying.jobs().await, CHILDREN + 4);
        let lived = dying.lives(dying.node_on(&errand, &ONE_SLOT), over).await;
        let second = (!lived).then(|| dying.second_on(&errand, &ONE_SLOT));
        until("the end of the batch and of what follows", over).await;
        has_ended_well(&dying, CHILDREN as u64, 2).await;
        drop(second);
        lived
    })
    .await;
}

const STREAMED: usize = 9;
const CHUNK: usize = 3;

async fn streamed_is_over(dying: &Dying) -> bool {
    all_ended(&dying.jobs().await, STREAMED + 2)
}

/// Lets the children run that a dead streamer has left, and returns the batch if it is open.
async fn left_open(dying: &Dying) -> Option<Batch> {
    let batch = the_batch(dying).await.filter(|batch| !batch.counts.sealed)?;
    let second = dying.second();
    let reread = async || the_batch(dying).await.unwrap();
    until("those that are there", async || reread().await.counts.done() == batch.counts.total).await;
    drop(second);
    // What releases it is counted in the same transaction, so nothing more can come of those children.
    let batch = reread().await;
    let progress = batch.progress();
    assert_eq!((progress.sealed, progress.ended, progress.canceling), (false, false, false), "it says that it is open");
    assert_eq!(batch.state, JobState::Waiting);
    assert_eq!(batch.counts.total % CHUNK as u64, 0, "a chunk is stored as a whole");
    is_counted_right(&batch, &dying.jobs().await);
    Some(batch)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_stream_that_broke_off_leaves_an_open_batch_that_can_be_gone_on_with() {
    let errand = Errand::Stream { children: STREAMED as u64, chunk: CHUNK };
    let broke_off = AtomicUsize::new(0);
    die_after_every_call(async |dying: Dying| {
        let over = async || streamed_is_over(&dying).await;
        let lived = dying.lives(dying.node_on(&errand, &ONE_SLOT), over).await;
        if !lived && left_open(&dying).await.is_some() {
            broke_off.fetch_add(1, Ordering::Relaxed);
        }
        let third = (!lived).then(|| dying.second_on(&errand, &ONE_SLOT));
        until("the end of the batch and of what follows", over).await;
        has_ended_well(&dying, STREAMED as u64, 0).await;
        drop(third);
        lived
    })
    .await;
    in_the_middle(&broke_off, "of a stream");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_stream_that_broke_off_leaves_an_open_batch_that_can_be_canceled() {
    let errand = Errand::Stream { children: STREAMED as u64, chunk: CHUNK };
    let broke_off = AtomicUsize::new(0);
    die_after_every_call(async |dying: Dying| {
        let over = async || streamed_is_over(&dying).await;
        let lived = dying.lives(dying.node_on(&errand, &ONE_SLOT), over).await;
        if lived {
            return true;
        }
        if let Some(batch) = left_open(&dying).await {
            broke_off.fetch_add(1, Ordering::Relaxed);
            let open = dying.client().open_batch(batch.id).await.unwrap();
            open.cancel().await.unwrap();
            was_canceled(&dying, batch.id).await;
            let refused = open.extend(stream::iter([quick(0)])).await.unwrap_err();
            assert_eq!((refused.batch, refused.added), (Some(batch.id), 0));
            assert_eq!(*open.seal().await.unwrap_err().kind(), ErrorKind::Conflict);
            assert_eq!(the_batch(&dying).await.unwrap().counts, batch.counts, "nothing was added");
        }
        false
    })
    .await;
    in_the_middle(&broke_off, "of a stream");
}

/// The scene is about deaths in the middle, so some have to be.
fn in_the_middle(deaths: &AtomicUsize, what: &str) {
    let deaths = deaths.load(Ordering::Relaxed);
    println!("{deaths} in the middle {what}");
    assert!(deaths >= 2, "{deaths} in the middle {what}");
}

/// Everything has ended, what follows has not run, and nothing can be added.
async fn was_canceled(dying: &Dying, id: JobId) {
    let jobs = dying.jobs().await;
    let batch = the_batch(dying).await.unwrap();
    assert_eq!((batch.state, batch.canceling), (JobState::Canceled, false), "{batch:?}");
    is_counted_right(&batch, &jobs);
    assert_eq!(batch.counts.done(), batch.counts.total);
    let runs = dying.site.runs();
    for job in &jobs {
        assert!(job.state.is_terminal(), "{job:?}");
        if serials([job]) == [AFTER] {
            assert_eq!((job.state, job.canceled_because), (JobState::Canceled, Some(id)));
            assert_eq!(runs.get(&job.id), None, "what follows a batch does not follow a canceled one");
        }
    }
    assert_eq!(dying.site.begun_after_success(&jobs), 0, "what has ended runs no more");
    let refused = dying.client().open_batch(id).await.unwrap_err();
    assert_eq!(*refused.kind(), ErrorKind::Conflict);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_canceled_batch_takes_all_its_children_along() {
    // More than are canceled in two transactions.
    const CHILDREN: u64 = 2_001;
    let broke_off = AtomicUsize::new(0);
    die_after_every_call(async |dying: Dying| {
        let batch = dying.client().batch().children((0..CHILDREN).map(quick)).then_on_batch_success(quick(AFTER));
        let batch = batch.submit().await.unwrap();
        let over = async || {
            let record = batch.record().await.unwrap();
            record.state == JobState::Canceled && !record.canceling && record.counts.done() == CHILDREN
        };
        let lived = dying.lives(dying.node_on(&Errand::Cancel(batch.id()), &ONE_SLOT), over).await;
        let left = batch.record().await.unwrap();
        if !lived && left.state != JobState::Canceled {
            // It died before it came to it: nothing was promised.
            return false;
        }
        broke_off.fetch_add(usize::from(left.canceling), Ordering::Relaxed);
        let second = (!lived).then(|| dying.second());
        until("the end of the last child", over).await;
        was_canceled(&dying, batch.id()).await;
        drop(second);
        lived
    })
    .await;
    in_the_middle(&broke_off, "of canceling");
}
