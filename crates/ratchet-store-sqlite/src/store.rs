//! The store: every call of the traits, on the connection where it belongs.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use async_trait::async_trait;
use ratchet_core::node::{NodeRecord, NodeRegistration, QueueRecord};
use ratchet_core::page::{JobCursor, JobFilter, Page};
use ratchet_core::store::{
    ClusterStore, ControlStore, JobStore, MovableClock, Orphans, Progress, PulseStore, QueryStore, QueueStore,
    Replacement, Running, StateCounts, Store, SubmitOutcome, SubmitUnit, Transitioned, Turn, TurnStore, WatchGuard,
};
use ratchet_core::{
    AttemptRecord, BusinessKey, ClaimRequest, ErrorKind, IdempotencyKey, JobId, JobRecord, NewJob, NodeId, QueueName,
    Settlement, StoreError, Timestamp,
};
use ratchet_store_sql::{Dialect, Texts, claim, cluster, control, lease, migrate, query, queues, read, submit, turn};
use sqlx::sqlite::{SqliteConnectOptions, SqlitePoolOptions};
use sqlx::{ConnectOptions as _, Connection as _, SqlitePool};

use crate::conn::{Counters, Counts, Session};
use crate::error::store_error;
use crate::open::SqliteOptions;
use crate::pulse::SqlitePulse;
use crate::thread::WriterThread;
use crate::watch;
use crate::writer::{Begin, Writer};

/// A store in one SQLite file. Cloning gives another handle to the same store.
#[derive(Debug, Clone)]
pub struct SqliteStore {
    inner: Arc<Inner>,
}

#[derive(Debug)]
struct Inner {
    options: SqliteConnectOptions,
    writer: Writer,
    thread: WriterThread,
    readers: SqlitePool,
    texts: Arc<Texts>,
    counters: Arc<Counters>,
}

/// Runs one function of `ratchet-store-sql` in a transaction of the writer, on the store's own thread; it is committed if
/// `keep` likes the result, else rolled back by being dropped. What the call uses is moved to that thread.
macro_rules! write {
    ($store:expr, $begin:expr, |$conn:ident| $call:expr) => {
        write!($store, $begin, |$conn| $call, |_| true)
    };
    ($store:expr, $begin:expr, |$conn:ident| $call:expr, $keep:expr) => {{
        let inner = $store.inner.clone();
        let transaction = async move {
            let inner = &*inner;
            let mut writer = inner.writer.lock().await?;
            let begun = writer.conn().begin_with($begin.statement()).await;
            let mut transaction = begun.map_err(|error| inner.writer.failed("beginning a transaction", error))?;
            let mut session = Session { conn: &mut transaction, texts: &inner.texts, counters: &inner.counters };
            let $conn = &mut session;
            let result = $call.await;
            match result {
                Ok(done) if $keep(&done) => {
                    let committed = transaction.commit().await;
                    committed.map_err(|error| inner.writer.failed("committing a transaction", error))?;
                    inner.counters.count_commit();
                    Ok(done)
                }
                Err(error) => {
                    inner.writer.noticed(&error);
                    Err(error)
                }
                refused => refused,
            }
        };
        $store.inner.thread.run(transaction).await
    }};
}

/// The same without the write lock at first; if another process wrote in between, once more with it.
macro_rules! maybe_write {
    ($store:expr, [$($used:ident),*], |$conn:ident| $call:expr) => {{
        let first = {
            $(let $used = $used.clone();)*
            write!($store, Begin::Deferred, |$conn| $call)
        };
        match first {
            Err(error) if *error.kind() == ErrorKind::Transient => write!($store, Begin::Immediate, |$conn| $call),
            result => result,
        }
    }};
}

/// Runs one function of `ratchet-store-sql` on a reader, in one view of the database.
macro_rules! read {
    ($store:expr, |$conn:ident| $call:expr) => {{
        let inner = &$store.inner;
        let mut transaction = inner.readers.begin().await.map_err(|error| store_error("beginning to read", error))?;
        let mut session = Session { conn: &mut transaction, texts: &inner.texts, counters: &inner.counters };
        let $conn = &mut session;
        $call.await
    }};
}

impl SqliteStore {
    /// Opens the file at `path` with every option at its default: creates it if it is missing and brings the schema up
    /// to date.
    pub async fn open(path: impl AsRef<Path>) -> Result<Self, StoreError> {
        Self::options(path).open().await
    }

    /// How to open the file at `path`.
    ///
    /// ```no_run
    /// # async fn example() -> Result<(), ratchet_core::StoreError> {
    /// use ratchet_store_sqlite::SqliteStore;
    ///
    /// let store = SqliteStore::options("/var/lib/app/jobs.db").create(false).migrate(false).open().await?;
    /// # drop(store); Ok(()) }
    /// ```
    pub fn options(path: impl AsRef<Path>) -> SqliteOptions {
        SqliteOptions::new(path.as_ref())
    }

