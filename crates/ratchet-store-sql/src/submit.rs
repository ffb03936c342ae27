//! Putting jobs in.

use std::collections::{HashMap, HashSet};

use ratchet_core::store::{SubmitOutcome, SubmitUnit, Submitted};
use ratchet_core::{BusinessKey, Due, ErrorKind, JobId, JobState, NewJob, StartState, StoreError, Timestamp, clock};

use crate::cluster::database_time;
use crate::conn::Conn;
use crate::read::json_of;
use crate::stmt::Stmt;
use crate::value::{Value, micros};

pub(crate) const STATEMENTS: &[Stmt] = &[
    TAKE_IDEMPOTENCY_KEYS,
    TAKE_BUSINESS_KEYS,
    INSERT_PLAIN_JOBS,
    INSERT_JOBS,
    INSERT_QUEUE,
    INSERT_TAGS,
    STORED_IDS,
    IDEMPOTENCY_OWNERS,
    BUSINESS_KEY_HOLDERS,
];

const DOING: &str = "submitting jobs";

/// Stores all jobs of all units in a few statements, on the assumption that every id and every key is free.
///
/// `None` if one is not: the caller then rolls back and goes through [`submit_carefully`].
pub async fn submit_in_bulk(
    conn: &mut dyn Conn,
    units: &[SubmitUnit],
) -> Result<Option<Vec<SubmitOutcome>>, StoreError> {
    let jobs: Vec<&NewJob> = units.iter().flat_map(|unit| &unit.jobs).collect();
    if !insert(conn, &jobs).await? {
        return Ok(None);
    }
    let created = |unit: &SubmitUnit| Ok(unit.jobs.iter().map(|job| Submitted::Created(job.id)).collect());
    Ok(Some(units.iter().map(created).collect()))
}

/// Finds out which ids and keys are taken, decides unit by unit, then stores what can be stored.
///
/// Changes nothing for a refused unit, so it needs no rollback and fits in a caller's own transaction.
pub async fn submit_carefully(conn: &mut dyn Conn, units: &[SubmitUnit]) -> Result<Vec<SubmitOutcome>, StoreError> {
    let jobs: Vec<&NewJob> = units.iter().flat_map(|unit| &unit.jobs).collect();
    let mut taken = Taken::read(conn, &jobs).await?;
    let mut accepted = Vec::new();
    let outcomes = units.iter().map(|unit| taken.decide(unit.jobs.iter(), &mut accepted)).collect();
    insert_free(conn, &accepted).await?;
    Ok(outcomes)
}

/// Stores jobs that follow from a settlement; those that are already there, by id or idempotency key, are left out.
pub(crate) async fn submit_following(conn: &mut dyn Conn, jobs: &[&NewJob]) -> Result<(), StoreError> {
    let mut taken = Taken::read(conn, jobs).await?;
    let mut accepted = Vec::new();
    for job in jobs {
        taken.decide(std::iter::once(*job), &mut accepted)?;
    }
    insert_free(conn, &accepted).await
}

/// Stores jobs whose ids and keys were just found to be free.
async fn insert_free(conn: &mut dyn Conn, jobs: &[&NewJob]) -> Result<(), StoreError> {
    if insert(conn, jobs).await? {
        return Ok(());
    }
    let problem = "another process stored the same id or key at this moment; submit again";
    Err(StoreError::new(ErrorKind::Transient, DOING, problem))
}

/// Stores jobs whose ids and keys are free; `false` if one was not, and then some may have been stored.
pub(crate) async fn insert(conn: &mut dyn Conn, jobs: &[&NewJob]) -> Result<bool, StoreError> {
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
    if conn.run_each(&TAKE_IDEMPOTENCY_KEYS, &keyed, bind).await? < keyed.len() as u64 {
        return Ok(false);
    }
    let keyed: Vec<_> = jobs.iter().filter(|job| job.business_key.is_some()).collect();
    let bind = |job: &&&NewJob, values: &mut Vec<Value>| {
        values.push(Value::opt_text(job.business_key.as_ref().map(AsRef::as_ref)));
        values.extend([job.id.into(), now.into()]);
    };
    if conn.run_each(&TAKE_BUSINESS_KEYS, &keyed, bind).await? < keyed.len() as u64 {
        return Ok(false);
    }
    let rows = jobs.iter().map(|job| ColdRow::of(job, now)).collect::<Result<Vec<_>, _>>()?;
    let stored = if rows.iter().all(ColdRow::is_plain) {
        conn.run_each(&INSERT_PLAIN_JOBS, &rows, ColdRow::bind_plain).await?
    } else {
        conn.run_each(&INSERT_JOBS, &rows, ColdRow::bind).await?
    };
    if stored < rows.len() as u64 {
        return Ok(false);
    }
    conn.run_each(&INSERT_QUEUE, jobs, |job, values| bind_hot(job, now, values)).await?;
    let tags: Vec<(JobId, &str)> =
        jobs.iter().flat_map(|job| job.spec.tags.iter().map(|tag| (job.id, tag.as_str()))).collect();
    conn.run_each(&INSERT_TAGS, &tags, |(id, tag), values| values.extend([(*tag).into(), (*id).into()])).await?;
    Ok(true)
}

