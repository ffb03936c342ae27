//! MariaDB on a server of the run's own.

use std::str::FromStr as _;

use anyhow::Result;
use async_trait::async_trait;
use ratchet::mysql::MysqlStore;
use ratchet_testdb::{Profile, Server};
use sqlx::mysql::{MySqlArguments, MySqlConnectOptions};
use sqlx::{Arguments as _, AssertSqlSafe, ConnectOptions as _, MySqlConnection, Row as _};
use uuid::Uuid;

use crate::raw::Raw;
use crate::rows::{RawRows, Rows, Texts, Value};
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

    fn server_cpu(&self) -> Result<u64> {
        self.server.cpu_micros()
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
        Ok(Box::new(RawRows(MysqlRows { conn: connect(address).await? })))
    }
}

struct MysqlRows {
    conn: MySqlConnection,
}

fn lane(most: usize) -> String {
    format!(
        "SELECT * FROM (SELECT job_id, priority, scheduled_time FROM scheduler_job_queue FORCE INDEX (idx_queue_claim) \
         WHERE status = 'PENDING' AND deferred = FALSE AND probation = FALSE AND queue = 'default' AND kind = ? \
         AND priority = ? AND scheduled_time <= UTC_TIMESTAMP(6) ORDER BY scheduled_time, job_id LIMIT {most}) AS h"
    )
}

fn order(most: usize) -> String {
    format!(
        ") u ORDER BY priority + TIMESTAMPDIFF(SECOND, scheduled_time, UTC_TIMESTAMP(6)) DIV 900 DESC, \
         scheduled_time, job_id LIMIT {most}"
    )
}

#[async_trait]
impl Rows for MysqlRows {
    const TEXTS: Texts = Texts {
        begin: "BEGIN",
        cold_row: "(?, ?, 'default', 'SINGLE', 'EXPONENTIAL', ?, ?, 3, 1000000, UTC_TIMESTAMP(6))",
        hot_row: "(?, 'PENDING', 'default', ?, ?, UTC_TIMESTAMP(6), UTC_TIMESTAMP(6))",
        lane,
        order,
        lock: Some([
            "SELECT job_id FROM scheduler_job_queue FORCE INDEX (PRIMARY) WHERE job_id IN (",
            ") AND status = 'PENDING' ORDER BY job_id FOR UPDATE SKIP LOCKED",
        ]),
        take: "UPDATE scheduler_job_queue FORCE INDEX (PRIMARY) SET status = 'RUNNING', version = version + 1, \
               picked_by = x'00000000000000000000000000000001', picked_at = UTC_TIMESTAMP(6), \
               updated_at = UTC_TIMESTAMP(6) WHERE job_id IN (",
        read: "SELECT q.job_id, q.version, q.attempts, q.crash_count, q.scheduled_time, j.kind, j.queue, j.priority, \
               j.payload, j.max_retries, j.backoff_policy, j.backoff_param_us, j.timeout_us \
               FROM scheduler_job_queue q JOIN scheduler_job j ON j.job_id = q.job_id WHERE q.job_id IN (",
        put_back: "UPDATE scheduler_job_queue FORCE INDEX (PRIMARY) SET status = 'PENDING', picked_by = NULL, \
                   picked_at = NULL WHERE job_id IN (",
        end: "UPDATE scheduler_job FORCE INDEX (PRIMARY) SET terminal_status = 'SUCCEEDED', version = 2, \
              total_attempts = 1, scheduled_time = UTC_TIMESTAMP(6), terminated_at = UTC_TIMESTAMP(6), \
              execution_start_time = UTC_TIMESTAMP(6), execution_end_time = UTC_TIMESTAMP(6), \
              execution_duration_us = 1, queue_wait_us = 1, ended_by = x'00000000000000000000000000000001', job_result = 'null' WHERE job_id IN (",
        leave: "DELETE q FROM scheduler_job_queue q FORCE INDEX (PRIMARY) WHERE q.job_id IN (",
        tidy: "ANALYZE TABLE scheduler_job, scheduler_job_queue",
    };

    async fn run(&mut self, text: String, values: Vec<Value<'_>>) -> Result<()> {
        if values.is_empty() {
            // BEGIN cannot be prepared.
            return run_text(&mut self.conn, text).await;
        }
        sqlx::query_with(AssertSqlSafe(text), arguments(values)?).execute(&mut self.conn).await?;
        Ok(())
    }

    async fn ids(&mut self, text: String, values: Vec<Value<'_>>) -> Result<Vec<Uuid>> {
        let rows = sqlx::query_with(AssertSqlSafe(text), arguments(values)?).fetch_all(&mut self.conn).await?;
        Ok(rows.iter().map(|row| row.get(0)).collect())
    }

    async fn log_bytes(&mut self) -> Result<Option<u64>> {
        let text = "SELECT CAST(variable_value AS UNSIGNED) FROM information_schema.global_status \
                    WHERE variable_name = 'INNODB_OS_LOG_WRITTEN'";
        Ok(Some(sqlx::query(text).fetch_one(&mut self.conn).await?.get(0)))
    }
}

fn arguments(values: Vec<Value<'_>>) -> Result<MySqlArguments> {
    let mut arguments = MySqlArguments::default();
    for value in values {
        match value {
            Value::Id(id) => arguments.add(id),
            Value::Text(text) => arguments.add(text),
            Value::Priority(priority) => arguments.add(priority),
        }
        .map_err(anyhow::Error::from_boxed)?;
    }
    Ok(arguments)
}
