//! Reading jobs wherever they are: where they ended, or in the archive.

use std::collections::HashMap;

use ratchet_core::store::LastAttempts;
use ratchet_core::{AttemptRecord, JobId, JobRecord, SignalRecord, StoreError, Tag};

use crate::archive::attempts;
use crate::archive::purge::DELETE_ARCHIVED_TAGS;
use crate::control;
use crate::job_log;
use crate::job_row::{self, spec_of};
use crate::list::query;
use crate::signal;
use crate::waist::conn::Conn;
use crate::waist::row::Row;
use crate::waist::stmt::Stmt;
use crate::waist::value::Value;

pub(crate) const STATEMENTS: &[Stmt] = &[FIND_ARCHIVED, ARCHIVED_ATTEMPTS, ARCHIVED_SIGNALS, DELETE_ARCHIVED];

/// All that is known of an archived job, read by [`archived_of`]: `j` is the row in the archive.
macro_rules! archived_columns {
    () => {
        concat!(
            $crate::job_row::spec_columns!(),
            ", /*columns:job.ties,job.end,job.life,job.outcome,job.causes,job.timing j.as*/, j.archived_at AS archived_at"
        )
    };
}

/// The record of a row of [`archived_columns`].
pub(crate) fn archived_of(row: &Row) -> Result<JobRecord, StoreError> {
    let mut fields = row.fields();
    let mut job = spec_of(&mut fields)?;
    job.flow = fields.flow("flow")?;
    job.release_delay = fields.opt_duration("release_delay_us")?;
    job.state = fields.state("terminal_status")?;
    job.scheduled_time = fields.time("scheduled_time")?;
    job.last_error = fields.opt_text("terminal_error")?.map(str::to_owned);
    job.version = fields.number("version")?;
    job.attempts = fields.number("total_attempts")?;
    job.crash_count = fields.number("crash_count")?;
    job_row::read_outcome(&mut job, &mut fields)?;
    job.archived_at = Some(fields.time("archived_at")?);
    Ok(job)
}

const FIND_ARCHIVED: Stmt = Stmt::shared(
    "reading archived jobs",
    concat!("SELECT ", archived_columns!(), " FROM scheduler_job_archive j WHERE j.job_id /*any*/"),
);

/// Reads jobs by id, archived or not, in the order of the ids; unknown ids are left out.
///
/// The archive is looked at last: a job that is moved meanwhile is seen in the one or the other.
pub(crate) async fn find(conn: &mut dyn Conn, ids: &[JobId]) -> Result<Vec<JobRecord>, StoreError> {
    let jobs = job_row::find(conn, ids).await?;
    if jobs.len() == ids.len() {
        return Ok(jobs);
    }
    let mut found: HashMap<JobId, JobRecord> = jobs.into_iter().map(|job| (job.id, job)).collect();
    let missing: Vec<JobId> = ids.iter().filter(|id| !found.contains_key(id)).copied().collect();
    found.extend(find_archived(conn, &missing).await?.into_iter().map(|job| (job.id, job)));
    Ok(ids.iter().filter_map(|id| found.remove(id)).collect())
}

/// Reads archived jobs by id, in the order of the ids; unknown ids are left out.
pub(crate) async fn find_archived(conn: &mut dyn Conn, ids: &[JobId]) -> Result<Vec<JobRecord>, StoreError> {
    let rows = conn.rows_in(&FIND_ARCHIVED, &[], ids).await?;
    let mut found = HashMap::with_capacity(rows.len());
    for row in &rows {
        let job = archived_of(row)?;
        found.insert(job.id, job);
    }
    Ok(ids.iter().filter_map(|id| found.remove(id)).collect())
}

const ARCHIVED_ATTEMPTS: Stmt = Stmt::shared(
    "reading the attempts of an archived job",
    "SELECT attempts FROM scheduler_job_archive WHERE job_id = ?",
);

/// The attempts of a job, archived or not, the first first.
pub(crate) async fn attempts(conn: &mut dyn Conn, id: JobId) -> Result<Vec<AttemptRecord>, StoreError> {
    let attempts = query::attempts(conn, id).await?;
    if !attempts.is_empty() {
        return Ok(attempts);
    }
    let Some(row) = conn.row(&ARCHIVED_ATTEMPTS, vec![id.into()]).await? else { return Ok(attempts) };
    let success = find_archived(conn, &[id]).await?.first().and_then(JobRecord::success);
    let recorded = row.fields().opt_parsed("attempts", |text| attempts::read(id, text))?;
    Ok(recorded.unwrap_or_default().into_iter().chain(success).collect())
}

/// The last attempts of a job, archived or not, before that of a version.
pub(crate) async fn last_attempts(
    conn: &mut dyn Conn,
    id: JobId,
    before: Option<u64>,
    limit: usize,
) -> Result<LastAttempts, StoreError> {
    let last = query::last_attempts(conn, id, before, limit).await?;
    if last.total > 0 {
        return Ok(last);
    }
    let all = attempts(conn, id).await?;
    let total = all.len() as u64;
    let earlier = all.into_iter().rev().filter(|attempt| before.is_none_or(|before| attempt.version < before));
    Ok(LastAttempts { items: earlier.take(limit).collect(), total })
}

const ARCHIVED_SIGNALS: Stmt = Stmt::shared(
    "reading the signals of archived jobs",
    "SELECT signal_wait FROM scheduler_job_archive WHERE signal_wait IS NOT NULL AND job_id /*any*/",
);

/// What jobs, archived or not, wait or waited for, in the order of the ids.
pub(crate) async fn signals(conn: &mut dyn Conn, ids: &[JobId]) -> Result<Vec<SignalRecord>, StoreError> {
    let waits = signal::read(conn, ids).await?;
    if waits.len() == ids.len() {
        return Ok(waits);
    }
    let mut found: HashMap<JobId, SignalRecord> = waits.into_iter().map(|wait| (wait.job_id, wait)).collect();
    let missing: Vec<JobId> = ids.iter().filter(|id| !found.contains_key(id)).copied().collect();
    for row in conn.rows_in(&ARCHIVED_SIGNALS, &[], &missing).await? {
        let wait: SignalRecord = row.fields().parsed("signal_wait", serde_json::from_str)?;
        found.insert(wait.job_id, wait);
    }
    Ok(ids.iter().filter_map(|id| found.remove(id)).collect())
}

const DELETE_ARCHIVED: Stmt =
    Stmt::shared("deleting an archived job", "DELETE FROM scheduler_job_archive WHERE job_id = ?");

/// Deletes an ended job, archived or not; `false` if there is none.
pub(crate) async fn delete(conn: &mut dyn Conn, id: JobId) -> Result<bool, StoreError> {
    if control::delete(conn, id).await? {
        return Ok(true);
    }
    let rows = conn.rows_in(&FIND_ARCHIVED, &[], &[id]).await?;
    let Some(job) = rows.first().map(archived_of).transpose()? else { return Ok(false) };
    let tags: Vec<&Tag> = job.spec.tags.iter().collect();
    conn.run_each(&DELETE_ARCHIVED_TAGS, &tags, |tag, values| values.extend([tag.as_str().into(), id.into()])).await?;
    job_log::delete(conn, id).await?;
    Ok(conn.run(&DELETE_ARCHIVED, vec![Value::from(id)]).await? == 1)
}
