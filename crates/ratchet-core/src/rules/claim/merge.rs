use std::cmp::Reverse;
use std::collections::{BinaryHeap, HashMap};
use std::mem;

use jiff::Timestamp;

use super::lane::{Lane, LanePlace};
use super::permits::Permits;
use super::{Boost, ClaimRequest};
use crate::id::JobId;

/// What a job is ordered by: effective priority, then due time, then id; and its lane.
type Rank = (u64, Reverse<Timestamp>, Reverse<JobId>, usize);

/// The lanes of a claim, merged in the exact order of their jobs.
///
/// Pools come in the order of the request. Within a pool the job with the highest effective priority comes first, then the one
/// that is due first, then the one with the lowest id. A job is passed over if it needs a permit and none is left, or if it is
/// on probation and one such job was picked.
///
/// It reads nothing: a store feeds it what it asks for, takes what it [picks](Self::pick), and [gives back](Self::give_back)
/// what others were quicker to take, so that the next pick fills that room.
///
/// ```
/// use ratchet_core::claim::{Boost, Lane, LaneMerge, Permits, Pick};
/// use ratchet_core::{ClaimRequest, JobId, Kind, NodeId, Pool, QueueName, Timestamp};
/// use uuid::Uuid;
///
/// let kinds = [Kind::new("greet")?].into();
/// let pools = vec![Pool { queue: QueueName::new("default")?, kinds, free: 2 }];
/// let node = NodeId(Uuid::from_u128(1));
/// let request = ClaimRequest { node, pools, limit: 2, probation: false, boost: Boost::default() };
/// let now = Timestamp::UNIX_EPOCH;
/// let mut lanes = Lane::all(&request, false);
/// lanes[0].push((now, JobId(Uuid::from_u128(7))));
///
/// let mut merge = LaneMerge::new(&request, lanes, now, Permits::default());
/// assert_eq!(merge.pick(), Pick::Jobs(vec![JobId(Uuid::from_u128(7))]));
/// # Ok::<(), ratchet_core::InvalidInput>(())
/// ```
#[derive(Debug, Clone)]
pub struct LaneMerge<'a> {
    boost: Boost,
    now: Timestamp,
    lanes: Vec<Lane<'a>>,
    /// Lanes whose next job is not in the merge yet.
    behind: Vec<usize>,
    /// The next job of every lane, for each pool.
    heads: Vec<BinaryHeap<Rank>>,
    /// The room that is left in each pool.
    room: Vec<usize>,
    /// The room that is left in all.
    left: usize,
    probation_left: usize,
    permits: Permits,
    /// Where the picked jobs come from.
    origins: HashMap<JobId, usize>,
    /// The jobs of this pick.
    picked: Vec<JobId>,
}

/// What a merge comes to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Pick {
    /// The next jobs for the room that is left, best first; none if there are no more.
    Jobs(Vec<JobId>),
    /// First this has to be [fed](LaneMerge::feed).
    Read(LaneRead),
}

/// A read that a merge needs: the jobs of a lane that follow `after` and are due.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LaneRead {
    /// The [lane](LaneMerge::lane).
    pub lane: usize,
    /// The last job of it that was read.
    pub after: LanePlace,
    /// How many jobs are enough.
    pub limit: usize,
}

impl<'a> LaneMerge<'a> {
    /// Returns the merge of these lanes, with what was read of them, at the time `now`.
    pub fn new(request: &ClaimRequest, lanes: Vec<Lane<'a>>, now: Timestamp, permits: Permits) -> Self {
        Self {
            boost: request.boost,
            now,
            behind: (0..lanes.len()).rev().collect(),
            heads: request.pools.iter().map(|_| BinaryHeap::new()).collect(),
            room: request.pools.iter().map(|pool| pool.free).collect(),
            left: request.limit,
            probation_left: usize::from(request.probation),
            origins: HashMap::new(),
            picked: Vec::new(),
            permits,
            lanes,
        }
    }

