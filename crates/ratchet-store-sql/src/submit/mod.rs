//! Putting jobs in.

mod job_store;
pub(crate) mod key_reservations;
pub(crate) mod plain;
pub(crate) mod origin;

use std::collections::BTreeSet;

use ratchet_core::batch::NewBatch;
use ratchet_core::store::{SubmitOutcome, SubmitUnit, Submitted};
use ratchet_core::submit::DOING;
use ratchet_core::{BusinessKey, Edge, ErrorKind, JobId, JobSpec, JobState, NewJob, StoreError, Timestamp};

use crate::cluster::database_time;
use crate::flow::batches;
use crate::flow::edges;
use crate::job_row::json_of;
use crate::signal::waits;
use crate::waist::conn::Conn;
use crate::waist::stmt::Stmt;
use crate::waist::value::{Value, micros};

pub(crate) const STATEMENTS: &[Stmt] = &[
    TAKE_IDEMPOTENCY_KEYS,
    TAKE_BUSINESS_KEYS,
    INSERT_PLAIN_JOBS,
    INSERT_JOBS,
    INSERT_QUEUE,
    INSERT_TIED_QUEUE,
    INSERT_CHILDREN,
    INSERT_TAGS,
];

/// Stores all jobs of all units in a few statements, on the assumption that every id and every key is free.
///
/// A [`Conflict`](ErrorKind::Conflict) if one is not: the caller then rolls back and goes through [`submit_carefully`].
pub(crate) async fn submit_in_bulk(
    conn: &mut dyn Conn,
    units: &[SubmitUnit],
) -> Result<Vec<SubmitOutcome>, StoreError> {
    let jobs: Vec<&NewJob> = units.iter().flat_map(|unit| &unit.jobs).collect();
    let edges: Vec<&Edge> = units.iter().flat_map(|unit| &unit.edges).collect();
    let batches: Vec<&NewBatch> = units.iter().filter_map(|unit| unit.batch.as_ref()).collect();
    if !insert(conn, &jobs, &edges, &batches).await? {
        return Err(StoreError::new(ErrorKind::Conflict, DOING, "an id or a key is taken"));
    }
    Ok(all_created(units))
}

pub(crate) fn all_created(units: &[SubmitUnit]) -> Vec<SubmitOutcome> {
    let created = |unit: &SubmitUnit| Ok(unit.jobs.iter().map(|job| Submitted::Created(job.id)).collect());
    units.iter().map(created).collect()
}

/// How often a careful submit looks again after another transaction was quicker.
const LOOKS_MAX: usize = 3;

/// Finds out which ids and keys are taken, decides unit by unit, then stores what can be stored.
///
/// Changes nothing for a refused unit and never spoils the transaction, so it fits in a caller's own.
pub(crate) async fn submit_carefully(
    conn: &mut dyn Conn,
    units: &[SubmitUnit],
) -> Result<Vec<SubmitOutcome>, StoreError> {
    Ok(submit_and_count(conn, units).await?.0)
}

/// The same, and how many jobs were stored by it.
pub(crate) async fn submit_and_count(
    conn: &mut dyn Conn,
    units: &[SubmitUnit],
) -> Result<(Vec<SubmitOutcome>, usize), StoreError> {
    let jobs: Vec<&NewJob> = units.iter().flat_map(|unit| &unit.jobs).collect();
    for look in 1..=LOOKS_MAX {
        let mut taken = key_reservations::read(conn, &jobs, look > 1).await?;
        let mut accepted = Vec::new();
        let mut edges: Vec<&Edge> = Vec::new();
        let mut batches: Vec<&NewBatch> = Vec::new();
        let mut outcomes = Vec::with_capacity(units.len());
        for unit in units {
            outcomes.push(taken.decide_unit(unit).map(|unit| {
                accepted.extend(unit.jobs);
                edges.extend(unit.edges);
                batches.extend(unit.batch);
                unit.submitted
            }));
        }
        if insert_or_undo(conn, &accepted, &edges, &batches).await? {
            return Ok((outcomes, accepted.len()));
        }
    }
    Err(too_busy())
}

/// Stores jobs; if an id or a key is taken after all, undoes what was stored of them and says `false`.
async fn insert_or_undo(
    conn: &mut dyn Conn,
    jobs: &[&NewJob],
    edges: &[&Edge],
    batches: &[&NewBatch],
) -> Result<bool, StoreError> {
    if jobs.is_empty() {
        return Ok(true);
    }
    conn.run(&MARK, vec![]).await?;
    if insert(conn, jobs, edges, batches).await? {
        conn.run(&FORGET_MARK, vec![]).await?;
        return Ok(true);
    }
    conn.run(&UNDO, vec![]).await?;
    conn.run(&FORGET_MARK, vec![]).await?;
    Ok(false)
}

