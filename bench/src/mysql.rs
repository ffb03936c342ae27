//! MariaDB on a server of the run's own.

use std::str::FromStr as _;

use anyhow::Result;
use async_trait::async_trait;
use ratchet::mysql::MysqlStore;
use ratchet_testdb::{Profile, Server};
use sqlx::mysql::{MySqlArguments, MySqlConnectOptions};
use sqlx::{Arguments as _, AssertSqlSafe, ConnectOptions as _, MySqlConnection, Row as _};
use uuid::Uuid;

use crate::raw::{Raw, RawJob, Take, repeated};
use crate::site::{Opened, Site, opened, with_database};

pub(crate) struct MysqlSite {
    server: Server,
}

impl MysqlSite {
    pub(crate) fn start() -> Result<Self> {
        Ok(Self { server: Server::mysql(Profile::Durable)? })
    }
}

async fn connect(address: &str) -> Result<MySqlConnection> {
    let options = MySqlConnectOptions::from_str(address)?.disable_statement_logging();
    let mut conn = options.connect().await?;
    // As the product's connections are.
    run_text(&mut conn, "SET SESSION TRANSACTION ISOLATION LEVEL READ COMMITTED").await?;
    Ok(conn)
}

async fn run_text(conn: &mut MySqlConnection, text: impl Into<String>) -> Result<()> {
    sqlx::raw_sql(AssertSqlSafe(text.into())).execute(conn).await?;
    Ok(())
}

#[async_trait]
impl Site for MysqlSite {
    fn name(&self) -> &'static str {
        "mysql"
    }

    fn writers(&self) -> usize {
        16
    }

    async fn warm(&self, megabytes: usize) -> Result<()> {
        let mut conn = connect(&self.server.url()).await?;
        run_text(&mut conn, "CREATE TABLE warm (a LONGBLOB NOT NULL) ENGINE = InnoDB").await?;
        // The log is one file of 512 MB that is written round and round.
        for _ in 0..megabytes.min(600) / 50 {
            run_text(&mut conn, "INSERT INTO warm SELECT REPEAT('x', 1000000) FROM seq_1_to_50").await?;
        }
        run_text(&mut conn, "DROP TABLE warm").await
    }

    async fn fresh(&self, name: &str) -> Result<String> {
        let mut conn = connect(&self.server.url()).await?;
        let database = format!("bench_{name}");
        run_text(&mut conn, format!("DROP DATABASE IF EXISTS {database}")).await?;
        run_text(&mut conn, format!("CREATE DATABASE {database}")).await?;
        let address = with_database(&self.server.url(), &database);
        drop(MysqlStore::options(&address).migrate(true).connect().await?);
        Ok(address)
    }

    async fn open(&self, address: &str) -> Result<Opened> {
        Ok(opened!(MysqlStore::connect(address).await?))
    }

    async fn raw(&self, address: &str) -> Result<Box<dyn Raw>> {
        Ok(Box::new(RawMysql { conn: connect(address).await? }))
    }
}

struct RawMysql {
    conn: MySqlConnection,
}

const COLD: &str = "INSERT INTO scheduler_job (job_id, kind, queue, job_type, backoff_policy, payload, priority, max_retries, \
     backoff_param_us, created_at) VALUES ";
const COLD_ROW: &str = "(?, ?, 'default', 'SINGLE', 'EXPONENTIAL', ?, ?, 3, 1000000, UTC_TIMESTAMP(6))";
const HOT: &str =
    "INSERT INTO scheduler_job_queue (job_id, status, queue, kind, priority, scheduled_time, updated_at) VALUES ";
const HOT_ROW: &str = "(?, 'PENDING', 'default', ?, ?, UTC_TIMESTAMP(6), UTC_TIMESTAMP(6))";

#[async_trait]
impl Raw for RawMysql {
    async fn insert_single(&mut self, job: &RawJob) -> Result<()> {
        self.insert_cold(std::slice::from_ref(job)).await
    }

    async fn insert(&mut self, jobs: &[RawJob]) -> Result<()> {
        self.begin().await?;
        self.insert_cold(jobs).await?;
        let mut hot = MySqlArguments::default();
        for job in jobs {
            add(&mut hot, job.id)?;
            add(&mut hot, job.kind.as_str())?;
            add(&mut hot, job.priority)?;
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
        let text = "UPDATE scheduler_job_queue FORCE INDEX (PRIMARY) SET status = 'PENDING', picked_by = NULL, \
                    picked_at = NULL WHERE job_id IN (";
        self.run(repeated(text, "?", ", ", ids.len(), ")"), id_arguments(ids)?).await
    }

    async fn tidy(&mut self) -> Result<()> {
        run_text(&mut self.conn, "ANALYZE TABLE scheduler_job, scheduler_job_queue").await
    }

    async fn log_bytes(&mut self) -> Result<Option<u64>> {
        let text = "SELECT CAST(variable_value AS UNSIGNED) FROM information_schema.global_status \
                    WHERE variable_name = 'INNODB_OS_LOG_WRITTEN'";
        Ok(Some(sqlx::query(text).fetch_one(&mut self.conn).await?.get(0)))
    }
}

impl RawMysql {
    async fn insert_cold(&mut self, jobs: &[RawJob]) -> Result<()> {
        let mut cold = MySqlArguments::default();
        for job in jobs {
            add(&mut cold, job.id)?;
            add(&mut cold, job.kind.as_str())?;
            add(&mut cold, job.payload.as_str())?;
            add(&mut cold, job.priority)?;
        }
        self.run(repeated(COLD, COLD_ROW, ", ", jobs.len(), ""), cold).await
    }

