//! The store on any SQL database: the traits of `ratchet-core` are implemented for it beside their statements.

use std::fmt::Debug;
use std::future::Future;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use ratchet_core::store::{HeartbeatStore, MovableClock, Store, WatchGuard};
use ratchet_core::{ClusterCoordinator, StoreError};

use crate::waist::context::StoreContext;
use crate::waist::counters::Counts;
use crate::waist::dialect::Dialect;
use crate::waist::transact::{Intent, Work};

/// A database as a driver crate describes it: how it is opened, and how it runs a transaction.
pub trait Backend: Debug + Clone + Send + Sync + Sized + 'static {
    /// The store's name in metrics and messages, such as `"sqlite"`.
    const NAME: &'static str;

    /// The form of an address: a path or the text of a URL.
    type Address: ?Sized;
    /// The options with which a database is opened.
    type Options: Send;

    /// Returns the options for the database at `address`, each at its default.
    fn options(address: &Self::Address) -> Self::Options;

    /// Opens a database, and migrates or checks its schema.
    fn open(options: Self::Options) -> impl Future<Output = Result<Self, StoreError>> + Send;

    /// Returns what the connections to this database share.
    fn context(&self) -> &StoreContext;

    /// Returns how much was asked of the database since it was opened.
    fn counts(&self) -> Counts;

    /// Runs `work` and commits it, or rolls everything back if it fails.
    ///
    /// It runs to its end even if the caller stops waiting. An error of the kind
    /// [`Unavailable`](ratchet_core::ErrorKind::Unavailable) leaves open whether it was committed.
    fn transact<T: Send + 'static>(
        &self,
        intent: Intent,
        work: Work<T>,
    ) -> impl Future<Output = Result<T, StoreError>> + Send;

    /// Opens a connection for heartbeats alone, on the caller's runtime.
    fn open_heartbeat(&self) -> impl Future<Output = Result<Box<dyn HeartbeatStore>, StoreError>> + Send;

    /// Calls `changed` whenever another process writes, if the database can notice that; see [`Store::watch`].
    fn watch(&self, changed: Box<dyn Fn() + Send + Sync>) -> Option<WatchGuard> {
        let _ = changed;
        None
    }

    /// Returns what carries hints between nodes, if the database can; see [`Store::coordinator`].
    fn coordinator(&self) -> Option<Arc<dyn ClusterCoordinator>> {
        None
    }
}

/// A store on a SQL database. Cloning it gives another handle to the same store.
///
/// Driver crates name it for their database, such as `type SqliteStore = SqlStore<Sqlite>`.
#[derive(Debug, Clone)]
pub struct SqlStore<B> {
    backend: B,
}

impl<B> SqlStore<B> {
    /// Creates the store on a database that is open.
    pub fn new(backend: B) -> Self {
        Self { backend }
    }

    /// Returns the database beneath, for what only this kind of database offers.
    pub fn backend(&self) -> &B {
        &self.backend
    }
}

impl<B: Backend<Address = Path>> SqlStore<B> {
    /// Opens the file at `path` with every option at its default: creates it if it is missing and brings the schema up
    /// to date.
    pub async fn open(path: impl AsRef<Path> + Send) -> Result<Self, StoreError> {
        let options = B::options(path.as_ref());
        drop(path);
        B::open(options).await.map(Self::new)
    }
}

impl<B: Backend<Address = str>> SqlStore<B> {
    /// Opens the database at `url` with every option at its default; its schema must be up to date.
    pub async fn connect(url: &str) -> Result<Self, StoreError> {
        B::open(B::options(url)).await.map(Self::new)
    }
}

impl<B: Backend> SqlStore<B> {
    /// Returns the options for the database at `address`: a path for SQLite, a URL for a server.
    pub fn options(address: impl AsRef<B::Address>) -> B::Options {
        B::options(address.as_ref())
    }

    /// Returns how much the store has asked of its database since it was opened.
    pub fn counts(&self) -> Counts {
        self.backend.counts()
    }

    pub(crate) fn dialect(&self) -> Dialect {
        self.backend.context().dialect()
    }

    pub(crate) async fn read<T: Send + 'static>(&self, work: Work<T>) -> Result<T, StoreError> {
        self.backend.transact(Intent::Read, work).await
    }

    pub(crate) async fn write<T: Send + 'static>(&self, work: Work<T>) -> Result<T, StoreError> {
        self.backend.transact(Intent::Write, work).await
    }

    pub(crate) async fn transact<T: Send + 'static>(&self, intent: Intent, work: Work<T>) -> Result<T, StoreError> {
        self.backend.transact(intent, work).await
    }
}

impl<B: Backend> Store for SqlStore<B> {
    fn name(&self) -> &'static str {
        B::NAME
    }

    fn settles_beside_claims(&self) -> bool {
        self.dialect().settles_beside_claims()
    }

    fn watch(&self, changed: Box<dyn Fn() + Send + Sync>) -> Option<WatchGuard> {
        self.backend.watch(changed)
    }

    fn coordinator(&self) -> Option<Arc<dyn ClusterCoordinator>> {
        self.backend.coordinator()
    }
}

impl<B: Backend> MovableClock for SqlStore<B> {
    fn advance_clock(&self, by: Duration) {
        self.backend.context().advance_clock(by);
    }
}
