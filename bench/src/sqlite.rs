//! The embedded store: a file for each measure.

use std::path::PathBuf;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use anyhow::Result;
use async_trait::async_trait;
use ratchet::sqlite::SqliteStore;
use sqlx::sqlite::{SqliteArguments, SqliteConnectOptions, SqliteJournalMode, SqliteSynchronous};
use sqlx::{Arguments as _, AssertSqlSafe, Connection as _, Row as _, SqliteConnection};
use tempfile::TempDir;
use uuid::Uuid;

use crate::raw::Raw;
use crate::rows::{RawRows, Rows, Texts, Value};
use crate::site::{Opened, Site, opened};

pub(crate) struct SqliteSite {
    directory: TempDir,
    files: AtomicUsize,
}

impl SqliteSite {
    pub(crate) fn new() -> Result<Self> {
        Ok(Self { directory: tempfile::tempdir()?, files: AtomicUsize::new(0) })
    }
}

#[async_trait]
impl Site for SqliteSite {
    fn name(&self) -> &'static str {
        "sqlite"
    }

    fn writers(&self) -> usize {
        1
    }

    /// Every file has a log of its own.
    async fn warm(&self, _megabytes: usize) -> Result<()> {
        Ok(())
    }

    async fn fresh(&self, name: &str) -> Result<String> {
        let number = self.files.fetch_add(1, Ordering::Relaxed);
        for entry in std::fs::read_dir(self.directory.path())? {
            let path: PathBuf = entry?.path();
            if path.file_name().is_some_and(|file| file.to_string_lossy().starts_with(&format!("{name}-"))) {
                std::fs::remove_file(path)?;
            }
        }
        let path = self.directory.path().join(format!("{name}-{number}.db"));
        drop(SqliteStore::open(&path).await?);
        Ok(path.display().to_string())
    }

    async fn open(&self, address: &str) -> Result<Opened> {
        Ok(opened!(SqliteStore::open(address).await?))
    }

    /// With the same durability, cache and checkpoints.
    async fn raw(&self, address: &str) -> Result<Box<dyn Raw>> {
        let options = SqliteConnectOptions::new()
            .filename(address)
            .journal_mode(SqliteJournalMode::Wal)
            .synchronous(SqliteSynchronous::Full)
            .pragma("cache_size", "-32768")
            .pragma("wal_autocheckpoint", "4000")
            .busy_timeout(Duration::from_secs(5));
        Ok(Box::new(RawRows(SqliteRows { conn: SqliteConnection::connect_with(&options).await? })))
    }
}

struct SqliteRows {
    conn: SqliteConnection,
}

fn lane(most: usize) -> String {
    format!(
        "SELECT * FROM (SELECT job_id, priority, scheduled_time FROM scheduler_job_queue \
         WHERE status = 'PENDING' AND deferred = 0 AND probation = 0 AND queue = 'default' AND kind = ? \
         AND priority = ? AND scheduled_time <= 9000000000000000 ORDER BY scheduled_time, job_id LIMIT {most})"
    )
}

fn order(most: usize) -> String {
    format!(
        ") ORDER BY priority + (1763999999000000 - scheduled_time) / 900000000 DESC, scheduled_time, job_id LIMIT {most}"
    )
}

/// All times are the same moment in the past.
#[async_trait]
impl Rows for SqliteRows {
    const TEXTS: Texts = Texts {
        begin: "BEGIN IMMEDIATE",
        cold_row: "(?, ?, 'default', 'SINGLE', 'EXPONENTIAL', ?, ?, 3, 1000000, 1763236800000000)",
        hot_row: "(?, 'PENDING', 'default', ?, ?, 1763236800000000, 1763236800000000)",
        lane,
        order,
        lock: None,
        take: "UPDATE scheduler_job_queue SET status = 'RUNNING', version = version + 1, picked_by = x'01', \
               picked_at = 1763236800000000 WHERE job_id IN (",
        read: "SELECT q.job_id, q.version, q.attempts, q.scheduled_time, j.payload FROM scheduler_job_queue q \
               JOIN scheduler_job j ON j.job_id = q.job_id WHERE q.job_id IN (",
        put_back: "UPDATE scheduler_job_queue SET status = 'PENDING', picked_by = NULL, picked_at = NULL WHERE job_id IN (",
        end: "UPDATE scheduler_job SET terminal_status = 'SUCCEEDED', version = 2, total_attempts = 1, \
              terminated_at = 1763236800000000, execution_start_time = 1763236800000000, \
              execution_end_time = 1763236800000000, execution_duration_us = 1, queue_wait_us = 1, ended_by = x'00000000000000000000000000000001' WHERE job_id IN (",
        leave: "DELETE FROM scheduler_job_queue WHERE job_id IN (",
        tidy: "PRAGMA optimize",
    };

    async fn run(&mut self, text: String, values: Vec<Value<'_>>) -> Result<()> {
        sqlx::query_with(AssertSqlSafe(text), arguments(values)?).execute(&mut self.conn).await?;
        Ok(())
    }

    async fn ids(&mut self, text: String, values: Vec<Value<'_>>) -> Result<Vec<Uuid>> {
        let rows = sqlx::query_with(AssertSqlSafe(text), arguments(values)?).fetch_all(&mut self.conn).await?;
        Ok(rows.iter().map(|row| row.get(0)).collect())
    }
}

fn arguments(values: Vec<Value<'_>>) -> Result<SqliteArguments> {
    let mut arguments = SqliteArguments::default();
    for value in values {
        match value {
            Value::Id(id) => arguments.add(id),
            Value::Text(text) => arguments.add(text.to_owned()),
            Value::Priority(priority) => arguments.add(priority),
        }
        .map_err(anyhow::Error::from_boxed)?;
    }
    Ok(arguments)
}