/// Not every database prepares them outside of a transaction.
pub(crate) const SAVEPOINTS: &[Stmt] = &[MARK, UNDO, FORGET_MARK];

const MARK: Stmt = Stmt::shared("marking the place before a submit", "SAVEPOINT ratchet_submit");
const UNDO: Stmt = Stmt::shared("undoing a submit", "ROLLBACK TO SAVEPOINT ratchet_submit");
const FORGET_MARK: Stmt = Stmt::shared("forgetting the place before a submit", "RELEASE SAVEPOINT ratchet_submit");

fn too_busy() -> StoreError {
    let problem = "other transactions store the same ids or keys at this moment; submit again";
    StoreError::new(ErrorKind::Transient, DOING, problem)
}

/// Stores jobs that follow from a settlement; those that are already there, by id or idempotency key, are left out.
pub(crate) async fn submit_following(conn: &mut dyn Conn, jobs: &[&NewJob]) -> Result<(), StoreError> {
    let mut taken = key_reservations::read(conn, jobs, false).await?;
    let accepted = taken.decide_following(jobs.iter().copied())?;
    // The settlement is rolled back with it, and tried again.
    if insert(conn, &accepted, &[], &[]).await? { Ok(()) } else { Err(too_busy()) }
}

/// Stores jobs whose ids and keys are free; `false` if one was not, and then some may have been stored.
///
/// A job whose signal has come before it is stored as one that has got it.
pub(crate) async fn insert(
    conn: &mut dyn Conn,
    jobs: &[&NewJob],
    edges: &[&Edge],
    batches: &[&NewBatch],
) -> Result<bool, StoreError> {
    if jobs.iter().all(|job| job.signal.is_none()) {
        return insert_as_given(conn, jobs, edges, batches).await;
    }
    let begun = waits::begin(conn, jobs).await?;
    let stored = insert_as_given(conn, &begun.jobs(), edges, batches).await?;
    if stored {
        waits::store(conn, &begun).await?;
    }
    Ok(stored)
}

async fn insert_as_given(
    conn: &mut dyn Conn,
    jobs: &[&NewJob],
    edges: &[&Edge],
    batches: &[&NewBatch],
) -> Result<bool, StoreError> {
    if jobs.is_empty() {
        return Ok(true);
    }
    // Read once: the clock goes on between statements, but a job without delay is due when it is stored.
    let now = database_time(conn).await?;
    let keyed: Vec<_> = jobs.iter().filter(|job| job.idempotency_key.is_some()).collect();
    let bind = |job: &&&NewJob, values: &mut Vec<Value>| {
        values.push(Value::opt_text(job.idempotency_key.as_ref().map(AsRef::as_ref)));
        values.extend([job.id.into(), now.into()]);
    };
    if !all_stored(conn.run_each(&TAKE_IDEMPOTENCY_KEYS, &keyed, bind).await, keyed.len())? {
        return Ok(false);
    }
    let keyed: Vec<_> = jobs.iter().filter(|job| job.business_key.is_some()).collect();
    let bind = |job: &&&NewJob, values: &mut Vec<Value>| {
        values.push(Value::opt_text(job.business_key.as_ref().map(AsRef::as_ref)));
        values.extend([job.id.into(), now.into()]);
    };
    if !all_stored(conn.run_each(&TAKE_BUSINESS_KEYS, &keyed, bind).await, keyed.len())? {
        return Ok(false);
    }
    let stored = if jobs.iter().all(|job| ColdRow::is_plain(job)) {
        let bind = |job: &&NewJob, values: &mut Vec<Value>| {
            ColdRow::bind_plain(job, values);
            values.push(now.into());
        };
        conn.run_each(&INSERT_PLAIN_JOBS, jobs, bind).await
    } else {
        let rows = jobs.iter().map(|job| ColdRow::of(job, now)).collect::<Result<Vec<_>, _>>()?;
        conn.run_each(&INSERT_JOBS, &rows, ColdRow::bind).await
    };
    if !all_stored(stored, jobs.len())? {
        return Ok(false);
    }
    if jobs.iter().all(|job| job.flow.is_none() && job.spec.resource.is_none()) {
        conn.run_each(&INSERT_QUEUE, jobs, |job, values| bind_hot(job, now, values)).await?;
    } else {
        conn.run_each(&INSERT_TIED_QUEUE, jobs, |job, values| {
            bind_hot(job, now, values);
            values.extend([Value::count(job.flow.bits()), Value::count(job.waits_for)]);
            values.push(resource_of(&job.spec));
        })
        .await?;
    }
    if conn.dialect().lists_children_apart() {
        let children: Vec<(JobId, JobId)> = jobs.iter().filter_map(|job| Some((job.parent?, job.id))).collect();
        let bind =
            |(parent, id): &(JobId, JobId), values: &mut Vec<Value>| values.extend([(*parent).into(), (*id).into()]);
        conn.run_each(&INSERT_CHILDREN, &children, bind).await?;
    }
    edges::store(conn, edges, now).await?;
    let tags: BTreeSet<(JobId, &str)> =
        jobs.iter().flat_map(|job| job.spec.tags.iter().map(|tag| (job.id, tag.as_str()))).collect();
    let tags: Vec<_> = tags.into_iter().collect();
    conn.run_each(&INSERT_TAGS, &tags, |(id, tag), values| values.extend([(*tag).into(), (*id).into()])).await?;
    if !batches.is_empty() {
        batches::store(conn, batches, jobs, now).await?;
    }
    Ok(true)
}

