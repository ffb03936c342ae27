//! Leaving out lanes that a claim cannot need.

use std::cmp::Reverse;
use std::collections::HashSet;

use jiff::Timestamp;
use ratchet_core::{ClaimRequest, StoreError};
use serde_json::json;

use crate::claim::lane::Lane;
use crate::waist::conn::Conn;
use crate::waist::stmt::Stmt;
use crate::waist::value::Value;

pub(crate) const STATEMENTS: &[Stmt] = &[LANE_HEADS];

/// Up to this many lanes a look reads them all.
const LANES_MANY: usize = 32;

/// Keeps the lanes whose first job is among the best: the best `n` jobs are in the `n` lanes with the best beginnings.
///
/// Only for MySQL, which plans each range of a look anew every time, at a cost of a tenth of a millisecond; the first jobs of
/// all lanes together cost one statement, planned once. One lane is always left, so that the look has something to ask for.
pub(crate) async fn keep_best(
    conn: &mut dyn Conn,
    request: &ClaimRequest,
    lanes: &mut Vec<Lane<'_>>,
) -> Result<(), StoreError> {
    if !conn.dialect().plans_every_range() || lanes.len() <= LANES_MANY {
        return Ok(());
    }
    let (now, found) = heads(conn, lanes).await?;
    let mut heads: Vec<(usize, Reverse<u64>, Timestamp)> = Vec::with_capacity(found.len());
    for (index, head) in found.into_iter().filter(|(_, head)| *head <= now) {
        heads.push((index, Reverse(request.boost.effective(lanes[index].priority, head, now)), head));
    }
    heads.sort_unstable_by_key(|(_, effective, head)| (*effective, *head));
    let mut keep: HashSet<usize> = HashSet::new();
    for (pool_index, pool) in request.pools.iter().enumerate() {
        let of_pool: Vec<_> = heads.iter().filter(|(index, ..)| lanes[*index].pool == pool_index).collect();
        let room = pool.free.min(request.limit);
        // Of beginnings that are equal the ids decide, which are not known here: all of them stay.
        let last = of_pool.get(room.saturating_sub(1)).map(|(_, effective, head)| (*effective, *head));
        let stays = |(_, effective, head): &&(usize, Reverse<u64>, Timestamp)| {
            last.is_none_or(|last| (*effective, *head) <= last)
        };
        keep.extend(of_pool.into_iter().take_while(stays).map(|(index, ..)| *index));
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

/// The time, and the places of the lanes in which jobs wait with the time of their first one; all in one statement.
async fn heads(conn: &mut dyn Conn, lanes: &[Lane<'_>]) -> Result<(Timestamp, Vec<(usize, Timestamp)>), StoreError> {
    let list: Vec<_> = lanes
        .iter()
        .enumerate()
        .map(|(index, lane)| {
            json!([index, u8::from(lane.probation), lane.queue, lane.kind, lane.priority.level(), lane.resource])
        })
        .collect();
    let rows = conn.rows(&LANE_HEADS, vec![Value::Json(Some(json!(list).to_string().into()))]).await?;
    let (mut now, mut heads) = (Timestamp::MIN, Vec::with_capacity(rows.len()));
    for row in &rows {
        let mut fields = row.fields();
        let index: usize = fields.number("lane")?;
        now = fields.time("now")?;
        if let (Some(head), true) = (fields.opt_time("head")?, index < lanes.len()) {
            heads.push((index, head));
        }
    }
    Ok((now, heads))
}

// The subquery finds the first job of a lane by the index alone, and is planned once for all lanes.
const LANE_HEADS: Stmt = Stmt::only_mysql(
    "looking for lanes with jobs",
    "SELECT l.lane AS lane, /*now*/ AS now, (SELECT q.scheduled_time FROM scheduler_job_queue q \
     FORCE INDEX (idx_queue_claim) WHERE q.status = /*state:pending*/ AND q.deferred = /*no*/ \
     AND q.probation = l.probation AND q.resource = l.resource AND q.queue = l.queue AND q.kind = l.kind AND q.priority = l.priority \
     ORDER BY q.scheduled_time LIMIT 1) AS head \
     FROM JSON_TABLE(?, '$[*]' COLUMNS (lane INT PATH '$[0]', probation INT PATH '$[1]', \
     queue VARCHAR(64) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin PATH '$[2]', \
     kind VARCHAR(128) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin PATH '$[3]', priority INT PATH '$[4]', \
     resource VARCHAR(100) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin PATH '$[5]')) AS l",
);
