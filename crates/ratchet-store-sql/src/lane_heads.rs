//! Leaving out lanes that a claim cannot need.

use std::cmp::Reverse;
use std::collections::{HashMap, HashSet};

use jiff::Timestamp;
use ratchet_core::{ClaimRequest, StoreError};

use crate::conn::Conn;
use crate::dialect::Dialect;
use crate::lane::Lane;
use crate::stmt::Stmt;

pub(crate) const STATEMENTS: &[Stmt] = &[LANE_HEADS];

/// Up to this many lanes a look reads them all.
const LANES_MANY: usize = 32;

/// Keeps the lanes whose first job is among the best: the best `n` jobs are in the `n` lanes with the best beginnings.
///
/// Only for MySQL, which plans each range of a look anew every time, at a cost of a tenth of a millisecond; the beginnings of
/// all lanes together cost one statement that jumps from lane to lane in the index. One lane is always left, so that
/// the look has something to ask for.
pub(crate) async fn keep_best(
    conn: &mut dyn Conn,
    request: &ClaimRequest,
    lanes: &mut Vec<Lane<'_>>,
) -> Result<(), StoreError> {
    if conn.texts().dialect() != Dialect::Mysql || lanes.len() <= LANES_MANY {
        return Ok(());
    }
    let mut heads: HashMap<(bool, String, String, i64), Timestamp> = HashMap::new();
    let mut now = Timestamp::MIN;
    let queues: HashSet<(bool, &str)> = lanes.iter().map(|lane| (lane.probation, lane.queue)).collect();
    for (probation, queue) in queues {
        let in_it = lanes.iter().filter(|lane| (lane.probation, lane.queue) == (probation, queue));
        let kinds: HashSet<&str> = in_it.map(|lane| lane.kind).collect();
        let kinds: Vec<&str> = kinds.into_iter().collect();
        for row in conn.rows_in(&LANE_HEADS, &[probation.into(), queue.into()], &kinds).await? {
            let mut fields = row.fields();
            let (kind, priority) = (fields.text("kind")?.to_owned(), fields.int("priority")?);
            let head = fields.time("head")?;
            now = fields.time("now")?;
            heads.insert((probation, queue.to_owned(), kind, priority), head);
        }
    }
    let head_of = |lane: &Lane<'_>| {
        let level = i64::from(lane.priority.level());
        heads.get(&(lane.probation, lane.queue.to_owned(), lane.kind.to_owned(), level)).copied()
    };
    let mut kept: Vec<(usize, Reverse<u64>, Timestamp)> = Vec::new();
    for (index, lane) in lanes.iter().enumerate() {
        if let Some(head) = head_of(lane).filter(|head| *head <= now) {
            kept.push((index, Reverse(request.boost.effective(lane.priority, head, now)), head));
        }
    }
    let mut keep: HashSet<usize> = HashSet::new();
    for (pool_index, pool) in request.pools.iter().enumerate() {
        let mut of_pool: Vec<_> = kept.iter().filter(|(index, ..)| lanes[*index].pool == pool_index).collect();
        of_pool.sort_unstable_by_key(|(_, effective, head)| (*effective, *head));
        let room = pool.free.min(request.limit);
        // Of beginnings that are equal, ids decide, which are not known here.
        let last = of_pool.get(room.saturating_sub(1)).map(|(_, effective, head)| (*effective, *head));
        let as_good = |(_, effective, head): &&&(usize, Reverse<u64>, Timestamp)| {
            last.is_none_or(|last| (*effective, *head) <= last)
        };
        keep.extend(of_pool.iter().filter(as_good).map(|(index, ..)| *index));
    }
    if keep.is_empty() {
        keep.insert(0);
    }
    let mut index = 0;
    lanes.retain(|_| {
        index += 1;
        keep.contains(&(index - 1))
    });
    Ok(())
}

// Grouped by everything that leads the index, so that it is read by jumps: one entry a lane.
const LANE_HEADS: Stmt = Stmt::only_mysql(
    "looking for lanes with jobs",
    "SELECT kind, priority, MIN(scheduled_time) AS head, /*now*/ AS now \
     FROM scheduler_job_queue FORCE INDEX (idx_queue_claim) \
     WHERE status = /*state:pending*/ AND deferred = /*no*/ AND probation = ? AND queue = ? AND kind /*any*/ \
     GROUP BY status, deferred, probation, queue, kind, priority",
);
