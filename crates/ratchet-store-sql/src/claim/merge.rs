//! The lanes of a claim, merged in the exact order of their jobs.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, HashMap};

use jiff::Timestamp;
use ratchet_core::{ClaimRequest, JobId, StoreError};

use crate::claim::lane::Lane;
use crate::claim::permits::Permits;
use crate::waist::conn::Conn;
use crate::waist::stmt::Stmt;
use crate::waist::value::Value;

pub(crate) const STATEMENTS: &[Stmt] = &[REFILL];

/// What a job is ordered by: effective priority, then due time, then id; and its lane.
type Rank = (u64, Reverse<Timestamp>, Reverse<JobId>, usize);

/// The lanes, merged pool by pool in the order of their jobs.
pub(crate) struct Merge<'a> {
    request: &'a ClaimRequest,
    now: Timestamp,
    lanes: Vec<Lane<'a>>,
    /// The next job of every lane, for each pool.
    heads: Vec<BinaryHeap<Rank>>,
    /// Room that is left in each pool.
    room: Vec<usize>,
    /// Room that is left in all.
    left: usize,
    probation_left: usize,
    permits: Permits,
    /// Where the picked jobs come from.
    picked: HashMap<JobId, usize>,
}

impl<'a> Merge<'a> {
    pub(crate) fn new(request: &'a ClaimRequest, lanes: Vec<Lane<'a>>, now: Timestamp, permits: Permits) -> Self {
        Self {
            request,
            now,
            heads: request.pools.iter().map(|_| BinaryHeap::new()).collect(),
            room: request.pools.iter().map(|pool| pool.free).collect(),
            left: request.limit,
            probation_left: usize::from(request.probation),
            picked: HashMap::new(),
            permits,
            lanes,
        }
    }

    /// The next ids for the room that is left.
    pub(crate) async fn pick(&mut self, conn: &mut dyn Conn) -> Result<Vec<JobId>, StoreError> {
        for index in 0..self.lanes.len() {
            self.advance(conn, index).await?;
        }
        let mut ids = Vec::new();
        for pool in 0..self.heads.len() {
            while self.room[pool].min(self.left) > 0
                && let Some((_, Reverse(due), Reverse(id), index)) = self.heads[pool].pop()
            {
                self.lanes[index].merging = false;
                if self.lanes[index].probation {
                    if self.probation_left == 0 {
                        continue;
                    }
                    self.probation_left -= 1;
                }
                if !self.permits.take(&self.lanes[index]) {
                    self.probation_left += usize::from(self.lanes[index].probation);
                    // Should another claimer have taken one that was picked, there is a permit for this one.
                    self.lanes[index].read.push_front((due, id));
                    continue;
                }
                if self.picked.insert(id, index).is_none() {
                    ids.push(id);
                    self.room[pool] -= 1;
                    self.left -= 1;
                }
                self.advance(conn, index).await?;
            }
        }
        Ok(ids)
    }

    /// Brings the next job of a lane into the merge, if it has one and there is room.
    async fn advance(&mut self, conn: &mut dyn Conn, index: usize) -> Result<(), StoreError> {
        let lane = &mut self.lanes[index];
        let room = self.room[lane.pool].min(self.left);
        if lane.merging || room == 0 {
            return Ok(());
        }
        if lane.read.is_empty()
            && lane.more
            && let Some(after) = lane.last
        {
            refill(conn, lane, self.now, after, room).await?;
        }
        if let Some((scheduled_time, id)) = lane.read.pop_front() {
            lane.merging = true;
            let effective = self.request.boost.effective(lane.priority, scheduled_time, self.now);
            self.heads[lane.pool].push((effective, Reverse(scheduled_time), Reverse(id), index));
        }
        Ok(())
    }

    /// Jobs that were picked and that somebody else has taken leave their room to others.
    pub(crate) fn give_back(&mut self, lost: &[JobId]) {
        for id in lost {
            if let Some(index) = self.picked.get(id) {
                let lane = &self.lanes[*index];
                self.room[lane.pool] += 1;
                self.left += 1;
                self.probation_left += usize::from(lane.probation);
                self.permits.give_back(lane);
            }
        }
    }
}

async fn refill(
    conn: &mut dyn Conn,
    lane: &mut Lane<'_>,
    now: Timestamp,
    after: (Timestamp, JobId),
    limit: usize,
) -> Result<(), StoreError> {
    let mut values = Vec::with_capacity(9);
    lane.bind(&mut values);
    values.extend([now.into(), after.0.into(), after.0.into(), after.1.into(), Value::count(limit)]);
    let rows = conn.rows(&REFILL, values).await?;
    for row in &rows {
        let mut fields = row.fields();
        lane.push((fields.time("scheduled_time")?, fields.job_id("job_id")?));
    }
    lane.more = rows.len() == limit;
    Ok(())
}

const REFILL: Stmt = Stmt::shared(
    "looking for further jobs to claim",
    "SELECT scheduled_time, job_id FROM scheduler_job_queue \
     WHERE status = /*state:pending*/ AND deferred = /*no*/ \
     AND probation = ? AND resource = ? AND queue = ? AND kind = ? AND priority = ? AND scheduled_time <= ? AND scheduled_time >= ? \
     AND (scheduled_time, job_id) > (?, ?) ORDER BY scheduled_time, job_id LIMIT ?",
)
.mysql(
    "SELECT scheduled_time, job_id FROM scheduler_job_queue FORCE INDEX (idx_queue_claim) \
     WHERE status = /*state:pending*/ AND deferred = /*no*/ \
     AND probation = ? AND resource = ? AND queue = ? AND kind = ? AND priority = ? AND scheduled_time <= ? AND scheduled_time >= ? \
     AND (scheduled_time, job_id) > (?, ?) ORDER BY scheduled_time, job_id LIMIT ?",
);
