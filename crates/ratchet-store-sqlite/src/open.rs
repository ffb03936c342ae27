//! Opening the file.

use std::path::{Path, PathBuf};
use std::time::Duration;

use ratchet_core::{ErrorKind, StoreError};
use ratchet_store_sql::migrate::{self, Migration};
use ratchet_store_sql::{Counters, Dialect, StoreContext};
use sqlx::ConnectOptions as _;
use sqlx::sqlite::{SqliteConnectOptions, SqliteJournalMode, SqliteSynchronous};

use crate::conn::Session;
use crate::error::store_error;
use crate::store::{Sqlite, SqliteStore};

/// How a store is opened; from [`SqliteStore::options`].
#[derive(Debug, Clone)]
pub struct SqliteOptions {
    path: PathBuf,
    create: bool,
    migrate: bool,
    steps: &'static [Migration],
    busy_timeout: Duration,
    readers: u32,
    synchronous: Synchronous,
}

/// What a commit waits for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Synchronous {
    /// Until the disk has it: what was committed survives a power cut.
    #[default]
    Full,
    /// Until the operating system has it: the last commits may be lost in a power cut, not in a crash of the process.
    Normal,
}

/// Waits between attempts to open a file that another process is just creating.
const OPEN_PAUSE: Duration = Duration::from_millis(50);
const OPEN_ATTEMPTS: usize = 100;

impl SqliteOptions {
    pub(crate) fn new(path: &Path) -> Self {
        Self {
            path: path.to_owned(),
            create: true,
            migrate: true,
            steps: migrate::migrations(Dialect::Sqlite),
            busy_timeout: Duration::from_secs(10),
            readers: 4,
            synchronous: Synchronous::default(),
        }
    }

    /// Whether a missing file is created; yes unless told otherwise.
    #[must_use]
    pub fn create(mut self, create: bool) -> Self {
        self.create = create;
        self
    }

    /// Whether the schema is brought up to date; yes unless told otherwise. A schema that lacks something is refused
    /// if not.
    #[must_use]
    pub fn migrate(mut self, migrate: bool) -> Self {
        self.migrate = migrate;
        self
    }

    /// Sets other steps than those of this version's schema, for tests of migrating.
    #[doc(hidden)]
    #[must_use]
    pub fn steps(mut self, steps: &'static [Migration]) -> Self {
        self.steps = steps;
        self
    }

    /// How long to wait for another process that writes; ten seconds unless told otherwise.
    #[must_use]
    pub fn busy_timeout(mut self, timeout: Duration) -> Self {
        self.busy_timeout = timeout;
        self
    }

    /// Most connections that read; four unless told otherwise.
    #[must_use]
    pub fn readers(mut self, readers: u32) -> Self {
        self.readers = readers.max(1);
        self
    }

    /// What a commit waits for.
    #[must_use]
    pub fn synchronous(mut self, synchronous: Synchronous) -> Self {
        self.synchronous = synchronous;
        self
    }

    /// Opens the store.
    ///
    /// # Errors
    /// [`Invalid`](ErrorKind::Invalid) if the path or what is there cannot be used,
    /// [`Unavailable`](ErrorKind::Unavailable) if it cannot be read or written at the moment. The text names the path
    /// and says what to do.
    pub async fn open(self) -> Result<SqliteStore, StoreError> {
        self.open_backend().await.map(SqliteStore::new)
    }

    pub(crate) async fn open_backend(self) -> Result<Sqlite, StoreError> {
        self.check_path()?;
        let mut attempt = 1;
        loop {
            let error = match self.open_once().await {
                Ok(store) => return Ok(store),
                Err(error) => error,
            };
            // While another process creates the file, even opening it can find it locked.
            if *error.kind() != ErrorKind::Transient || attempt == OPEN_ATTEMPTS {
                return Err(error.while_doing("opening a SQLite store", self.path.display()));
            }
            attempt += 1;
            tokio::time::sleep(OPEN_PAUSE).await;
        }
    }

    async fn open_once(&self) -> Result<Sqlite, StoreError> {
        if !self.migrate && self.path.exists() {
            self.check_schema().await?;
        }
        let sqlite = Sqlite::new(self.connect_options(), self.readers)?;
        sqlite.prepare(self.migrate, self.steps).await?;
        Ok(sqlite)
    }

    /// Refuses a file that is not Ratchet's before anything in it is changed: the store's own connections turn it to WAL, for
    /// good.
    async fn check_schema(&self) -> Result<(), StoreError> {
        let options = SqliteConnectOptions::new().filename(&self.path).busy_timeout(self.busy_timeout);
        let opened = options.disable_statement_logging().connect().await;
        let mut conn = opened.map_err(|error| store_error("looking into the file", error))?;
        let (context, counters) = (StoreContext::new(Dialect::Sqlite), Counters::default());
        let mut session = Session { conn: &mut conn, context: &context, counters: &counters };
        migrate::check(&mut session, self.steps).await
    }

    fn connect_options(&self) -> SqliteConnectOptions {
        SqliteConnectOptions::new()
            .filename(&self.path)
            .create_if_missing(self.create)
            .busy_timeout(self.busy_timeout)
            .journal_mode(SqliteJournalMode::Wal)
            .synchronous(match self.synchronous {
                Synchronous::Full => SqliteSynchronous::Full,
                Synchronous::Normal => SqliteSynchronous::Normal,
            })
            // There are none, see the migrations.
            .foreign_keys(false)
            .statement_cache_capacity(1_024)
            // A claim of 200 rows does not make the driver's thread wait for this one.
            .row_buffer_size(1_024)
            // 32 MiB of pages; a checkpoint every 16 MiB of log instead of 4, each costs two syncs.
            .pragma("cache_size", "-32768")
            .pragma("wal_autocheckpoint", "4000")
            .pragma("temp_store", "memory")
            .disable_statement_logging()
    }

    /// What can be said more clearly before SQLite says that it is unable to open the file.
    fn check_path(&self) -> Result<(), StoreError> {
        let path = self.path.display();
        let invalid = |problem| Err(StoreError::new(ErrorKind::Invalid, "opening a SQLite store", problem));
        if self.path.as_os_str() == ":memory:" || self.path.as_os_str().is_empty() {
            return invalid(format!("{path:?} names no file; give a path, or use MemoryStore for tests"));
        }
        if self.path.as_os_str().as_encoded_bytes().starts_with(b"file:") {
            return invalid(format!("{path:?} looks like a URI; give a plain path, such as ./jobs.db"));
        }
        if self.path.is_dir() {
            return invalid(format!("{path} is a directory; give the path of a file in it"));
        }
        let parent = self.path.parent().filter(|parent| !parent.as_os_str().is_empty());
        if let Some(parent) = parent
            && !parent.is_dir()
        {
            return invalid(format!("the directory {} does not exist; create it first", parent.display()));
        }
        if !self.create && !self.path.exists() {
            return invalid(format!(
                "the file {path} does not exist; create it with .create(true), or correct the path"
            ));
        }
        Ok(())
    }
}
