use std::collections::{BTreeMap, HashMap, VecDeque};

use super::{Condition, Edge, EdgeState, JobFlags, Join, WaitState};
use crate::id::JobId;
use crate::record::JobRecord;
use crate::state::JobState;

/// A job of a workflow that was canceled because of another's end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CanceledStep {
    /// Its ties.
    pub flow: JobFlags,
}

impl CanceledStep {
    /// Returns how a job stood, if it was canceled because of another's end.
    pub fn of(job: &JobRecord) -> Option<Self> {
        (job.state == JobState::Canceled && job.canceled_because.is_some()).then_some(Self { flow: job.flow })
    }
}

/// What a retry brings back.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Revival {
    /// Edges that are open again: parent and child.
    pub reopened: Vec<(JobId, JobId)>,
    /// Jobs that wait again, for how many, and with which ties.
    pub revived: BTreeMap<JobId, (u32, JobFlags)>,
    /// Jobs that have waited all the time, and now do for more.
    pub waiting: BTreeMap<JobId, WaitState>,
    /// Jobs that were let go by an end that is undone, had not begun, and wait again.
    pub withdrawn: BTreeMap<JobId, WaitState>,
}

/// Whether a job was let go and has not begun, as far as its record says: its attempts, of earlier lives too, say the rest.
pub fn unbegun(job: &JobRecord) -> bool {
    let tied = job.flow.has(JobFlags::INPUTS) && !job.flow.has(JobFlags::SIGNAL) && !job.flow.has(JobFlags::BATCH);
    let fresh = job.attempts == 0 && job.crash_count == 0 && job.deferred_until.is_none();
    tied && fresh && job.state == JobState::Pending
}

/// Returns whether the retry of the job before this one may bring it back: it was canceled because of another's end, it
/// waits, or it has not begun.
///
/// If this holds for none of the jobs right after a retried one, [`revive`] brings nothing back, and a store need not read
/// the rest of the workflow.
pub fn may_revive(job: &JobRecord) -> bool {
    job.state == JobState::Waiting || CanceledStep::of(job).is_some() || unbegun(job)
}

/// What the retry of `retried` brings back: every job that was canceled because of ends that are undone by it.
///
/// `edges` are all of the workflow, `canceled` those of its jobs that were canceled by the end of another, `waiting` those
/// that are WAITING, `released` those that are PENDING and have not begun. A job that another edge still forbids stays
/// canceled, but its edge is open again, so that it can come back when that one does. A job that waits for others still
/// waits for the new end of what comes back, too, and so does one that was let go and has not begun; but not one that a
/// person let go, and not the next fire of a schedule.
///
/// Work is bounded by the number of edges: each is opened at most once.
pub fn revive(
    retried: JobId,
    edges: &[Edge],
    canceled: &BTreeMap<JobId, CanceledStep>,
    waiting: &BTreeMap<JobId, WaitState>,
    released: &BTreeMap<JobId, JobFlags>,
) -> Revival {
    let mut states: HashMap<(JobId, JobId), EdgeState> =
        edges.iter().map(|edge| ((edge.parent, edge.child), edge.state)).collect();
    let mut into: HashMap<JobId, Vec<JobId>> = HashMap::new();
    let mut out: HashMap<JobId, Vec<&Edge>> = HashMap::new();
    for edge in edges {
        into.entry(edge.child).or_default().push(edge.parent);
        out.entry(edge.parent).or_default().push(edge);
    }
    let by_its_edges = let_go_by_edges(edges, released);
    let mut revival = Revival::default();
    let mut alive = VecDeque::from([retried]);
    while let Some(parent) = alive.pop_front() {
        for edge in out.get(&parent).into_iter().flatten() {
            let child = edge.child;
            let (stood, waits) = (canceled.get(&child), waiting.get(&child));
            let withdrawn = by_its_edges.get(&child).filter(|_| edge.condition != Condition::Ended);
            if stood.is_none() && waits.is_none() && withdrawn.is_none() {
                continue;
            }
            let edge = states.entry((parent, child)).or_insert(EdgeState::Open);
            if *edge == EdgeState::Open {
                continue;
            }
            *edge = EdgeState::Open;
            revival.reopened.push((parent, child));
            if let Some(waits) = waits {
                revival.waiting.entry(child).or_insert(*waits).waits_for += 1;
            }
            if let Some(flow) = withdrawn {
                revival.withdrawn.entry(child).or_insert(WaitState { waits_for: 0, flow: *flow }).waits_for += 1;
            }
            let Some(stood) = stood else { continue };
            let parents = into.get(&child).into_iter().flatten();
            let forbidden = stood.flow.join() == Join::All
                && parents.clone().any(|parent| states.get(&(*parent, child)) == Some(&EdgeState::NotHeld));
            if !forbidden && revival.revived.insert(child, (0, stood.flow)).is_none() {
                alive.push_back(child);
            }
        }
    }
    let count = |child: &JobId, state| {
        let parents = into.get(child).into_iter().flatten();
        parents.filter(|parent| states.get(&(**parent, *child)) == Some(&state)).count()
    };
    let held = |child: &JobId, flow: JobFlags| {
        let held = flow.join() == Join::Any && count(child, EdgeState::Held) > 0;
        if held { flow.with(JobFlags::HELD) } else { flow.without(JobFlags::HELD) }
    };
    for (child, (waits_for, flow)) in &mut revival.revived {
        let open = u32::try_from(count(child, EdgeState::Open)).unwrap_or(u32::MAX);
        *waits_for = open + u32::from(flow.has(JobFlags::SIGNAL));
        *flow = held(child, *flow);
    }
    for (child, waits) in revival.waiting.iter_mut().chain(&mut revival.withdrawn) {
        waits.flow = held(child, waits.flow);
    }
    revival
}

