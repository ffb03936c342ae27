//! What a person may ask for.

mod control_store;
pub(crate) mod delete;
pub(crate) mod dead_letters;
pub(crate) mod retry_all;

use ratchet_core::control::{DeleteTies, REPLACING, Replace, Retried};
use ratchet_core::flow::{End, WaitState};
use ratchet_core::schedule::leaves_its_place;
use ratchet_core::store::{Replacement, Transitioned};
use ratchet_core::transition::{self, Place};
use ratchet_core::{ErrorKind, Event, Followed, JobFlags, JobId, JobRecord, JobState, NewJob, StoreError, Timestamp};

use crate::cluster::database_time;
use crate::flow::batch_counts::{self, Tallies};
use crate::flow::batches;
use crate::flow::edges;
use crate::flow::follow::follow;
use crate::flow::revive::revive;
use crate::flow::undecidable::undecidable;
use crate::job_log;
use crate::job_row::{find_by_business_key, find_by_idempotency_key, find_one};
use crate::settle::{Finished, finish, record_attempts};
use crate::signal::waits;
use crate::submit;
use crate::waist::conn::Conn;
use crate::waist::stmt::Stmt;
use crate::waist::value::Value;

pub(crate) const STATEMENTS: &[Stmt] = &[
    LOCK_QUEUED,
    LOCK_JOB,
    MOVE,
    REOPEN,
    BEGIN_AGAIN,
    QUEUE_AGAIN,
    CLOSE_AGAIN,
    DELETE_QUEUED_JOB,
    SUPERSEDE,
    DELETE_CHILD,
    DELETE_JOB,
    DELETE_TAGS,
    DELETE_ATTEMPTS,
    DELETE_ALERTS,
];

/// Ends a live job.
pub(crate) async fn cancel(conn: &mut dyn Conn, id: JobId) -> Result<Option<Transitioned>, StoreError> {
    batches::lock_first(conn, id).await?;
    let Some(step) = LegalMove::of(conn, id, Event::Cancel).await? else { return Ok(None) };
    let followed = end(conn, &step).await?;
    step.done(conn, followed).await
}

/// Suspends a job.
pub(crate) async fn pause(conn: &mut dyn Conn, id: JobId) -> Result<Option<Transitioned>, StoreError> {
    let Some(step) = LegalMove::of(conn, id, Event::Pause).await? else { return Ok(None) };
    if step.from.state().is_terminal() {
        // The cold row keeps its end, so that a resume finds it as it was; only its state goes.
        conn.run(&REOPEN, vec![id.into()]).await?;
        queue_again(conn, &step.job, &QueuedAgain::as_it_was(&step)).await?;
    } else {
        step.write(conn).await?;
    }
    step.done(conn, Vec::new()).await
}

/// Lets a paused job go on from where it was.
pub(crate) async fn resume(conn: &mut dyn Conn, id: JobId) -> Result<Option<Transitioned>, StoreError> {
    let Some(step) = LegalMove::of(conn, id, Event::Resume).await? else { return Ok(None) };
    if step.to.state().is_terminal() {
        conn.run(&CLOSE_AGAIN, vec![step.to.state().into(), Value::count(step.job.version + 1), id.into()]).await?;
        conn.run(&DELETE_QUEUED_JOB, vec![id.into()]).await?;
    } else {
        step.write(conn).await?;
    }
    step.done(conn, Vec::new()).await
}

