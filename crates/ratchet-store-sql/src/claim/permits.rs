//! The permits that a claim takes together with the jobs that need them.
//!
//! Such jobs wait in lanes of their own, and a claim reads only those whose resource has permits left: others cost it
//! nothing, however many wait. The row of a limit is locked while its permits are counted and taken. A claim passes over
//! limits that another one has locked at this moment, so that a node which stands still in the middle of its transaction
//! holds up the jobs of that resource and no others.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};

use ratchet_core::claim::Permits;
use ratchet_core::{Claim, ClaimRequest, Fence, NodeId, StoreError};

use crate::claim::lane::Lane;
use crate::claim::limited_lanes::{LimitedLane, waiting};
use crate::cluster::database_time;
use crate::waist::conn::Conn;
use crate::waist::row::Row;
use crate::waist::stmt::Stmt;
use crate::waist::value::Value;

pub(crate) const STATEMENTS: &[Stmt] =
    &[LOCK_LIMITS, IN_USE, TAKE_PERMITS, PERMITS_OF_NODE, END_PERMITS, END_PERMITS_OF_NODES];

/// The permits that are out: those of dead nodes are void.
macro_rules! permits_out {
    () => {
        " FROM scheduler_resource_permit p JOIN scheduler_node n ON n.node_id = p.node_id WHERE n.dead_at IS NULL "
    };
}
pub(crate) use permits_out;

/// How often a claim chooses further resources because permits of the first are taken meanwhile, or another claim has locked
/// their limits; each time among twice as many.
const ROUNDS_MAX: u32 = 6;

/// The lanes whose jobs can have a permit: of as many resources as the request has room for jobs, or more.
pub(crate) async fn open_lanes<'a>(
    conn: &mut dyn Conn,
    request: &'a ClaimRequest,
    probation: bool,
    permits: &mut Permits,
) -> Result<Vec<Lane<'a>>, StoreError> {
    let mut open = waiting(conn, request, probation).await?;
    open.retain(LimitedLane::is_open);
    open.sort_by_key(|LimitedLane { lane, head, now, .. }| {
        (Reverse(request.boost.effective(lane.priority, *head, *now)), *head)
    });
    let mut seen = HashSet::new();
    let mut names = open.iter().filter(|one| seen.insert(&*one.lane.resource));
    let mut chosen: HashSet<String> = HashSet::new();
    for round in 0..ROUNDS_MAX {
        let missing = request.limit.saturating_sub(chosen.len());
        let next: Vec<&LimitedLane<'_>> = names.by_ref().take(missing.saturating_mul(1 << round)).collect();
        if next.is_empty() {
            break;
        }
        let limited = next.iter().filter(|one| one.limit.is_some()).map(|one| &*one.lane.resource);
        let to_lock: BTreeSet<&str> = limited.filter(|name| permits.left(name).is_none()).collect();
        lock(conn, &to_lock.into_iter().collect::<Vec<_>>(), permits).await?;
        // A limit that another claim has locked has no permits for this one.
        let has_some = |one: &&&LimitedLane<'_>| {
            one.limit.is_none() || permits.left(&one.lane.resource).is_some_and(|left| left > 0)
        };
        chosen.extend(next.iter().filter(has_some).map(|one| one.lane.resource.to_string()));
    }
    open.retain(|one| chosen.contains(&*one.lane.resource));
    Ok(open.into_iter().map(|limited| limited.lane).collect())
}

/// Locks limits, in the order of their names, and counts what is left of them.
async fn lock(conn: &mut dyn Conn, names: &[&str], permits: &mut Permits) -> Result<(), StoreError> {
    if names.is_empty() {
        return Ok(());
    }
    let mut limits: BTreeMap<String, usize> = BTreeMap::new();
    for row in &conn.rows_in(&LOCK_LIMITS, &[], names).await? {
        let mut fields = row.fields();
        limits.insert(fields.text("resource_name")?.to_owned(), fields.number("max_concurrent")?);
    }
    let locked: Vec<&str> = limits.keys().map(String::as_str).collect();
    // A statement of its own, that sees what those have committed who held the locks before.
    let mut in_use: HashMap<String, usize> = HashMap::new();
    for row in &conn.rows_in(&IN_USE, &[], &locked).await? {
        let mut fields = row.fields();
        in_use.insert(fields.text("resource_name")?.to_owned(), fields.number("in_use")?);
    }
    for (name, max) in limits {
        let in_use = in_use.get(&name).copied().unwrap_or(0);
        permits.add(name, max, in_use);
    }
    Ok(())
}

