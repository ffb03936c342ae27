//! Where the databases of a run are, and how to reach them.

use std::sync::Arc;

use anyhow::Result;
use async_trait::async_trait;
use ratchet::Store;

use crate::raw::Raw;

/// All that differs between the databases, apart from the bare statements.
#[async_trait]
pub(crate) trait Site: Send + Sync {
    fn name(&self) -> &'static str;

    /// The processor time that the server has used, in microseconds; zero if the database is in this process.
    fn server_cpu(&self) -> Result<u64> {
        Ok(0)
    }

    /// How many connections can usefully write at once.
    fn writers(&self) -> usize;

    /// Writes so much to the log that its files are there when it counts.
    async fn warm(&self, megabytes: usize) -> Result<()>;

    /// The address of an empty database with the product's schema, and nothing to be written back by the server. What an
    /// earlier call with the same name gave is gone.
    async fn fresh(&self, name: &str) -> Result<String>;

    /// Another handle to the product's store, with connections of its own.
    async fn open(&self, address: &str) -> Result<Opened>;

    /// Another bare connection.
    async fn raw(&self, address: &str) -> Result<Box<dyn Raw>>;
}

/// The product's store with every option at its default.
#[derive(Clone)]
pub(crate) struct Opened {
    pub(crate) store: Arc<dyn Store>,
    pub(crate) counts: Arc<dyn Fn() -> Counts + Send + Sync>,
}

/// The URL of another database on the same server.
pub(crate) fn with_database(url: &str, database: &str) -> String {
    let server = url.rsplit_once('/').map_or(url, |(server, _)| server);
    format!("{server}/{database}")
}

/// What a store has asked of its database.
#[derive(Clone, Copy)]
pub(crate) struct Counts {
    pub(crate) statements: u64,
    pub(crate) commits: u64,
    pub(crate) retries: u64,
}

/// A store and its counts; the stores have no trait in common that counts.
macro_rules! opened {
    ($store:expr) => {{
        let store = $store;
        let counting = store.clone();
        let counts = move || {
            let counts = counting.counts();
            $crate::site::Counts { statements: counts.statements, commits: counts.commits, retries: counts.retries }
        };
        $crate::site::Opened { store: std::sync::Arc::new(store), counts: std::sync::Arc::new(counts) }
    }};
}
pub(crate) use opened;
