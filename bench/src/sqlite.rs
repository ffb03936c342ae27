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

use crate::raw::{Raw, RawJob, Take, repeated};
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
        Ok(Box::new(RawSqlite { conn: SqliteConnection::connect_with(&options).await? }))
    }
}

struct RawSqlite {
    conn: SqliteConnection,
}

/// Some time in the past.
const TIME: i64 = 1_763_236_800_000_000;

const COLD: &str = "INSERT INTO scheduler_job (job_id, kind, queue, job_type, backoff_policy, payload, priority, max_retries, \
     backoff_param_us, created_at) VALUES ";
const COLD_ROW: &str = "(?, ?, 'default', 'SINGLE', 'EXPONENTIAL', ?, ?, 3, 1000000, 1763236800000000)";
const HOT: &str =
    "INSERT INTO scheduler_job_queue (job_id, status, queue, kind, priority, scheduled_time, updated_at) VALUES ";
const HOT_ROW: &str = "(?, 'PENDING', 'default', ?, ?, ?, ?)";

#[async_trait]
impl Raw for RawSqlite {
    async fn insert_single(&mut self, job: &RawJob) -> Result<()> {
        self.insert_cold(std::slice::from_ref(job)).await
    }

    async fn insert(&mut self, jobs: &[RawJob]) -> Result<()> {
        self.begin().await?;
        self.insert_cold(jobs).await?;
        let mut hot = SqliteArguments::default();
        for job in jobs {
            add(&mut hot, job.id)?;
            add(&mut hot, job.kind.clone())?;
            add(&mut hot, job.priority)?;
            add(&mut hot, TIME)?;
            add(&mut hot, TIME)?;
        }
        self.run(repeated(HOT, HOT_ROW, ", ", jobs.len(), ""), hot).await?;
        self.commit().await
    }

    async fn turn(&mut self, finished: &[Uuid], take: &Take<'_>) -> Result<Vec<Uuid>> {
        self.begin().await?;
        self.finish(finished).await?;
        let taken = self.take(take).await?;
        self.commit().await?;
        Ok(taken)
    }

    async fn put_back(&mut self, ids: &[Uuid]) -> Result<()> {
        let text =
            "UPDATE scheduler_job_queue SET status = 'PENDING', picked_by = NULL, picked_at = NULL WHERE job_id IN (";
        self.run(repeated(text, "?", ", ", ids.len(), ")"), id_arguments(ids)?).await
    }

    async fn tidy(&mut self) -> Result<()> {
        sqlx::query("PRAGMA optimize").execute(&mut self.conn).await?;
        Ok(())
    }
}

impl RawSqlite {
    async fn insert_cold(&mut self, jobs: &[RawJob]) -> Result<()> {
        let mut cold = SqliteArguments::default();
        for job in jobs {
            add(&mut cold, job.id)?;
            add(&mut cold, job.kind.clone())?;
            add(&mut cold, job.payload.clone())?;
            add(&mut cold, job.priority)?;
        }
        self.run(repeated(COLD, COLD_ROW, ", ", jobs.len(), ""), cold).await
    }

    async fn take(&mut self, take: &Take<'_>) -> Result<Vec<Uuid>> {
        let mut arguments = SqliteArguments::default();
        let most = i64::try_from(take.most)?;
        for lane in take.lanes {
            add(&mut arguments, lane.kind.clone())?;
            add(&mut arguments, lane.priority)?;
            add(&mut arguments, most)?;
        }
        let lane = "SELECT * FROM (SELECT job_id, priority, scheduled_time FROM scheduler_job_queue \
                    WHERE status = 'PENDING' AND deferred = 0 AND probation = 0 AND queue = 'default' AND kind = ? \
                    AND priority = ? AND scheduled_time <= 9000000000000000 ORDER BY scheduled_time, job_id LIMIT ?)";
        let text = if take.lanes.len() == 1 {
            lane.to_owned()
        } else {
            add(&mut arguments, most)?;
            let order = ") ORDER BY priority + (1763999999000000 - scheduled_time) / 900000000 DESC, scheduled_time, \
                         job_id LIMIT ?";
            repeated("SELECT job_id FROM (", lane, " UNION ALL ", take.lanes.len(), order)
        };
        let rows = sqlx::query_with(AssertSqlSafe(text), arguments).fetch_all(&mut self.conn).await?;
        let ids: Vec<Uuid> = rows.iter().map(|row| row.get(0)).collect();
        if ids.is_empty() {
            return Ok(ids);
        }
        let text = "UPDATE scheduler_job_queue SET status = 'RUNNING', version = version + 1, picked_by = x'01', \
                    picked_at = 1763236800000000 WHERE job_id IN (";
        self.run(repeated(text, "?", ", ", ids.len(), ")"), id_arguments(&ids)?).await?;
        let text = "SELECT q.job_id, q.version, q.attempts, q.scheduled_time, j.payload FROM scheduler_job_queue q \
                    JOIN scheduler_job j ON j.job_id = q.job_id WHERE q.job_id IN (";
        let text = repeated(text, "?", ", ", ids.len(), ")");
        let read = sqlx::query_with(AssertSqlSafe(text), id_arguments(&ids)?).fetch_all(&mut self.conn).await?;
        anyhow::ensure!(read.len() == ids.len());
        Ok(ids)
    }

    async fn finish(&mut self, ids: &[Uuid]) -> Result<()> {
        if ids.is_empty() {
            return Ok(());
        }
        let text = "UPDATE scheduler_job SET terminal_status = 'SUCCEEDED', version = 2, total_attempts = 1, \
                    terminated_at = 1763236800000000, execution_start_time = 1763236800000000, \
                    execution_end_time = 1763236800000000, execution_duration_us = 1, queue_wait_us = 1 \
                    WHERE job_id IN (";
        self.run(repeated(text, "?", ", ", ids.len(), ")"), id_arguments(ids)?).await?;
        let text = "DELETE FROM scheduler_job_queue WHERE job_id IN (";
        self.run(repeated(text, "?", ", ", ids.len(), ")"), id_arguments(ids)?).await?;
        let head = "INSERT INTO scheduler_job_execution (job_id, version, attempt, node_id, status, started_at, ended_at, \
                    duration_us, queue_wait_us) VALUES ";
        let row = "(?, 1, 1, x'01', 'SUCCEEDED', 1763236800000000, 1763236800000000, 1, 1)";
        self.run(repeated(head, row, ", ", ids.len(), ""), id_arguments(ids)?).await
    }

    async fn begin(&mut self) -> Result<()> {
        sqlx::query("BEGIN IMMEDIATE").execute(&mut self.conn).await?;
        Ok(())
    }

    async fn commit(&mut self) -> Result<()> {
        sqlx::query("COMMIT").execute(&mut self.conn).await?;
        Ok(())
    }

    async fn run(&mut self, text: String, arguments: SqliteArguments) -> Result<()> {
        sqlx::query_with(AssertSqlSafe(text), arguments).execute(&mut self.conn).await?;
        Ok(())
    }
}

fn add<'q, T: sqlx::Encode<'q, sqlx::Sqlite> + sqlx::Type<sqlx::Sqlite> + 'q>(
    arguments: &mut SqliteArguments,
    value: T,
) -> Result<()> {
    arguments.add(value).map_err(|error| anyhow::anyhow!(error))
}

fn id_arguments(ids: &[Uuid]) -> Result<SqliteArguments> {
    let mut arguments = SqliteArguments::default();
    for id in ids {
        add(&mut arguments, *id)?;
    }
    Ok(arguments)
}
