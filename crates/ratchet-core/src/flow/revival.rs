use std::collections::{BTreeMap, HashMap, VecDeque};

use super::{Edge, EdgeState, Flow, Join};
use crate::id::JobId;

/// A job of a workflow that was cancelled because of another's end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Stood {
    /// Its ties.
    pub flow: Flow,
}

/// What a retry brings back.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Revival {
    /// Edges that are open again: parent and child.
    pub reopened: Vec<(JobId, JobId)>,
    /// Jobs that wait again, for how many, and with which ties.
    pub revived: BTreeMap<JobId, (u32, Flow)>,
}

/// What the retry of `retried` brings back: every job that was cancelled because of ends that are undone by it.
///
/// `edges` are all of the workflow, `canceled` those of its jobs that were cancelled by the end of another. A job that
/// another edge still forbids stays cancelled, but its edge is open again, so that it can come back when that one does.
///
/// Work is bounded by the number of edges: each is opened at most once.
pub fn revive(retried: JobId, edges: &[Edge], canceled: &BTreeMap<JobId, Stood>) -> Revival {
    let mut states: HashMap<(JobId, JobId), EdgeState> =
        edges.iter().map(|edge| ((edge.parent, edge.child), edge.state)).collect();
    let mut into: HashMap<JobId, Vec<JobId>> = HashMap::new();
    let mut out: HashMap<JobId, Vec<JobId>> = HashMap::new();
    for edge in edges {
        into.entry(edge.child).or_default().push(edge.parent);
        out.entry(edge.parent).or_default().push(edge.child);
    }
    let mut revival = Revival::default();
    let mut alive = VecDeque::from([retried]);
    while let Some(parent) = alive.pop_front() {
        for child in out.get(&parent).into_iter().flatten().copied() {
            let Some(stood) = canceled.get(&child) else { continue };
            let edge = states.entry((parent, child)).or_insert(EdgeState::Open);
            if *edge == EdgeState::Open {
                continue;
            }
            *edge = EdgeState::Open;
            revival.reopened.push((parent, child));
            let parents = into.get(&child).into_iter().flatten();
            let forbidden = stood.flow.join() == Join::All
                && parents.clone().any(|parent| states.get(&(*parent, child)) == Some(&EdgeState::NotHeld));
            if !forbidden && revival.revived.insert(child, (0, stood.flow)).is_none() {
                alive.push_back(child);
            }
        }
    }
    for (child, (waits_for, flow)) in &mut revival.revived {
        let parents = into.get(child).into_iter().flatten();
        let count = |state| parents.clone().filter(|parent| states.get(&(**parent, *child)) == Some(&state)).count();
        let held = flow.join() == Join::Any && count(EdgeState::Held) > 0;
        *waits_for = u32::try_from(count(EdgeState::Open)).unwrap_or(u32::MAX) + u32::from(flow.has(Flow::SIGNAL));
        *flow = if held { flow.with(Flow::HELD) } else { flow.without(Flow::HELD) };
    }
    revival
}

#[cfg(test)]
mod tests {
    use uuid::Uuid;

    use super::*;
    use crate::flow::Condition;

    const fn id(number: u128) -> JobId {
        JobId(Uuid::from_u128(number))
    }

    fn edge(parent: u128, child: u128, state: EdgeState) -> Edge {
        Edge { state, ..Edge::new(id(0), id(parent), id(child), Condition::Success) }
    }

    fn canceled(numbers: &[(u128, Flow)]) -> BTreeMap<JobId, Stood> {
        numbers.iter().map(|(number, flow)| (id(*number), Stood { flow: *flow })).collect()
    }

    use EdgeState::{Held, NotHeld, Open};

    #[test]
    fn everything_downstream_waits_again() {
        let edges = [edge(1, 2, NotHeld), edge(2, 3, NotHeld)];
        let back = revive(id(1), &edges, &canceled(&[(2, Flow::none()), (3, Flow::none())]));
        assert_eq!(back.reopened, [(id(1), id(2)), (id(2), id(3))]);
        let waits = (1, Flow::none());
        assert_eq!(back.revived, BTreeMap::from([(id(2), waits), (id(3), waits)]));
    }

    #[test]
    fn a_join_waits_only_for_what_is_still_open() {
        let edges = [edge(1, 3, NotHeld), edge(2, 3, Held)];
        let back = revive(id(1), &edges, &canceled(&[(3, Flow::none())]));
        assert_eq!(back.revived, BTreeMap::from([(id(3), (1, Flow::none()))]));
    }

    #[test]
    fn a_join_that_another_parent_forbids_comes_back_with_that_one() {
        let edges = [edge(1, 3, NotHeld), edge(2, 3, NotHeld)];
        let first = revive(id(1), &edges, &canceled(&[(3, Flow::none())]));
        assert_eq!((first.reopened, first.revived.len()), (vec![(id(1), id(3))], 0));
        let edges = [edge(1, 3, Open), edge(2, 3, NotHeld)];
        let second = revive(id(2), &edges, &canceled(&[(3, Flow::none())]));
        assert_eq!(second.revived, BTreeMap::from([(id(3), (2, Flow::none()))]));
    }

    #[test]
    fn any_join_comes_back_as_soon_as_one_edge_is_open() {
        let edges = [edge(1, 3, NotHeld), edge(2, 3, NotHeld)];
        let back = revive(id(1), &edges, &canceled(&[(3, Flow::JOIN_ANY)]));
        assert_eq!(back.revived, BTreeMap::from([(id(3), (1, Flow::JOIN_ANY))]));
    }

    #[test]
    fn what_was_not_cancelled_by_another_end_stays_as_it_is() {
        let edges = [edge(1, 2, NotHeld), edge(1, 3, Held)];
        let back = revive(id(1), &edges, &canceled(&[]));
        assert_eq!(back, Revival::default());
    }
}
