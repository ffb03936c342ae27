//! Word of new work between nodes, by LISTEN and NOTIFY.

use std::fmt::Write as _;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use async_trait::async_trait;
use ratchet_coordinator::{Failures, Hub};
use ratchet_core::coordinator::{ClusterCoordinator, CoordinatorStats, Hint, ListenGuard, Listener};
use ratchet_core::{NodeId, StoreError};
use ratchet_store_pool::ConnectionPool;
use ratchet_store_sql::{Conn, Intent, work};
use sqlx::postgres::{PgConnectOptions, PgListener, PgPoolOptions};
use tokio::sync::watch;
use tokio::task::AbortHandle;
use tokio::time::timeout;
use uuid::Uuid;

use crate::driver::PostgresDriver;

/// How long nothing may come before the connection is asked whether it still is one.
const QUIET_MAX: Duration = Duration::from_secs(15);
const ANSWER_MAX: Duration = Duration::from_secs(2);
const CONNECT_MAX: Duration = Duration::from_secs(10);

/// Carries hints between the nodes of one database.
///
/// It hears on a connection of its own, opened when the first listener comes, and speaks on one of the store's. Hints are
/// never sent in the transaction of a submit: notifying commits wait for each other.
#[derive(Debug)]
pub(crate) struct PostgresCoordinator {
    hub: Hub,
    channel: Arc<str>,
    /// How to reach the server itself; a pooler would lose the LISTEN.
    hearing: PgConnectOptions,
    pool: Arc<ConnectionPool<PostgresDriver>>,
    tasks: Mutex<Tasks>,
    /// Whether the server is heard.
    heard: watch::Sender<bool>,
}

#[derive(Debug, Default)]
struct Tasks {
    hearing: Option<AbortHandle>,
    speaking: Option<AbortHandle>,
}

impl PostgresCoordinator {
    pub(crate) fn new(hearing: PgConnectOptions, channel: &str, pool: Arc<ConnectionPool<PostgresDriver>>) -> Self {
        let (hub, channel) = (Hub::new(Uuid::new_v4()), channel.into());
        Self { hub, channel, hearing, pool, tasks: Mutex::default(), heard: watch::Sender::new(false) }
    }

    /// Begins to hear, if that has not begun.
    pub(crate) fn hear(&self) {
        let mut tasks = self.tasks.lock().unwrap_or_else(PoisonError::into_inner);
        if tasks.hearing.is_none() && !self.hub.is_closed() {
            let ear = Ear {
                hub: self.hub.clone(),
                channel: self.channel.clone(),
                options: self.hearing.clone(),
                heard: self.heard.clone(),
            };
            tasks.hearing = Some(self.pool.thread().spawn(ear.listen()));
        }
    }

    /// Waits until the server is heard.
    pub(crate) async fn until_heard(&self) {
        let _ = self.heard.subscribe().wait_for(|heard| *heard).await;
    }

    /// Begins to speak, if that has not begun.
    fn speak(&self) {
        let mut tasks = self.tasks.lock().unwrap_or_else(PoisonError::into_inner);
        if tasks.speaking.is_none() && !self.hub.is_closed() {
            // Weak, so that the task does not keep the store's threads, which it runs on.
            let pool = Arc::downgrade(&self.pool);
            let (hub, channel) = (self.hub.clone(), self.channel.clone());
            tasks.speaking = Some(self.pool.thread().spawn(async move {
                let mut failures = Failures::default();
                while let Some(texts) = hub.next_outgoing().await {
                    let Some(pool) = pool.upgrade() else { return };
                    match announce(&pool, &channel, &texts).await {
                        Ok(()) => failures.forget(),
                        // The batch is lost: by the time that the server is back, others have polled.
                        Err(error) => {
                            drop(pool);
                            hub.transport_failed();
                            if failures.one_more() {
                                tracing::warn!(
                                    error = &error as &dyn std::error::Error,
                                    "hints cannot be sent; other nodes find the work by polling"
                                );
                            }
                            tokio::time::sleep(failures.pause(fastrand::f64())).await;
                        }
                    }
                }
            }));
        }
    }
}

