//! What jobs that await a signal wait for: beginning to wait, its time limit, and what came.

use std::borrow::Cow;
use std::collections::{BTreeMap, HashMap};

use jiff::Timestamp;
use ratchet_core::flow::{WaitState, limit_begins, signaled};
use ratchet_core::{Claim, JobFlags, JobId, NewJob, Signal, SignalKey, SignalRecord, StoreError, clock};

use crate::cluster::database_time;
use crate::signal::mailbox::{self, Columns, EMPTY, columns_of, signal_of};
use crate::waist::conn::Conn;
use crate::waist::row::Row;
use crate::waist::stmt::Stmt;
use crate::waist::value::{Value, micros};

pub(crate) const STATEMENTS: &[Stmt] =
    &[STORE_WAITS, READ_WAITS, BEGIN_LIMITS, NO_LIMITS, NOTE_ENDS, AWAIT_AGAIN, WRITE_SIGNALS, WRITE_TIES, DELETE_WAIT];

/// Jobs that begin to wait for signals.
pub(crate) struct Begun<'a> {
    /// All jobs of the submit; those whose signal was kept for them have got it.
    jobs: Vec<Cow<'a, NewJob>>,
    /// The signals that were kept for them.
    came: HashMap<JobId, Signal>,
    now: Timestamp,
}

impl Begun<'_> {
    pub(crate) fn jobs(&self) -> Vec<&NewJob> {
        self.jobs.iter().map(AsRef::as_ref).collect()
    }
}

/// Locks the keys that these jobs are going to wait for, and gives to the first of each key what is kept for it.
pub(crate) async fn begin<'a>(conn: &mut dyn Conn, jobs: &[&'a NewJob]) -> Result<Begun<'a>, StoreError> {
    let now = database_time(conn).await?;
    let keys = jobs.iter().filter_map(|job| job.signal.as_ref()).map(|wait| &wait.key);
    let mut kept = mailbox::lock(conn, keys, now).await?;
    let mut begun = Begun { jobs: Vec::with_capacity(jobs.len()), came: HashMap::new(), now };
    for job in jobs {
        let signal = job.signal.as_ref().and_then(|wait| kept.remove(&wait.key));
        begun.jobs.push(if signal.is_some() { Cow::Owned(job.already_signaled()) } else { Cow::Borrowed(*job) });
        begun.came.extend(signal.map(|signal| (job.id, signal)));
    }
    let taken: Vec<&str> = begun.came.values().map(|signal| signal.key.as_str()).collect();
    mailbox::clear(conn, &taken).await?;
    Ok(begun)
}

const STORE_WAITS: Stmt = Stmt::shared(
    "storing waits for signals",
    "INSERT INTO scheduler_signal_wait (/*columns:wait,signal*/) /*rows:@wait @signal*/",
);

/// Stores what jobs that were just stored wait for.
pub(crate) async fn store(conn: &mut dyn Conn, begun: &Begun<'_>) -> Result<(), StoreError> {
    let waits: Vec<_> = begun.jobs.iter().filter_map(|job| Some((job, job.signal.as_ref()?))).collect();
    conn.run_each(&STORE_WAITS, &waits, |(job, wait), values| {
        let runs = wait.timeout.filter(|_| limit_begins(job.waiting()));
        values.extend([
            job.id.into(),
            wait.key.as_str().into(),
            Value::Int(wait.timeout.map(micros)),
            Value::opt_time(runs.map(|timeout| clock::later(begun.now, timeout))),
        ]);
        values.extend(begun.came.get(&job.id).map_or(EMPTY, columns_of));
    })
    .await?;
    Ok(())
}

const READ_WAITS: Stmt = Stmt::shared(
    "reading waits for signals",
    "SELECT /*columns:wait,signal*/ FROM scheduler_signal_wait WHERE job_id /*any*/",
);

/// What jobs wait or waited for.
pub(crate) async fn read(conn: &mut dyn Conn, ids: &[JobId]) -> Result<HashMap<JobId, SignalRecord>, StoreError> {
    let rows = conn.rows_in(&READ_WAITS, &[], ids).await?;
    rows.iter().map(|row| record_of(row).map(|record| (record.job_id, record))).collect()
}

fn record_of(row: &Row) -> Result<SignalRecord, StoreError> {
    let mut fields = row.fields();
    let job_id = fields.job_id("job_id")?;
    let key = fields.parsed("signal_key", SignalKey::new)?;
    let timeout = fields.opt_duration("signal_timeout_us")?;
    let expires_at = fields.opt_time("expires_at")?;
    let signal = signal_of(&mut fields, &key)?;
    Ok(SignalRecord { job_id, key, timeout, expires_at, signal })
}

/// Adds to claims the signals that they waited for; one read for all, and none if none did.
pub(crate) async fn add_signals(conn: &mut dyn Conn, claims: &mut [Claim]) -> Result<(), StoreError> {
    let signaled: Vec<JobId> =
        claims.iter().filter(|claim| claim.job.flow.has(JobFlags::SIGNALED)).map(|claim| claim.job.id).collect();
    let mut found = read(conn, &signaled).await?;
    if !found.is_empty() {
        for claim in claims {
            claim.signal = found.remove(&claim.job.id).and_then(|record| record.signal);
        }
    }
    Ok(())
}

