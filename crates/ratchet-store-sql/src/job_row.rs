//! Reading jobs: the columns and the record that they make.

use std::collections::HashMap;

use jiff::Timestamp;
use ratchet_core::record::AttemptTiming;
use ratchet_core::{
    Backoff, BusinessKey, Claim, ErrorKind, Fence, IdempotencyKey, JobId, JobRecord, JobSpec, JobState, JsonText, Kind,
    NodeId, Principal, Priority, QueueName, ResourceName, StepName, StoreError, Tag,
};

use crate::submit::origin;
use crate::waist::conn::Conn;
use crate::waist::row::{Fields, Row};
use crate::waist::stmt::Stmt;
use crate::waist::value::Value;

/// What a job is: columns of the cold row, read by [`spec_of`].
macro_rules! spec_columns {
    () => {
        "/*columns:job.plain,job.optional j.as*/, j.created_at AS created_at"
    };
}
pub(crate) use spec_columns;

/// All that is known of a job, read by [`record_of`]: `j` is the cold row, `q` the hot row, if there is one.
macro_rules! record_columns {
    () => {
        concat!(
            $crate::job_row::spec_columns!(),
            ", COALESCE(q.status, j.terminal_status) AS state, q.paused_from_status AS paused_from_status, \
             COALESCE(q.version, j.version) AS version, COALESCE(q.attempts, j.total_attempts) AS attempts, \
             COALESCE(q.crash_count, j.crash_count) AS crash_count, \
             COALESCE(q.scheduled_time, j.scheduled_time) AS scheduled_time, q.deferred_until AS deferred_until, \
             q.picked_by AS picked_by, q.picked_at AS picked_at, q.progress AS progress, \
             CASE WHEN q.job_id IS NULL THEN j.terminal_error ELSE q.last_error END AS last_error, \
             COALESCE(q.flow, j.flow) AS flow, COALESCE(q.waits_for, 0) AS waits_for, \
             j.release_delay_us AS release_delay_us, /*columns:job.outcome,job.causes,job.timing j.as*/"
        )
    };
}

/// What a job is, and what its claim needs to know of its life; read by [`claimed`].
macro_rules! claimed_columns {
    () => {
        concat!(
            $crate::job_row::spec_columns!(),
            ", /*columns:queue.life q.as*/, q.deferred_until AS deferred_until, q.picked_at AS picked_at, \
             q.last_error AS last_error, q.flow AS flow"
        )
    };
}
pub(crate) use claimed_columns;

pub(crate) const STATEMENTS: &[Stmt] = &[FIND, FIND_BY_BUSINESS_KEY, FIND_BY_IDEMPOTENCY_KEY, READ_RUNNING];

const FIND: Stmt = Stmt::shared(
    "reading jobs",
    concat!(
        "SELECT ",
        record_columns!(),
        " FROM scheduler_job j LEFT JOIN scheduler_job_queue q ON q.job_id = j.job_id WHERE j.job_id /*any*/"
    ),
);

/// Reads jobs by id, in the order of the ids; unknown ids are left out.
pub(crate) async fn find(conn: &mut dyn Conn, ids: &[JobId]) -> Result<Vec<JobRecord>, StoreError> {
    let mut found = HashMap::with_capacity(ids.len());
    for row in conn.rows_in(&FIND, &[], ids).await? {
        let job = record_of(&row)?;
        found.insert(job.id, job);
    }
    Ok(ids.iter().filter_map(|id| found.get(id).cloned()).collect())
}

/// Reads one job.
pub(crate) async fn find_one(conn: &mut dyn Conn, id: JobId) -> Result<Option<JobRecord>, StoreError> {
    conn.rows_in(&FIND, &[], &[id]).await?.first().map(record_of).transpose()
}

const FIND_BY_BUSINESS_KEY: Stmt = Stmt::shared(
    "finding the holder of a business key",
    "SELECT owner_job_id FROM scheduler_business_key_reservation WHERE business_key = ?",
);

/// The live job that holds a business key.
pub(crate) async fn find_by_business_key(conn: &mut dyn Conn, key: &BusinessKey) -> Result<Option<JobId>, StoreError> {
    one_id(conn.row(&FIND_BY_BUSINESS_KEY, vec![key.as_str().into()]).await?, "owner_job_id")
}

const FIND_BY_IDEMPOTENCY_KEY: Stmt = Stmt::shared(
    "finding the job of an idempotency key",
    "SELECT original_job_id FROM scheduler_idempotency_key WHERE idempotency_key = ?",
);

