//! Databases for tests: as many as run at once, each emptied before it is used again.

use std::str::FromStr as _;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

use ratchet_store_postgres::PostgresStore;
use ratchet_store_postgres::sqlx::postgres::PgConnectOptions;
use ratchet_store_postgres::sqlx::{self, AssertSqlSafe, ConnectOptions as _, PgConnection};

static FREE: Mutex<Vec<String>> = Mutex::new(Vec::new());
static MADE: AtomicUsize = AtomicUsize::new(0);

/// A database of a test's own; dropping it lets the next test have it.
pub(crate) struct TestDatabase {
    name: String,
    /// Whether it has the schema, and nothing else was done to it.
    usual: bool,
}

impl TestDatabase {
    /// An empty database with the schema.
    pub(crate) async fn fresh() -> Self {
        let free = FREE.lock().unwrap().pop();
        if let Some(name) = free {
            let database = Self { name, usual: true };
            database.execute(EMPTY).await;
            return database;
        }
        let mut database = Self::without_schema().await;
        database.usual = true;
        PostgresStore::options(&database.url()).migrate(true).connect().await.unwrap();
        database
    }

    /// An empty database without the schema; it is not used again.
    pub(crate) async fn without_schema() -> Self {
        let number = MADE.fetch_add(1, Ordering::Relaxed);
        let name = format!("ratchet_test_{}_{number}", std::process::id());
        let mut server = server().connect().await.unwrap();
        sqlx::raw_sql(AssertSqlSafe(format!("CREATE DATABASE {name}"))).execute(&mut server).await.unwrap();
        Self { name, usual: false }
    }

    pub(crate) fn name(&self) -> &str {
        &self.name
    }

    /// Where it is.
    pub(crate) fn url(&self) -> String {
        url_of(&ratchet_testdb::postgres_url().unwrap(), &self.name)
    }

    /// Where it is behind another address.
    pub(crate) fn url_through(&self, server: &str) -> String {
        url_of(server, &self.name)
    }

    pub(crate) async fn connect(&self) -> PgConnection {
        server().database(&self.name).connect().await.unwrap()
    }

    pub(crate) async fn execute(&self, script: impl Into<String>) {
        let mut conn = self.connect().await;
        sqlx::raw_sql(AssertSqlSafe(script.into())).execute(&mut conn).await.unwrap();
    }

    pub(crate) async fn store(&self) -> PostgresStore {
        PostgresStore::connect(&self.url()).await.unwrap()
    }
}

impl Drop for TestDatabase {
    fn drop(&mut self) {
        if self.usual {
            FREE.lock().unwrap().push(std::mem::take(&mut self.name));
        }
    }
}

const EMPTY: &str = "DELETE FROM scheduler_job; DELETE FROM scheduler_job_queue; DELETE FROM scheduler_job_tag; \
     DELETE FROM scheduler_job_execution; DELETE FROM scheduler_business_key_reservation; \
     DELETE FROM scheduler_idempotency_key; DELETE FROM scheduler_queue; DELETE FROM scheduler_resource_limit; \
     DELETE FROM scheduler_resource_permit; DELETE FROM scheduler_node; \
     DELETE FROM scheduler_lock; DELETE FROM scheduler_dlq_alert; \
     DELETE FROM scheduler_workflow_condition; DELETE FROM scheduler_batch; DELETE FROM scheduler_signal_wait; \
     DELETE FROM scheduler_signal; DELETE FROM scheduler_recurring_job; DELETE FROM scheduler_recurring_job_archive; \
     DELETE FROM scheduler_job_archive; DELETE FROM scheduler_job_archive_tag; \
     DELETE FROM scheduler_job_log; DELETE FROM scheduler_breaker";

fn server() -> PgConnectOptions {
    PgConnectOptions::from_str(&ratchet_testdb::postgres_url().unwrap()).unwrap().disable_statement_logging()
}

/// A server's URL with another database.
pub(crate) fn url_of(server: &str, database: &str) -> String {
    let (rest, query) = server.split_once('?').unwrap_or((server, ""));
    let base = rest.rsplit_once('/').map_or(rest, |(base, _)| base);
    let query = if query.is_empty() { String::new() } else { format!("?{query}") };
    format!("{base}/{database}{query}")
}
