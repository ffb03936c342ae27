//! Bringing back what was cancelled because a job had failed, now that it is retried.

use std::collections::{BTreeMap, BTreeSet};

use ratchet_core::flow::{EdgeState, Stood, Waiting, revive as revival};
use ratchet_core::{Flow, Followed, FollowedBy, JobId, JobRecord, JobState, StoreError, transition};

use crate::cluster::database_time;
use crate::conn::Conn;
use crate::edges;
use crate::read::{find, find_by_business_key};
use crate::stmt::Stmt;
use crate::submit;
use crate::value::Value;
use crate::waits;

pub(crate) const STATEMENTS: &[Stmt] = &[LOCK_JOBS, WAIT_AGAIN, QUEUE_WAITING];

/// Lets the jobs wait again that were cancelled because of `retried`, in the transaction that retries it.
///
/// # Errors
/// [`Duplicate`](ratchet_core::ErrorKind::Duplicate) if another job holds the business key of one of them.
pub(crate) async fn revive(conn: &mut dyn Conn, retried: &JobRecord) -> Result<Vec<Followed>, StoreError> {
    let Some(workflow) = retried.workflow.filter(|_| retried.flow.has(Flow::DEPENDANTS)) else { return Ok(Vec::new()) };
    // Their rows are locked before the edges are read that count: see `follow`.
    let children: BTreeSet<JobId> =
        edges::of_workflows(conn, &[workflow]).await?.iter().map(|edge| edge.child).collect();
    let children: Vec<JobId> = children.into_iter().collect();
    if conn.texts().dialect().locks_rows() {
        conn.rows_in(&LOCK_JOBS, &[], &children).await?;
    }
    let edges = edges::of_workflows(conn, &[workflow]).await?;
    let jobs: BTreeMap<JobId, JobRecord> = find(conn, &children).await?.into_iter().map(|job| (job.id, job)).collect();
    let canceled = |job: &JobRecord| job.state == JobState::Canceled && job.canceled_because.is_some();
    let canceled: BTreeMap<JobId, Stood> =
        jobs.values().filter(|job| canceled(job)).map(|job| (job.id, Stood { flow: job.flow })).collect();
    let back = revival(retried.id, &edges, &canceled);
    let reopened: Vec<_> = back.reopened.iter().map(|(parent, child)| (*parent, *child, EdgeState::Open)).collect();
    edges::decide(conn, &reopened).await?;
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
    let awaiting: Vec<(JobId, Waiting)> = revived
        .iter()
        .filter(|(_, _, _, flow)| flow.has(Flow::SIGNAL))
        .map(|(job, _, waits_for, flow)| (job.id, Waiting { waits_for: *waits_for, flow: *flow }))
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
        values.extend([
            job.id.into(),
            (*state).into(),
            job.spec.queue.as_str().into(),
            job.spec.kind.as_str().into(),
            Value::count(job.spec.priority.level()),
            job.scheduled_time.into(),
            Value::opt_text(job.business_key.as_ref().map(AsRef::as_ref)),
            Value::count(job.version + 1),
            Value::count(flow.bits()),
            Value::count(*waits_for),
            now.into(),
        ]);
    })
    .await?;
    let followed = |(job, ..): &(&JobRecord, JobState, u32, Flow)| Followed::of(job, FollowedBy::Revived);
    Ok(revived.iter().map(followed).collect())
}

const LOCK_JOBS: Stmt = Stmt::shared(
    "locking the jobs of a workflow",
    "SELECT job_id FROM scheduler_job /*by_id*/ WHERE job_id /*any*/ ORDER BY job_id /*for_update*/",
);

const WAIT_AGAIN: Stmt = Stmt::shared(
    "letting cancelled jobs wait again",
    "UPDATE scheduler_job /*by_id*/ SET terminal_status = NULL, terminal_error = NULL, scheduled_time = NULL, \
     terminated_at = NULL, canceled_because = NULL WHERE job_id /*any*/",
);

const QUEUE_WAITING: Stmt = Stmt::shared(
    "queueing jobs that wait again",
    "INSERT INTO scheduler_job_queue (job_id, status, queue, kind, priority, scheduled_time, business_key, version, \
     flow, waits_for, updated_at) /*rows:id text text text int time text int int int time*/",
);
