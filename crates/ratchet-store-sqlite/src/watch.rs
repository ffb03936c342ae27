//! Noticing what other connections have written.

use std::time::Duration;

use ratchet_core::store::WatchGuard;
use sqlx::sqlite::SqliteConnectOptions;
use sqlx::{ConnectOptions as _, SqliteConnection};
use tokio::task::JoinHandle;
use tokio::time::MissedTickBehavior;

/// How often the file is asked; the question reads one number from shared memory.
const INTERVAL: Duration = Duration::from_millis(20);
/// How long to wait after an error before the connection is opened anew.
const PAUSE: Duration = Duration::from_secs(1);

/// Calls `changed` whenever another connection has committed; `None` outside of a runtime.
pub(crate) fn watch(options: SqliteConnectOptions, changed: Box<dyn Fn() + Send + Sync>) -> Option<WatchGuard> {
    let runtime = tokio::runtime::Handle::try_current().ok()?;
    let task = runtime.spawn(async move {
        loop {
            let error = match options.connect().await {
                Ok(conn) => follow(conn, &*changed).await,
                Err(error) => error,
            };
            tracing::warn!(%error, "watching the database file failed, trying again");
            tokio::time::sleep(PAUSE).await;
        }
    });
    Some(WatchGuard::new(AbortOnDrop(task)))
}

async fn follow(mut conn: SqliteConnection, changed: &(dyn Fn() + Send + Sync)) -> sqlx::Error {
    let mut ticks = tokio::time::interval(INTERVAL);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let mut known = None;
    loop {
        ticks.tick().await;
        match sqlx::query_scalar::<_, i64>("PRAGMA data_version").fetch_one(&mut conn).await {
            Ok(version) => {
                if known.replace(version).is_some_and(|known| known != version) {
                    changed();
                }
            }
            Err(error) => return error,
        }
    }
}

struct AbortOnDrop(JoinHandle<()>);

impl Drop for AbortOnDrop {
    fn drop(&mut self) {
        self.0.abort();
    }
}
