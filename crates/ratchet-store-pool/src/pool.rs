use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use ratchet_core::store::HeartbeatStore;
use ratchet_core::{ErrorKind, StoreError};
use ratchet_store_sql::{Conn, Counters, Intent, Work};
use tokio::sync::Semaphore;

use crate::driver::Driver;
use crate::heartbeat::ServerHeartbeat;
use crate::kept::IdleConnections;
use crate::thread::StoreThread;

/// How much a pool may use.
#[derive(Debug, Clone, Copy)]
pub struct PoolLimits {
    /// Most connections at once.
    pub connections: usize,
    /// How long opening a connection may take.
    pub connect: Duration,
    /// How long a transaction may take; then its connection is closed. A connection that was kept is given a fifth of it
    /// for its first answer, before another takes its place.
    pub transaction: Duration,
    /// How long migrating may take, with the wait for others who do.
    pub migration: Duration,
}

impl Default for PoolLimits {
    fn default() -> Self {
        Self {
            connections: 8,
            connect: Duration::from_secs(10),
            transaction: Duration::from_secs(25),
            migration: Duration::from_mins(10),
        }
    }
}

/// Tries of a transaction that the database rolled back to resolve a deadlock or a conflict.
const TRIES: u32 = 6;
/// Threads for all connections of a store.
const THREADS: usize = 2;

/// The connections of a store, opened when they are needed and kept.
///
/// Unlike a general pool it asks no connection for its health, which costs a round trip each time: a transaction begins
/// with a statement that changes nothing, and if that fails on a connection that was kept, a new one takes its place.
#[derive(Debug)]
pub struct ConnectionPool<D: Driver> {
    inner: Arc<Inner<D>>,
    thread: StoreThread,
}

#[derive(Debug)]
struct Inner<D: Driver> {
    driver: Arc<D>,
    limits: PoolLimits,
    kept: IdleConnections<D::Connection>,
    permits: Semaphore,
    counters: Arc<Counters>,
    /// Whether there has been a connection.
    reached: AtomicBool,
}

impl<D: Driver> ConnectionPool<D> {
    /// A pool without connections; `name` is that of its threads.
    pub fn new(name: &str, driver: Arc<D>, limits: PoolLimits, counters: Arc<Counters>) -> Result<Self, StoreError> {
        let permits = Semaphore::new(limits.connections.max(1));
        let inner =
            Inner { driver, permits, kept: IdleConnections::new(), limits, counters, reached: AtomicBool::new(false) };
        Ok(Self { inner: Arc::new(inner), thread: StoreThread::start(name, THREADS)? })
    }

    /// The threads of the store.
    pub fn thread(&self) -> &StoreThread {
        &self.thread
    }

    /// Runs work in a transaction; see [`Backend::transact`](ratchet_store_sql::Backend::transact).
    pub async fn transact<T: Send + 'static>(&self, intent: Intent, work: Work<T>) -> Result<T, StoreError> {
        if self.inner.is_alone(intent) && intent != Intent::LongStatement {
            // Nothing is locked between its statements, so that a caller that is held up holds up nobody else; and two
            // crossings between threads cost as much as a round trip.
            return self.inner.transact(intent, &work).await;
        }
        let inner = self.inner.clone();
        self.thread.run(async move { inner.transact(intent, &work).await }).await
    }

    /// Runs a migration: on a connection of its own, for as long as the limit for migrations allows.
    pub async fn migrate<T: Send + 'static>(&self, intent: Intent, work: Work<T>) -> Result<T, StoreError> {
        let inner = self.inner.clone();
        let limit = inner.limits.migration;
        self.thread
            .run(async move {
                let attempt = async {
                    let fresh = inner.connect().await?;
                    inner.run_on(fresh, intent, &work).await.map_err(|failed| failed.error)
                };
                tokio::time::timeout(limit, attempt).await.unwrap_or_else(|_| Err(took_too_long(limit)))
            })
            .await
    }

    /// A connection for heartbeats alone, on the caller's runtime.
    pub async fn open_heartbeat(&self) -> Result<Box<dyn HeartbeatStore>, StoreError> {
        let connection = self.inner.connect().await?;
        Ok(Box::new(ServerHeartbeat::new(self.inner.driver.clone(), connection)))
    }
}

