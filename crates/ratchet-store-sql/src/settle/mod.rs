//! Writing what attempts came to.

mod turn_store;
pub(crate) mod turn;
pub(crate) mod success;

use std::collections::{HashMap, HashSet};

use jiff::Timestamp;
use ratchet_core::flow::End;
use ratchet_core::record::AttemptTiming;
use ratchet_core::settle::{Applied, LiveRow, Recorded, RowChange, check};
use ratchet_core::settlement::{ALERT_QUIET, error_hash};
use ratchet_core::transition::Place;
use ratchet_core::{
    AttemptRecord, AttemptStatus, Fence, Followed, JobFlags, JobId, JobState, JsonText, NewJob, NodeId, Settled,
    Settlement, StoreError,
};

use crate::control::delete;
use crate::flow::batch_counts::{self, Tallies};
use crate::flow::batches;
use crate::flow::follow::follow;
use crate::submit;
use crate::waist::conn::Conn;
use crate::waist::stmt::Stmt;
use crate::waist::value::{Value, micros};

pub(crate) const STATEMENTS: &[Stmt] = &[
    LOCK,
    WRITTEN_ATTEMPTS,
    WRITTEN_SUCCESSES,
    FINISH,
    DELETE_QUEUED,
    GO_BACK,
    RECORD_ATTEMPTS,
    FREE_BUSINESS_KEYS,
    RECORD_ALERTS,
];

/// Applies settlements: each to the row that its fence still matches, with everything that follows from it.
///
/// The number of statements does not depend on the number of settlements.
pub async fn settle(
    conn: &mut dyn Conn,
    settlements: &[Settlement],
) -> Result<(Vec<Settled>, Vec<Followed>), StoreError> {
    if settlements.is_empty() {
        return Ok((Vec::new(), Vec::new()));
    }
    check(settlements)?;
    let mut settled = vec![Settled::Conflict; settlements.len()];
    let mut tallies = Tallies::new();
    let mut counted = Vec::new();
    let ordinary = success::ordinary(conn.dialect(), settlements);
    if !ordinary.is_empty() {
        // If others follow, batches are counted after them: whoever holds the row of a batch should wait for no job. What
        // this leaves over are jobs that are no children, or stale; nobody who holds those waits for a batch.
        let alone = ordinary.len() == settlements.len();
        let done = success::succeed(conn, settlements, &ordinary, alone).await?;
        for index in ordinary.iter().filter(|index| done.ended.contains(&settlements[**index].fence.job_id)) {
            settled[*index] = Settled::Applied;
        }
        (tallies, counted) = (done.tallies, done.counted);
    }
    // Those that were not written at once may have dependants, or come too late: their rows tell.
    let others: Vec<usize> = (0..settlements.len()).filter(|index| settled[*index] == Settled::Conflict).collect();
    let mut followed = Vec::new();
    if !others.is_empty() {
        followed = settle_one_by_one(conn, settlements, &others, &mut settled, &mut tallies).await?;
    }
    // Last, so that a settlement that is in this call twice is found to be written.
    let is_doubtful = |index: &usize| settled[*index] == Settled::Conflict && settlements[*index].maybe_applied;
    let doubtful: Vec<usize> = (0..settlements.len()).filter(is_doubtful).collect();
    if !doubtful.is_empty() {
        for index in written_before(conn, settlements, &doubtful).await? {
            settled[index] = Settled::AlreadyApplied;
        }
    }
    followed.append(&mut batch_counts::after_counting(conn, &counted).await?);
    followed.append(&mut batch_counts::count(conn, &tallies).await?);
    Ok((settled, followed))
}

/// Judges each settlement by the row that it is about, then applies all that may be.
async fn settle_one_by_one(
    conn: &mut dyn Conn,
    settlements: &[Settlement],
    which: &[usize],
    settled: &mut [Settled],
    tallies: &mut Tallies,
) -> Result<Vec<Followed>, StoreError> {
    let mut rows = lock(conn, which.iter().map(|index| settlements[*index].fence.job_id)).await?;
    let mut accepted = Vec::with_capacity(which.len());
    for index in which {
        let settlement = &settlements[*index];
        let id = settlement.fence.job_id;
        let applied = rows.get(&id).and_then(|row| settlement.apply(&row.live));
        // A row that was taken is gone, so that a second settlement of the same attempt finds none.
        if let (Some(applied), Some(row)) = (applied, applied.and_then(|_| rows.remove(&id))) {
            accepted.push(Accepted { settlement, row, applied });
            settled[*index] = Settled::Applied;
        }
    }
    if accepted.is_empty() {
        return Ok(Vec::new());
    }
    accepted.sort_unstable_by_key(|accepted| accepted.settlement.fence.job_id);
    for Accepted { row, applied, .. } in &accepted {
        if let (Some(batch), RowChange::End { timing, .. }) = (row.batch, applied.change) {
            tallies.entry(batch).or_default().add(applied.place.state(), timing.map(|timing| timing.duration));
        }
    }
    apply(conn, &accepted).await
}

