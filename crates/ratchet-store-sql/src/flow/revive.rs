//! Bringing back what was canceled because a job had failed, now that it is retried.

use std::collections::{BTreeMap, HashMap, HashSet};

use ratchet_core::flow::{CanceledStep, EdgeState, WaitState, below, may_revive, revive as revival, unbegun};
use ratchet_core::{Followed, FollowedBy, JobFlags, JobId, JobRecord, JobState, StoreError, transition};

use crate::cluster::database_time;
use crate::flow::edges;
use crate::flow::follow;
use crate::job_row::{find, find_by_business_key};
use crate::signal::waits;
use crate::submit;
use crate::waist::conn::Conn;
use crate::waist::stmt::Stmt;
use crate::waist::value::Value;

pub(crate) const STATEMENTS: &[Stmt] = &[WAIT_AGAIN, QUEUE_WAITING, ATTEMPTED, WITHDRAW];

/// Lets the jobs wait again that were canceled because of `retried`, in the transaction that retries it.
///
/// # Errors
/// [`Duplicate`](ratchet_core::ErrorKind::Duplicate) if another job holds the business key of one of them.
pub(crate) async fn revive(conn: &mut dyn Conn, retried: &JobRecord) -> Result<Vec<Followed>, StoreError> {
    let Some(workflow) = retried.workflow.filter(|_| retried.flow.has(JobFlags::DEPENDANTS)) else {
        return Ok(Vec::new());
    };
    if !concerns_others(conn, retried.id).await? {
        return Ok(Vec::new());
    }
    // Their rows are locked before the edges are read that count: see `follow`.
    let below = below(&[retried.id], edges::of_workflows(conn, &[workflow]).await?);
    let mut rows = HashMap::new();
    follow::lock(conn, &below, &mut rows).await?;
    let edges = edges::of_workflows(conn, &[workflow]).await?;
    let children: Vec<JobId> = below.iter().map(|edge| edge.child).filter(|id| !rows.contains_key(id)).collect();
    let jobs: BTreeMap<JobId, JobRecord> = find(conn, &children).await?.into_iter().map(|job| (job.id, job)).collect();
    let canceled: BTreeMap<JobId, CanceledStep> =
        jobs.values().filter_map(|job| Some((job.id, CanceledStep::of(job)?))).collect();
    let released = released(conn, &rows).await?;
    let back = revival(retried.id, &edges, &canceled, &follow::waiting(&rows), &released);
    let reopened: Vec<_> = back.reopened.iter().map(|(parent, child)| (*parent, *child, EdgeState::Open)).collect();
    edges::decide(conn, &reopened).await?;
    let still: Vec<(JobId, WaitState)> = back.waiting.into_iter().collect();
    follow::count_down(conn, &still).await?;
    let awaiting: Vec<JobId> =
        still.iter().filter(|(_, left)| left.flow.has(JobFlags::SIGNAL)).map(|(id, _)| *id).collect();
    waits::wait_no_more(conn, &awaiting).await?;
    let withdrawn: Vec<(JobId, WaitState)> = back.withdrawn.into_iter().collect();
    withdraw(conn, &withdrawn).await?;
    let mut revived = Vec::with_capacity(back.revived.len());
    for (id, (waits_for, flow)) in &back.revived {
        let Some(job) = jobs.get(id) else { continue };
        if let Some(key) = &job.business_key
            && !submit::take_business_key(conn, key.as_str(), *id).await?
        {
            let holder = find_by_business_key(conn, key).await?.unwrap_or(*id);
            return Err(StoreError::duplicate("reviving a job", key.clone(), holder));
        }
        let Some(to) = transition::next(job.place(), transition::Event::Revive) else { continue };
        revived.push((job, to.state(), *waits_for, *flow));
    }
    let awaiting: Vec<(JobId, WaitState)> = revived
        .iter()
        .filter(|(_, _, _, flow)| flow.has(JobFlags::SIGNAL))
        .map(|(job, _, waits_for, flow)| (job.id, WaitState { waits_for: *waits_for, flow: *flow }))
        .collect();
    let signaled = waits::begin_again(conn, &awaiting).await?;
    for (job, _, waits_for, flow) in &mut revived {
        if let Some(left) = signaled.get(&job.id) {
            (*waits_for, *flow) = (left.waits_for, left.flow);
        }
    }
    let ids: Vec<JobId> = revived.iter().map(|(job, ..)| job.id).collect();
    conn.run_in(&WAIT_AGAIN, &[], &ids).await?;
    let now = database_time(conn).await?;
    conn.run_each(&QUEUE_WAITING, &revived, |(job, state, waits_for, flow), values| {
        values.extend(submit::hot_row(job.id, *state, &job.spec));
        values.extend([
            job.scheduled_time.into(),
            Value::opt_text(job.business_key.as_ref().map(AsRef::as_ref)),
            Value::count(job.version + 1),
            Value::count(flow.bits()),
            Value::count(*waits_for),
            now.into(),
            submit::resource_of(&job.spec),
        ]);
    })
    .await?;
    let followed = |(job, ..): &(&JobRecord, JobState, u32, JobFlags)| Followed::of(job, FollowedBy::Revived);
    let put_back = |(id, _): &(JobId, WaitState)| rows.get(id).map(|child| child.followed(*id, FollowedBy::Revived));
    Ok(withdrawn.iter().filter_map(put_back).chain(revived.iter().map(followed)).collect())
}

