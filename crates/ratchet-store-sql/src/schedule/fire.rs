//! Firing schedules.

use std::collections::{HashMap, HashSet};

use ratchet_core::schedule::OverlapPolicy;
use ratchet_core::schedule::{Firing, ScheduleRecord, arrange, holds_up};
use ratchet_core::store::Fired;
use ratchet_core::transition::Place;
use ratchet_core::{Edge, JobId, NewJob, StoreError};

use crate::cluster::database_time;
use crate::flow::edges;
use crate::schedule::locked;
use crate::submit;
use crate::submit::key_reservations;
use crate::waist::conn::Conn;
use crate::waist::row::Row;
use crate::waist::stmt::Stmt;
use crate::waist::value::Value;

pub(crate) const STATEMENTS: &[Stmt] =
    &[LIVE_JOBS, CANCELED_JOBS, AWAIT_END, AWAIT_END_EVER, QUEUED_BEHIND, ADVANCE_SCHEDULES];

/// Fires schedules: each with its jobs and its next fire.
pub(crate) async fn fire(conn: &mut dyn Conn, firings: &[Firing]) -> Result<Vec<Fired>, StoreError> {
    let mut ids: Vec<JobId> = firings.iter().map(|firing| firing.id).collect();
    ids.sort_unstable();
    ids.dedup();
    let mut records: HashMap<JobId, ScheduleRecord> =
        locked(conn, &ids).await?.into_iter().map(|one| (one.id, one)).collect();
    let last: Vec<JobId> =
        records.values().filter(|one| one.overlap != OverlapPolicy::Allow).filter_map(|one| one.last_job).collect();
    let live = holding_up(conn, last).await?;
    let ids: Vec<JobId> = firings.iter().flat_map(|firing| &firing.jobs).map(|job| job.id).collect();
    let stored = key_reservations::stored(conn, &ids).await?;
    let mut fired = Vec::with_capacity(firings.len());
    let mut done = Vec::new();
    for firing in firings {
        // Taken out, so that a schedule fires once in a call.
        let Some(one) = records.remove(&firing.id).filter(|one| one.may_fire(firing)) else {
            fired.push(Fired::Conflict);
            continue;
        };
        let queued = if one.overlap == OverlapPolicy::Queue { queued_behind(conn, one.id).await? } else { 0 };
        let last = one.last_job.filter(|id| live.contains(id));
        let arranged = arrange(&firing.without(|id| stored.contains(&id)), one.overlap, last, queued);
        let jobs: Vec<&NewJob> = arranged.jobs.iter().collect();
        if !jobs.is_empty() {
            submit::submit_following(conn, &jobs).await?;
        }
        if let Some(first) = arranged.edges.first() {
            let now = database_time(conn).await?;
            let edges: Vec<_> = arranged.edges.iter().collect();
            edges::store(conn, &edges, now).await?;
            await_end(conn, first).await?;
        }
        let advance = arranged.advance(firing);
        fired.push(Fired::Done { jobs: advance.fired, skipped: advance.skipped });
        done.push((firing.id, advance));
    }
    conn.run_each(&ADVANCE_SCHEDULES, &done, |(id, advance), values| {
        values.extend([
            (*id).into(),
            Value::opt_time(advance.next_fire),
            Value::opt_time(advance.last_fire),
            Value::Id(advance.last_job.map(|id| id.0)),
            Value::count(advance.fired),
            Value::count(advance.skipped),
        ]);
    })
    .await?;
    Ok(fired)
}

const LIVE_JOBS: Stmt = Stmt::shared(
    "locking the last jobs of schedules",
    "SELECT job_id, status, paused_from_status FROM scheduler_job_queue /*by_id*/ WHERE job_id /*any*/ \
     ORDER BY job_id /*for_update*/",
);

// Only of a canceled job it matters whether an edge to it is open.
const CANCELED_JOBS: Stmt = Stmt::shared(
    "locking the last jobs of schedules that were canceled",
    "SELECT job_id FROM scheduler_job /*by_id*/ WHERE job_id /*any*/ AND terminal_status = /*state:canceled*/ \
     AND workflow_id IS NOT NULL ORDER BY job_id /*for_update*/",
);

