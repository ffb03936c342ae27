use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use ratchet_core::store::PulseStore;
use ratchet_core::{ErrorKind, StoreError};
use ratchet_store_sql::{Conn, Counters, Intent, Work};
use tokio::sync::Semaphore;

use crate::driver::Driver;
use crate::pulse::ServerPulse;
use crate::thread::StoreThread;

/// How much a pool may use.
#[derive(Debug, Clone, Copy)]
pub struct PoolLimits {
    /// Most connections at once.
    pub connections: usize,
    /// How long opening a connection may take.
    pub connect: Duration,
    /// How long a transaction may take; then its connection is closed.
    pub transaction: Duration,
}

impl Default for PoolLimits {
    fn default() -> Self {
        Self { connections: 8, connect: Duration::from_secs(10), transaction: Duration::from_secs(25) }
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
pub struct Pool<D: Driver> {
    inner: Arc<Inner<D>>,
    thread: StoreThread,
}

#[derive(Debug)]
struct Inner<D: Driver> {
    driver: Arc<D>,
    limits: PoolLimits,
    /// The one that was used last is used next, so that few are enough.
    idle: Mutex<Idle<D::Connection>>,
    permits: Semaphore,
    counters: Arc<Counters>,
}

struct Idle<C>(Vec<C>);

impl<C> std::fmt::Debug for Idle<C> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} connections", self.0.len())
    }
}

impl<D: Driver> Pool<D> {
    /// A pool without connections; `name` is that of its threads.
    pub fn new(name: &str, driver: Arc<D>, limits: PoolLimits, counters: Arc<Counters>) -> Result<Self, StoreError> {
        let inner = Inner {
            driver,
            permits: Semaphore::new(limits.connections.max(1)),
            idle: Mutex::new(Idle(Vec::new())),
            limits,
            counters,
        };
        Ok(Self { inner: Arc::new(inner), thread: StoreThread::start(name, THREADS)? })
    }

    /// The threads of the store.
    pub fn thread(&self) -> &StoreThread {
        &self.thread
    }

    /// Runs work in a transaction; see [`Transact`](ratchet_store_sql::Transact).
    pub async fn transact<T: Send + 'static>(&self, intent: Intent, work: Work<T>) -> Result<T, StoreError> {
        let inner = self.inner.clone();
        self.thread.run(async move { inner.transact(intent, &work).await }).await
    }

    /// A connection for heartbeats alone, on the caller's runtime.
    pub async fn open_pulse(&self) -> Result<Box<dyn PulseStore>, StoreError> {
        let connection = self.inner.connect().await?;
        Ok(Box::new(ServerPulse::new(self.inner.driver.clone(), connection)))
    }
}

