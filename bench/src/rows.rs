//! Bare statements that take lists of rows, as SQLite and MariaDB do: what differs is their texts and how values are bound.

use anyhow::{Result, ensure};
use async_trait::async_trait;
use uuid::Uuid;

use crate::raw::{Raw, RawJob, Take, repeated};

/// The texts of one database. Each text with a list of ids ends where the list begins.
pub(crate) struct Texts {
    pub(crate) begin: &'static str,
    /// One cold row: id, kind, payload, priority.
    pub(crate) cold_row: &'static str,
    /// One hot row: id, kind, priority.
    pub(crate) hot_row: &'static str,
    /// The oldest jobs of one lane, by kind and priority, up to the number.
    pub(crate) lane: fn(usize) -> String,
    /// The order of jobs of several lanes, up to the number.
    pub(crate) order: fn(usize) -> String,
    /// Locks those of the ids that no other connection has locked, if rows are locked at all.
    pub(crate) lock: Option<[&'static str; 2]>,
    pub(crate) take: &'static str,
    pub(crate) read: &'static str,
    pub(crate) put_back: &'static str,
    pub(crate) end: &'static str,
    pub(crate) leave: &'static str,
    pub(crate) tidy: &'static str,
}

const COLD: &str = "INSERT INTO scheduler_job (job_id, kind, queue, job_type, backoff_policy, payload, priority, max_retries, \
     backoff_param_us, created_at) VALUES ";
const HOT: &str =
    "INSERT INTO scheduler_job_queue (job_id, status, queue, kind, priority, scheduled_time, updated_at) VALUES ";

/// A value of a statement.
pub(crate) enum Value<'a> {
    Id(Uuid),
    Text(&'a str),
    Priority(i16),
}

/// A connection of such a database.
#[async_trait]
pub(crate) trait Rows: Send {
    const TEXTS: Texts;

    /// Runs a statement, prepared if it has values.
    async fn run(&mut self, text: String, values: Vec<Value<'_>>) -> Result<()>;

    /// The ids that a query finds.
    async fn ids(&mut self, text: String, values: Vec<Value<'_>>) -> Result<Vec<Uuid>>;

    /// See [`Raw::log_bytes`].
    async fn log_bytes(&mut self) -> Result<Option<u64>> {
        Ok(None)
    }
}

/// A bare connection that takes lists of rows.
pub(crate) struct RawRows<R>(pub(crate) R);

#[async_trait]
impl<R: Rows> Raw for RawRows<R> {
    async fn insert_single(&mut self, job: &RawJob) -> Result<()> {
        self.insert_cold(std::slice::from_ref(job)).await
    }

    async fn insert(&mut self, jobs: &[RawJob]) -> Result<()> {
        self.text(R::TEXTS.begin).await?;
        self.insert_cold(jobs).await?;
        let hot =
            jobs.iter().flat_map(|job| [Value::Id(job.id), Value::Text(&job.kind), Value::Priority(job.priority)]);
        self.0.run(repeated(HOT, R::TEXTS.hot_row, ", ", jobs.len(), ""), hot.collect()).await?;
        self.text("COMMIT").await
    }

    async fn turn(&mut self, finished: &[Uuid], take: &Take<'_>) -> Result<Vec<Uuid>> {
        self.text(R::TEXTS.begin).await?;
        self.finish(finished).await?;
        let taken = self.take(take).await?;
        self.text("COMMIT").await?;
        Ok(taken)
    }

    async fn put_back(&mut self, ids: &[Uuid]) -> Result<()> {
        self.each(R::TEXTS.put_back, ids).await
    }

    async fn tidy(&mut self) -> Result<()> {
        self.text(R::TEXTS.tidy).await
    }

    async fn log_bytes(&mut self) -> Result<Option<u64>> {
        self.0.log_bytes().await
    }
}

impl<R: Rows> RawRows<R> {
    async fn insert_cold(&mut self, jobs: &[RawJob]) -> Result<()> {
        let cold = jobs.iter().flat_map(|job| {
            [Value::Id(job.id), Value::Text(&job.kind), Value::Text(&job.payload), Value::Priority(job.priority)]
        });
        self.0.run(repeated(COLD, R::TEXTS.cold_row, ", ", jobs.len(), ""), cold.collect()).await
    }

    /// Candidates without locks, then locked by their keys where rows are locked: a sorted lock would take the whole backlog.
    async fn take(&mut self, take: &Take<'_>) -> Result<Vec<Uuid>> {
        let texts = R::TEXTS;
        let lanes = take.lanes.iter().flat_map(|lane| [Value::Text(&lane.kind), Value::Priority(lane.priority)]);
        let lane = (texts.lane)(take.most);
        let text = match take.lanes.len() {
            1 => lane,
            count => repeated("SELECT job_id FROM (", &lane, " UNION ALL ", count, &(texts.order)(take.most)),
        };
        let mut ids = self.0.ids(text, lanes.collect()).await?;
        if ids.is_empty() {
            return Ok(ids);
        }
        if let Some([head, tail]) = texts.lock {
            ids.sort_unstable();
            ids = self.0.ids(repeated(head, "?", ", ", ids.len(), tail), id_values(&ids)).await?;
        }
        self.each(texts.take, &ids).await?;
        let read = self.0.ids(repeated(texts.read, "?", ", ", ids.len(), ")"), id_values(&ids)).await?;
        ensure!(read.len() == ids.len(), "{} taken, {} read", ids.len(), read.len());
        Ok(read)
    }

    async fn finish(&mut self, ids: &[Uuid]) -> Result<()> {
        if ids.is_empty() {
            return Ok(());
        }
        self.each(R::TEXTS.end, ids).await?;
        self.each(R::TEXTS.leave, ids).await
    }

    async fn text(&mut self, text: &str) -> Result<()> {
        self.0.run(text.to_owned(), Vec::new()).await
    }

    /// Runs a statement on each of the ids in its list.
    async fn each(&mut self, head: &str, ids: &[Uuid]) -> Result<()> {
        self.0.run(repeated(head, "?", ", ", ids.len(), ")"), id_values(ids)).await
    }
}

fn id_values(ids: &[Uuid]) -> Vec<Value<'static>> {
    ids.iter().copied().map(Value::Id).collect()
}