const LOCK_LIMITS: Stmt = Stmt::shared(
    "locking limits of resources",
    "SELECT resource_name, max_concurrent FROM scheduler_resource_limit WHERE resource_name /*any*/ \
     ORDER BY resource_name /*skip_locked*/",
);

const IN_USE: Stmt = Stmt::shared(
    "counting permits",
    concat!(
        "SELECT p.resource_name AS resource_name, COUNT(*) AS in_use",
        permits_out!(),
        "AND p.resource_name /*any*/ GROUP BY p.resource_name"
    ),
);

/// Writes the permits of jobs that were just claimed. They are counted before there is a limit too, so that one that is set
/// later begins with what runs.
pub(crate) async fn take(conn: &mut dyn Conn, claims: &[Claim]) -> Result<(), StoreError> {
    let taken: Vec<(&Fence, &str)> =
        claims.iter().filter_map(|claim| Some((&claim.fence, claim.job.spec.resource.as_ref()?.as_str()))).collect();
    if taken.is_empty() {
        return Ok(());
    }
    let now = database_time(conn).await?;
    conn.run_each(&TAKE_PERMITS, &taken, |(fence, resource), values| {
        values.extend([
            fence.job_id.into(),
            Value::count(fence.version),
            (*resource).into(),
            fence.node.into(),
            now.into(),
        ]);
    })
    .await?;
    Ok(())
}

const TAKE_PERMITS: Stmt = Stmt::shared(
    "taking permits",
    "INSERT INTO scheduler_resource_permit (job_id, version, resource_name, node_id, acquired_at) \
     /*rows:id int text id time*/",
);

/// The attempts for which a node has permits.
pub(crate) async fn of_node(conn: &mut dyn Conn, node: NodeId) -> Result<Vec<Fence>, StoreError> {
    let rows = conn.rows(&PERMITS_OF_NODE, vec![node.into()]).await?;
    let fence = |row: &Row| {
        let mut fields = row.fields();
        Ok(Fence { job_id: fields.job_id("job_id")?, version: fields.number("version")?, node })
    };
    rows.iter().map(fence).collect()
}

const PERMITS_OF_NODE: Stmt = Stmt::shared(
    "reading the permits of a node",
    "SELECT job_id, version FROM scheduler_resource_permit WHERE node_id = ?",
);

/// Ends the permits of attempts; those that have none are passed over.
pub(crate) async fn end(conn: &mut dyn Conn, attempts: &[Fence]) -> Result<(), StoreError> {
    let bind = |fence: &Fence, values: &mut Vec<Value>| {
        values.extend([fence.job_id.into(), Value::count(fence.version), fence.node.into()]);
    };
    conn.run_each(&END_PERMITS, attempts, bind).await?;
    Ok(())
}

const END_PERMITS: Stmt = Stmt::shared(
    "ending permits",
    "DELETE FROM scheduler_resource_permit WHERE (job_id, version, node_id) IN (/*rows:id int id*/)",
)
// There the rows lead, and each permit is found by its key.
.mysql(
    "DELETE p FROM (/*union*/SELECT CAST(? AS BINARY(16)) AS job_id, ? AS version, CAST(? AS BINARY(16)) AS node_id\
     /*end*/) v STRAIGHT_JOIN scheduler_resource_permit p FORCE INDEX (PRIMARY) \
     ON p.job_id = v.job_id AND p.version = v.version WHERE p.node_id = v.node_id",
);

/// Removes the permits of nodes that are gone.
pub(crate) async fn end_of_nodes(conn: &mut dyn Conn, nodes: &[NodeId]) -> Result<(), StoreError> {
    conn.run_in(&END_PERMITS_OF_NODES, &[], nodes).await?;
    Ok(())
}

const END_PERMITS_OF_NODES: Stmt =
    Stmt::shared("ending the permits of nodes", "DELETE FROM scheduler_resource_permit WHERE node_id /*any*/");