const TAKE_IDEMPOTENCY_KEYS: Stmt = Stmt::shared(
    "taking idempotency keys",
    "INSERT INTO scheduler_idempotency_key (idempotency_key, original_job_id, reserved_at) \
     VALUES /*each*/(?, ?, ?)/*end*/ ON CONFLICT DO NOTHING",
);

const TAKE_BUSINESS_KEYS: Stmt = Stmt::shared(
    "taking business keys",
    "INSERT INTO scheduler_business_key_reservation (business_key, owner_job_id, reserved_at) \
     VALUES /*each*/(?, ?, ?)/*end*/ ON CONFLICT DO NOTHING",
);

/// Takes the business key of one job again; `false` if another job holds it.
pub(crate) async fn take_business_key(conn: &mut dyn Conn, key: &str, id: JobId) -> Result<bool, StoreError> {
    let now = database_time(conn).await?;
    Ok(conn.run(&TAKE_BUSINESS_KEYS, vec![key.into(), id.into(), now.into()]).await? == 1)
}

// Most jobs use none of the optional columns: half the values to bind.
const INSERT_PLAIN_JOBS: Stmt = Stmt::shared(
    "storing plain jobs",
    "INSERT INTO scheduler_job (job_id, kind, queue, job_type, priority, payload, max_retries, backoff_policy, \
     backoff_param_us, created_at) VALUES /*each*/(?, ?, ?, ?, ?, ?, ?, ?, ?, ?)/*end*/ ON CONFLICT DO NOTHING",
);

const INSERT_JOBS: Stmt = Stmt::shared(
    "storing jobs",
    "INSERT INTO scheduler_job (job_id, kind, queue, job_type, priority, payload, max_retries, backoff_policy, \
     backoff_param_us, created_at, params, tags, timeout_us, resource_name, caller_principal, idempotency_key, \
     business_key, on_success, on_failure, origin) \
     VALUES /*each*/(?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)/*end*/ ON CONFLICT DO NOTHING",
);

/// A job as its cold row holds it.
struct ColdRow<'a> {
    job: &'a NewJob,
    now: Timestamp,
    /// What most jobs leave out, in the order of the statement.
    optional: [Value; 10],
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
            job.origin.as_ref().map_or(Ok(NULL), json_of)?,
        ];
        Ok(Self { job, now, optional })
    }

    /// Whether it uses none of the optional columns.
    fn is_plain(&self) -> bool {
        self.optional.iter().all(Value::is_null)
    }

    fn bind_plain(&self, values: &mut Vec<Value>) {
        let spec = &self.job.spec;
        values.extend([
            self.job.id.into(),
            spec.kind.as_str().into(),
            spec.queue.as_str().into(),
            self.job.job_type.as_str().into(),
            Value::count(spec.priority.level()),
            (&spec.payload).into(),
            Value::count(spec.max_retries),
            spec.backoff.as_str().into(),
            Value::micros(spec.backoff.base()),
            self.now.into(),
        ]);
    }

    fn bind(&self, values: &mut Vec<Value>) {
        self.bind_plain(values);
        values.extend_from_slice(&self.optional);
    }
}

const INSERT_QUEUE: Stmt = Stmt::shared(
    "queueing jobs",
    "INSERT INTO scheduler_job_queue (job_id, status, queue, kind, priority, scheduled_time, business_key, updated_at) \
     VALUES /*each*/(?, ?, ?, ?, ?, ?, ?, ?)/*end*/",
);

fn bind_hot(job: &NewJob, now: Timestamp, values: &mut Vec<Value>) {
    let state = match job.start {
        StartState::Ready => JobState::Pending,
        StartState::Waiting => JobState::Waiting,
    };
    let scheduled_time = match job.due {
        Due::At(time) => time,
        Due::After(delay) => clock::later(now, delay),
    };
    values.extend([
        job.id.into(),
        state.into(),
        job.spec.queue.as_str().into(),
        job.spec.kind.as_str().into(),
        Value::count(job.spec.priority.level()),
        scheduled_time.into(),
        Value::opt_text(job.business_key.as_ref().map(AsRef::as_ref)),
        now.into(),
    ]);
}