/// Those of these jobs, whose rows are locked, that were let go and have not begun, with their ties.
async fn released(
    conn: &mut dyn Conn,
    rows: &HashMap<JobId, follow::Child>,
) -> Result<BTreeMap<JobId, JobFlags>, StoreError> {
    let pending = rows.iter().filter(|(_, child)| child.state == JobState::Pending);
    let pending: Vec<JobId> = pending.map(|(id, _)| *id).collect();
    if pending.is_empty() {
        return Ok(BTreeMap::new());
    }
    let mut jobs = find(conn, &pending).await?;
    jobs.retain(unbegun);
    let ids: Vec<JobId> = jobs.iter().map(|job| job.id).collect();
    let attempted = conn.rows_in(&ATTEMPTED, &[], &ids).await?;
    let attempted = attempted.iter().map(|row| row.fields().job_id("job_id")).collect::<Result<HashSet<_>, _>>()?;
    Ok(jobs.iter().filter(|job| !attempted.contains(&job.id)).map(|job| (job.id, job.flow)).collect())
}

/// Lets jobs wait again that could have been claimed.
async fn withdraw(conn: &mut dyn Conn, withdrawn: &[(JobId, WaitState)]) -> Result<(), StoreError> {
    conn.run_each(&WITHDRAW, withdrawn, |(id, left), values| {
        values.extend([(*id).into(), Value::count(left.waits_for), Value::count(left.flow.bits())]);
    })
    .await?;
    Ok(())
}

/// Returns whether the retry may bring back one of the jobs right after this one.
///
/// Usually it does not, and the rest of the workflow, which may be a schedule's queue of years, is not read. Nothing is
/// locked: only a retry of its own makes another job one of these.
async fn concerns_others(conn: &mut dyn Conn, id: JobId) -> Result<bool, StoreError> {
    let children: Vec<JobId> = edges::from(conn, &[id]).await?.iter().map(|edge| edge.child).collect();
    let children = if children.is_empty() { Vec::new() } else { find(conn, &children).await? };
    Ok(children.iter().any(may_revive))
}

const ATTEMPTED: Stmt = Stmt::shared(
    "looking for jobs that have begun before",
    "SELECT DISTINCT job_id FROM scheduler_job_execution WHERE job_id /*any*/",
);

const WITHDRAW: Stmt = Stmt::shared(
    "letting released jobs wait again",
    "WITH v (job_id, waits_for, flow) AS (/*rows:id int int*/) \
     UPDATE scheduler_job_queue SET status = /*state:waiting*/, version = version + 1, waits_for = v.waits_for, \
     flow = v.flow, updated_at = /*now*/ FROM v WHERE scheduler_job_queue.job_id = v.job_id",
)
.mysql(
    "UPDATE (/*union*/SELECT CAST(? AS BINARY(16)) AS job_id, ? AS waits_for, ? AS flow/*end*/) v \
     STRAIGHT_JOIN scheduler_job_queue q FORCE INDEX (PRIMARY) ON q.job_id = v.job_id \
     SET q.status = /*state:waiting*/, q.version = q.version + 1, q.waits_for = v.waits_for, q.flow = v.flow, \
     q.updated_at = /*now*/",
);

const WAIT_AGAIN: Stmt = Stmt::shared(
    "letting canceled jobs wait again",
    "UPDATE scheduler_job /*by_id*/ SET /*clear:job.end*/, terminated_at = NULL, canceled_because = NULL \
     WHERE job_id /*any*/",
);

const QUEUE_WAITING: Stmt = Stmt::shared(
    "queueing jobs that wait again",
    "INSERT INTO scheduler_job_queue (/*columns:queue.plain*/, scheduled_time, business_key, version, flow, waits_for, \
     updated_at, resource) /*rows:@queue.plain time text int int int time text*/",
);
