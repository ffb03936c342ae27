//! What follows from the end of a job for those that wait for it.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::time::Duration;

use jiff::Timestamp;
use ratchet_core::batch::batch_of;
use ratchet_core::decide::failure_callback;
use ratchet_core::flow::{Consequences, Dependent, Edge, End, Release, WaitState, below, follow as consequences};
use ratchet_core::settlement::error_hash;
use ratchet_core::{
    BusinessKey, ErrorKind, ErrorReport, Followed, FollowedBy, JobId, JobRecord, JobState, JobType, Kind, NewJob,
    Priority, QueueName, StoreError,
};

use crate::flow::batch_counts;
use crate::flow::batches;
use crate::flow::edges;
use crate::job_row;
use crate::settle::{Finished, finish, record_alerts};
use crate::signal::waits;
use crate::submit;
use crate::waist::conn::Conn;
use crate::waist::stmt::Stmt;
use crate::waist::value::{Value, micros};

pub(crate) const STATEMENTS: &[Stmt] = &[LOCK_CHILDREN, LOCK_ENDED_CHILDREN, COUNT_DOWN, RELEASE_CHILDREN, BLAME];

/// Does what follows from ends that were just written, in the same transaction.
///
/// The number of statements does not depend on how many jobs end or wait. Rows are locked from parents to children, and in
/// the order of their keys among the children of one call.
pub(crate) async fn follow(conn: &mut dyn Conn, ends: &[End<'_>]) -> Result<Vec<Followed>, StoreError> {
    let ids: Vec<JobId> = ends.iter().map(|end| end.id).collect();
    let edges = edges::from_ended(conn, &ids).await?;
    if edges.is_empty() {
        return Ok(Vec::new());
    }
    let mut rows = HashMap::new();
    lock(conn, &edges, &mut rows).await?;
    let done = consequences(ends, &edges, &waiting(&rows), &over(&edges, &rows));
    if done.deeper.is_empty() {
        return apply(conn, done, &rows).await;
    }
    // Jobs end by this that others wait for in turn: with all that is open of the workflow it can all be told at once.
    let workflows: BTreeSet<JobId> = edges.iter().map(|edge| edge.workflow).collect();
    let workflows: Vec<JobId> = workflows.into_iter().collect();
    let edges = edges::open_of_workflows(conn, &workflows).await?;
    let below = below(&ids, edges);
    lock(conn, &below, &mut rows).await?;
    apply(conn, consequences(ends, &below, &waiting(&rows), &over(&below, &rows)), &rows).await
}

/// Lets jobs go that have waited long enough; those that do not wait are left as they are.
pub(crate) async fn let_go(conn: &mut dyn Conn, ids: &[JobId]) -> Result<Vec<Followed>, StoreError> {
    if ids.is_empty() {
        return Ok(Vec::new());
    }
    let mut rows = HashMap::new();
    read_children(conn, ids, &mut rows).await?;
    rows.retain(|_, child| child.state == JobState::Waiting);
    let mut ready: Vec<(JobId, &Child)> = rows.iter().map(|(id, child)| (*id, child)).collect();
    ready.sort_unstable_by_key(|(id, _)| *id);
    let released = |(id, child): &(JobId, &Child)| Release::new(*id, child.waiting.flow, child.release_delay);
    release(conn, &ready.iter().map(released).collect::<Vec<_>>()).await?;
    Ok(ready.iter().map(|(id, child)| child.followed(*id, FollowedBy::Released)).collect())
}

/// A live job that others' ends concern.
pub(crate) struct Child {
    pub(crate) state: JobState,
    version: u64,
    pub(crate) waiting: WaitState,
    attempts: u32,
    crash_count: u32,
    scheduled_time: Timestamp,
    pub(crate) release_delay: Option<Duration>,
    kind: Kind,
    queue: QueueName,
    job_type: JobType,
    priority: Priority,
    business_key: Option<BusinessKey>,
    /// The batch that it is a child of.
    pub(crate) batch: Option<JobId>,
}

impl Child {
    pub(crate) const fn dependent(&self) -> Dependent {
        Dependent { waiting: self.waiting, release_delay: self.release_delay, batch: self.batch }
    }

    pub(crate) fn followed(&self, id: JobId, what: FollowedBy) -> Followed {
        Followed {
            id,
            kind: self.kind.clone(),
            queue: self.queue.clone(),
            job_type: self.job_type,
            priority: self.priority,
            business_key: self.business_key.clone(),
            what,
        }
    }
}

pub(crate) fn waiting(rows: &HashMap<JobId, Child>) -> BTreeMap<JobId, WaitState> {
    let waits = |(id, child): (&JobId, &Child)| (child.state == JobState::Waiting).then_some((*id, child.waiting));
    rows.iter().filter_map(waits).collect()
}

/// The jobs at the ends of edges that are not live.
fn over(edges: &[Edge], rows: &HashMap<JobId, Child>) -> BTreeSet<JobId> {
    edges.iter().map(|edge| edge.child).filter(|id| !rows.contains_key(id)).collect()
}

/// Locks and reads the jobs at the ends of edges, as far as they are not yet.
///
/// A job that is not live has a cold row alone. That is locked too: whoever brings it back to life has to see the edges as
/// they are after this transaction, or this transaction the job as it is after that one.
pub(crate) async fn lock(
    conn: &mut dyn Conn,
    edges: &[Edge],
    rows: &mut HashMap<JobId, Child>,
) -> Result<(), StoreError> {
    let children: BTreeSet<JobId> = edges.iter().map(|edge| edge.child).filter(|id| !rows.contains_key(id)).collect();
    let children: Vec<JobId> = children.into_iter().collect();
    read_children(conn, &children, rows).await?;
    let missing: Vec<JobId> = children.into_iter().filter(|id| !rows.contains_key(id)).collect();
    if !missing.is_empty() && conn.dialect().locks_rows() {
        conn.rows_in(&LOCK_ENDED_CHILDREN, &[], &missing).await?;
        read_children(conn, &missing, rows).await?;
    }
    Ok(())
}

const LOCK_CHILDREN: Stmt = Stmt::shared(
    "locking jobs that wait for others",
    "SELECT /*columns:queue.plain,queue.life q.as*/, q.flow AS flow, q.waits_for AS waits_for, \
     q.business_key AS business_key, j.release_delay_us AS release_delay_us, j.job_type AS job_type, \
     j.depends_on AS depends_on \
     FROM scheduler_job_queue q /*by_id*/ JOIN scheduler_job j ON j.job_id = q.job_id \
     WHERE q.job_id /*any*/ ORDER BY q.job_id /*for_update*/",
);

const LOCK_ENDED_CHILDREN: Stmt = Stmt::shared(
    "locking jobs that wait no more",
    "SELECT job_id FROM scheduler_job /*by_id*/ WHERE job_id /*any*/ ORDER BY job_id /*for_update*/",
);

/// Locks and reads those of these jobs that are live, in the order of their keys.
pub(crate) async fn lock_live(conn: &mut dyn Conn, ids: &[JobId]) -> Result<HashMap<JobId, Child>, StoreError> {
    let mut rows = HashMap::with_capacity(ids.len());
    read_children(conn, ids, &mut rows).await?;
    Ok(rows)
}

async fn read_children(conn: &mut dyn Conn, ids: &[JobId], rows: &mut HashMap<JobId, Child>) -> Result<(), StoreError> {
    for row in conn.rows_in(&LOCK_CHILDREN, &[], ids).await? {
        let mut fields = row.fields();
        let id = fields.job_id("job_id")?;
        let state = fields.state("status")?;
        let queue = fields.parsed("queue", QueueName::new)?;
        let kind = fields.parsed("kind", Kind::new)?;
        let level: u8 = fields.number("priority")?;
        let version = fields.number("version")?;
        let (attempts, crash_count) = (fields.number("attempts")?, fields.number("crash_count")?);
        let scheduled_time = fields.time("scheduled_time")?;
        let flow = fields.flow("flow")?;
        let waiting = WaitState { flow, waits_for: fields.number("waits_for")? };
        let business_key = fields.opt_parsed("business_key", BusinessKey::new)?;
        let release_delay = fields.opt_duration("release_delay_us")?;
        let job_type = fields.parsed("job_type", str::parse)?;
        let batch = batch_of(flow, fields.opt_job_id("depends_on")?);
        let priority = Priority::from_level(level).ok_or_else(|| {
            let problem = format!("the priority of job {id} is unknown to this version");
            StoreError::new(ErrorKind::Invalid, LOCK_CHILDREN.doing(), problem)
        })?;
        let child = Child {
            state,
            version,
            waiting,
            attempts,
            crash_count,
            scheduled_time,
            release_delay,
            kind,
            queue,
            job_type,
            priority,
            business_key,
            batch,
        };
        rows.insert(id, child);
    }
    Ok(())
}

async fn apply(
    conn: &mut dyn Conn,
    done: Consequences,
    rows: &HashMap<JobId, Child>,
) -> Result<Vec<Followed>, StoreError> {
    let plan = done.plan(|id| rows.get(&id).map(Child::dependent));
    edges::decide(conn, &plan.edges).await?;
    count_down(conn, &plan.still).await?;
    waits::begin_limits(conn, &plan.awaiting).await?;
    release(conn, &plan.released).await?;
    let mut ended: Vec<Finished<'_>> = Vec::with_capacity(plan.ended.len());
    for end in &plan.ended {
        let error = end.error.as_ref().map(ErrorReport::text);
        ended.extend(rows.get(&end.id).map(|child| ended_unrun(end.id, child, end.state, error)));
    }
    if !ended.is_empty() {
        finish(conn, &ended).await?;
    }
    let blamed: Vec<_> = plan.ended.iter().filter_map(|end| Some((end.id, end.canceled_because?))).collect();
    blame(conn, &blamed).await?;
    let failed: Vec<_> = plan.ended.iter().filter_map(|end| Some((end.id, end.error.clone()?))).collect();
    fail(conn, &failed).await?;
    batches::close(conn, &plan.closed).await?;
    let followed = |(id, what)| rows.get(&id).map(|child| child.followed(id, what));
    let mut followed: Vec<Followed> = plan.followed.into_iter().filter_map(followed).collect();
    // What is counted may end a batch, but nothing that waits for it: the job that stands for it has to run first.
    followed.append(&mut batch_counts::count(conn, &plan.tallies).await?);
    Ok(followed)
}

/// Marks why jobs were canceled.
pub(crate) async fn blame(conn: &mut dyn Conn, blamed: &[(JobId, JobId)]) -> Result<(), StoreError> {
    conn.run_each(&BLAME, blamed, |(id, because), values| values.extend([(*id).into(), (*because).into()])).await?;
    Ok(())
}

/// Writes what jobs still wait for.
pub(crate) async fn count_down(conn: &mut dyn Conn, still: &[(JobId, WaitState)]) -> Result<(), StoreError> {
    conn.run_each(&COUNT_DOWN, still, |(id, left), values| {
        values.extend([(*id).into(), Value::count(left.waits_for), Value::count(left.flow.bits())]);
    })
    .await?;
    Ok(())
}

/// Lets jobs that waited become claimable.
pub(crate) async fn release(conn: &mut dyn Conn, released: &[Release]) -> Result<(), StoreError> {
    conn.run_each(&RELEASE_CHILDREN, released, |Release { id, flow, delay }, values| {
        let delay = delay.map_or(0, micros);
        values.extend([(*id).into(), Value::count(flow.bits()), Value::Int(Some(delay))]);
    })
    .await?;
    Ok(())
}

/// The end of a job that never ran.
pub(crate) fn ended_unrun<'a>(id: JobId, child: &'a Child, state: JobState, error: Option<&'a str>) -> Finished<'a> {
    Finished {
        id,
        state,
        version: child.version + 1,
        error,
        attempts: child.attempts,
        crash_count: child.crash_count,
        scheduled_time: child.scheduled_time,
        timing: None,
        ended_by: None,
        result: None,
        business_key: child.business_key.as_ref().map(AsRef::as_ref),
    }
}

/// What follows from failures without a run: alerts and callbacks.
pub(crate) async fn fail(conn: &mut dyn Conn, failed: &[(JobId, ErrorReport)]) -> Result<(), StoreError> {
    if failed.is_empty() {
        return Ok(());
    }
    let alerts: Vec<(JobId, String)> = failed.iter().map(|(id, report)| (*id, error_hash(report))).collect();
    record_alerts(conn, &alerts).await?;
    let ids: Vec<JobId> = failed.iter().map(|(id, _)| *id).collect();
    let jobs = job_row::find(conn, &ids).await?;
    let reports: HashMap<JobId, &ErrorReport> = failed.iter().map(|(id, report)| (*id, report)).collect();
    let callback = |job: &JobRecord| reports.get(&job.id).and_then(|report| failure_callback(job, report));
    let callbacks: Vec<NewJob> = jobs.iter().filter_map(callback).collect();
    let callbacks: Vec<&NewJob> = callbacks.iter().collect();
    if callbacks.is_empty() { Ok(()) } else { submit::submit_following(conn, &callbacks).await }
}

const COUNT_DOWN: Stmt = Stmt::shared(
    "counting down what jobs wait for",
    "WITH v (job_id, waits_for, flow) AS (/*rows:id int int*/) \
     UPDATE scheduler_job_queue SET waits_for = v.waits_for, flow = v.flow, updated_at = /*now*/ \
     FROM v WHERE scheduler_job_queue.job_id = v.job_id",
)
.mysql(
    "UPDATE (/*union*/SELECT CAST(? AS BINARY(16)) AS job_id, ? AS waits_for, ? AS flow/*end*/) v \
     STRAIGHT_JOIN scheduler_job_queue q FORCE INDEX (PRIMARY) ON q.job_id = v.job_id \
     SET q.waits_for = v.waits_for, q.flow = v.flow, q.updated_at = /*now*/",
);

// A given time stands if it is later than the delay that begins now.
const RELEASE_CHILDREN: Stmt = Stmt::shared(
    "releasing jobs that waited for others",
    "WITH v (job_id, flow, delay_us) AS (/*rows:id int int*/) \
     UPDATE scheduler_job_queue SET status = /*state:pending*/, version = version + 1, waits_for = 0, flow = v.flow, \
     scheduled_time = CASE WHEN scheduled_time > /*in:v.delay_us*/ THEN scheduled_time ELSE /*in:v.delay_us*/ END, \
     updated_at = /*now*/ FROM v WHERE scheduler_job_queue.job_id = v.job_id",
)
.mysql(
    "UPDATE (/*union*/SELECT CAST(? AS BINARY(16)) AS job_id, ? AS flow, ? AS delay_us/*end*/) v \
     STRAIGHT_JOIN scheduler_job_queue q FORCE INDEX (PRIMARY) ON q.job_id = v.job_id \
     SET q.status = /*state:pending*/, q.version = q.version + 1, q.waits_for = 0, q.flow = v.flow, \
     q.scheduled_time = CASE WHEN q.scheduled_time > /*in:v.delay_us*/ THEN q.scheduled_time \
     ELSE /*in:v.delay_us*/ END, q.updated_at = /*now*/",
);

const BLAME: Stmt = Stmt::shared(
    "marking why jobs were canceled",
    "WITH v (job_id, because) AS (/*rows:id id*/) \
     UPDATE scheduler_job SET canceled_because = v.because FROM v WHERE scheduler_job.job_id = v.job_id",
)
.mysql(
    "UPDATE (/*union*/SELECT CAST(? AS BINARY(16)) AS job_id, CAST(? AS BINARY(16)) AS because/*end*/) v \
     STRAIGHT_JOIN scheduler_job j FORCE INDEX (PRIMARY) ON j.job_id = v.job_id SET j.canceled_because = v.because",
);
