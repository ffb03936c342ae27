//! Delivering signals, and ending the wait for those that do not come.

mod signal_store;
pub(crate) mod mailbox;
pub(crate) mod waits;

use std::collections::HashMap;

use ratchet_core::flow::{End, SignalPlan, awaits_signal};
use ratchet_core::page::check_limit;
use ratchet_core::signal::{Delivery, SignalTarget};
use ratchet_core::store::{Delivered, Expired, Swept};
use ratchet_core::transition::{self, Event, Place};
use ratchet_core::{ErrorReport, Followed, JobFlags, JobId, SignalKey, SignalRecord, StoreError, Timestamp};

use crate::cluster::database_time;
use crate::flow::batch_counts::{self, Tallies};
use crate::flow::follow::{Child, count_down, ended_unrun, fail, follow, lock_live, release};
use crate::job_row::find;
use crate::settle::{Finished, finish};
use crate::waist::conn::Conn;
use crate::waist::stmt::Stmt;
use crate::waist::value::Value;

pub(crate) const STATEMENTS: &[Stmt] = &[WAITERS, LATE, FORGET_LIMITS];

const WAITERS: Stmt = Stmt::shared(
    "looking for jobs that wait for a signal",
    "SELECT w.job_id AS job_id, q.job_id AS live_id FROM scheduler_signal_wait w \
     LEFT JOIN scheduler_job_queue q ON q.job_id = w.job_id \
     WHERE w.signal_key = ? AND w.delivered_at IS NULL AND w.ended = /*no*/ \
     AND (q.job_id IS NULL OR q.status = /*state:waiting*/)",
);

/// The jobs that wait for a key, which is locked. Those that have ended without are not looked at again.
async fn waiters(conn: &mut dyn Conn, key: &SignalKey) -> Result<Vec<JobId>, StoreError> {
    let (mut waiting, mut ended) = (Vec::new(), Vec::new());
    for row in conn.rows(&WAITERS, vec![key.as_str().into()]).await? {
        let mut fields = row.fields();
        let id = fields.job_id("job_id")?;
        if fields.opt_id("live_id")?.is_some() { &mut waiting } else { &mut ended }.push(id);
    }
    waits::note_ends(conn, &ended).await?;
    waiting.sort_unstable();
    Ok(waiting)
}

/// Gives a signal to the jobs that it is for, or keeps it.
///
/// The key is locked first, then the jobs in their order. Who begins to wait for the key holds the same lock, so that the
/// one sees what the other has done.
pub(crate) async fn deliver(conn: &mut dyn Conn, delivery: &Delivery) -> Result<Delivered, StoreError> {
    let now = database_time(conn).await?;
    let (ids, occupied) = match &delivery.target {
        SignalTarget::Job(id) => (vec![*id], false),
        SignalTarget::Key(key) => {
            let occupied = mailbox::lock(conn, std::iter::once(key), now).await?.contains_key(key);
            (waiters(conn, key).await?, occupied)
        }
    };
    let rows = lock_live(conn, &ids).await?;
    let waiting: Vec<(JobId, &Child)> =
        ids.iter().filter_map(|id| Some((*id, rows.get(id).filter(|job| awaits(job))?))).collect();
    if !waiting.is_empty() {
        return give(conn, delivery, &waiting, now).await;
    }
    let Some((key, until)) = delivery.kept(occupied, now) else { return Ok(Delivered::default()) };
    mailbox::keep(conn, key, delivery, now, until).await?;
    Ok(Delivered { jobs: Vec::new(), kept: true })
}

fn awaits(job: &Child) -> bool {
    awaits_signal(job.state, job.waiting.flow)
}

/// Writes the signal of jobs that wait for it, and releases those that have nothing left to wait for.
async fn give(
    conn: &mut dyn Conn,
    delivery: &Delivery,
    waiting: &[(JobId, &Child)],
    now: Timestamp,
) -> Result<Delivered, StoreError> {
    let plan = SignalPlan::of(waiting.iter().map(|(id, job)| (*id, job.dependent())));
    let ids: Vec<JobId> = waiting.iter().map(|(id, _)| *id).collect();
    waits::write_signal(conn, &mailbox::columns_of_delivery(delivery, now), &ids).await?;
    waits::write_ties(conn, &plan.ties().collect::<Vec<_>>()).await?;
    count_down(conn, &plan.still).await?;
    release(conn, &plan.released).await?;
    // Both are in the order of the ids.
    let jobs = waiting.iter().zip(plan.followed).map(|((_, job), (id, what))| job.followed(id, what));
    Ok(Delivered { jobs: jobs.collect(), kept: false })
}

