use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use ratchet_core::page::{ArchiveScope, JobFilter};
use ratchet_core::store::ClusterStore as _;
use ratchet_core::{Clock as _, DeadLetterFilter, ErrorKind, JobState, ManualClock, MemoryStore, Retention, clock};
use ratchet_engine::{BulkEventKind, Client, JobEventKind, SystemClock, new_node_id};

use crate::faulty::Faulty;
use crate::support::{Play, Stage, busy_archiver, engine, event, eventually, memory, quick};

/// Everything goes at once.
fn nothing_is_kept() -> Retention {
    let at_once = Some(Duration::from_micros(1));
    Retention { succeeded: at_once, failed: at_once, canceled: at_once, archive: None, schedules: None, logs: None }
}

#[tokio::test]
async fn a_node_archives_what_was_kept_long_enough_and_tells_how_many() {
    let (stage, store) = (Stage::default(), memory());
    let told = Arc::new(AtomicU64::new(0));
    let heard = told.clone();
    let ratchet = quick(&stage)
        .store(store.clone())
        .retention(nothing_is_kept())
        .timing(busy_archiver())
        .on_bulk_event(move |event| {
            if let BulkEventKind::JobsArchived { count, .. } = event.what {
                heard.fetch_add(count, Ordering::SeqCst);
            }
        })
        .start()
        .await
        .unwrap();
    let done = ratchet.enqueue(Play::Return("x".into())).submit().await.unwrap();
    let failed = ratchet.enqueue(Play::FailForGood).submit().await.unwrap();
    let waiting = ratchet.enqueue(Play::Return("x".into())).delay(Duration::from_mins(1)).submit().await.unwrap();
    for id in [done.id(), failed.id()] {
        eventually("the archive", async || ratchet.find(id).await.unwrap().unwrap().archived_at.is_some()).await;
    }
    assert_eq!(done.result().await.unwrap(), "x", "its result is still there");
    assert_eq!(ratchet.attempts(failed.id()).await.unwrap().len(), 1);
    assert_eq!(waiting.status().await.unwrap(), JobState::Pending);
    let archived = JobFilter { archive: ArchiveScope::Archived, ..JobFilter::default() };
    assert_eq!(ratchet.list(&archived, None, 10).await.unwrap().items.len(), 2);
    assert!(
        !store.acquire_lease("retention", new_node_id(), Duration::from_secs(1)).await.unwrap(),
        "one node does it"
    );
    ratchet.shutdown().await;
    assert_eq!(told.load(Ordering::SeqCst), 2);
    assert!(
        store.acquire_lease("retention", new_node_id(), Duration::from_secs(1)).await.unwrap(),
        "another may do it now"
    );
}

#[tokio::test]
async fn jobs_that_cannot_be_archived_keep_no_others_from_it() {
    let (stage, store) = (Stage::default(), Faulty::new(memory()));
    *store.unarchivable.lock().unwrap() = Some(JobState::Succeeded);
    let archiving = quick(&stage).store(store.clone()).retention(nothing_is_kept()).timing(busy_archiver());
    let ratchet = archiving.start().await.unwrap();
    let done = ratchet.enqueue(Play::Return("x".into())).submit().await.unwrap();
    let failed = ratchet.enqueue(Play::FailForGood).submit().await.unwrap();
    let is_archived = async |id| ratchet.find(id).await.unwrap().unwrap().archived_at.is_some();
    eventually("the archive", async || is_archived(failed.id()).await).await;
    assert!(!is_archived(done.id()).await);
    *store.unarchivable.lock().unwrap() = None;
    eventually("the archive of all", async || is_archived(done.id()).await).await;
}

#[tokio::test]
async fn grouping_dead_letters_ends_though_pages_hold_none() {
    let store = Faulty::new(memory());
    let ratchet = quick(&Stage::default()).store(store.clone()).start().await.unwrap();
    store.dead_letter_pages.store(1_000, Ordering::SeqCst);
    let groups = ratchet.dead_letter_groups(&JobFilter::default()).await.unwrap();
    assert_eq!((groups.looked_at, groups.complete), (0, false));
    assert_eq!(
        store.dead_letter_pages.load(Ordering::SeqCst),
        980,
        "as many as hold the dead letters that are examined"
    );
}

#[tokio::test]
async fn a_node_deletes_what_was_archived_long_enough_ago() {
    let stage = Stage::default();
    let retention = Retention { archive: Some(Duration::from_millis(200)), ..nothing_is_kept() };
    let builder = quick(&stage).store(memory()).retention(retention).timing(busy_archiver());
    let ratchet = builder.start().await.unwrap();
    let mut events = ratchet.bulk_events();
    let done = ratchet.enqueue(Play::Return("x".into())).submit().await.unwrap();
    let mut seen = Vec::new();
    while seen.len() < 2 {
        seen.push(events.next().await.unwrap().what.clone());
    }
    let state = JobState::Succeeded;
    assert_eq!(seen, [BulkEventKind::JobsArchived { state, count: 1 }, BulkEventKind::ArchivePurged { count: 1 }]);
    assert_eq!(ratchet.find(done.id()).await.unwrap(), None);
}