    /// Returns a lane.
    pub fn lane(&self, index: usize) -> &Lane<'a> {
        &self.lanes[index]
    }

    /// Returns the time at which jobs have to be due.
    pub const fn now(&self) -> Timestamp {
        self.now
    }

    /// Picks the next jobs for the room that is left, or says what has to be read first.
    pub fn pick(&mut self) -> Pick {
        loop {
            if let Some(index) = self.behind.pop() {
                if let Some(read) = self.advance(index) {
                    self.behind.push(index);
                    return Pick::Read(read);
                }
            } else if !self.pick_one() {
                self.behind.extend((0..self.lanes.len()).rev());
                return Pick::Jobs(mem::take(&mut self.picked));
            }
        }
    }

    /// Adds the jobs of a [`Read`](Pick::Read); `more` is whether others may follow them.
    pub fn feed(&mut self, lane: usize, jobs: impl IntoIterator<Item = LanePlace>, more: bool) {
        let lane = &mut self.lanes[lane];
        lane.set_more(more);
        for job in jobs {
            lane.push(job);
        }
    }

    /// Leaves the room, the permits and the probation of picked jobs that others have taken to the next pick.
    pub fn give_back(&mut self, lost: &[JobId]) {
        for id in lost {
            if let Some(index) = self.origins.get(id) {
                let lane = &self.lanes[*index];
                self.room[lane.pool] += 1;
                self.left += 1;
                self.probation_left += usize::from(lane.probation);
                self.permits.give_back(&lane.resource);
            }
        }
    }

    /// Brings the next job of a lane into the merge, if it has one and there is room.
    fn advance(&mut self, index: usize) -> Option<LaneRead> {
        let lane = &mut self.lanes[index];
        let limit = self.room[lane.pool].min(self.left);
        if lane.merging || limit == 0 {
            return None;
        }
        if let Some(after) = lane.read_on() {
            return Some(LaneRead { lane: index, after, limit });
        }
        let (scheduled_time, id) = lane.next()?;
        lane.merging = true;
        let effective = self.boost.effective(lane.priority, scheduled_time, self.now);
        self.heads[lane.pool].push((effective, Reverse(scheduled_time), Reverse(id), index));
        None
    }

    /// Picks the best job of the first pool that has one and room for it, or passes over it; `false` if there is none.
    fn pick_one(&mut self) -> bool {
        let has_room = |room: &usize| room.min(&self.left) > &0;
        let pools = self.heads.iter_mut().zip(&mut self.room);
        let Some((room, (_, Reverse(due), Reverse(id), index))) =
            pools.filter(|(_, room)| has_room(room)).find_map(|(heads, room)| Some((room, heads.pop()?)))
        else {
            return false;
        };
        let lane = &mut self.lanes[index];
        lane.merging = false;
        if self.origins.contains_key(&id) {
            // Two pools take its kind, or it was moved between two reads.
            self.behind.push(index);
        } else if (lane.probation && self.probation_left == 0) || !self.permits.take(&lane.resource) {
            // Should another claimer have taken one that was picked, there is room for this one.
            lane.put_back((due, id));
        } else {
            self.probation_left -= usize::from(lane.probation);
            *room -= 1;
            self.left -= 1;
            self.origins.insert(id, index);
            self.picked.push(id);
            self.behind.push(index);
        }
        true
    }
}

#[cfg(test)]
mod tests {
    use std::borrow::Cow;

    use uuid::Uuid;

    use super::*;
    use crate::claim::Pool;
    use crate::id::NodeId;
    use crate::name::QueueName;
    use crate::priority::Priority;

    const NOW: i64 = 1_000;

    const fn id(number: u128) -> JobId {
        JobId(Uuid::from_u128(number))
    }

    fn place(due: i64, number: u128) -> LanePlace {
        (Timestamp::from_second(due).unwrap(), id(number))
    }

    /// A request with so much room in each pool, and probation.
    fn request(free: &[usize], limit: usize) -> ClaimRequest {
        let pool = |free: &usize| Pool { queue: QueueName::new("q").unwrap(), kinds: [].into(), free: *free };
        let pools = free.iter().map(pool).collect();
        let node = NodeId(Uuid::from_u128(1));
        ClaimRequest { node, pools, limit, probation: true, boost: Boost::OFF }
    }