/// Those of `released` that their edges let go: all are decided, and as the job asked.
fn let_go_by_edges(edges: &[Edge], released: &BTreeMap<JobId, JobFlags>) -> BTreeMap<JobId, JobFlags> {
    let mut into: HashMap<JobId, Vec<EdgeState>> = HashMap::new();
    for edge in edges.iter().filter(|edge| released.contains_key(&edge.child)) {
        into.entry(edge.child).or_default().push(edge.state);
    }
    let let_go = |(id, flow): &(&JobId, &JobFlags)| {
        let states = into.get(id).map_or(&[][..], Vec::as_slice);
        match flow.join() {
            Join::All => states.iter().all(|state| *state == EdgeState::Held),
            Join::Any => states.contains(&EdgeState::Held) && !states.contains(&EdgeState::Open),
        }
    };
    released.iter().filter(let_go).map(|(id, flow)| (*id, *flow)).collect()
}

#[cfg(test)]
mod tests {
    use jiff::Timestamp;
    use uuid::Uuid;

    use super::*;
    use crate::json::JsonText;
    use crate::name::Kind;
    use crate::spec::{JobSpec, JobType};

    const fn id(number: u128) -> JobId {
        JobId(Uuid::from_u128(number))
    }

    fn edge(parent: u128, child: u128, state: EdgeState) -> Edge {
        Edge { state, ..Edge::new(id(0), id(parent), id(child), Condition::Success) }
    }

    fn canceled(numbers: &[(u128, JobFlags)]) -> BTreeMap<JobId, CanceledStep> {
        numbers.iter().map(|(number, flow)| (id(*number), CanceledStep { flow: *flow })).collect()
    }

    fn revive(retried: JobId, edges: &[Edge], canceled: &BTreeMap<JobId, CanceledStep>) -> Revival {
        super::revive(retried, edges, canceled, &BTreeMap::new(), &BTreeMap::new())
    }

    use EdgeState::{Held, NotHeld, Open};

    #[test]
    fn only_what_was_canceled_by_an_end_waits_or_has_not_begun_may_be_revived() {
        let check = |state, canceled_because, flow, attempts, expected| {
            let spec = JobSpec::new(Kind::new("a").unwrap(), JsonText::from_store("0"));
            let epoch = Timestamp::UNIX_EPOCH;
            let job = JobRecord {
                attempts,
                flow,
                canceled_because,
                ..JobRecord::stored(id(2), spec, JobType::Single, state, epoch, epoch)
            };
            assert_eq!(may_revive(&job), expected, "{state} {flow:?} after {attempts}");
        };
        let (none, tied) = (JobFlags::none(), JobFlags::INPUTS);
        check(JobState::Canceled, Some(id(1)), tied, 0, true);
        check(JobState::Canceled, None, tied, 0, false);
        check(JobState::Waiting, None, tied, 0, true);
        check(JobState::Pending, None, tied, 0, true);
        check(JobState::Pending, None, tied, 1, false);
        check(JobState::Pending, None, tied.with(JobFlags::SIGNAL), 0, false);
        check(JobState::Pending, None, none, 0, false);
        check(JobState::Running, None, tied, 0, false);
        check(JobState::Succeeded, None, tied, 1, false);
    }