/// Whether an insert that passes over taken keys has stored everything.
pub(crate) fn all_stored(inserted: Result<u64, StoreError>, expected: usize) -> Result<bool, StoreError> {
    match inserted {
        Ok(stored) => Ok(stored == expected as u64),
        // A database without ON CONFLICT refuses the statement; the transaction goes on.
        Err(error) if *error.kind() == ErrorKind::Conflict => Ok(false),
        Err(error) => Err(error),
    }
}

const TAKE_IDEMPOTENCY_KEYS: Stmt = Stmt::shared(
    "taking idempotency keys",
    "INSERT INTO scheduler_idempotency_key (idempotency_key, original_job_id, reserved_at) \
     /*rows:text id time*/ /*or_nothing*/",
);

const TAKE_BUSINESS_KEYS: Stmt = Stmt::shared(
    "taking business keys",
    "INSERT INTO scheduler_business_key_reservation (business_key, owner_job_id, reserved_at) \
     /*rows:text id time*/ /*or_nothing*/",
);

/// Takes the business key of one job again; `false` if another job holds it.
pub(crate) async fn take_business_key(conn: &mut dyn Conn, key: &str, id: JobId) -> Result<bool, StoreError> {
    let now = database_time(conn).await?;
    let bind = |key: &&str, values: &mut Vec<Value>| values.extend([(*key).into(), id.into(), now.into()]);
    all_stored(conn.run_each(&TAKE_BUSINESS_KEYS, &[key], bind).await, 1)
}

/// Takes the business keys of several jobs again; `false` if another job holds one of them.
pub(crate) async fn take_business_keys(
    conn: &mut dyn Conn,
    keys: &[(&BusinessKey, JobId)],
) -> Result<bool, StoreError> {
    let now = database_time(conn).await?;
    let taken = conn.run_each(&TAKE_BUSINESS_KEYS, keys, |(key, id), values| {
        values.extend([key.as_str().into(), (*id).into(), now.into()]);
    });
    all_stored(taken.await, keys.len())
}

// Most jobs use none of the optional columns: half the values to bind.
const INSERT_PLAIN_JOBS: Stmt = Stmt::shared(
    "storing plain jobs",
    "INSERT INTO scheduler_job (/*columns:job.plain*/, created_at) /*rows:@job.plain time*/ /*or_nothing*/",
);

const INSERT_JOBS: Stmt = Stmt::shared(
    "storing jobs",
    "INSERT INTO scheduler_job (/*columns:job.plain*/, created_at, /*columns:job.optional,job.ties*/) \
     /*rows:@job.plain time @job.optional @job.ties*/ /*or_nothing*/",
);

/// A job as its cold row holds it.
pub(crate) struct ColdRow<'a> {
    job: &'a NewJob,
    now: Timestamp,
    /// What most jobs leave out, in the order of the statement.
    optional: [Value; 15],
}

