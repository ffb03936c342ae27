use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use ratchet_core::Store as _;
use ratchet_store_sqlite::sqlx::sqlite::SqliteConnectOptions;
use ratchet_store_sqlite::sqlx::{self, ConnectOptions as _, SqliteConnection};
use tokio::sync::Notify;

/// What another connection sees of the file's changes.
pub(super) struct Version(SqliteConnection);

impl Version {
    pub(super) async fn open(dir: &Path) -> Self {
        Self(SqliteConnectOptions::new().filename(dir.join("jobs.db")).connect().await.unwrap())
    }

    pub(super) async fn read(&mut self) -> i64 {
        sqlx::query_scalar("PRAGMA data_version").fetch_one(&mut self.0).await.unwrap()
    }
}

#[test]
fn a_watch_sees_what_another_store_writes_until_it_is_dropped() {
    super::run(async {
        let (store, dir) = super::fresh().await;
        let other = ratchet_store_sqlite::SqliteStore::open(dir.path().join("jobs.db")).await.unwrap();
        let changed = Arc::new(Notify::new());
        let notify = changed.clone();
        let guard = store.watch(Box::new(move || notify.notify_one())).expect("SQLite can be watched");
        let mut number = 0;
        // The first look only learns where the file stands, so it may take a second write to be seen.
        loop {
            number += 1;
            super::submit(&other, vec![super::job(number)]).await;
            if tokio::time::timeout(Duration::from_millis(200), changed.notified()).await.is_ok() {
                break;
            }
            assert!(number < 100, "no change was seen");
        }
        drop(guard);
        tokio::time::sleep(Duration::from_millis(50)).await;
        let _ = tokio::time::timeout(Duration::ZERO, changed.notified()).await;
        super::submit(&other, vec![super::job(number + 1)]).await;
        let seen = tokio::time::timeout(Duration::from_millis(100), changed.notified()).await;
        assert!(seen.is_err(), "a watch that was dropped is silent");
    });
}
