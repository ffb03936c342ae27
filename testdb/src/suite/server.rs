use std::future::Future;
use std::marker::PhantomData;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use ratchet_store_sql::{Backend, Conn, Dialect, SqlStore, migrate};

use super::SqlDatabase;

/// A database server and its driver, for tests.
pub trait TestServer: Send + Sync + 'static {
    /// What the store is built on.
    type Backend: Backend<Address = str>;
    /// The driver's connection.
    type Connection: Send;
    /// The SQL that the server speaks.
    const DIALECT: Dialect;
    /// Begins a transaction with the isolation of the store's.
    const BEGIN: &'static str;
    /// What the store does when it takes the jobs that a claim has found.
    const TAKING: &'static str;

    /// The server's URL.
    fn url() -> String;

    /// Opens the store, after migrating its database.
    fn migrated(url: &str) -> impl Future<Output = SqlStore<Self::Backend>> + Send;

    /// Opens a connection of the driver.
    fn connect(url: &str) -> impl Future<Output = Self::Connection> + Send;

    /// Runs statements that return nothing.
    fn execute(conn: &mut Self::Connection, script: String) -> impl Future<Output = ()> + Send;

    /// Prepares a statement, or returns why the server refuses it.
    fn prepare(conn: &mut Self::Connection, text: Arc<str>) -> impl Future<Output = Result<(), String>> + Send;

    /// Bytes that the server has written to its log since it started.
    fn log_position(conn: &mut Self::Connection) -> impl Future<Output = u64> + Send;

    /// Lets the store's calls run on a connection.
    fn waist(conn: &mut Self::Connection) -> impl Conn;
}

/// The databases that no test uses at the moment. A test program has one server.
static FREE: Mutex<Vec<String>> = Mutex::new(Vec::new());
static CREATED: AtomicUsize = AtomicUsize::new(0);

/// A database on a server that a test has to itself. Dropping it lets the next test have it, so that there are only as many as
/// tests run at once.
#[derive(Debug)]
pub struct ServerDatabase<S> {
    name: String,
    /// Whether it has the schema, and nothing else was done to it.
    is_usual: bool,
    server: PhantomData<S>,
}

impl<S: TestServer> ServerDatabase<S> {
    /// Returns an empty database with the schema.
    pub async fn fresh() -> Self {
        let free = FREE.lock().unwrap().pop();
        if let Some(name) = free {
            let database = Self { name, is_usual: true, server: PhantomData };
            database.execute(emptying(S::DIALECT)).await;
            return database;
        }
        let mut database = Self::without_schema().await;
        database.is_usual = true;
        drop(S::migrated(&database.url()).await);
        database
    }

    /// Returns an empty database without the schema. It is not used again.
    pub async fn without_schema() -> Self {
        let number = CREATED.fetch_add(1, Ordering::Relaxed);
        let name = format!("ratchet_test_{}_{number}", std::process::id());
        S::execute(&mut S::connect(&S::url()).await, format!("CREATE DATABASE {name}")).await;
        Self { name, is_usual: false, server: PhantomData }
    }

    /// Its name on the server.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Its URL.
    pub fn url(&self) -> String {
        self.url_through(&S::url())
    }

    /// Its URL behind another address of the server.
    pub fn url_through(&self, server: &str) -> String {
        url_of(server, &self.name)
    }

    /// Opens a connection of the driver.
    pub async fn connect(&self) -> S::Connection {
        S::connect(&self.url()).await
    }

    /// Runs statements that return nothing.
    pub async fn execute(&self, script: impl Into<String>) {
        S::execute(&mut self.connect().await, script.into()).await;
    }

    /// Opens the store.
    pub async fn store(&self) -> SqlStore<S::Backend> {
        SqlStore::connect(&self.url()).await.unwrap()
    }
}

impl<S> Drop for ServerDatabase<S> {
    fn drop(&mut self) {
        if self.is_usual {
            FREE.lock().unwrap().push(std::mem::take(&mut self.name));
        }
    }
}

impl<S: TestServer> SqlDatabase for ServerDatabase<S> {
    type Backend = S::Backend;
    type Connection = S::Connection;
    const DIALECT: Dialect = S::DIALECT;

    async fn fresh() -> Self {
        Self::fresh().await
    }

    async fn store(&self) -> SqlStore<S::Backend> {
        self.store().await
    }

    fn schema(&self) -> &str {
        match S::DIALECT {
            Dialect::Sqlite => "main",
            Dialect::Postgres => "public",
            Dialect::Mysql | Dialect::Mariadb => &self.name,
        }
    }

    async fn connect(&self) -> S::Connection {
        self.connect().await
    }

    async fn prepare(conn: &mut S::Connection, text: Arc<str>) -> Result<(), String> {
        S::prepare(conn, text).await
    }
}

/// Deletes the rows of every table but that of the schema's versions.
fn emptying(dialect: Dialect) -> String {
    let script = migrate::clean_install(dialect);
    let tables = script.lines().filter_map(|line| line.strip_prefix("CREATE TABLE scheduler_"));
    tables
        .filter_map(|rest| rest.split_whitespace().next())
        .fold(String::new(), |script, table| script + "DELETE FROM scheduler_" + table + ";")
}

/// A server's URL with another database.
pub fn url_of(server: &str, database: &str) -> String {
    let (rest, query) = server.split_once('?').unwrap_or((server, ""));
    let base = rest.rsplit_once('/').map_or(rest, |(base, _)| base);
    let query = if query.is_empty() { String::new() } else { format!("?{query}") };
    format!("{base}/{database}{query}")
}
