//! Queues: pausing them, looking at them.

use std::collections::BTreeMap;

use async_trait::async_trait;
use ratchet_core::node::QueueRecord;
use ratchet_core::store::QueueStore;
use ratchet_core::{QueueName, StoreError};

use crate::store::{Backend, SqlStore};
use crate::submit::all_stored;
use crate::waist::conn::Conn;
use crate::waist::stmt::Stmt;
use crate::waist::transact::Intent;
use crate::waist::value::Value;
use crate::work;

pub(crate) const STATEMENTS: &[Stmt] = &[PAUSE, ENTER_PAUSED, RESUME, PAUSED, LIVE];

#[async_trait]
impl<B: Backend> QueueStore for SqlStore<B> {
    async fn pause_queue(&self, queue: &QueueName) -> Result<bool, StoreError> {
        let queue = queue.clone();
        self.write(work!([queue], |conn| pause(conn, &queue))).await
    }

    async fn resume_queue(&self, queue: &QueueName) -> Result<bool, StoreError> {
        let queue = queue.clone();
        self.transact(Intent::Statement, work!([queue], |conn| resume(conn, &queue))).await
    }

    async fn queues(&self) -> Result<Vec<QueueRecord>, StoreError> {
        self.read(work!([], |conn| queues(conn))).await
    }
}

const PAUSE: Stmt = Stmt::shared(
    "pausing a queue",
    "UPDATE scheduler_queue SET paused = /*yes*/, updated_at = /*now*/ WHERE name = ? AND paused = /*no*/",
);

const ENTER_PAUSED: Stmt = Stmt::shared(
    "pausing a queue for the first time",
    "INSERT INTO scheduler_queue (name, paused, updated_at) VALUES (?, /*yes*/, /*now*/) /*or_nothing*/",
);

/// Makes claims pass the queue by; `true` if it was not paused before.
pub(crate) async fn pause(conn: &mut dyn Conn, queue: &QueueName) -> Result<bool, StoreError> {
    if conn.run(&PAUSE, vec![queue.as_str().into()]).await? == 1 {
        return Ok(true);
    }
    all_stored(conn.run(&ENTER_PAUSED, vec![queue.as_str().into()]).await, 1)
}

const RESUME: Stmt = Stmt::shared(
    "resuming a queue",
    "UPDATE scheduler_queue SET paused = /*no*/, updated_at = /*now*/ WHERE name = ? AND paused = /*yes*/",
);

/// Lets the queue's jobs be claimed again; `true` if it was paused before.
pub(crate) async fn resume(conn: &mut dyn Conn, queue: &QueueName) -> Result<bool, StoreError> {
    Ok(conn.run(&RESUME, vec![queue.as_str().into()]).await? == 1)
}

pub(crate) const PAUSED: Stmt =
    Stmt::shared("reading paused queues", "SELECT name FROM scheduler_queue WHERE paused = /*yes*/ ORDER BY name");

const LIVE: Stmt = Stmt::shared(
    "counting live jobs by queue",
    "SELECT queue, status, COUNT(*) AS jobs FROM scheduler_job_queue GROUP BY queue, status",
);

/// Every queue that is paused or has live jobs, by name.
pub(crate) async fn queues(conn: &mut dyn Conn) -> Result<Vec<QueueRecord>, StoreError> {
    let mut found: BTreeMap<QueueName, QueueRecord> = BTreeMap::new();
    let record = |name: &QueueName| QueueRecord { name: name.clone(), paused: false, live: BTreeMap::new() };
    for row in conn.rows(&LIVE, Vec::<Value>::new()).await? {
        let mut fields = row.fields();
        let name = fields.parsed("queue", QueueName::new)?;
        let state = fields.state("status")?;
        let jobs = fields.number("jobs")?;
        found.entry(name.clone()).or_insert_with(|| record(&name)).live.insert(state, jobs);
    }
    for row in conn.rows(&PAUSED, vec![]).await? {
        let name = row.fields().parsed("name", QueueName::new)?;
        found.entry(name.clone()).or_insert_with(|| record(&name)).paused = true;
    }
    Ok(found.into_values().collect())
}