    /// Candidates without locks, then locked by their keys: a sorted lock would take the whole backlog.
    async fn take(&mut self, take: &Take<'_>) -> Result<Vec<Uuid>> {
        let mut arguments = MySqlArguments::default();
        for lane in take.lanes {
            add(&mut arguments, lane.kind.as_str())?;
            add(&mut arguments, lane.priority)?;
        }
        let most = take.most;
        let lane = format!(
            "SELECT * FROM (SELECT job_id, priority, scheduled_time FROM scheduler_job_queue FORCE INDEX (idx_queue_claim) \
             WHERE status = 'PENDING' AND deferred = FALSE AND probation = FALSE AND queue = 'default' AND kind = ? \
             AND priority = ? AND scheduled_time <= UTC_TIMESTAMP(6) ORDER BY scheduled_time, job_id LIMIT {most}) AS h"
        );
        let text = if take.lanes.len() == 1 {
            lane
        } else {
            let order = format!(
                ") u ORDER BY priority + TIMESTAMPDIFF(SECOND, scheduled_time, UTC_TIMESTAMP(6)) DIV 900 DESC, \
                 scheduled_time, job_id LIMIT {most}"
            );
            repeated("SELECT job_id FROM (", &lane, " UNION ALL ", take.lanes.len(), &order)
        };
        let mut found = self.ids(text, arguments).await?;
        if found.is_empty() {
            return Ok(found);
        }
        found.sort_unstable();
        let text = "SELECT job_id FROM scheduler_job_queue FORCE INDEX (PRIMARY) WHERE job_id IN (";
        let tail = ") AND status = 'PENDING' ORDER BY job_id FOR UPDATE SKIP LOCKED";
        let free = self.ids(repeated(text, "?", ", ", found.len(), tail), id_arguments(&found)?).await?;
        let text = "UPDATE scheduler_job_queue FORCE INDEX (PRIMARY) SET status = 'RUNNING', version = version + 1, \
                    picked_by = x'00000000000000000000000000000001', picked_at = UTC_TIMESTAMP(6), \
                    updated_at = UTC_TIMESTAMP(6) WHERE job_id IN (";
        self.run(repeated(text, "?", ", ", free.len(), ")"), id_arguments(&free)?).await?;
        let text = "SELECT q.job_id, q.version, q.attempts, q.crash_count, q.scheduled_time, j.kind, j.queue, j.priority, \
                    j.payload, j.max_retries, j.backoff_policy, j.backoff_param_us, j.timeout_us \
                    FROM scheduler_job_queue q JOIN scheduler_job j ON j.job_id = q.job_id WHERE q.job_id IN (";
        self.ids(repeated(text, "?", ", ", free.len(), ")"), id_arguments(&free)?).await
    }

    async fn finish(&mut self, ids: &[Uuid]) -> Result<()> {
        if ids.is_empty() {
            return Ok(());
        }
        let text = "UPDATE scheduler_job FORCE INDEX (PRIMARY) SET terminal_status = 'SUCCEEDED', version = 2, \
                    total_attempts = 1, scheduled_time = UTC_TIMESTAMP(6), terminated_at = UTC_TIMESTAMP(6), \
                    execution_start_time = UTC_TIMESTAMP(6), execution_end_time = UTC_TIMESTAMP(6), \
                    execution_duration_us = 1, queue_wait_us = 1, job_result = 'null' WHERE job_id IN (";
        self.run(repeated(text, "?", ", ", ids.len(), ")"), id_arguments(ids)?).await?;
        let text = "DELETE q FROM scheduler_job_queue q FORCE INDEX (PRIMARY) WHERE q.job_id IN (";
        self.run(repeated(text, "?", ", ", ids.len(), ")"), id_arguments(ids)?).await?;
        let head = "INSERT INTO scheduler_job_execution (job_id, version, attempt, node_id, status, started_at, ended_at, \
                    duration_us, queue_wait_us) VALUES ";
        let row =
            "(?, 1, 1, x'00000000000000000000000000000001', 'SUCCEEDED', UTC_TIMESTAMP(6), UTC_TIMESTAMP(6), 1, 1)";
        self.run(repeated(head, row, ", ", ids.len(), ""), id_arguments(ids)?).await
    }

    async fn begin(&mut self) -> Result<()> {
        run_text(&mut self.conn, "BEGIN").await
    }

    async fn commit(&mut self) -> Result<()> {
        run_text(&mut self.conn, "COMMIT").await
    }

    async fn run(&mut self, text: String, arguments: MySqlArguments) -> Result<()> {
        sqlx::query_with(AssertSqlSafe(text), arguments).execute(&mut self.conn).await?;
        Ok(())
    }

    async fn ids(&mut self, text: String, arguments: MySqlArguments) -> Result<Vec<Uuid>> {
        let rows = sqlx::query_with(AssertSqlSafe(text), arguments).fetch_all(&mut self.conn).await?;
        Ok(rows.iter().map(|row| row.get(0)).collect())
    }
}

fn add<'q, T: sqlx::Encode<'q, sqlx::MySql> + sqlx::Type<sqlx::MySql> + 'q>(
    arguments: &mut MySqlArguments,
    value: T,
) -> Result<()> {
    arguments.add(value).map_err(|error| anyhow::anyhow!(error))
}

fn id_arguments(ids: &[Uuid]) -> Result<MySqlArguments> {
    let mut arguments = MySqlArguments::default();
    for id in ids {
        add(&mut arguments, *id)?;
    }
    Ok(arguments)
}