    pub(crate) fn new(options: SqliteConnectOptions, readers: u32) -> Result<Self, StoreError> {
        let readers = SqlitePoolOptions::new()
            .max_connections(readers)
            .min_connections(0)
            .test_before_acquire(false)
            .connect_lazy_with(options.clone().create_if_missing(false).pragma("query_only", "1"));
        let inner = Inner {
            writer: Writer::new(options.clone()),
            thread: WriterThread::start()?,
            options: options.create_if_missing(false),
            readers,
            texts: Arc::new(Texts::new(Dialect::Sqlite)),
            counters: Arc::default(),
        };
        Ok(Self { inner: Arc::new(inner) })
    }

    /// Makes sure that the file can be written and has the schema that this version needs.
    pub(crate) async fn prepare(&self, migrate: bool) -> Result<(), StoreError> {
        if migrate {
            return write!(self, Begin::Immediate, |conn| migrate::migrate(conn)).map(|_| ());
        }
        write!(self, Begin::Immediate, |conn| migrate::check(conn))
    }

    /// How much the store has asked of its database since it was opened.
    pub fn counts(&self) -> Counts {
        self.inner.counters.read()
    }

    /// Counts the steps of SQLite's virtual machine on the writing connection from now on, for tests of query plans.
    #[doc(hidden)]
    pub async fn count_vm_steps(&self) -> Result<Arc<AtomicU64>, StoreError> {
        let mut writer = self.inner.writer.lock().await?;
        let steps = Arc::new(AtomicU64::new(0));
        let counted = steps.clone();
        let mut handle = writer.conn().lock_handle().await.map_err(|error| store_error("counting steps", error))?;
        handle.set_progress_handler(1, move || {
            counted.fetch_add(1, Ordering::Relaxed);
            true
        });
        drop(handle);
        Ok(steps)
    }
}

#[async_trait]
impl JobStore for SqliteStore {
    async fn submit(&self, units: &[SubmitUnit]) -> Result<Vec<SubmitOutcome>, StoreError> {
        let units: Arc<[SubmitUnit]> = units.into();
        let hopeful = units.clone();
        // If some id or key is taken this is rolled back.
        let outcomes = write!(self, Begin::Immediate, |conn| submit::submit_in_bulk(conn, &hopeful), Option::is_some)?;
        if let Some(outcomes) = outcomes {
            return Ok(outcomes);
        }
        write!(self, Begin::Immediate, |conn| submit::submit_carefully(conn, &units))
    }

    async fn find(&self, ids: &[JobId]) -> Result<Vec<JobRecord>, StoreError> {
        read!(self, |conn| read::find(conn, ids))
    }

    async fn find_by_business_key(&self, key: &BusinessKey) -> Result<Option<JobId>, StoreError> {
        read!(self, |conn| read::find_by_business_key(conn, key))
    }

    async fn find_by_idempotency_key(&self, key: &IdempotencyKey) -> Result<Option<JobId>, StoreError> {
        read!(self, |conn| read::find_by_idempotency_key(conn, key))
    }

    async fn delete(&self, id: JobId) -> Result<bool, StoreError> {
        write!(self, Begin::Immediate, |conn| control::delete(conn, id))
    }
}

#[async_trait]
impl TurnStore for SqliteStore {
    async fn turn(&self, settlements: &[Settlement], claim: Option<&ClaimRequest>) -> Result<Turn, StoreError> {
        let claim = claim.cloned().map(Arc::new);
        if settlements.is_empty() {
            // A poll that finds nothing takes no lock and writes nothing, so that watchers stay asleep.
            return maybe_write!(self, [claim], |conn| turn::turn(conn, &[], claim.as_deref()));
        }
        let settlements = settlements.to_vec();
        write!(self, Begin::Immediate, |conn| turn::turn(conn, &settlements, claim.as_deref()))
    }

    async fn next_due(&self, request: &ClaimRequest) -> Result<Option<Duration>, StoreError> {
        read!(self, |conn| claim::next_due(conn, request))
    }
}

#[async_trait]
impl ControlStore for SqliteStore {
    async fn cancel(&self, id: JobId) -> Result<Option<Transitioned>, StoreError> {
        write!(self, Begin::Immediate, |conn| control::cancel(conn, id))
    }

    async fn pause(&self, id: JobId) -> Result<Option<Transitioned>, StoreError> {
        write!(self, Begin::Immediate, |conn| control::pause(conn, id))
    }