/// A settlement that applies, the row as it stands, and what is written to it.
struct Accepted<'a> {
    settlement: &'a Settlement,
    row: HotRow,
    applied: Applied<'a>,
}

async fn apply(conn: &mut dyn Conn, accepted: &[Accepted<'_>]) -> Result<Vec<Followed>, StoreError> {
    let mut ended = Vec::new();
    let mut requeued = Vec::new();
    for one in accepted {
        match one.applied.change {
            RowChange::End { result, timing, alert } => ended.push((one, result, timing, alert)),
            RowChange::Requeue { due_in, deferred_for } => requeued.push((one, due_in, deferred_for)),
        }
    }
    let finished = ended.iter().map(|(one, result, timing, _)| one.finished(*result, *timing));
    let finished: Vec<Finished<'_>> = finished.collect();
    finish(conn, &finished).await?;
    conn.run_each(&GO_BACK, &requeued, |(one, due_in, deferred_for), values| {
        let Applied { attempts, crash_count, error, .. } = one.applied;
        values.extend([
            one.settlement.fence.job_id.into(),
            Value::Int(due_in.map(micros)),
            Value::Int(deferred_for.map(micros)),
            Value::Int(attempts.map(i64::from)),
            Value::count(crash_count),
            Value::from(crash_count > 0),
            Value::opt_text(error),
        ]);
    })
    .await?;
    let attempts: Vec<&AttemptRecord> = accepted.iter().filter_map(|one| one.settlement.attempt_to_record()).collect();
    record_attempts(conn, &attempts).await?;
    let alerts: Vec<(JobId, String)> = ended
        .iter()
        .filter_map(|(one, .., alert)| Some((one.settlement.fence.job_id, error_hash((*alert)?))))
        .collect();
    record_alerts(conn, &alerts).await?;
    let new_jobs: Vec<&NewJob> = accepted.iter().flat_map(|accepted| &accepted.settlement.new_jobs).collect();
    if !new_jobs.is_empty() {
        submit::submit_following(conn, &new_jobs).await?;
    }
    let waited_for = ended.iter().filter(|(one, ..)| one.row.flow.has(JobFlags::DEPENDANTS));
    let ends: Vec<End<'_>> = waited_for
        .map(|(one, result, ..)| End {
            id: one.settlement.fence.job_id,
            state: one.applied.place.state(),
            result: *result,
        })
        .collect();
    let stand_for_many = ended.iter().filter(|(one, ..)| one.row.flow.has(JobFlags::BATCH));
    let batches: Vec<(JobId, JobState)> =
        stand_for_many.map(|(one, ..)| (one.settlement.fence.job_id, one.applied.place.state())).collect();
    batches::close(conn, &batches).await?;
    if ends.is_empty() { Ok(Vec::new()) } else { follow(conn, &ends).await }
}

impl Accepted<'_> {
    fn finished<'a>(&'a self, result: Option<&'a JsonText>, timing: Option<AttemptTiming>) -> Finished<'a> {
        let Self { settlement, row, applied } = self;
        Finished {
            id: settlement.fence.job_id,
            state: applied.place.state(),
            version: row.live.version + 1,
            error: applied.error.or(row.last_error.as_deref()),
            attempts: applied.attempts.unwrap_or(0),
            crash_count: applied.crash_count,
            scheduled_time: row.scheduled_time,
            timing,
            ended_by: settlement.success_in_row(),
            result,
            business_key: row.business_key.as_deref(),
        }
    }
}

// The cold row is looked at for children of batches only.
const LOCK: Stmt = Stmt::shared(
    "reading the rows of settled jobs",
    "SELECT job_id, status, version, picked_by, crash_count, last_error, business_key, scheduled_time, flow, \
     CASE WHEN flow & /*flags:batch_child*/ <> 0 THEN (SELECT j.depends_on FROM scheduler_job j \
     WHERE j.job_id = scheduler_job_queue.job_id) END AS batch_id \
     FROM scheduler_job_queue /*by_id*/ WHERE job_id /*any*/ ORDER BY job_id /*for_update*/",
);