impl<D: Driver> Inner<D> {
    async fn transact<T>(&self, intent: Intent, work: &Work<T>) -> Result<T, StoreError> {
        let mut tries = 1;
        let limit = self.limits.transaction;
        loop {
            let attempt = tokio::time::timeout(limit, self.attempt(intent, work)).await;
            let result = attempt.unwrap_or_else(|_| {
                // If it is the way to the server that was lost, then the others that were kept are too.
                self.kept.forget();
                Err(took_too_long(limit))
            });
            match result {
                Err(error) if *error.kind() == ErrorKind::Transient && tries < TRIES => {
                    self.counters.count_retry();
                    tracing::debug!(error = &error as &dyn std::error::Error, tries, "a transaction is tried again");
                    tokio::time::sleep(pause_after(tries)).await;
                    tries += 1;
                }
                result => return result,
            }
        }
    }

    async fn attempt<T>(&self, intent: Intent, work: &Work<T>) -> Result<T, StoreError> {
        let _permit = self.permits.acquire().await.expect("the semaphore is never closed");
        if let Some(kept) = self.kept.take() {
            match self.run_on_kept(kept, intent, work).await {
                Err(Failed { error, begun: false, .. }) if *error.kind() == ErrorKind::Unavailable => {
                    // The server was restarted, closed what it took for idle, or the way to it was lost: then the same is
                    // true of the others that were kept.
                    self.kept.forget();
                }
                result => return result.map_err(|failed| failed.error),
            }
        }
        let in_use = self.limits.connections.saturating_sub(self.permits.available_permits());
        self.kept.shrink_to(self.limits.connections.saturating_sub(in_use));
        let fresh = self.connect().await?;
        self.run_on(fresh, intent, work).await.map_err(|failed| failed.error)
    }

    /// The same as [`run_on`](Self::run_on), but a connection that may have been lost while it lay there has to answer soon.
    async fn run_on_kept<T>(&self, mut kept: D::Connection, intent: Intent, work: &Work<T>) -> Result<T, Failed> {
        let limit = self.limits.transaction / 5;
        let silent = |_| Failed { error: took_too_long(limit), begun: false, usable: false };
        if !self.is_alone(intent) {
            let begun = tokio::time::timeout(limit, begin(&*self.driver, &mut kept)).await;
            begun.map_err(silent).flatten()?;
            let result = run_begun(&*self.driver, &mut kept, work).await;
            return self.keep_if_usable(kept, intent, result);
        }
        if matches!(intent, Intent::Statement | Intent::LongStatement) {
            // It may be repeated, and waits for nobody. What only reads may take its time.
            return tokio::time::timeout(limit, self.run_on(kept, intent, work)).await.map_err(silent).flatten();
        }
        self.run_on(kept, intent, work).await
    }

    /// Runs work on a connection, and keeps the connection if it can be used again.
    async fn run_on<T>(&self, mut connection: D::Connection, intent: Intent, work: &Work<T>) -> Result<T, Failed> {
        let driver = &*self.driver;
        let result = if self.is_alone(intent) {
            // A single statement that is repeated finds what the first has done; see `Backend::transact`.
            let done = work(&mut driver.session(&mut connection)).await;
            done.map_err(Failed::alone)
        } else {
            run_in_transaction(driver, &mut connection, work).await
        };
        self.keep_if_usable(connection, intent, result)
    }

    fn keep_if_usable<T>(
        &self,
        connection: D::Connection,
        intent: Intent,
        result: Result<T, Failed>,
    ) -> Result<T, Failed> {
        match &result {
            Ok(_) if self.is_alone(intent) && intent == Intent::Read => self.kept.keep(connection),
            Ok(_) => {
                self.counters.count_commits(1);
                self.kept.keep(connection);
            }
            Err(failed) if failed.usable => self.kept.keep(connection),
            Err(_) => drop(connection),
        }
        result
    }