    async fn resume(&self, id: JobId) -> Result<Option<Transitioned>, StoreError> {
        write!(self, Begin::Immediate, |conn| control::resume(conn, id))
    }

    async fn retry(&self, id: JobId) -> Result<Option<Transitioned>, StoreError> {
        write!(self, Begin::Immediate, |conn| control::retry(conn, id))
    }

    async fn release(&self, id: JobId) -> Result<Option<Transitioned>, StoreError> {
        write!(self, Begin::Immediate, |conn| control::release(conn, id))
    }

    async fn replace(&self, old: JobId, new: &NewJob) -> Result<Replacement, StoreError> {
        let new = new.clone();
        write!(self, Begin::Immediate, |conn| control::replace(conn, old, &new))
    }
}

#[async_trait]
impl ClusterStore for SqliteStore {
    async fn database_time(&self) -> Result<Timestamp, StoreError> {
        read!(self, |conn| cluster::database_time(conn))
    }

    async fn register(&self, node: &NodeRegistration) -> Result<(), StoreError> {
        let node = node.clone();
        write!(self, Begin::Immediate, |conn| cluster::register(conn, &node))
    }

    async fn deregister(&self, node: NodeId) -> Result<(), StoreError> {
        write!(self, Begin::Immediate, |conn| cluster::deregister(conn, node))
    }

    async fn open_pulse(&self) -> Result<Box<dyn PulseStore>, StoreError> {
        let inner = &self.inner;
        let conn =
            inner.options.connect().await.map_err(|error| store_error("opening a connection for heartbeats", error))?;
        Ok(Box::new(SqlitePulse::new(conn, inner.texts.clone(), inner.counters.clone())))
    }

    async fn nodes(&self) -> Result<Vec<NodeRecord>, StoreError> {
        read!(self, |conn| cluster::nodes(conn))
    }

    async fn reconcile(&self, node: NodeId, progress: &[Progress]) -> Result<Vec<Running>, StoreError> {
        if progress.is_empty() {
            return read!(self, |conn| cluster::reconcile(conn, node, progress));
        }
        let progress = progress.to_vec();
        write!(self, Begin::Immediate, |conn| cluster::reconcile(conn, node, &progress))
    }

    async fn orphans(&self, observer: NodeId, grace: Duration, limit: usize) -> Result<Orphans, StoreError> {
        maybe_write!(self, [], |conn| cluster::orphans(conn, observer, grace, limit))
    }

    async fn acquire_lease(&self, name: &str, owner: NodeId, ttl: Duration) -> Result<bool, StoreError> {
        let name = name.to_owned();
        write!(self, Begin::Immediate, |conn| lease::acquire(conn, &name, owner, ttl))
    }

    async fn release_lease(&self, name: &str, owner: NodeId) -> Result<(), StoreError> {
        let name = name.to_owned();
        write!(self, Begin::Immediate, |conn| lease::release(conn, &name, owner))
    }
}

#[async_trait]
impl QueueStore for SqliteStore {
    async fn pause_queue(&self, queue: &QueueName) -> Result<bool, StoreError> {
        let queue = queue.clone();
        write!(self, Begin::Immediate, |conn| queues::pause(conn, &queue))
    }

    async fn resume_queue(&self, queue: &QueueName) -> Result<bool, StoreError> {
        let queue = queue.clone();
        write!(self, Begin::Immediate, |conn| queues::resume(conn, &queue))
    }

    async fn queues(&self) -> Result<Vec<QueueRecord>, StoreError> {
        read!(self, |conn| queues::queues(conn))
    }
}

#[async_trait]
impl QueryStore for SqliteStore {
    async fn list(
        &self,
        filter: &JobFilter,
        after: Option<JobCursor>,
        limit: usize,
    ) -> Result<Page<JobRecord>, StoreError> {
        read!(self, |conn| query::list(conn, filter, after, limit))
    }

    async fn count_by_state(&self) -> Result<StateCounts, StoreError> {
        read!(self, |conn| query::count_by_state(conn))
    }

    async fn attempts(&self, id: JobId) -> Result<Vec<AttemptRecord>, StoreError> {
        read!(self, |conn| query::attempts(conn, id))
    }

    async fn alert_count(&self, id: JobId) -> Result<u64, StoreError> {
        read!(self, |conn| query::alert_count(conn, id))
    }
}

impl Store for SqliteStore {
    fn name(&self) -> &'static str {
        "sqlite"
    }

    fn watch(&self, changed: Box<dyn Fn() + Send + Sync>) -> Option<WatchGuard> {
        watch::watch(self.inner.options.clone(), changed)
    }
}

impl MovableClock for SqliteStore {
    fn advance_clock(&self, by: Duration) {
        self.inner.texts.advance_clock(by);
    }
}