/// A hot row, as far as settling needs it.
struct HotRow {
    live: LiveRow,
    last_error: Option<String>,
    business_key: Option<String>,
    scheduled_time: Timestamp,
    flow: JobFlags,
    /// The batch that it is a child of.
    batch: Option<JobId>,
}

async fn lock(
    conn: &mut dyn Conn,
    ids: impl Iterator<Item = JobId> + Send,
) -> Result<HashMap<JobId, HotRow>, StoreError> {
    let mut ids: Vec<JobId> = ids.collect();
    ids.sort_unstable();
    ids.dedup();
    let mut found = HashMap::with_capacity(ids.len());
    for row in conn.rows_in(&LOCK, &[], &ids).await? {
        let mut fields = row.fields();
        let id = fields.job_id("job_id")?;
        let state = fields.state("status")?;
        let (version, picked_by) = (fields.number("version")?, fields.opt_node_id("picked_by")?);
        let crash_count = fields.number("crash_count")?;
        // Of a paused job the reason is not read: nothing can be settled from there.
        let Some(place) = Place::of(state, None) else { continue };
        let row = HotRow {
            live: LiveRow { place, version, picked_by, crash_count },
            last_error: fields.opt_text("last_error")?.map(str::to_owned),
            business_key: fields.opt_text("business_key")?.map(str::to_owned),
            scheduled_time: fields.time("scheduled_time")?,
            flow: fields.flow("flow")?,
            batch: fields.opt_job_id("batch_id")?,
        };
        found.insert(id, row);
    }
    Ok(found)
}

const WRITTEN_SUCCESSES: Stmt = Stmt::shared(
    "looking whether successes were written before",
    "SELECT job_id, version - 1 AS version, ended_by AS node_id, terminal_status AS status \
     FROM scheduler_job /*by_id*/ WHERE ended_by IS NOT NULL AND job_id /*any*/",
);

const WRITTEN_ATTEMPTS: Stmt = Stmt::shared(
    "looking whether settlements were written before",
    "SELECT job_id, version, node_id, status FROM scheduler_job_execution WHERE job_id /*any*/",
);

/// Which of these settlements are already written: the record of their attempt tells, the row of the job, or that the job is gone.
async fn written_before(
    conn: &mut dyn Conn,
    settlements: &[Settlement],
    which: &[usize],
) -> Result<HashSet<usize>, StoreError> {
    let ids: Vec<JobId> = which.iter().map(|index| settlements[*index].fence.job_id).collect();
    let mut written = HashSet::new();
    let mut rows = conn.rows_in(&WRITTEN_ATTEMPTS, &[], &ids).await?;
    rows.append(&mut conn.rows_in(&WRITTEN_SUCCESSES, &[], &ids).await?);
    for row in rows {
        let mut fields = row.fields();
        let (job_id, version) = (fields.job_id("job_id")?, fields.number("version")?);
        let fence = Fence { job_id, version, node: fields.node_id("node_id")? };
        // A status of a newer version was not written by this one.
        let Some(status) = AttemptStatus::from_name(fields.text("status")?) else { continue };
        let is_recorded = |index: &usize| settlements[*index].is_recorded_by(&Recorded { fence, status });
        written.extend(which.iter().copied().filter(is_recorded));
    }
    let told_by_absence = |index: &usize| settlements[*index].is_told_by_absence() && !written.contains(index);
    let deleting = which.iter().copied().filter(told_by_absence);
    let deleting: HashMap<JobId, usize> = deleting.map(|index| (settlements[index].fence.job_id, index)).collect();
    if !deleting.is_empty() {
        let gone = delete::gone(conn, deleting.keys().copied().collect()).await?;
        written.extend(gone.iter().filter_map(|id| deleting.get(id)));
    }
    Ok(written)
}

/// The end of a job, as its cold row keeps it.
pub(crate) struct Finished<'a> {
    pub(crate) id: JobId,
    pub(crate) state: JobState,
    pub(crate) version: u64,
    pub(crate) error: Option<&'a str>,
    pub(crate) attempts: u32,
    pub(crate) crash_count: u32,
    pub(crate) scheduled_time: Timestamp,
    pub(crate) timing: Option<AttemptTiming>,
    /// The node, if the row describes the attempt.
    pub(crate) ended_by: Option<NodeId>,
    pub(crate) result: Option<&'a JsonText>,
    pub(crate) business_key: Option<&'a str>,
}