impl<'a> ColdRow<'a> {
    fn of(job: &'a NewJob, now: Timestamp) -> Result<Self, StoreError> {
        const NULL: Value = Value::Json(None);
        let spec = &job.spec;
        let optional = [
            if spec.params.is_empty() { NULL } else { json_of(&spec.params)? },
            if spec.tags.is_empty() { NULL } else { json_of(&spec.tags)? },
            Value::Int(spec.timeout.map(micros)),
            Value::opt_text(spec.resource.as_ref().map(AsRef::as_ref)),
            Value::opt_text(spec.principal.as_ref().map(AsRef::as_ref)),
            Value::opt_text(job.idempotency_key.as_ref().map(AsRef::as_ref)),
            Value::opt_text(job.business_key.as_ref().map(AsRef::as_ref)),
            job.on_success.as_ref().map_or(Ok(NULL), json_of)?,
            job.on_failure.as_ref().map_or(Ok(NULL), json_of)?,
            origin::value_of(job)?,
            Value::Id(job.parent.map(|id| id.0)),
            Value::Id(job.workflow.map(|id| id.0)),
            Value::opt_text(job.step.as_ref().map(AsRef::as_ref)),
            Value::count(job.flow.bits()),
            Value::Int(job.first_row().release_delay.map(micros)),
        ];
        Ok(Self { job, now, optional })
    }

    /// Whether a job uses none of the optional columns.
    pub(crate) fn is_plain(job: &NewJob) -> bool {
        Self::is_plain_child(job) && job.parent.is_none() && job.flow.is_none()
    }

    /// Whether a child of a batch uses none but those that make it one.
    pub(crate) fn is_plain_child(job: &NewJob) -> bool {
        let NewJob { spec, idempotency_key, business_key, on_success, on_failure, origin, workflow, .. } = job;
        spec.params.is_empty()
            && spec.tags.is_empty()
            && spec.timeout.is_none()
            && spec.resource.is_none()
            && spec.principal.is_none()
            && spec.trace.is_none()
            && idempotency_key.is_none()
            && business_key.is_none()
            && on_success.is_none()
            && on_failure.is_none()
            && origin.is_none()
            && workflow.is_none()
            && job.signal.is_none()
            && job.first_row().release_delay.is_none()
    }

    pub(crate) fn bind_plain(job: &NewJob, values: &mut Vec<Value>) {
        let spec = &job.spec;
        values.extend([
            job.id.into(),
            spec.kind.as_str().into(),
            spec.queue.as_str().into(),
            job.job_type.as_str().into(),
            Value::count(spec.priority.level()),
            (&spec.payload).into(),
            Value::count(spec.max_retries),
            spec.backoff.as_str().into(),
            Value::micros(spec.backoff.base()),
        ]);
    }

    fn bind(&self, values: &mut Vec<Value>) {
        Self::bind_plain(self.job, values);
        values.push(self.now.into());
        values.extend_from_slice(&self.optional);
    }
}

const INSERT_QUEUE: Stmt = Stmt::shared(
    "queueing jobs",
    "INSERT INTO scheduler_job_queue (/*columns:queue.plain*/, scheduled_time, business_key, updated_at) \
     /*rows:@queue.plain time text time*/",
);

const INSERT_TIED_QUEUE: Stmt = Stmt::shared(
    "queueing jobs with ties or resources",
    "INSERT INTO scheduler_job_queue (/*columns:queue.plain*/, scheduled_time, business_key, updated_at, flow, \
     waits_for, resource) /*rows:@queue.plain time text time int int text*/",
);

// Elsewhere an index finds them.
const INSERT_CHILDREN: Stmt = Stmt::only_mysql(
    "adding to the children of a job",
    "INSERT INTO scheduler_job_child (parent_id, job_id) VALUES /*each*/(?, ?)/*end*/",
);

/// The resource of a job as its hot row holds it: empty if it has none, so that lanes of both sorts are one range of an index.
pub(crate) fn resource_of(spec: &JobSpec) -> Value {
    spec.resource.as_ref().map_or("", AsRef::as_ref).into()
}

/// Returns the values of the columns `queue.plain`.
pub(crate) fn hot_row(id: JobId, state: JobState, spec: &JobSpec) -> [Value; 5] {
    [
        id.into(),
        state.into(),
        spec.queue.as_str().into(),
        spec.kind.as_str().into(),
        Value::count(spec.priority.level()),
    ]
}

fn bind_hot(job: &NewJob, now: Timestamp, values: &mut Vec<Value>) {
    let row = job.first_row();
    values.extend(hot_row(job.id, row.state, &job.spec));
    values.extend([
        row.due.time(now).into(),
        Value::opt_text(job.business_key.as_ref().map(AsRef::as_ref)),
        now.into(),
    ]);
}

const INSERT_TAGS: Stmt = Stmt::shared("tagging jobs", "INSERT INTO scheduler_job_tag (tag, job_id) /*rows:text id*/");