async fn announce(pool: &ConnectionPool<PostgresDriver>, channel: &str, texts: &[String]) -> Result<(), StoreError> {
    // A commit that notifies waits for the disk like any other, though there is nothing to keep. One batch is one round
    // trip; in hexadecimal digits nothing in a text can be mistaken for SQL.
    let channel = literal(channel);
    let calls: Vec<_> = texts.iter().map(|text| format!("pg_notify({channel}, {})", literal(text))).collect();
    let script = format!("BEGIN; SET LOCAL synchronous_commit = off; SELECT {}; COMMIT", calls.join(", "));
    let script: Arc<str> = script.into();
    let notify = work!([script], |conn| notify(conn, script));
    pool.transact(Intent::Statement, notify).await
}

async fn notify(conn: &mut dyn Conn, script: Arc<str>) -> Result<(), StoreError> {
    const DOING: &str = "telling other nodes of work";
    let told = conn.execute(DOING, script, Vec::new()).await;
    if told.is_err() {
        // The rest of the script was not run. If this fails too, the connection is gone.
        let _ = conn.execute(DOING, "ROLLBACK".into(), Vec::new()).await;
    }
    told.map(|_| ())
}

fn literal(text: &str) -> String {
    let digits = text.bytes().fold(String::with_capacity(text.len() * 2), |mut digits, byte| {
        let _ = write!(digits, "{byte:02x}");
        digits
    });
    format!("convert_from(decode('{digits}', 'hex'), 'UTF8')")
}

/// The task that hears.
struct Ear {
    hub: Hub,
    channel: Arc<str>,
    options: PgConnectOptions,
    heard: watch::Sender<bool>,
}

impl Ear {
    async fn listen(self) {
        let mut failures = Failures::default();
        let mut lost = false;
        loop {
            let error = match timeout(CONNECT_MAX, self.connect()).await {
                Ok(Ok(listener)) => {
                    if lost {
                        self.hub.reconnected();
                        tracing::info!(channel = &*self.channel, "PostgreSQL is heard again");
                    }
                    failures.forget();
                    self.heard.send_replace(true);
                    self.hand_on(listener).await
                }
                Ok(Err(error)) => error,
                Err(_) => sqlx::Error::PoolTimedOut,
            };
            lost = true;
            self.heard.send_replace(false);
            self.hub.transport_failed();
            if failures.one_more() {
                tracing::warn!(
                    channel = &*self.channel,
                    %error,
                    "hints are missing; work of other nodes is found by polling until the server is heard again"
                );
            }
            tokio::time::sleep(failures.pause(fastrand::f64())).await;
        }
    }

    async fn connect(&self) -> Result<PgListener, sqlx::Error> {
        let pool = PgPoolOptions::new().max_connections(1).connect_lazy_with(self.options.clone());
        let mut listener = PgListener::connect_with(&pool).await?;
        listener.eager_reconnect(false);
        listener.listen(&self.channel).await?;
        Ok(listener)
    }

    /// Hands on what comes until the connection is lost.
    async fn hand_on(&self, mut listener: PgListener) -> sqlx::Error {
        loop {
            match timeout(QUIET_MAX, listener.try_recv()).await {
                Ok(Ok(Some(notification))) => self.hub.incoming(notification.payload()),
                Ok(Ok(None)) => return sqlx::Error::WorkerCrashed,
                Ok(Err(error)) => return error,
                Err(_) => match timeout(ANSWER_MAX, sqlx::query("SELECT 1").execute(&mut listener)).await {
                    Ok(Ok(_)) => {}
                    Ok(Err(error)) => return error,
                    Err(_) => return sqlx::Error::PoolTimedOut,
                },
            }
        }
    }
}

#[async_trait]
impl ClusterCoordinator for PostgresCoordinator {
    fn notify(&self, hint: &Hint) {
        self.speak();
        self.hub.notify(hint);
    }

    fn listen(&self, own: NodeId, listener: Listener) -> ListenGuard {
        self.hear();
        self.hub.listen(own, listener)
    }

    async fn flush(&self) {
        self.hub.flushed().await;
    }

    async fn close(&self) {
        self.hub.close();
        // What speaks ends by itself, after it has said what waited.
        let hearing = self.tasks.lock().unwrap_or_else(PoisonError::into_inner).hearing.take();
        if let Some(hearing) = hearing {
            hearing.abort();
        }
    }

    fn stats(&self) -> CoordinatorStats {
        self.hub.stats()
    }
}
