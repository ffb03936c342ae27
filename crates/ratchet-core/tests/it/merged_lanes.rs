//! The merge of lanes beside a sorted list: random jobs and pools, lanes read in small portions, jobs that others take.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use fastrand::Rng;
use ratchet_core::claim::{Boost, Lane, LaneMerge, LanePlace, LaneRead, Permits, Pick};
use ratchet_core::{ClaimRequest, JobId, Kind, NodeId, Pool, Priority, QueueName, Timestamp};
use uuid::Uuid;

use crate::seed::seeded;

const NOW: i64 = 10_000;
const KINDS: [&str; 3] = ["a", "b", "c"];
/// None, one with a limit, one without.
const RESOURCES: [&str; 3] = ["", "limited", "open"];

/// What the place of a job in the claim index begins with.
type Range = (bool, &'static str, &'static str, Priority);

fn request(rng: &mut Rng) -> ClaimRequest {
    let kind = |name: &&str| Kind::new(*name).unwrap();
    let pools = (0..rng.usize(1..4)).map(|_| Pool {
        queue: QueueName::new("q").unwrap(),
        // Two pools may take the same kind.
        kinds: KINDS.iter().filter(|_| rng.bool()).map(kind).collect(),
        free: rng.usize(0..8),
    });
    ClaimRequest {
        node: NodeId(Uuid::from_u128(1)),
        pools: pools.collect(),
        limit: rng.usize(1..12),
        probation: rng.bool(),
        boost: Boost::every(Duration::from_secs(rng.u64(0..300))),
    }
}

fn jobs(rng: &mut Rng) -> BTreeMap<Range, Vec<LanePlace>> {
    let mut jobs: BTreeMap<Range, Vec<LanePlace>> = BTreeMap::new();
    for number in 0..rng.u128(0..40) {
        let priority = Priority::ALL[rng.usize(1..4)];
        let range = (rng.u8(0..5) == 0, RESOURCES[rng.usize(0..3)], KINDS[rng.usize(0..3)], priority);
        let due = Timestamp::from_second(NOW - rng.i64(0..20) * 50).unwrap();
        jobs.entry(range).or_default().push((due, JobId(Uuid::from_u128(number))));
    }
    for lane in jobs.values_mut() {
        lane.sort_unstable();
    }
    jobs
}

/// What is left for a claim, and which jobs it picks by the sorted list of all.
struct Expected<'a> {
    request: &'a ClaimRequest,
    room: Vec<usize>,
    left: usize,
    probation: usize,
    permits: usize,
    /// The pools of the jobs that were picked.
    picked: BTreeMap<JobId, usize>,
}

impl Expected<'_> {
    fn pick(&mut self, jobs: &BTreeMap<Range, Vec<LanePlace>>) -> Vec<JobId> {
        let now = Timestamp::from_second(NOW).unwrap();
        let mut ids = Vec::new();
        for (index, pool) in self.request.pools.iter().enumerate() {
            let lanes = jobs.iter().filter(|((_, _, kind, _), _)| pool.takes("q", kind));
            let mut all: Vec<(Range, LanePlace)> =
                lanes.flat_map(|(range, lane)| lane.iter().map(|place| (*range, *place))).collect();
            all.sort_by_key(|((.., priority), (due, id))| {
                (Reverse(self.request.boost.effective(*priority, *due, now)), *due, *id)
            });
            for ((probation, resource, ..), (_, id)) in all {
                let has_room = self.room[index].min(self.left) > 0;
                let may_run = (!probation || self.probation > 0) && (resource != "limited" || self.permits > 0);
                if has_room && may_run && !self.picked.contains_key(&id) {
                    self.count(index, probation, resource, -1);
                    self.picked.insert(id, index);
                    ids.push(id);
                }
            }
        }
        ids
    }

    fn count(&mut self, pool: usize, probation: bool, resource: &str, by: isize) {
        let add = |to: &mut usize| *to = to.checked_add_signed(by).unwrap();
        add(&mut self.room[pool]);
        add(&mut self.left);
        if probation {
            add(&mut self.probation);
        }
        if resource == "limited" {
            add(&mut self.permits);
        }
    }
}

#[test]
fn merged_lanes_are_the_sorted_list() {
    let (mut rng, _seed) = seeded();
    for _ in 0..2_000 {
        compare(&mut rng);
    }
}

fn compare(rng: &mut Rng) {
    let (request, jobs) = (request(rng), jobs(rng));
    let max = rng.usize(0..4);
    let mut permits = Permits::default();
    permits.add("limited", max, 0);
    let mut expected = Expected {
        request: &request,
        room: request.pools.iter().map(|pool| pool.free).collect(),
        left: request.limit,
        probation: usize::from(request.probation),
        permits: max,
        picked: BTreeMap::new(),
    };
    let lanes = lanes(rng, &request, &jobs);
    let mut merge = LaneMerge::new(&request, lanes, Timestamp::from_second(NOW).unwrap(), permits);
    for _ in 0..4 {
        let ids = pick(&mut merge, &jobs);
        assert_eq!(ids, expected.pick(&jobs), "{request:?} {jobs:?}");
        let lost: BTreeSet<JobId> = ids.into_iter().filter(|_| rng.u8(0..3) == 0).collect();
        for ((probation, resource, ..), lane) in &jobs {
            for (_, id) in lane.iter().filter(|(_, id)| lost.contains(id)) {
                expected.count(expected.picked[id], *probation, resource, 1);
            }
        }
        merge.give_back(&lost.into_iter().collect::<Vec<_>>());
    }
}

/// The lanes of a request, each read a little.
fn lanes<'a>(rng: &mut Rng, request: &'a ClaimRequest, jobs: &BTreeMap<Range, Vec<LanePlace>>) -> Vec<Lane<'a>> {
    let mut lanes = Vec::new();
    for probation in [false, true] {
        for lane in Lane::all(request, probation) {
            for resource in RESOURCES {
                let mut lane = lane.needing(resource.to_owned());
                let all = jobs.get(&range_of(&lane)).map_or(&[][..], Vec::as_slice);
                let read = if probation { all.len() } else { rng.usize(1..4).min(all.len()) };
                all[..read].iter().for_each(|place| lane.push(*place));
                lane.set_more(read < all.len());
                lanes.push(lane);
            }
        }
    }
    lanes
}

fn range_of(lane: &Lane<'_>) -> Range {
    let same = |names: [&'static str; 3], name: &str| names.into_iter().find(|one| *one == name).unwrap();
    (lane.probation, same(RESOURCES, &lane.resource), same(KINDS, lane.kind), lane.priority)
}

fn pick(merge: &mut LaneMerge<'_>, jobs: &BTreeMap<Range, Vec<LanePlace>>) -> Vec<JobId> {
    loop {
        match merge.pick() {
            Pick::Jobs(ids) => return ids,
            Pick::Read(LaneRead { lane, after, limit }) => {
                let all = &jobs[&range_of(merge.lane(lane))];
                let rows: Vec<LanePlace> = all.iter().filter(|place| **place > after).take(limit).copied().collect();
                let more = rows.len() == limit;
                merge.feed(lane, rows, more);
            }
        }
    }
}