/// Gives a failed job a new life.
pub(crate) async fn retry(conn: &mut dyn Conn, id: JobId) -> Result<Option<Transitioned>, StoreError> {
    let Some(step) = LegalMove::of(conn, id, Event::Retry).await? else { return Ok(None) };
    if let Some(problem) = undecidable(conn, [&step.job]).await?.remove(&id) {
        return Err(StoreError::new(ErrorKind::Conflict, "retrying a job", problem));
    }
    let mut signal_came = false;
    if step.job.awaits_signal_when_retried() {
        let waiting = WaitState { waits_for: 1, flow: step.job.flow };
        signal_came = waits::begin_again(conn, &[(id, waiting)]).await?.contains_key(&id);
    }
    let Some(retried) = step.job.retried(signal_came) else { return Ok(None) };
    if let Some(key) = &step.job.business_key
        && !submit::take_business_key(conn, key.as_str(), id).await?
    {
        let holder = find_by_business_key(conn, key).await?.unwrap_or(id);
        return Err(StoreError::duplicate("retrying a job", key.clone(), holder));
    }
    conn.run(&BEGIN_AGAIN, vec![id.into()]).await?;
    queue_again(conn, &step.job, &QueuedAgain::retried(retried)).await?;
    if retried.waits_for > 0 {
        waits::begin_limits(conn, &[id]).await?;
    }
    let followed = revive(conn, &step.job).await?;
    if let Some(batch) = step.job.parent.filter(|_| step.job.flow.has(JobFlags::BATCH_CHILD)) {
        batches::uncount_failures(conn, batch, 1).await?;
    }
    step.done(conn, followed).await
}

/// Cancels `old` and stores `new`. After an error the caller rolls back.
pub(crate) async fn replace(conn: &mut dyn Conn, old: JobId, new: &NewJob) -> Result<Replacement, StoreError> {
    if let Some(key) = &new.idempotency_key
        && let Some(owner) = find_by_idempotency_key(conn, key).await?
    {
        return Ok(Replacement::Existing(owner));
    }
    batches::lock_first(conn, old).await?;
    let replace = Replace { old, new };
    lock(conn, old).await?;
    let job = find_one(conn, old).await?;
    let to = replace.end_old(job.as_ref().map(JobRecord::place))?;
    let Some(job) = job else { return Err(gone(old)) };
    let step = LegalMove { from: job.place(), job, to };
    let followed = end(conn, &step).await?;
    conn.run(&SUPERSEDE, vec![new.id.into(), old.into()]).await?;
    if let Some(key) = &new.business_key {
        replace.take_key(find_by_business_key(conn, key).await?)?;
    }
    replace.take_id(submit::insert(conn, &[new], &[], &[]).await?)?;
    match step.done(conn, followed).await? {
        Some(transitioned) => Ok(Replacement::Replaced(transitioned)),
        None => Err(gone(old)),
    }
}

fn gone(id: JobId) -> StoreError {
    StoreError::new(ErrorKind::Conflict, REPLACING, format!("job {id} is gone"))
}

/// Deletes a terminal job with its tags, attempts, alerts and log; `false` if there is none.
pub(crate) async fn delete(conn: &mut dyn Conn, id: JobId) -> Result<bool, StoreError> {
    lock(conn, id).await?;
    let Some(job) = find_one(conn, id).await? else { return Ok(false) };
    let mut ties = DeleteTies::none(id, job.place());
    if ties.refusal().is_none() {
        ties.needed_by = edges::needed_by(conn, id).await?;
    }
    if ties.refusal().is_none() && !job.flow.is_none() {
        ties.needed_again_by = edges::needed_again_by(conn, id).await?;
    }
    if ties.refusal().is_none() && job.flow.has(JobFlags::BATCH) {
        ties.children = batches::find(conn, &[id]).await?.first().map(|batch| batch.counts);
    }
    if let Some(refusal) = ties.refusal() {
        return Err(refusal);
    }
    let tags: Vec<&str> = job.spec.tags.iter().map(ratchet_core::Tag::as_str).collect();
    conn.run_in(&DELETE_TAGS, &[id.into()], &tags).await?;
    conn.run(&DELETE_ATTEMPTS, vec![id.into()]).await?;
    conn.run(&DELETE_ALERTS, vec![id.into()]).await?;
    job_log::delete(conn, id).await?;
    if !job.flow.is_none() {
        edges::delete(conn, id).await?;
        waits::delete(conn, id).await?;
    }
    if job.flow.has(JobFlags::BATCH) {
        batches::delete(conn, id).await?;
    }
    if let Some(parent) = job.parent.filter(|_| conn.dialect().lists_children_apart()) {
        conn.run(&DELETE_CHILD, vec![parent.into(), id.into()]).await?;
    }
    conn.run(&DELETE_JOB, vec![id.into()]).await?;
    Ok(true)
}