/// The job that was first submitted with an idempotency key.
pub(crate) async fn find_by_idempotency_key(
    conn: &mut dyn Conn,
    key: &IdempotencyKey,
) -> Result<Option<JobId>, StoreError> {
    one_id(conn.row(&FIND_BY_IDEMPOTENCY_KEY, vec![key.as_str().into()]).await?, "original_job_id")
}

fn one_id(row: Option<Row>, column: &'static str) -> Result<Option<JobId>, StoreError> {
    row.map(|row| row.fields().job_id(column)).transpose()
}

/// Reads the rows of jobs that `node` has just claimed; and the ids of those that this version cannot read.
///
/// Columns that a claim has just set or cleared are not read: a cell costs about as much as a comparison in the database.
pub(crate) fn claimed(rows: &[Row], node: NodeId) -> Result<(HashMap<JobId, JobRecord>, Vec<JobId>), StoreError> {
    let mut found = HashMap::with_capacity(rows.len());
    let mut unreadable = Vec::new();
    for row in rows {
        match readable(claimed_record(row, node)) {
            Some(job) => drop(found.insert(job.id, job)),
            None => unreadable.push(row.fields().job_id("job_id")?),
        }
    }
    Ok((found, unreadable))
}

fn claimed_record(row: &Row, node: NodeId) -> Result<JobRecord, StoreError> {
    let mut fields = row.fields();
    let mut job = spec_of(&mut fields)?;
    job.state = JobState::Running;
    job.version = fields.number("version")?;
    job.attempts = fields.number("attempts")?;
    job.crash_count = fields.number("crash_count")?;
    job.scheduled_time = fields.time("scheduled_time")?;
    job.deferred_until = fields.opt_time("deferred_until")?;
    job.picked_by = Some(node);
    job.picked_at = fields.opt_time("picked_at")?;
    job.last_error = fields.opt_text("last_error")?.map(str::to_owned);
    job.flow = fields.flow("flow")?;
    Ok(job)
}

/// One row that cannot be read, written by a newer version or changed by hand, must not stop the others.
fn readable(job: Result<JobRecord, StoreError>) -> Option<JobRecord> {
    job.inspect_err(|error| {
        tracing::error!(
            error = error as &dyn std::error::Error,
            "a job cannot be read by this version and is passed by"
        );
    })
    .ok()
}

const READ_RUNNING: Stmt = Stmt::shared(
    "reading running jobs",
    concat!(
        "SELECT ",
        record_columns!(),
        " FROM scheduler_job_queue q JOIN scheduler_job j ON j.job_id = q.job_id \
         WHERE q.job_id /*any*/"
    ),
);

/// Reads RUNNING jobs with the fences of whoever runs them; those that this version cannot read are left out.
pub(crate) async fn running(conn: &mut dyn Conn, ids: &[JobId]) -> Result<Vec<Claim>, StoreError> {
    let rows = conn.rows_in(&READ_RUNNING, &[], ids).await?;
    let jobs = rows.iter().filter_map(|row| readable(record_of(row)));
    let claim = |job: JobRecord| {
        job.picked_by.map(|node| Claim {
            fence: Fence { job_id: job.id, version: job.version, node },
            job,
            inputs: Vec::new(),
            signal: None,
        })
    };
    Ok(jobs.filter_map(claim).collect())
}

/// The record of a row of [`record_columns`].
pub(crate) fn record_of(row: &Row) -> Result<JobRecord, StoreError> {
    let mut fields = row.fields();
    let mut job = spec_of(&mut fields)?;
    job.state = fields.state("state")?;
    job.paused_from = fields.opt_state("paused_from_status")?;
    job.version = fields.number("version")?;
    job.attempts = fields.number("attempts")?;
    job.crash_count = fields.number("crash_count")?;
    job.scheduled_time = fields.time("scheduled_time")?;
    job.deferred_until = fields.opt_time("deferred_until")?;
    job.picked_by = fields.opt_node_id("picked_by")?;
    job.picked_at = fields.opt_time("picked_at")?;
    job.progress = fields.opt_real("progress")?;
    job.last_error = fields.opt_text("last_error")?.map(str::to_owned);
    job.flow = fields.flow("flow")?;
    job.waits_for = fields.number("waits_for")?;
    job.release_delay = fields.opt_duration("release_delay_us")?;
    read_outcome(&mut job, &mut fields)?;
    if ratchet_core::transition::Place::of(job.state, job.paused_from).is_none() {
        let problem = format!("it is {} from {:?}; the row was changed by hand", job.state, job.paused_from);
        return Err(StoreError::new(ErrorKind::Invalid, format!("reading job {}", job.id), problem));
    }
    Ok(job)
}