const LATE: Stmt = Stmt::shared(
    "looking for waits that are over",
    "SELECT job_id FROM scheduler_signal_wait WHERE delivered_at IS NULL AND expires_at <= ? \
     ORDER BY expires_at LIMIT ?",
);

// Of jobs that ended otherwise; who has begun to wait again has a time to come.
const FORGET_LIMITS: Stmt = Stmt::shared(
    "forgetting time limits of waits that ended otherwise",
    "UPDATE scheduler_signal_wait SET expires_at = NULL WHERE delivered_at IS NULL AND expires_at <= ? \
     AND job_id /*any*/",
);

/// Ends jobs whose signal did not come in time, with all that follows.
///
/// Writes nothing if there are none.
pub(crate) async fn expire(conn: &mut dyn Conn, limit: usize) -> Result<Expired, StoreError> {
    check_limit(limit).map_err(|error| StoreError::refused(LATE.doing(), error))?;
    let now = database_time(conn).await?;
    let rows = conn.rows(&LATE, vec![now.into(), Value::count(limit)]).await?;
    let mut ids = rows.iter().map(|row| row.fields().job_id("job_id")).collect::<Result<Vec<JobId>, _>>()?;
    if ids.is_empty() {
        return Ok(Expired::default());
    }
    ids.sort_unstable();
    let more = ids.len() == limit;
    let jobs = lock_live(conn, &ids).await?;
    // Read under the jobs' locks: a signal may just have come.
    let waits = waits::read(conn, &ids).await?;
    let (late, over): (Vec<JobId>, Vec<JobId>) = ids.into_iter().partition(|id| jobs.get(id).is_some_and(awaits));
    conn.run_in(&FORGET_LIMITS, &[now.into()], &over).await?;
    let report = |id: JobId| waits.get(&id)?.expired(now).map(|report| (id, report));
    let reports: Vec<(JobId, ErrorReport)> = late.into_iter().filter_map(report).collect();
    let followed = end(conn, &reports, &jobs).await?;
    let ids: Vec<JobId> = reports.iter().map(|(id, _)| *id).collect();
    Ok(Expired { jobs: find(conn, &ids).await?, followed, more })
}

async fn end(
    conn: &mut dyn Conn,
    reports: &[(JobId, ErrorReport)],
    jobs: &HashMap<JobId, Child>,
) -> Result<Vec<Followed>, StoreError> {
    let Some(to) = transition::next(Place::Waiting, Event::Expire).map(Place::state) else { return Ok(Vec::new()) };
    let ended: Vec<(&Child, Finished<'_>)> = reports
        .iter()
        .filter_map(|(id, report)| {
            let job = jobs.get(id)?;
            Some((job, ended_unrun(*id, job, to, Some(report.text()))))
        })
        .collect();
    if ended.is_empty() {
        return Ok(Vec::new());
    }
    let has_dependants = |(job, _): &&(&Child, Finished<'_>)| job.waiting.flow.has(JobFlags::DEPENDANTS);
    let ends: Vec<End<'_>> =
        ended.iter().filter(has_dependants).map(|(_, end)| End { id: end.id, state: to, result: None }).collect();
    let ids: Vec<JobId> = ended.iter().map(|(_, end)| end.id).collect();
    let mut tallies = Tallies::new();
    for batch in ended.iter().filter_map(|(job, _)| job.batch) {
        tallies.entry(batch).or_default().add(to, None);
    }
    let finished: Vec<Finished<'_>> = ended.into_iter().map(|(_, end)| end).collect();
    finish(conn, &finished).await?;
    waits::wait_no_more(conn, &ids).await?;
    fail(conn, reports).await?;
    let mut followed = if ends.is_empty() { Vec::new() } else { follow(conn, &ends).await? };
    followed.append(&mut batch_counts::count(conn, &tallies).await?);
    Ok(followed)
}

/// What jobs wait or waited for, in the order of the ids.
pub(crate) async fn read(conn: &mut dyn Conn, ids: &[JobId]) -> Result<Vec<SignalRecord>, StoreError> {
    let mut found = waits::read(conn, ids).await?;
    Ok(ids.iter().filter_map(|id| found.remove(id)).collect())
}

/// Forgets keys for which nothing is kept any more.
pub(crate) async fn sweep(conn: &mut dyn Conn, after: Option<&SignalKey>, limit: usize) -> Result<Swept, StoreError> {
    mailbox::sweep(conn, after, limit).await
}
