//! The ceiling: bare multi-row statements that write the same rows, with no engine, no fence and no ageing.

use std::fmt::Write as _;
use std::path::Path;
use std::time::{Duration, Instant};

use ratchet::sqlite::SqliteStore;
use sqlx::sqlite::{SqliteArguments, SqliteConnectOptions, SqliteJournalMode, SqliteSynchronous};
use sqlx::{Arguments, AssertSqlSafe, Connection, Row, SqlSafeStr, SqliteConnection};

use crate::measure::rate;

pub(crate) struct Raw {
    conn: SqliteConnection,
    ids: u128,
}

/// Some time in the past.
const TIME: i64 = 1_763_236_800_000_000;

/// Rows that are running, by id.
type Taken = Vec<Vec<u8>>;

impl Raw {
    /// On the same schema, with the same durability, cache and checkpoints.
    pub(crate) async fn at(path: &Path) -> anyhow::Result<Self> {
        drop(SqliteStore::open(path).await?);
        let options = SqliteConnectOptions::new()
            .filename(path)
            .journal_mode(SqliteJournalMode::Wal)
            .synchronous(SqliteSynchronous::Full)
            .pragma("cache_size", "-32768")
            .pragma("wal_autocheckpoint", "4000")
            .busy_timeout(Duration::from_secs(5));
        Ok(Self { conn: SqliteConnection::connect_with(&options).await?, ids: 0 })
    }

    pub(crate) async fn submit(&mut self, jobs: usize, together: usize) -> anyhow::Result<f64> {
        let begun = Instant::now();
        for _ in 0..jobs.div_ceil(together) {
            self.begin().await?;
            self.insert(together).await?;
            self.commit().await?;
        }
        Ok(rate(jobs, begun.elapsed()))
    }

    pub(crate) async fn drain(&mut self, jobs: usize, together: usize) -> anyhow::Result<f64> {
        let begun = Instant::now();
        self.drain_all(together).await?;
        Ok(rate(jobs, begun.elapsed()))
    }

    pub(crate) async fn end_to_end(&mut self, jobs: usize, bulk: usize, together: usize) -> anyhow::Result<f64> {
        let begun = Instant::now();
        for _ in 0..jobs.div_ceil(bulk) {
            self.begin().await?;
            self.insert(bulk).await?;
            self.commit().await?;
            self.drain_all(together).await?;
        }
        Ok(rate(jobs, begun.elapsed()))
    }

    pub(crate) async fn submit_and_claim_one(&mut self, times: usize) -> anyhow::Result<Vec<f64>> {
        let mut latencies = Vec::with_capacity(times);
        for _ in 0..times {
            tokio::time::sleep(Duration::from_millis(15)).await;
            let begun = Instant::now();
            self.begin().await?;
            self.insert(1).await?;
            self.commit().await?;
            self.begin().await?;
            self.take(1).await?;
            self.commit().await?;
            latencies.push(begun.elapsed().as_secs_f64() * 1e6);
        }
        Ok(latencies)
    }

    /// Complete, then claim, in one transaction each time, until nothing is left.
    async fn drain_all(&mut self, together: usize) -> anyhow::Result<()> {
        let mut taken = Taken::new();
        loop {
            self.begin().await?;
            self.finish(&taken).await?;
            taken = self.take(together).await?;
            self.commit().await?;
            if taken.is_empty() {
                return Ok(());
            }
        }
    }

    /// Growing ids, as Ratchet's are.
    fn next_id(&mut self) -> Vec<u8> {
        self.ids += 1;
        (0x01a1_e0f2_4674_7000_8000_0000_0000_0000_u128 + (self.ids << 64)).to_be_bytes().to_vec()
    }

    async fn insert(&mut self, count: usize) -> anyhow::Result<()> {
        let mut cold = SqliteArguments::default();
        let mut hot = SqliteArguments::default();
        for n in 0..count {
            let id = self.next_id();
            add(&mut cold, id.clone())?;
            for text in ["bench.noop", "default", "SINGLE", "EXPONENTIAL"] {
                add(&mut cold, text)?;
            }
            add(&mut cold, format!("{{\"n\":{n}}}"))?;
            for number in [2_i64, 3, 1_000_000, TIME] {
                add(&mut cold, number)?;
            }
            add(&mut hot, id)?;
            for text in ["PENDING", "default", "bench.noop"] {
                add(&mut hot, text)?;
            }
            for number in [2_i64, TIME, TIME] {
                add(&mut hot, number)?;
            }
        }
        let cold_text = values(
            "INSERT INTO scheduler_job (job_id, kind, queue, job_type, backoff_policy, payload, priority, max_retries, \
             backoff_param_us, created_at) VALUES ",
            "(?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
            count,
        );
        let hot_text = values(
            "INSERT INTO scheduler_job_queue (job_id, status, queue, kind, priority, scheduled_time, updated_at) VALUES ",
            "(?, ?, ?, ?, ?, ?, ?)",
            count,
        );
        self.run(cold_text, cold).await?;
        self.run(hot_text, hot).await
    }