    /// Whether work with this intent needs no transaction around it.
    fn is_alone(&self, intent: Intent) -> bool {
        let alone = matches!(intent, Intent::Read | Intent::Statement | Intent::LongStatement);
        alone && !self.driver.is_pooled()
    }

    async fn connect(&self) -> Result<D::Connection, StoreError> {
        const DOING: &str = "connecting to the database server";
        let connected = tokio::time::timeout(self.limits.connect, self.driver.connect()).await.unwrap_or_else(|_| {
            let problem = format!("no answer for {:?}; check that it can be reached from here", self.limits.connect);
            Err(StoreError::new(ErrorKind::Unavailable, DOING, problem))
        });
        match connected {
            Ok(connection) => {
                self.reached.store(true, Ordering::Relaxed);
                Ok(connection)
            }
            // Somebody locked it, or changed the password. What was to be done over the connection is not at fault.
            Err(error) if *error.kind() == ErrorKind::Invalid && self.reached.load(Ordering::Relaxed) => {
                let problem = "it accepted connections before and refuses them now";
                Err(StoreError::new(ErrorKind::Unavailable, DOING, problem).with_source(error))
            }
            Err(error) => Err(error),
        }
    }
}

/// Grows with the tries, and differs between those who collided.
fn pause_after(tries: u32) -> Duration {
    let most = 2_u64 << tries.min(8);
    Duration::from_millis(fastrand::u64(1..=most))
}

/// An error, and what it leaves behind.
pub(crate) struct Failed {
    pub(crate) error: StoreError,
    /// Whether the work had begun, so that it may have been done.
    begun: bool,
    /// Whether the connection can be used again.
    usable: bool,
}

impl Failed {
    /// A connection that cannot begin a transaction is of no use, whatever the reason.
    fn before(error: StoreError) -> Self {
        Self { error, begun: false, usable: false }
    }

    /// What failed without a transaction may have left anything behind, unless it found a key taken as it often does.
    fn alone(error: StoreError) -> Self {
        Self { usable: *error.kind() == ErrorKind::Conflict, error, begun: false }
    }
}

fn took_too_long(limit: Duration) -> StoreError {
    let problem =
        format!("it took longer than {limit:?} and its connection was closed; it may or may not have happened");
    StoreError::new(ErrorKind::Unavailable, "running a transaction", problem)
}

/// Runs work in a transaction and commits it, or rolls it back.
pub(crate) async fn run_in_transaction<D: Driver, T>(
    driver: &D,
    connection: &mut D::Connection,
    work: &Work<T>,
) -> Result<T, Failed> {
    begin(driver, connection).await?;
    run_begun(driver, connection, work).await
}

async fn begin<D: Driver>(driver: &D, connection: &mut D::Connection) -> Result<(), Failed> {
    let mut session = driver.session(connection);
    let begun = session.execute("beginning a transaction", driver.begin().into(), Vec::new()).await;
    begun.map(|_| ()).map_err(Failed::before)
}

/// Runs work in a transaction that has begun.
async fn run_begun<D: Driver, T>(driver: &D, connection: &mut D::Connection, work: &Work<T>) -> Result<T, Failed> {
    let mut session = driver.session(connection);
    let error = match work(&mut session).await {
        Ok(done) => match session.execute("committing a transaction", "COMMIT".into(), Vec::new()).await {
            Ok(_) => return Ok(done),
            Err(error) => error,
        },
        Err(error) => error,
    };
    let lost = *error.kind() == ErrorKind::Unavailable;
    // If this fails too, the server rolls back when it notices that the connection is gone.
    let usable = !lost && session.execute("rolling a transaction back", "ROLLBACK".into(), Vec::new()).await.is_ok();
    Err(Failed { error, begun: true, usable })
}
