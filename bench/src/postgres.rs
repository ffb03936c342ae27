//! PostgreSQL on a server of the run's own.

use std::str::FromStr as _;

use anyhow::Result;
use async_trait::async_trait;
use ratchet::postgres::PostgresStore;
use ratchet_testdb::{Profile, Server};
use sqlx::postgres::PgConnectOptions;
use sqlx::{AssertSqlSafe, ConnectOptions as _, PgConnection, Row as _};
use uuid::Uuid;

use crate::raw::{Raw, RawJob, Take};
use crate::site::{Opened, Site, opened, with_database};

pub(crate) struct PostgresSite {
    server: Server,
}

impl PostgresSite {
    pub(crate) fn start() -> Result<Self> {
        Ok(Self { server: Server::postgres(Profile::Durable)? })
    }

    fn options(&self) -> Result<PgConnectOptions> {
        Ok(options(&self.server.url())?)
    }

    async fn run_on(&self, database: &str, statements: &[&str]) -> Result<()> {
        let mut conn = self.options()?.database(database).connect().await?;
        for statement in statements {
            sqlx::raw_sql(AssertSqlSafe((*statement).to_owned())).execute(&mut conn).await?;
        }
        Ok(())
    }
}

fn options(address: &str) -> Result<PgConnectOptions, sqlx::Error> {
    // As the product's connections are.
    let options = PgConnectOptions::from_str(address)?.disable_statement_logging();
    Ok(options.options([("enable_seqscan", "off"), ("jit", "off")]))
}

#[async_trait]
impl Site for PostgresSite {
    fn name(&self) -> &'static str {
        "postgres"
    }

    fn server_cpu(&self) -> Result<u64> {
        self.server.cpu_micros()
    }

    fn writers(&self) -> usize {
        16
    }

    async fn warm(&self, megabytes: usize) -> Result<()> {
        let write = format!(
            "SELECT count(pg_logical_emit_message(false, 'warm', repeat('x', 1000000))) FROM generate_series(1, {megabytes})"
        );
        // The files stay and are written over, instead of being made anew.
        let keep = format!("ALTER SYSTEM SET min_wal_size = '{}MB'", megabytes.max(80));
        self.run_on("postgres", &[&keep, "SELECT pg_reload_conf()", &write, "CHECKPOINT"]).await
    }

    async fn fresh(&self, name: &str) -> Result<String> {
        let mut conn = self.options()?.connect().await?;
        let database = format!("bench_{name}");
        let there = sqlx::query("SELECT 1 FROM pg_database WHERE datname = $1").bind(&database);
        let there = there.fetch_optional(&mut conn).await?.is_some();
        let address = with_database(&self.server.url(), &database);
        if there {
            let mut conn = options(&address)?.connect().await?;
            let tables: String =
                sqlx::query("SELECT string_agg(tablename, ', ') FROM pg_tables WHERE tablename LIKE 'scheduler%'")
                    .fetch_one(&mut conn)
                    .await?
                    .get(0);
            sqlx::raw_sql(AssertSqlSafe(format!("TRUNCATE {tables}"))).execute(&mut conn).await?;
        } else {
            sqlx::raw_sql(AssertSqlSafe(format!("CREATE DATABASE {database}"))).execute(&mut conn).await?;
            drop(PostgresStore::options(&address).migrate(true).connect().await?);
        }
        sqlx::raw_sql("CHECKPOINT").execute(&mut conn).await?;
        Ok(address)
    }

    async fn open(&self, address: &str) -> Result<Opened> {
        Ok(opened!(PostgresStore::connect(address).await?))
    }

    async fn raw(&self, address: &str) -> Result<Box<dyn Raw>> {
        Ok(Box::new(RawPostgres { conn: options(address)?.connect().await? }))
    }
}

struct RawPostgres {
    conn: PgConnection,
}

const SINGLE: &str = "INSERT INTO scheduler_job (job_id, kind, queue, job_type, priority, payload, max_retries, \
     backoff_policy, backoff_param_us, created_at) \
     VALUES ($1, $2, 'default', 'SINGLE', $3, $4::text::jsonb, 3, 'EXPONENTIAL', 1000000, now())";

const INSERT: &str = "WITH v AS MATERIALIZED (SELECT * FROM unnest($1::uuid[], $2::text[], $3::smallint[], $4::text[]) \
     AS v (job_id, kind, priority, payload)), \
     cold AS (INSERT INTO scheduler_job (job_id, kind, queue, job_type, priority, payload, max_retries, backoff_policy, \
     backoff_param_us, created_at) \
     SELECT job_id, kind, 'default', 'SINGLE', priority, payload::jsonb, 3, 'EXPONENTIAL', 1000000, now() FROM v) \
     INSERT INTO scheduler_job_queue (job_id, status, queue, kind, priority, scheduled_time, updated_at) \
     SELECT job_id, 'PENDING', 'default', kind, priority, now(), now() FROM v";

const FINISH: &str = "WITH gone AS (DELETE FROM scheduler_job_queue WHERE job_id = ANY($1) AND picked_by = $2 \
     RETURNING job_id, version, scheduled_time) \
     UPDATE scheduler_job j SET terminal_status = 'SUCCEEDED', version = gone.version + 1, total_attempts = 1, \
     scheduled_time = gone.scheduled_time, terminated_at = now(), execution_start_time = now(), \
     execution_end_time = now(), execution_duration_us = 1, queue_wait_us = 1, ended_by = $2, job_result = 'null' \
     FROM gone WHERE j.job_id = gone.job_id";