    async fn take(&mut self, count: usize) -> anyhow::Result<Taken> {
        let mut arguments = SqliteArguments::default();
        add(&mut arguments, i64::try_from(count)?)?;
        let text = "SELECT job_id FROM scheduler_job_queue WHERE status = 'PENDING' AND deferred = 0 \
                    AND probation = 0 AND queue = 'default' AND kind = 'bench.noop' AND priority = 2 \
                    AND scheduled_time <= 9000000000000000 ORDER BY scheduled_time, job_id LIMIT ?";
        let rows = sqlx::query_with(text, arguments).fetch_all(&mut self.conn).await?;
        let ids: Taken = rows.iter().map(|row| row.get(0)).collect();
        if ids.is_empty() {
            return Ok(ids);
        }
        let text = listed(
            "UPDATE scheduler_job_queue SET status = 'RUNNING', version = version + 1, picked_by = x'01', \
             picked_at = 1763236800000000 WHERE job_id IN (",
            ids.len(),
        );
        let arguments = id_arguments(&ids)?;
        self.run(text, arguments).await?;
        let text = listed(
            "SELECT q.job_id, q.version, q.attempts, q.scheduled_time, j.payload FROM scheduler_job_queue q \
             JOIN scheduler_job j ON j.job_id = q.job_id WHERE q.job_id IN (",
            ids.len(),
        );
        let arguments = id_arguments(&ids)?;
        let read = sqlx::query_with(AssertSqlSafe(text).into_sql_str(), arguments).fetch_all(&mut self.conn).await?;
        anyhow::ensure!(read.len() == ids.len());
        Ok(ids)
    }

    async fn finish(&mut self, ids: &Taken) -> anyhow::Result<()> {
        if ids.is_empty() {
            return Ok(());
        }
        let text = listed(
            "UPDATE scheduler_job SET terminal_status = 'SUCCEEDED', version = 2, total_attempts = 1, \
             terminated_at = 1763236800000000, execution_start_time = 1763236800000000, \
             execution_end_time = 1763236800000000, execution_duration_us = 1, queue_wait_us = 1 WHERE job_id IN (",
            ids.len(),
        );
        let arguments = id_arguments(ids)?;
        self.run(text, arguments).await?;
        let arguments = id_arguments(ids)?;
        self.run(listed("DELETE FROM scheduler_job_queue WHERE job_id IN (", ids.len()), arguments).await?;
        let text = values(
            "INSERT INTO scheduler_job_execution (job_id, version, attempt, node_id, status, started_at, ended_at, \
             duration_us, queue_wait_us) VALUES ",
            "(?, 1, 1, x'01', 'SUCCEEDED', 1763236800000000, 1763236800000000, 1, 1)",
            ids.len(),
        );
        let arguments = id_arguments(ids)?;
        self.run(text, arguments).await
    }

    async fn begin(&mut self) -> anyhow::Result<()> {
        sqlx::query("BEGIN IMMEDIATE").execute(&mut self.conn).await?;
        Ok(())
    }

    async fn commit(&mut self) -> anyhow::Result<()> {
        sqlx::query("COMMIT").execute(&mut self.conn).await?;
        Ok(())
    }

    async fn run(&mut self, text: String, arguments: SqliteArguments) -> anyhow::Result<()> {
        sqlx::query_with(AssertSqlSafe(text).into_sql_str(), arguments).execute(&mut self.conn).await?;
        Ok(())
    }
}

fn add<'q, T: sqlx::Encode<'q, sqlx::Sqlite> + sqlx::Type<sqlx::Sqlite> + 'q>(
    arguments: &mut SqliteArguments,
    value: T,
) -> anyhow::Result<()> {
    arguments.add(value).map_err(|error| anyhow::anyhow!(error))
}

fn id_arguments(ids: &Taken) -> anyhow::Result<SqliteArguments> {
    let mut arguments = SqliteArguments::default();
    for id in ids {
        add(&mut arguments, id.clone())?;
    }
    Ok(arguments)
}

fn values(head: &str, row: &str, count: usize) -> String {
    let mut text = head.to_owned();
    for n in 0..count {
        let _ = write!(text, "{}{row}", if n == 0 { "" } else { ", " });
    }
    text
}

fn listed(head: &str, count: usize) -> String {
    format!("{head}{}?)", "?, ".repeat(count - 1))
}