    #[test]
    fn everything_downstream_waits_again() {
        let edges = [edge(1, 2, NotHeld), edge(2, 3, NotHeld)];
        let back = revive(id(1), &edges, &canceled(&[(2, JobFlags::none()), (3, JobFlags::none())]));
        assert_eq!(back.reopened, [(id(1), id(2)), (id(2), id(3))]);
        let waits = (1, JobFlags::none());
        assert_eq!(back.revived, BTreeMap::from([(id(2), waits), (id(3), waits)]));
    }

    #[test]
    fn a_join_waits_only_for_what_is_still_open() {
        let edges = [edge(1, 3, NotHeld), edge(2, 3, Held)];
        let back = revive(id(1), &edges, &canceled(&[(3, JobFlags::none())]));
        assert_eq!(back.revived, BTreeMap::from([(id(3), (1, JobFlags::none()))]));
    }

    #[test]
    fn a_join_that_another_parent_forbids_comes_back_with_that_one() {
        let edges = [edge(1, 3, NotHeld), edge(2, 3, NotHeld)];
        let first = revive(id(1), &edges, &canceled(&[(3, JobFlags::none())]));
        assert_eq!((first.reopened, first.revived.len()), (vec![(id(1), id(3))], 0));
        let edges = [edge(1, 3, Open), edge(2, 3, NotHeld)];
        let second = revive(id(2), &edges, &canceled(&[(3, JobFlags::none())]));
        assert_eq!(second.revived, BTreeMap::from([(id(3), (2, JobFlags::none()))]));
    }

    #[test]
    fn any_join_comes_back_as_soon_as_one_edge_is_open() {
        let edges = [edge(1, 3, NotHeld), edge(2, 3, NotHeld)];
        let back = revive(id(1), &edges, &canceled(&[(3, JobFlags::JOIN_ANY)]));
        assert_eq!(back.revived, BTreeMap::from([(id(3), (1, JobFlags::JOIN_ANY))]));
    }

    #[test]
    fn what_was_not_canceled_by_another_end_stays_as_it_is() {
        let edges = [edge(1, 2, NotHeld), edge(1, 3, Held)];
        let back = revive(id(1), &edges, &canceled(&[]));
        assert_eq!(back, Revival::default());
    }

    #[test]
    fn a_job_that_still_waits_waits_for_what_comes_back() {
        let edges = [edge(1, 3, Held), edge(2, 3, Open), edge(1, 4, NotHeld), edge(4, 3, NotHeld)];
        let any = JobFlags::JOIN_ANY;
        let waiting = BTreeMap::from([(id(3), WaitState { waits_for: 1, flow: any.with(JobFlags::HELD) })]);
        let back = super::revive(id(1), &edges, &canceled(&[(4, JobFlags::none())]), &waiting, &BTreeMap::new());
        assert_eq!(back.reopened, [(id(1), id(3)), (id(1), id(4)), (id(4), id(3))]);
        assert_eq!(
            back.waiting,
            BTreeMap::from([(id(3), WaitState { waits_for: 3, flow: any })]),
            "none holds any more"
        );
        let edges = [edge(1, 3, NotHeld), edge(2, 3, Held), edge(5, 3, Open)];
        let back = super::revive(id(1), &edges, &canceled(&[]), &waiting, &BTreeMap::new());
        let flow = any.with(JobFlags::HELD);
        assert_eq!(back.waiting, BTreeMap::from([(id(3), WaitState { waits_for: 2, flow })]));
    }

    #[test]
    fn what_was_let_go_and_has_not_begun_waits_again() {
        let none = BTreeMap::new();
        let withdrawn = |edges: &[Edge], flow: JobFlags| {
            super::revive(id(1), edges, &canceled(&[]), &none, &BTreeMap::from([(id(3), flow)])).withdrawn
        };
        let any = JobFlags::JOIN_ANY;
        let waits = |waits_for, flow| BTreeMap::from([(id(3), WaitState { waits_for, flow })]);
        assert_eq!(withdrawn(&[edge(1, 3, Held)], JobFlags::none()), waits(1, JobFlags::none()));
        assert_eq!(withdrawn(&[edge(1, 3, NotHeld), edge(2, 3, Held)], any), waits(1, any.with(JobFlags::HELD)));
        // Somebody else let it go: what it was to wait for has not come, or forbade it.
        assert_eq!(withdrawn(&[edge(1, 3, Held), edge(2, 3, Open)], JobFlags::none()), BTreeMap::new());
        assert_eq!(withdrawn(&[edge(1, 3, NotHeld)], JobFlags::none()), BTreeMap::new());
        let next_fire = Edge { condition: Condition::Ended, ..edge(1, 3, Held) };
        assert_eq!(withdrawn(&[next_fire], JobFlags::none()), BTreeMap::new());
    }
}