    /// A lane of which these jobs were read.
    fn lane(pool: usize, priority: Priority, jobs: &[(i64, u128)]) -> Lane<'static> {
        let mut lane = Lane::new(pool, false, Cow::Borrowed(""), ("q", "k", priority));
        for (due, number) in jobs {
            lane.push(place(*due, *number));
        }
        lane
    }

    fn merge<'a>(request: &ClaimRequest, lanes: Vec<Lane<'a>>, permits: Permits) -> LaneMerge<'a> {
        LaneMerge::new(request, lanes, Timestamp::from_second(NOW).unwrap(), permits)
    }

    fn numbers(pick: Pick) -> Vec<u128> {
        let Pick::Jobs(ids) = pick else { panic!("{pick:?}") };
        ids.iter().map(|id| id.0.as_u128()).collect()
    }

    use Priority::{High, Normal};

    #[test]
    fn lanes_are_merged_by_priority_then_time_then_id_for_the_room_there_is() {
        let check = |free: &[usize], limit, lanes: Vec<Lane<'_>>, expected: &[u128]| {
            let mut merge = merge(&request(free, limit), lanes, Permits::default());
            assert_eq!(numbers(merge.pick()), expected);
            assert_eq!(numbers(merge.pick()), [], "there is no more, or no room");
        };
        let two = || vec![lane(0, Normal, &[(10, 1), (30, 3)]), lane(0, Normal, &[(20, 2), (30, 2), (40, 4)])];
        check(&[9], 9, vec![], &[]);
        check(&[9], 9, two(), &[1, 2, 3, 4]);
        check(&[2], 9, two(), &[1, 2]);
        check(&[9], 3, two(), &[1, 2, 3]);
        check(&[9], 9, vec![lane(0, Normal, &[(30, 2)]), lane(0, Normal, &[(30, 1)])], &[1, 2]);
        check(&[9], 9, vec![lane(0, Normal, &[(10, 1)]), lane(0, High, &[(20, 2)])], &[2, 1]);
        // Pools in their order, as far as the limit goes; a job that two of them take is picked once.
        let pools = || vec![lane(1, High, &[(10, 1), (20, 2)]), lane(0, Normal, &[(30, 3), (40, 4)])];
        check(&[1, 9], 9, pools(), &[3, 1, 2]);
        check(&[9, 9], 3, pools(), &[3, 4, 1]);
        check(&[0, 9], 9, pools(), &[1, 2]);
        check(&[1, 1], 9, vec![lane(0, Normal, &[(10, 1), (20, 2)]), lane(1, Normal, &[(10, 1), (20, 2)])], &[1, 2]);
    }

    #[test]
    fn waiting_counts_as_priority() {
        let boost = Boost::every(std::time::Duration::from_secs(100));
        let request = ClaimRequest { boost, ..request(&[9], 9) };
        let check = |old, fresh, expected: [u128; 2]| {
            let lanes = vec![lane(0, High, &[(fresh, 2)]), lane(0, Normal, &[(old, 1)])];
            assert_eq!(numbers(merge(&request, lanes, Permits::default()).pick()), expected, "{old} {fresh}");
        };
        check(NOW - 99, NOW, [2, 1]);
        check(NOW - 100, NOW, [1, 2]);
        check(NOW - 100, NOW - 50, [1, 2]);
        check(NOW - 150, NOW - 100, [2, 1]);
    }

    #[test]
    fn a_lane_is_read_on_when_its_next_job_is_needed() {
        let read_on = |jobs: &[(i64, u128)]| {
            let mut lane = lane(0, Normal, jobs);
            lane.set_more(true);
            lane
        };
        let mut merge = merge(
            &request(&[3], 9),
            vec![read_on(&[(10, 1)]), lane(0, Normal, &[(20, 2), (50, 5)])],
            Permits::default(),
        );
        let after = place(10, 1);
        let read = Pick::Read(LaneRead { lane: 0, after, limit: 2 });
        assert_eq!((merge.pick(), merge.pick()), (read.clone(), read), "it asks again until it is fed");
        merge.feed(0, [place(15, 3)], true);
        let Pick::Read(LaneRead { lane: 0, limit: 1, .. }) = merge.pick() else { panic!("there is room for one") };
        merge.feed(0, [], false);
        assert_eq!(numbers(merge.pick()), [1, 3, 2]);
        merge.give_back(&[id(3)]);
        assert_eq!(numbers(merge.pick()), [5], "what others took leaves its room to the next");
        assert_eq!(numbers(merge.pick()), []);
    }

    #[test]
    fn permits_are_taken_and_given_back_with_the_jobs_that_need_them() {
        let limited = |name: &'static str, jobs: &[(i64, u128)]| {
            let mut lane = lane(0, Normal, jobs);
            lane.resource = Cow::Borrowed(name);
            lane
        };
        let permits = |left| {
            let mut permits = Permits::default();
            permits.add("a", left, 0);
            permits
        };
        let check = |left, expected: &[u128], lost: u128, then: &[u128]| {
            let lanes =
                vec![limited("a", &[(10, 1), (20, 2), (30, 3)]), limited("b", &[(15, 4)]), lane(0, Normal, &[(40, 5)])];
            let mut merge = merge(&request(&[9], 9), lanes, permits(left));
            assert_eq!(numbers(merge.pick()), expected, "{left} permits");
            merge.give_back(&[id(lost)]);
            assert_eq!(numbers(merge.pick()), then, "{left} permits, {lost} was lost");
        };
        check(0, &[4, 5], 5, &[]);
        check(1, &[1, 4, 5], 1, &[2]);
        check(1, &[1, 4, 5], 4, &[]);
        check(2, &[1, 4, 2, 5], 2, &[3]);
        check(9, &[1, 4, 2, 3, 5], 1, &[]);
    }

    #[test]
    fn one_job_on_probation_is_picked() {
        let crashed = |jobs: &[(i64, u128)]| {
            let mut lane = lane(0, Normal, jobs);
            lane.probation = true;
            lane
        };
        let check = |probation, expected: &[u128], lost: u128, then: &[u128]| {
            let lanes = vec![crashed(&[(10, 1)]), crashed(&[(20, 2)]), lane(0, Normal, &[(30, 3)])];
            let request = ClaimRequest { probation, ..request(&[9], 9) };
            let mut merge = merge(&request, lanes, Permits::default());
            assert_eq!(numbers(merge.pick()), expected, "probation: {probation}");
            merge.give_back(&[id(lost)]);
            assert_eq!(numbers(merge.pick()), then, "probation: {probation}, {lost} was lost");
        };
        check(true, &[1, 3], 1, &[2]);
        check(true, &[1, 3], 3, &[]);
        check(false, &[3], 3, &[]);
    }
}