/// The beginnings of the lanes, merged; the limit is part of the text, since the planner makes little of a parameter.
fn take_text(most: usize) -> String {
    format!(
        "WITH found AS MATERIALIZED (SELECT h.job_id FROM unnest($2::text[], $3::smallint[]) AS l (kind, priority) \
         CROSS JOIN LATERAL (SELECT q.job_id, q.scheduled_time FROM scheduler_job_queue q \
         WHERE q.status = 'PENDING' AND NOT q.deferred AND NOT q.probation AND q.queue = 'default' \
         AND q.kind = l.kind AND q.priority = l.priority AND q.scheduled_time <= now() \
         ORDER BY q.scheduled_time, q.job_id LIMIT {most}) h \
         ORDER BY l.priority + (extract(epoch FROM now() - h.scheduled_time)::float8 / 900)::int DESC, \
         h.scheduled_time, h.job_id LIMIT {most}), \
         free AS MATERIALIZED (SELECT q.job_id FROM found JOIN scheduler_job_queue q ON q.job_id = found.job_id \
         WHERE q.status = 'PENDING' ORDER BY q.job_id FOR UPDATE OF q SKIP LOCKED) \
         UPDATE scheduler_job_queue q SET status = 'RUNNING', version = q.version + 1, picked_by = $1, picked_at = now(), \
         updated_at = now() FROM free JOIN scheduler_job j ON j.job_id = free.job_id WHERE q.job_id = free.job_id \
         RETURNING q.job_id, q.version, q.attempts, q.crash_count, q.scheduled_time, j.kind, j.queue, j.priority, \
         j.payload, j.max_retries, j.backoff_policy, j.backoff_param_us, j.timeout_us"
    )
}

const NODE: Uuid = Uuid::from_u128(1);

#[async_trait]
impl Raw for RawPostgres {
    async fn insert_single(&mut self, job: &RawJob) -> Result<()> {
        let query = sqlx::query(SINGLE).bind(job.id).bind(&job.kind).bind(job.priority).bind(&job.payload);
        query.execute(&mut self.conn).await?;
        Ok(())
    }

    async fn insert(&mut self, jobs: &[RawJob]) -> Result<()> {
        sqlx::query(INSERT)
            .bind(jobs.iter().map(|job| job.id).collect::<Vec<_>>())
            .bind(jobs.iter().map(|job| job.kind.as_str()).collect::<Vec<_>>())
            .bind(jobs.iter().map(|job| job.priority).collect::<Vec<_>>())
            .bind(jobs.iter().map(|job| job.payload.as_str()).collect::<Vec<_>>())
            .execute(&mut self.conn)
            .await?;
        Ok(())
    }

    async fn turn(&mut self, finished: &[Uuid], take: &Take<'_>) -> Result<Vec<Uuid>> {
        if finished.is_empty() {
            return self.take(take).await;
        }
        sqlx::raw_sql("BEGIN").execute(&mut self.conn).await?;
        sqlx::query(FINISH).bind(finished).bind(NODE).execute(&mut self.conn).await?;
        let taken = self.take(take).await?;
        sqlx::raw_sql("COMMIT").execute(&mut self.conn).await?;
        Ok(taken)
    }

    async fn put_back(&mut self, ids: &[Uuid]) -> Result<()> {
        let text = "UPDATE scheduler_job_queue SET status = 'PENDING', picked_by = NULL, picked_at = NULL \
                    WHERE job_id = ANY($1)";
        sqlx::query(text).bind(ids).execute(&mut self.conn).await?;
        Ok(())
    }

    async fn tidy(&mut self) -> Result<()> {
        sqlx::raw_sql("VACUUM ANALYZE").execute(&mut self.conn).await?;
        Ok(())
    }

    async fn log_bytes(&mut self) -> Result<Option<u64>> {
        let text = "SELECT (pg_current_wal_insert_lsn() - '0/0')::bigint";
        let bytes: i64 = sqlx::query(text).fetch_one(&mut self.conn).await?.get(0);
        Ok(Some(u64::try_from(bytes)?))
    }

    async fn dead_rows(&mut self) -> Result<Option<u64>> {
        let text = "SELECT n_dead_tup FROM pg_stat_user_tables WHERE relname = 'scheduler_job_queue'";
        let rows: i64 = sqlx::query(text).fetch_one(&mut self.conn).await?.get(0);
        Ok(Some(u64::try_from(rows)?))
    }
}

impl RawPostgres {
    async fn take(&mut self, take: &Take<'_>) -> Result<Vec<Uuid>> {
        let rows = sqlx::query(AssertSqlSafe(take_text(take.most)))
            .bind(NODE)
            .bind(take.lanes.iter().map(|lane| lane.kind.as_str()).collect::<Vec<_>>())
            .bind(take.lanes.iter().map(|lane| lane.priority).collect::<Vec<_>>())
            .fetch_all(&mut self.conn)
            .await?;
        Ok(rows.iter().map(|row| row.get(0)).collect())
    }
}