// A tag that is on a job twice is found once.
const INSERT_TAGS: Stmt = Stmt::shared(
    "tagging jobs",
    "INSERT INTO scheduler_job_tag (tag, job_id) VALUES /*each*/(?, ?)/*end*/ ON CONFLICT DO NOTHING",
);

/// Ids and keys that are taken, by what is stored and by the units decided so far.
#[derive(Default)]
struct Taken {
    ids: HashSet<JobId>,
    idempotency: HashMap<String, JobId>,
    business: HashMap<String, JobId>,
}

impl Taken {
    async fn read(conn: &mut dyn Conn, jobs: &[&NewJob]) -> Result<Self, StoreError> {
        let mut taken = Self::default();
        let ids: Vec<JobId> = jobs.iter().map(|job| job.id).collect();
        for row in conn.rows_in(&STORED_IDS, &[], &ids).await? {
            taken.ids.insert(row.fields().job_id("job_id")?);
        }
        let keys: Vec<&str> = jobs.iter().filter_map(|job| job.idempotency_key.as_ref()).map(AsRef::as_ref).collect();
        for row in conn.rows_in(&IDEMPOTENCY_OWNERS, &[], &keys).await? {
            let mut fields = row.fields();
            taken.idempotency.insert(fields.text("idempotency_key")?.to_owned(), fields.job_id("original_job_id")?);
        }
        let keys: Vec<&str> = jobs.iter().filter_map(|job| job.business_key.as_ref()).map(AsRef::as_ref).collect();
        for row in conn.rows_in(&BUSINESS_KEY_HOLDERS, &[], &keys).await? {
            let mut fields = row.fields();
            taken.business.insert(fields.text("business_key")?.to_owned(), fields.job_id("owner_job_id")?);
        }
        Ok(taken)
    }

    /// Decides about the jobs of one unit; new ones are added to `accepted`, unless the unit is refused.
    fn decide<'a>(&mut self, unit: impl Iterator<Item = &'a NewJob>, accepted: &mut Vec<&'a NewJob>) -> SubmitOutcome {
        let accepted_before = accepted.len();
        let mut submitted = Vec::with_capacity(unit.size_hint().0);
        for job in unit {
            if self.ids.contains(&job.id) {
                // Submitted again after a lost reply.
                submitted.push(Submitted::Created(job.id));
            } else if let Some(owner) = self.owner(job) {
                submitted.push(Submitted::Existing(owner));
            } else if let Some((key, holder)) = self.holder(job) {
                let refused = StoreError::duplicate(DOING, key.clone(), holder);
                accepted.drain(accepted_before..).for_each(|job| self.give_back(job));
                return Err(refused);
            } else {
                self.take(job);
                accepted.push(job);
                submitted.push(Submitted::Created(job.id));
            }
        }
        Ok(submitted)
    }

    /// The job that was first submitted with this job's idempotency key.
    fn owner(&self, job: &NewJob) -> Option<JobId> {
        job.idempotency_key.as_ref().and_then(|key| self.idempotency.get(key.as_str()).copied())
    }

    fn holder<'a>(&self, job: &'a NewJob) -> Option<(&'a BusinessKey, JobId)> {
        let key = job.business_key.as_ref()?;
        Some((key, *self.business.get(key.as_str())?))
    }

    fn take(&mut self, job: &NewJob) {
        self.ids.insert(job.id);
        if let Some(key) = &job.idempotency_key {
            self.idempotency.insert(key.as_str().to_owned(), job.id);
        }
        if let Some(key) = &job.business_key {
            self.business.insert(key.as_str().to_owned(), job.id);
        }
    }

    fn give_back(&mut self, job: &NewJob) {
        self.ids.remove(&job.id);
        if let Some(key) = &job.idempotency_key {
            self.idempotency.remove(key.as_str());
        }
        if let Some(key) = &job.business_key {
            self.business.remove(key.as_str());
        }
    }
}

const STORED_IDS: Stmt = Stmt::shared(
    "looking for jobs that are already stored",
    "SELECT job_id FROM scheduler_job WHERE job_id IN (/*each*/?/*end*/)",
);

const IDEMPOTENCY_OWNERS: Stmt = Stmt::shared(
    "looking for idempotency keys that are taken",
    "SELECT idempotency_key, original_job_id FROM scheduler_idempotency_key WHERE idempotency_key IN (/*each*/?/*end*/)",
);

const BUSINESS_KEY_HOLDERS: Stmt = Stmt::shared(
    "looking for business keys that are held",
    "SELECT business_key, owner_job_id FROM scheduler_business_key_reservation WHERE business_key IN (/*each*/?/*end*/)",
);