#[tokio::test]
async fn a_node_that_keeps_everything_leaves_the_lease_to_others() {
    let (stage, store) = (Stage::default(), memory());
    let builder = quick(&stage).store(store.clone()).timing(busy_archiver());
    let ratchet = builder.retention(Retention::keep_everything()).start().await.unwrap();
    let handle = ratchet.enqueue(Play::Return("x".into())).submit().await.unwrap();
    handle.result().await.unwrap();
    assert!(store.acquire_lease("retention", new_node_id(), Duration::from_secs(1)).await.unwrap());
    assert_eq!(ratchet.find(handle.id()).await.unwrap().unwrap().archived_at, None);
}

#[tokio::test]
async fn jobs_that_are_live_are_not_to_be_archived() {
    let (ratchet, _) = engine().await;
    for state in JobState::ALL {
        let answer = ratchet.archive(state, Duration::ZERO).await;
        if state.is_terminal() {
            assert_eq!(answer.unwrap(), 0, "{state}");
        } else {
            let refused = answer.unwrap_err();
            assert_eq!(*refused.kind(), ErrorKind::Invalid, "{refused}");
            assert!(refused.to_string().contains(&format!("`state` is {state}; ")), "{refused}");
        }
    }
}

#[tokio::test]
async fn a_retention_over_ten_years_is_refused() {
    let retention = Retention { failed: Some(Duration::from_hours(24 * 365 * 11)), ..Retention::default() };
    let refused = quick(&Stage::default()).store(memory()).retention(retention).start().await.unwrap_err();
    assert!(refused.to_string().contains("retention.failed"), "{refused}");
}

#[tokio::test]
async fn retrying_all_tells_one_event_and_the_jobs_run() {
    let (ratchet, stage) = engine().await;
    let mut handles = Vec::new();
    for _ in 0..3 {
        let handle = ratchet.enqueue(Play::FailForGood).submit().await.unwrap();
        handle.wait().await.unwrap();
        handles.push(handle);
    }
    let groups = ratchet.dead_letter_groups(&JobFilter::default()).await.unwrap();
    assert_eq!((groups.groups.len(), groups.groups[0].count, groups.complete), (1, 3, true));
    assert!(groups.groups[0].sample_error.contains("card declined"));
    let fingerprint = Some(groups.groups[0].fingerprint.clone());
    let filter = DeadLetterFilter { fingerprint, ..DeadLetterFilter::default() };
    let (mut bulk, mut events) = (ratchet.bulk_events(), ratchet.events());
    assert_eq!(ratchet.retry_all(&filter, 10).await.unwrap().count, 3);
    let expected = BulkEventKind::JobsRetried { count: 3, revived: 0, filter: Box::new(filter) };
    assert_eq!(bulk.next().await.unwrap().what, expected);
    for _ in 0..3 {
        let first = event(&mut events, |e| !matches!(e.what, JobEventKind::Failed { .. })).await;
        assert!(
            matches!(first.what, JobEventKind::Started { .. } | JobEventKind::DeadLettered { .. }),
            "nothing is told of each retry: {first:?}"
        );
    }
    for handle in &handles {
        eventually("the second run", async || stage.runs(handle.id()) == 2).await;
    }
    let refused = ratchet.retry_all(&DeadLetterFilter::default(), 0).await.unwrap_err();
    assert_eq!(*refused.kind(), ErrorKind::Invalid);
}

#[tokio::test]
async fn archiving_and_purging_can_be_asked_for() {
    let (ratchet, _) = engine().await;
    let handle = ratchet.enqueue(Play::FailForGood).submit().await.unwrap();
    handle.wait().await.unwrap();
    assert_eq!(ratchet.archive_dead_letters(Duration::from_hours(1)).await.unwrap(), 0);
    eventually("the next millisecond", async || ratchet.archive_dead_letters(Duration::ZERO).await.unwrap() == 1).await;
    assert_eq!(ratchet.purge_archive(Duration::from_hours(1)).await.unwrap(), 0);
    assert_eq!(ratchet.purge_archive(Duration::ZERO).await.unwrap(), 1);
    assert_eq!(ratchet.find(handle.id()).await.unwrap(), None);
}

#[tokio::test]
async fn what_is_said_to_go_to_the_archive_goes_to_the_microsecond() {
    let clock = Arc::new(ManualClock::at(clock::later(SystemClock.now(), Duration::from_mins(1))));
    let client = Client::new(MemoryStore::new(clock.clone()));
    let handle = client.enqueue(Play::FailForGood).submit().await.unwrap();
    client.cancel(handle.id()).await.unwrap();
    let (state, hour) = (JobState::Canceled, Duration::from_hours(1));
    let goes = async || client.jobs_to_archive(state, hour).await.unwrap().jobs;
    let moment = Duration::from_micros(1);
    clock.advance(hour.saturating_sub(moment));
    assert_eq!((goes().await, client.archive(state, hour).await.unwrap()), (0, 0), "a microsecond too young");
    clock.advance(moment);
    assert_eq!((goes().await, client.archive(state, hour).await.unwrap()), (1, 1));
}