/// Keeps other transactions from changing a job until this one ends.
///
/// The hot row first, as settling does, so that the two do not wait for each other in a circle.
async fn lock(conn: &mut dyn Conn, id: JobId) -> Result<(), StoreError> {
    if !conn.dialect().locks_rows() {
        return Ok(());
    }
    let queued = conn.row(&LOCK_QUEUED, vec![id.into()]).await?.is_some();
    conn.row(&LOCK_JOB, vec![id.into()]).await?;
    if !queued {
        // Somebody may have brought the job back to life while this transaction waited for the cold row.
        conn.row(&LOCK_QUEUED, vec![id.into()]).await?;
    }
    Ok(())
}

const LOCK_QUEUED: Stmt = Stmt::shared(
    "locking the hot row of a job",
    "SELECT job_id FROM scheduler_job_queue WHERE job_id = ? /*for_update*/",
);

const LOCK_JOB: Stmt =
    Stmt::shared("locking the cold row of a job", "SELECT job_id FROM scheduler_job WHERE job_id = ? /*for_update*/");

/// A transition that may happen: the job as it is, and where it goes.
struct LegalMove {
    job: JobRecord,
    from: Place,
    to: Place,
}

impl LegalMove {
    /// `None` if the job is unknown or stands where the event may not happen.
    async fn of(conn: &mut dyn Conn, id: JobId, event: Event) -> Result<Option<Self>, StoreError> {
        lock(conn, id).await?;
        let Some(job) = find_one(conn, id).await? else { return Ok(None) };
        let from = job.place();
        Ok(transition::next(from, event).map(|to| Self { job, from, to }))
    }

    /// Writes the new place of a job that stays in the queue.
    async fn write(&self, conn: &mut dyn Conn) -> Result<(), StoreError> {
        let paused_from = self.to.paused_from().map(JobState::as_str);
        conn.run(&MOVE, vec![self.to.state().into(), Value::opt_text(paused_from), self.job.id.into()]).await?;
        Ok(())
    }

    async fn done(self, conn: &mut dyn Conn, followed: Vec<Followed>) -> Result<Option<Transitioned>, StoreError> {
        Ok(find_one(conn, self.job.id).await?.map(|job| Transitioned { from: self.from, job, followed }))
    }
}

/// Ends a live job where it stands; a running attempt is recorded, and what waits for the job is told.
async fn end(conn: &mut dyn Conn, step: &LegalMove) -> Result<Vec<Followed>, StoreError> {
    let job = &step.job;
    let now = database_time(conn).await?;
    let attempt = job.canceled_attempt(now);
    if let Some(attempt) = &attempt {
        record_attempts(conn, &[attempt]).await?;
    }
    let ran_for = attempt.as_ref().map(|attempt| attempt.timing.duration);
    let finished = Finished {
        id: job.id,
        state: step.to.state(),
        version: job.version + 1,
        error: job.last_error.as_deref(),
        attempts: job.attempts,
        crash_count: job.crash_count,
        scheduled_time: job.scheduled_time,
        timing: attempt.map(|attempt| attempt.timing),
        ended_by: None,
        result: None,
        business_key: job.business_key.as_ref().map(AsRef::as_ref),
    };
    finish(conn, &[finished]).await?;
    let mut followed = Vec::new();
    if job.flow.has(JobFlags::DEPENDANTS) && !leaves_its_place(job.job_type, step.from) {
        followed = follow(conn, &[End { id: job.id, state: step.to.state(), result: None }]).await?;
    }
    if job.flow.has(JobFlags::BATCH) {
        batches::close(conn, &[(job.id, step.to.state())]).await?;
    }
    if let Some(batch) = job.parent.filter(|_| job.flow.has(JobFlags::BATCH_CHILD)) {
        let mut tallies = Tallies::new();
        tallies.entry(batch).or_default().add(step.to.state(), ran_for);
        followed.append(&mut batch_counts::count(conn, &tallies).await?);
    }
    Ok(followed)
}

const MOVE: Stmt = Stmt::shared(
    "pausing or resuming a job",
    "UPDATE scheduler_job_queue SET status = ?, paused_from_status = ?, version = version + 1, updated_at = /*now*/ \
     WHERE job_id = ?",
);