/// Reads the groups `job.outcome`, `job.causes` and `job.timing` into a record.
pub(crate) fn read_outcome(job: &mut JobRecord, fields: &mut Fields<'_>) -> Result<(), StoreError> {
    job.terminated_at = fields.opt_time("terminated_at")?;
    job.result = fields.opt_text("job_result")?.map(JsonText::from_store);
    job.canceled_because = fields.opt_job_id("canceled_because")?;
    job.superseded_by = fields.opt_job_id("superseded_by")?;
    let started_at = fields.opt_time("execution_start_time")?;
    let ended_at = fields.opt_time("execution_end_time")?;
    let duration = fields.opt_duration("execution_duration_us")?;
    let queue_wait = fields.opt_duration("queue_wait_us")?;
    job.timing = match (started_at, ended_at, duration, queue_wait) {
        (Some(started_at), Some(ended_at), Some(duration), Some(queue_wait)) => {
            Some(AttemptTiming { started_at, ended_at, duration, queue_wait })
        }
        _ => None,
    };
    job.ended_by = fields.opt_node_id("ended_by")?;
    Ok(())
}

/// Returns a record with what [`spec_columns`] list; the rest is that of a new job.
pub(crate) fn spec_of(fields: &mut Fields<'_>) -> Result<JobRecord, StoreError> {
    let id = fields.job_id("job_id")?;
    let kind = fields.parsed("kind", Kind::new)?;
    let queue = fields.parsed("queue", QueueName::new)?;
    let job_type = fields.parsed("job_type", str::parse)?;
    let level: u8 = fields.number("priority")?;
    let payload = JsonText::from_store(fields.text("payload")?);
    let max_retries = fields.number("max_retries")?;
    let policy = fields.text("backoff_policy")?;
    let base = fields.duration("backoff_param_us")?;
    let params = fields.opt_parsed("params", serde_json::from_str)?.unwrap_or_default();
    let tags = fields.opt_parsed("tags", serde_json::from_str::<Vec<Tag>>)?.unwrap_or_default();
    let timeout = fields.opt_duration("timeout_us")?;
    let resource = fields.opt_parsed("resource_name", ResourceName::new)?;
    let principal = fields.opt_text("caller_principal")?.map(Principal::from_store);
    let unknown = |what: &str| {
        let problem = format!("its {what} is unknown to this version");
        StoreError::new(ErrorKind::Invalid, format!("reading job {id}"), problem)
    };
    let priority = Priority::from_level(level).ok_or_else(|| unknown("priority"))?;
    let backoff = Backoff::from_parts(policy, base).ok_or_else(|| unknown("backoff policy"))?;
    let spec = JobSpec {
        kind,
        queue,
        priority,
        payload,
        params,
        tags,
        max_retries,
        backoff,
        timeout,
        resource,
        principal,
        trace: None,
    };
    let epoch = Timestamp::UNIX_EPOCH;
    let mut job = JobRecord::stored(id, spec, job_type, JobState::Pending, epoch, epoch);
    job.idempotency_key = fields.opt_parsed("idempotency_key", IdempotencyKey::new)?;
    job.business_key = fields.opt_parsed("business_key", BusinessKey::new)?;
    job.on_success = fields.opt_parsed("on_success", serde_json::from_str)?;
    job.on_failure = fields.opt_parsed("on_failure", serde_json::from_str)?;
    (job.origin, job.spec.trace) = fields.opt_parsed("origin", origin::read)?.unwrap_or_default();
    job.parent = fields.opt_job_id("depends_on")?;
    job.workflow = fields.opt_job_id("workflow_id")?;
    job.step = fields.opt_parsed("step_name", StepName::new)?;
    job.created_at = fields.time("created_at")?;
    Ok(job)
}

/// JSON of something that can always be written as JSON.
pub(crate) fn json_of<T: serde::Serialize>(value: &T) -> Result<Value, StoreError> {
    let text = serde_json::to_string(value).map_err(|error| {
        StoreError::new(ErrorKind::Invalid, "writing JSON", "a job's field cannot be written as JSON")
            .with_source(error)
    })?;
    Ok(Value::Json(Some(text.into())))
}