/// Which of these jobs block the next fire; locked, so that none of them ends, or is passed by the end of the one before,
/// before an edge from it is stored.
async fn holding_up(conn: &mut dyn Conn, mut ids: Vec<JobId>) -> Result<HashSet<JobId>, StoreError> {
    ids.sort_unstable();
    ids.dedup();
    let mut places = Vec::with_capacity(ids.len());
    for row in &conn.rows_in(&LIVE_JOBS, &[], &ids).await? {
        let mut fields = row.fields();
        let id = fields.job_id("job_id")?;
        let place = Place::of(fields.state("status")?, fields.opt_state("paused_from_status")?);
        places.extend(place.map(|place| (id, place)));
        ids.retain(|other| *other != id);
    }
    let canceled = job_ids(&conn.rows_in(&CANCELED_JOBS, &[], &ids).await?)?;
    places.extend(canceled.iter().map(|id| (*id, Place::Canceled)));
    let open = edges::still_open(conn, &canceled).await?;
    let blocks = |(id, place): &(JobId, Place)| holds_up(*place, open.contains(id));
    Ok(places.into_iter().filter(blocks).map(|(id, _)| id).collect())
}

fn job_ids(rows: &[Row]) -> Result<Vec<JobId>, StoreError> {
    rows.iter().map(|row| row.fields().job_id("job_id")).collect()
}

const AWAIT_END: Stmt = Stmt::shared(
    "noting that others wait for a job",
    "UPDATE scheduler_job_queue SET flow = flow | /*flags:dependants*/ WHERE job_id = ? AND flow & /*flags:dependants*/ = 0",
);

const AWAIT_END_EVER: Stmt = Stmt::shared(
    "noting for good that others wait for a job",
    "UPDATE scheduler_job SET flow = flow | /*flags:dependants*/, workflow_id = ? WHERE job_id = ?",
);

/// Lets the end of the job before be followed: it may be from a time when nobody waited for it. Its row is locked.
async fn await_end(conn: &mut dyn Conn, edge: &Edge) -> Result<(), StoreError> {
    if conn.run(&AWAIT_END, vec![edge.parent.into()]).await? > 0 {
        conn.run(&AWAIT_END_EVER, vec![edge.workflow.into(), edge.parent.into()]).await?;
    }
    Ok(())
}

const QUEUED_BEHIND: Stmt = Stmt::shared(
    "counting the jobs that wait behind a schedule's last",
    "SELECT COUNT(*) AS jobs FROM scheduler_workflow_condition WHERE workflow_id = ? AND status = 'OPEN'",
);

async fn queued_behind(conn: &mut dyn Conn, id: JobId) -> Result<usize, StoreError> {
    match conn.row(&QUEUED_BEHIND, vec![id.into()]).await? {
        Some(row) => row.fields().number("jobs"),
        None => Ok(0),
    }
}

const ADVANCE_SCHEDULES: Stmt = Stmt::shared(
    "writing the next fires of schedules",
    "WITH v (recurring_id, next_fire_time, last_fire_time, last_job_id, fired, skipped) AS \
     (/*rows:id time time id int int*/) \
     UPDATE scheduler_recurring_job SET next_fire_time = v.next_fire_time, \
     last_fire_time = COALESCE(v.last_fire_time, scheduler_recurring_job.last_fire_time), \
     last_job_id = COALESCE(v.last_job_id, scheduler_recurring_job.last_job_id), \
     fired_count = fired_count + v.fired, skipped_count = skipped_count + v.skipped, version = version + 1 \
     FROM v WHERE scheduler_recurring_job.recurring_id = v.recurring_id",
)
.mysql(
    "UPDATE (/*union*/SELECT CAST(? AS BINARY(16)) AS recurring_id, ? AS next_fire_time, ? AS last_fire_time, \
     CAST(? AS BINARY(16)) AS last_job_id, ? AS fired, ? AS skipped/*end*/) v \
     STRAIGHT_JOIN scheduler_recurring_job r FORCE INDEX (PRIMARY) ON r.recurring_id = v.recurring_id \
     SET r.next_fire_time = v.next_fire_time, r.last_fire_time = COALESCE(v.last_fire_time, r.last_fire_time), \
     r.last_job_id = COALESCE(v.last_job_id, r.last_job_id), r.fired_count = r.fired_count + v.fired, \
     r.skipped_count = r.skipped_count + v.skipped, r.version = r.version + 1",
);