const REOPEN: Stmt =
    Stmt::shared("pausing a failed job", "UPDATE scheduler_job SET terminal_status = NULL WHERE job_id = ?");

const BEGIN_AGAIN: Stmt = Stmt::shared(
    "retrying a failed job",
    "UPDATE scheduler_job SET /*clear:job.end,job.outcome,job.timing*/, total_attempts = 0, crash_count = 0 \
     WHERE job_id = ?",
);

const QUEUE_AGAIN: Stmt = Stmt::shared(
    "queueing a job again",
    "INSERT INTO scheduler_job_queue (/*columns:queue.plain,queue.life*/, paused_from_status, business_key, last_error, \
     flow, waits_for, resource, updated_at) \
     VALUES (/*values:queue.plain*/, ?, ?, ?, COALESCE(?, /*now*/), ?, ?, ?, ?, ?, ?, /*now*/)",
);

/// What the hot row of a job holds that comes back to the queue.
struct QueuedAgain<'a> {
    place: Place,
    /// When it is due; now if there is no time.
    due: Option<Timestamp>,
    attempts: u32,
    crash_count: u32,
    last_error: Option<&'a str>,
    flow: JobFlags,
    waits_for: u32,
}

impl<'a> QueuedAgain<'a> {
    fn as_it_was(step: &'a LegalMove) -> Self {
        let job = &step.job;
        Self {
            place: step.to,
            due: Some(job.scheduled_time),
            attempts: job.attempts,
            crash_count: job.crash_count,
            last_error: job.last_error.as_deref(),
            flow: job.flow.at_rest(),
            waits_for: 0,
        }
    }

    const fn retried(retried: Retried) -> Self {
        let Retried { event: _, place, attempts, crash_count, flow, waits_for } = retried;
        Self { place, due: None, attempts, crash_count, last_error: None, flow, waits_for }
    }
}

async fn queue_again(conn: &mut dyn Conn, job: &JobRecord, again: &QueuedAgain<'_>) -> Result<(), StoreError> {
    let mut values = submit::hot_row(job.id, again.place.state(), &job.spec).to_vec();
    values.extend([
        Value::count(job.version + 1),
        Value::count(again.attempts),
        Value::count(again.crash_count),
        Value::opt_time(again.due),
        Value::opt_text(again.place.paused_from().map(JobState::as_str)),
        Value::opt_text(job.business_key.as_ref().map(AsRef::as_ref)),
        Value::opt_text(again.last_error),
        Value::count(again.flow.bits()),
        Value::count(again.waits_for),
        submit::resource_of(&job.spec),
    ]);
    conn.run(&QUEUE_AGAIN, values).await?;
    Ok(())
}

const CLOSE_AGAIN: Stmt =
    Stmt::shared("resuming a failed job", "UPDATE scheduler_job SET terminal_status = ?, version = ? WHERE job_id = ?");

const DELETE_QUEUED_JOB: Stmt =
    Stmt::shared("taking a job out of the queue", "DELETE FROM scheduler_job_queue WHERE job_id = ?");

const SUPERSEDE: Stmt =
    Stmt::shared("marking a job as replaced", "UPDATE scheduler_job SET superseded_by = ? WHERE job_id = ?");

const DELETE_CHILD: Stmt = Stmt::only_mysql(
    "deleting a job from the children of another",
    "DELETE FROM scheduler_job_child WHERE parent_id = ? AND job_id = ?",
);

const DELETE_JOB: Stmt = Stmt::shared("deleting a job", "DELETE FROM scheduler_job WHERE job_id = ?");

const DELETE_TAGS: Stmt =
    Stmt::shared("deleting the tags of a job", "DELETE FROM scheduler_job_tag WHERE job_id = ? AND tag /*any*/");

const DELETE_ATTEMPTS: Stmt =
    Stmt::shared("deleting the attempts of a job", "DELETE FROM scheduler_job_execution WHERE job_id = ?");

const DELETE_ALERTS: Stmt =
    Stmt::shared("deleting the alerts of a job", "DELETE FROM scheduler_dlq_alert WHERE job_id = ?");