impl Finished<'_> {
    /// Whether it has to be written alone: MariaDB cuts a text in a UNION at 65,535 bytes.
    fn is_long(&self) -> bool {
        self.result.is_some_and(|result| result.as_str().len() > usize::from(u16::MAX))
    }

    fn bind(&self, values: &mut Vec<Value>) {
        values.extend([
            self.id.into(),
            self.state.into(),
            self.scheduled_time.into(),
            Value::opt_text(self.error),
            Value::count(self.version),
            Value::count(self.attempts),
            Value::count(self.crash_count),
            Value::opt_time(self.timing.map(|timing| timing.started_at)),
            Value::opt_time(self.timing.map(|timing| timing.ended_at)),
            Value::Int(self.timing.map(|timing| micros(timing.duration))),
            Value::Int(self.timing.map(|timing| micros(timing.queue_wait))),
            Value::Id(self.ended_by.map(|node| node.0)),
            Value::opt_json(self.result.map(JsonText::as_str)),
        ]);
    }
}

/// Ends jobs: the cold row keeps what became of them, the hot row goes, the business key is free.
pub(crate) async fn finish(conn: &mut dyn Conn, finished: &[Finished<'_>]) -> Result<(), StoreError> {
    let (long, others): (Vec<&Finished<'_>>, Vec<&Finished<'_>>) = finished.iter().partition(|one| one.is_long());
    conn.run_each(&FINISH, &others, |one, values| one.bind(values)).await?;
    for one in long {
        conn.run_each(&FINISH, &[one], |one, values| one.bind(values)).await?;
    }
    let ids: Vec<JobId> = finished.iter().map(|finished| finished.id).collect();
    conn.run_in(&DELETE_QUEUED, &[], &ids).await?;
    let keys: Vec<(&str, JobId)> =
        finished.iter().filter_map(|finished| Some((finished.business_key?, finished.id))).collect();
    conn.run_each(&FREE_BUSINESS_KEYS, &keys, |(key, id), values| values.extend([(*key).into(), (*id).into()])).await?;
    Ok(())
}

// MySQL has no UPDATE … FROM; there the rows lead, in their order, and each job is found by its key.
const FINISH: Stmt = Stmt::shared(
    "writing the ends of jobs",
    "WITH v (job_id, /*columns:job.end,job.life,job.timing*/, job_result) \
     AS (/*rows:id @job.end @job.life @job.timing json*/) \
     UPDATE scheduler_job SET /*set:job.end,job.life,job.timing v.*/, job_result = v.job_result, \
     terminated_at = /*now*/ FROM v WHERE scheduler_job.job_id = v.job_id",
)
.mysql(
    "UPDATE (/*union*/SELECT CAST(? AS BINARY(16)) AS job_id, /*values:job.end,job.life,job.timing as*/, \
     ? AS job_result/*end*/) v \
     STRAIGHT_JOIN scheduler_job j FORCE INDEX (PRIMARY) ON j.job_id = v.job_id \
     SET /*set:job.end,job.life,job.timing j. v.*/, j.job_result = v.job_result, j.terminated_at = /*now*/",
);

// MySQL takes the hint for an index in this form only.
const DELETE_QUEUED: Stmt =
    Stmt::shared("taking jobs out of the queue", "DELETE FROM scheduler_job_queue WHERE job_id /*any*/")
        .mysql("DELETE q FROM scheduler_job_queue q /*by_id*/ WHERE q.job_id /*any*/");

const FREE_BUSINESS_KEYS: Stmt = Stmt::shared(
    "freeing business keys",
    "DELETE FROM scheduler_business_key_reservation WHERE (business_key, owner_job_id) IN (/*rows:text id*/)",
)
.mysql(
    "DELETE r FROM (/*union*/SELECT ? AS business_key, CAST(? AS BINARY(16)) AS owner_job_id/*end*/) v \
     STRAIGHT_JOIN scheduler_business_key_reservation r FORCE INDEX (PRIMARY) \
     ON r.business_key = v.business_key AND r.owner_job_id = v.owner_job_id",
);

// See the ends of jobs.
const GO_BACK: Stmt = Stmt::shared(
    "letting jobs wait again",
    "WITH v (job_id, due_in, deferred_for, attempts, crash_count, probation, error) AS (/*rows:id int int int int bool text*/) \
     UPDATE scheduler_job_queue SET status = /*state:pending*/, version = version + 1, \
     scheduled_time = COALESCE(/*in:v.due_in*/, scheduled_time), deferred = v.deferred_for IS NOT NULL, \
     deferred_until = /*in:v.deferred_for*/, attempts = COALESCE(v.attempts, scheduler_job_queue.attempts), \
     crash_count = v.crash_count, probation = v.probation, last_error = COALESCE(v.error, last_error), \
     picked_by = NULL, picked_at = NULL, progress = NULL, updated_at = /*now*/ \
     FROM v WHERE scheduler_job_queue.job_id = v.job_id",
)
.mysql(
    "UPDATE (/*union*/SELECT CAST(? AS BINARY(16)) AS job_id, ? AS due_in, ? AS deferred_for, ? AS attempts, \
     ? AS crash_count, ? AS probation, ? AS error/*end*/) v \
     STRAIGHT_JOIN scheduler_job_queue q FORCE INDEX (PRIMARY) ON q.job_id = v.job_id \
     SET q.status = /*state:pending*/, q.version = q.version + 1, \
     q.scheduled_time = COALESCE(/*in:v.due_in*/, q.scheduled_time), q.deferred = v.deferred_for IS NOT NULL, \
     q.deferred_until = /*in:v.deferred_for*/, q.attempts = COALESCE(v.attempts, q.attempts), \
     q.crash_count = v.crash_count, q.probation = v.probation, q.last_error = COALESCE(v.error, q.last_error), \
     q.picked_by = NULL, q.picked_at = NULL, q.progress = NULL, q.updated_at = /*now*/",
);

const RECORD_ATTEMPTS: Stmt = Stmt::shared(
    "recording attempts",
    "INSERT INTO scheduler_job_execution (/*columns:attempt.plain,attempt.error*/) \
     /*rows:@attempt.plain @attempt.error*/",
);

/// Keeps the records of attempts.
pub(crate) async fn record_attempts(conn: &mut dyn Conn, attempts: &[&AttemptRecord]) -> Result<(), StoreError> {
    conn.run_each(&RECORD_ATTEMPTS, attempts, |attempt, values| {
        values.extend(plain_attempt(attempt));
        values.extend([Value::opt_text(attempt.error_class.as_deref()), Value::opt_text(attempt.error.as_deref())]);
    })
    .await?;
    Ok(())
}

/// Returns the values of the columns `attempt.plain`.
fn plain_attempt(attempt: &AttemptRecord) -> [Value; 9] {
    [
        attempt.job_id.into(),
        Value::count(attempt.version),
        Value::count(attempt.attempt),
        attempt.node.into(),
        attempt.status.as_str().into(),
        attempt.timing.started_at.into(),
        attempt.timing.ended_at.into(),
        Value::micros(attempt.timing.duration),
        Value::micros(attempt.timing.queue_wait),
    ]
}

/// Records alerts about jobs, by the hashes of their errors.
pub(crate) async fn record_alerts(conn: &mut dyn Conn, alerts: &[(JobId, String)]) -> Result<(), StoreError> {
    conn.run_each(&RECORD_ALERTS, alerts, |(id, hash), values| values.extend([(*id).into(), hash.as_str().into()]))
        .await?;
    Ok(())
}

/// An alert about the same job and error is recorded once in [`ALERT_QUIET`].
const RECORD_ALERTS: Stmt = Stmt::shared(
    "recording alerts",
    "WITH v (job_id, error_hash) AS (/*rows:id text*/) \
     INSERT INTO scheduler_dlq_alert (job_id, error_hash, alert_sent_at, alert_count) \
     SELECT v.job_id, v.error_hash, /*now*/, 1 FROM v WHERE 1 = 1 \
     ON CONFLICT (job_id, error_hash) DO UPDATE SET alert_sent_at = excluded.alert_sent_at, \
     alert_count = scheduler_dlq_alert.alert_count + 1 \
     WHERE scheduler_dlq_alert.alert_sent_at <= /*ago:3600000000*/",
)
// No condition there; the count comes first because the assignments see each other in their order.
.mysql(
    "INSERT INTO scheduler_dlq_alert (job_id, error_hash, alert_sent_at, alert_count) \
     VALUES /*each*/(?, ?, /*now*/, 1)/*end*/ ON DUPLICATE KEY UPDATE \
     alert_count = alert_count + IF(alert_sent_at <= /*ago:3600000000*/, 1, 0), \
     alert_sent_at = IF(alert_sent_at <= /*ago:3600000000*/, VALUES(alert_sent_at), alert_sent_at)",
);

const _: () = assert!(ALERT_QUIET.as_micros() == 3_600_000_000, "the statement above spells the quiet time");