impl<D: Driver> Inner<D> {
    async fn transact<T>(&self, intent: Intent, work: &Work<T>) -> Result<T, StoreError> {
        let mut tries = 1;
        loop {
            let attempt = tokio::time::timeout(self.limits.transaction, self.attempt(intent, work));
            match attempt.await.unwrap_or_else(|_| Err(self.took_too_long())) {
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

    fn took_too_long(&self) -> StoreError {
        let problem = format!(
            "it took longer than {:?} and its connection was closed; it may or may not have happened",
            self.limits.transaction
        );
        StoreError::new(ErrorKind::Unavailable, "running a transaction", problem)
    }

    async fn attempt<T>(&self, intent: Intent, work: &Work<T>) -> Result<T, StoreError> {
        let _permit = self.permits.acquire().await.expect("the semaphore is never closed");
        let mut connection = match self.take() {
            Some(kept) => kept,
            None => self.connect().await?,
        };
        let result = if intent == Intent::Statement || intent == Intent::Read {
            self.run_plain(intent, &mut connection, work).await
        } else {
            if let Err(error) = begin(&*self.driver, &mut connection).await {
                if *error.kind() != ErrorKind::Unavailable {
                    return Err(error);
                }
                // The server was restarted, or closed what it took for idle: then so are the others that were kept.
                drop(connection);
                self.forget_kept();
                connection = self.connect().await?;
                begin(&*self.driver, &mut connection).await?;
            }
            run_begun(&*self.driver, &mut connection, work).await
        };
        match result {
            Ok((done, commits)) => {
                self.counters.count_commits(commits);
                self.keep(connection);
                Ok(done)
            }
            Err(Failed { error, usable }) => {
                if usable {
                    self.keep(connection);
                }
                Err(error)
            }
        }
    }

    /// Runs work that needs no transaction around it, or in one if statements could end up on different connections.
    async fn run_plain<T>(
        &self,
        intent: Intent,
        connection: &mut D::Connection,
        work: &Work<T>,
    ) -> Result<(T, u64), Failed> {
        if self.driver.is_pooled() {
            begin(&*self.driver, connection).await.map_err(Failed::of)?;
            return run_begun(&*self.driver, connection, work).await;
        }
        let result = work(&mut self.driver.session(connection)).await;
        let result = match result {
            // Nothing was changed, so a second look on a new connection is safe.
            Err(error) if *error.kind() == ErrorKind::Unavailable && intent == Intent::Read => {
                self.forget_kept();
                *connection = self.connect().await.map_err(Failed::of)?;
                work(&mut self.driver.session(connection)).await
            }
            result => result,
        };
        let commits = u64::from(intent == Intent::Statement);
        result.map(|done| (done, commits)).map_err(Failed::of)
    }

    async fn connect(&self) -> Result<D::Connection, StoreError> {
        tokio::time::timeout(self.limits.connect, self.driver.connect()).await.unwrap_or_else(|_| {
            let problem = format!("no answer for {:?}; check that it can be reached from here", self.limits.connect);
            Err(StoreError::new(ErrorKind::Unavailable, "connecting to the database server", problem))
        })
    }

    fn take(&self) -> Option<D::Connection> {
        self.idle.lock().unwrap_or_else(PoisonError::into_inner).0.pop()
    }

    fn keep(&self, connection: D::Connection) {
        self.idle.lock().unwrap_or_else(PoisonError::into_inner).0.push(connection);
    }

    fn forget_kept(&self) {
        let kept = std::mem::take(&mut self.idle.lock().unwrap_or_else(PoisonError::into_inner).0);
        drop(kept);
    }
}

/// Grows with the tries, and differs between those who collided.
fn pause_after(tries: u32) -> Duration {
    let most = 2_u64 << tries.min(8);
    Duration::from_millis(fastrand::u64(1..=most))
}

/// An error, and whether the connection can be used again.
pub(crate) struct Failed {
    pub(crate) error: StoreError,
    usable: bool,
}

impl Failed {
    fn of(error: StoreError) -> Self {
        Self { usable: *error.kind() != ErrorKind::Unavailable, error }
    }
}

pub(crate) async fn begin<D: Driver>(driver: &D, connection: &mut D::Connection) -> Result<(), StoreError> {
    driver.session(connection).execute("beginning a transaction", driver.begin().into(), Vec::new()).await.map(|_| ())
}

/// Runs work in a transaction that has begun, and ends it.
pub(crate) async fn run_begun<D: Driver, T>(
    driver: &D,
    connection: &mut D::Connection,
    work: &Work<T>,
) -> Result<(T, u64), Failed> {
    let mut session = driver.session(connection);
    match work(&mut session).await {
        Ok(done) => match session.execute("committing a transaction", "COMMIT".into(), Vec::new()).await {
            Ok(_) => Ok((done, 1)),
            Err(error) => Err(Failed { error, usable: false }),
        },
        Err(error) => {
            let gone = *error.kind() == ErrorKind::Unavailable;
            let rolled_back =
                !gone && session.execute("rolling a transaction back", "ROLLBACK".into(), Vec::new()).await.is_ok();
            Err(Failed { error, usable: rolled_back })
        }
    }
}