const BEGIN_LIMITS: Stmt = Stmt::shared(
    "beginning the time limits of waits",
    "UPDATE scheduler_signal_wait SET expires_at = /*in:signal_timeout_us*/ \
     WHERE signal_timeout_us IS NOT NULL AND delivered_at IS NULL AND job_id /*any*/",
);

/// Begins the time limits of jobs that wait for nothing but their signal from now on.
pub(crate) async fn begin_limits(conn: &mut dyn Conn, ids: &[JobId]) -> Result<(), StoreError> {
    conn.run_in(&BEGIN_LIMITS, &[], ids).await?;
    Ok(())
}

const NO_LIMITS: Stmt = Stmt::shared(
    "ending the time limits of waits",
    "UPDATE scheduler_signal_wait SET expires_at = NULL WHERE job_id /*any*/",
);

/// Ends the time limits of jobs.
pub(crate) async fn wait_no_more(conn: &mut dyn Conn, ids: &[JobId]) -> Result<(), StoreError> {
    conn.run_in(&NO_LIMITS, &[], ids).await?;
    Ok(())
}

const NOTE_ENDS: Stmt = Stmt::shared(
    "noting that jobs have ended without their signals",
    "UPDATE scheduler_signal_wait SET ended = /*yes*/ WHERE job_id /*any*/",
);

/// Notes that jobs have ended without their signals, under the lock of the key. They wait again by [`begin_again`].
pub(crate) async fn note_ends(conn: &mut dyn Conn, ids: &[JobId]) -> Result<(), StoreError> {
    conn.run_in(&NOTE_ENDS, &[], ids).await?;
    Ok(())
}

const AWAIT_AGAIN: Stmt = Stmt::shared(
    "letting jobs wait for their signals again",
    "UPDATE scheduler_signal_wait SET expires_at = NULL, ended = /*no*/ WHERE job_id /*any*/",
);

/// Lets jobs that are brought back wait for their signals again; says what is left to wait for of those that got theirs,
/// because it was kept for them. No time limit runs.
pub(crate) async fn begin_again(
    conn: &mut dyn Conn,
    jobs: &[(JobId, WaitState)],
) -> Result<BTreeMap<JobId, WaitState>, StoreError> {
    if jobs.is_empty() {
        return Ok(BTreeMap::new());
    }
    let ids: Vec<JobId> = jobs.iter().map(|(id, _)| *id).collect();
    let waits = read(conn, &ids).await?;
    let now = database_time(conn).await?;
    let mut kept = mailbox::lock(conn, waits.values().map(|wait| &wait.key), now).await?;
    conn.run_in(&AWAIT_AGAIN, &[], &ids).await?;
    let mut left = BTreeMap::new();
    for (id, waiting) in jobs {
        if let Some(signal) = waits.get(id).and_then(|wait| kept.remove(&wait.key)) {
            left.insert(*id, signaled(*waiting));
            write_signal(conn, &columns_of(&signal), &[*id]).await?;
            mailbox::clear(conn, &[signal.key.as_str()]).await?;
        }
    }
    let ties: Vec<(JobId, JobFlags)> = left.iter().map(|(id, left)| (*id, left.flow)).collect();
    write_ties(conn, &ties).await?;
    Ok(left)
}

const WRITE_SIGNALS: Stmt = Stmt::shared(
    "writing the signals of jobs",
    "UPDATE scheduler_signal_wait SET /*set:signal*/, expires_at = NULL WHERE job_id /*any*/",
);

/// Writes the signal that jobs have got.
pub(crate) async fn write_signal(conn: &mut dyn Conn, signal: &Columns, ids: &[JobId]) -> Result<(), StoreError> {
    conn.run_in(&WRITE_SIGNALS, signal, ids).await?;
    Ok(())
}

// A job that is brought back to life takes its ties from the cold row.
const WRITE_TIES: Stmt = Stmt::shared(
    "writing the ties of jobs",
    "WITH v (job_id, flow) AS (/*rows:id int*/) \
     UPDATE scheduler_job SET flow = v.flow FROM v WHERE scheduler_job.job_id = v.job_id",
)
.mysql(
    "UPDATE (/*union*/SELECT CAST(? AS BINARY(16)) AS job_id, ? AS flow/*end*/) v \
     STRAIGHT_JOIN scheduler_job j FORCE INDEX (PRIMARY) ON j.job_id = v.job_id SET j.flow = v.flow",
);

/// Writes the ties of jobs where they are kept for good.
pub(crate) async fn write_ties(conn: &mut dyn Conn, ties: &[(JobId, JobFlags)]) -> Result<(), StoreError> {
    conn.run_each(&WRITE_TIES, ties, |(id, flow), values| {
        values.extend([(*id).into(), Value::count(flow.at_rest().bits())]);
    })
    .await?;
    Ok(())
}

const DELETE_WAIT: Stmt =
    Stmt::shared("deleting the wait of a job", "DELETE FROM scheduler_signal_wait WHERE job_id = ?");

/// Deletes the wait of a job that is deleted.
pub(crate) async fn delete(conn: &mut dyn Conn, id: JobId) -> Result<(), StoreError> {
    conn.run(&DELETE_WAIT, vec![id.into()]).await?;
    Ok(())
}
