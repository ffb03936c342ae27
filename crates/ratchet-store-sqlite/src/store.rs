//! The database: each transaction on the connection where it belongs.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use ratchet_core::store::{HeartbeatStore, WatchGuard};
use ratchet_core::{ErrorKind, StoreError};
use ratchet_store_pool::StoreThread;
use ratchet_store_sql::migrate::{self, Migration};
use ratchet_store_sql::{Backend, Counters, Counts, Dialect, Intent, SqlStore, StoreContext, Work, work};
use sqlx::sqlite::{SqliteConnectOptions, SqlitePoolOptions};
use sqlx::{ConnectOptions as _, Connection as _, SqlitePool};

use crate::conn::Session;
use crate::error::store_error;
use crate::heartbeat::SqliteHeartbeat;
use crate::open::SqliteOptions;
use crate::watch;
use crate::writer::{Begin, Writer};

/// A store in one SQLite file. Cloning gives another handle to the same store.
///
/// ```no_run
/// # async fn example() -> Result<(), ratchet_core::StoreError> {
/// use ratchet_store_sqlite::SqliteStore;
///
/// let store = SqliteStore::options("/var/lib/app/jobs.db").create(false).migrate(false).open().await?;
/// # drop(store); Ok(()) }
/// ```
pub type SqliteStore = SqlStore<Sqlite>;

/// The database beneath a [`SqliteStore`]: one file and its connections.
#[derive(Debug, Clone)]
pub struct Sqlite {
    inner: Arc<Inner>,
}

#[derive(Debug)]
struct Inner {
    options: SqliteConnectOptions,
    writer: Writer,
    thread: StoreThread,
    readers: SqlitePool,
    context: Arc<StoreContext>,
    counters: Arc<Counters>,
}

impl Sqlite {
    pub(crate) fn new(options: SqliteConnectOptions, readers: u32) -> Result<Self, StoreError> {
        let readers = SqlitePoolOptions::new()
            .max_connections(readers)
            .min_connections(0)
            .test_before_acquire(false)
            .connect_lazy_with(options.clone().create_if_missing(false).pragma("query_only", "1"));
        let inner = Inner {
            writer: Writer::new(options.clone()),
            thread: StoreThread::start("ratchet-sqlite", 1)?,
            options: options.create_if_missing(false),
            readers,
            context: Arc::new(StoreContext::new(Dialect::Sqlite)),
            counters: Arc::default(),
        };
        Ok(Self { inner: Arc::new(inner) })
    }

    /// Makes sure that the file can be written and has the schema that these steps make.
    pub(crate) async fn prepare(&self, migrate: bool, steps: &'static [Migration]) -> Result<(), StoreError> {
        if migrate {
            return self
                .transact(Intent::Write, work!([steps], |conn| migrate::migrate(conn, steps)))
                .await
                .map(|_| ());
        }
        self.transact(Intent::Write, work!([steps], |conn| migrate::check(conn, steps))).await
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

    /// Runs work on the writer, on the store's own thread.
    async fn write<T: Send + 'static>(&self, begin: Begin, work: Arc<Work<T>>) -> Result<T, StoreError> {
        let inner = self.inner.clone();
        self.inner.thread.run(async move { inner.write(begin, &work).await }).await
    }
}

impl Inner {
    /// Runs work in a transaction of the writer; it is committed if it went well, else rolled back by being dropped.
    async fn write<T>(&self, begin: Begin, work: &Work<T>) -> Result<T, StoreError> {
        let mut writer = self.writer.lock().await?;
        let begun = writer.conn().begin_with(begin.statement()).await;
        let mut transaction = begun.map_err(|error| self.writer.failed("beginning a transaction", error))?;
        let mut session = Session { conn: &mut transaction, context: &self.context, counters: &self.counters };
        let done = work(&mut session).await.inspect_err(|error| self.writer.noticed(error))?;
        let committed = transaction.commit().await;
        committed.map_err(|error| self.writer.failed("committing a transaction", error))?;
        self.counters.count_commits(1);
        Ok(done)
    }

    /// Runs work on a reader, in one view of the database.
    async fn read<T>(&self, work: &Work<T>) -> Result<T, StoreError> {
        let mut transaction = self.readers.begin().await.map_err(|error| store_error("beginning to read", error))?;
        work(&mut Session { conn: &mut transaction, context: &self.context, counters: &self.counters }).await
    }
}

impl Backend for Sqlite {
    const NAME: &'static str = "sqlite";

    type Address = Path;
    type Options = SqliteOptions;

    fn options(path: &Path) -> SqliteOptions {
        SqliteOptions::new(path)
    }

    async fn open(options: SqliteOptions) -> Result<Self, StoreError> {
        options.open_backend().await
    }

    fn context(&self) -> &StoreContext {
        &self.inner.context
    }

    fn counts(&self) -> Counts {
        self.inner.counters.read()
    }

    async fn transact<T: Send + 'static>(&self, intent: Intent, work: Work<T>) -> Result<T, StoreError> {
        let work = Arc::new(work);
        match intent {
            Intent::Read => self.inner.read(&work).await,
            Intent::Write | Intent::Statement | Intent::LongStatement => self.write(Begin::Immediate, work).await,
            // Without the write lock at first, so that a poll that finds nothing takes no lock and watchers stay asleep;
            // if another process wrote in between, once more with it.
            Intent::MaybeWrite => match self.write(Begin::Deferred, work.clone()).await {
                Err(error) if *error.kind() == ErrorKind::Transient => self.write(Begin::Immediate, work).await,
                result => result,
            },
        }
    }

    async fn open_heartbeat(&self) -> Result<Box<dyn HeartbeatStore>, StoreError> {
        let inner = &self.inner;
        let conn =
            inner.options.connect().await.map_err(|error| store_error("opening a connection for heartbeats", error))?;
        Ok(Box::new(SqliteHeartbeat::new(conn, inner.context.clone(), inner.counters.clone())))
    }

    fn watch(&self, changed: Box<dyn Fn() + Send + Sync>) -> Option<WatchGuard> {
        watch::watch(self.inner.options.clone(), changed)
    }
}
