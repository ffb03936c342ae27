use std::collections::{BTreeMap, BTreeSet, HashMap, VecDeque};

use super::{Condition, Edge, EdgeState, JobFlags, Join};
use crate::id::JobId;
use crate::json::JsonText;
use crate::state::JobState;

/// The end of a job, as far as others care.
#[derive(Debug, Clone, Copy)]
pub struct End<'a> {
    /// The job.
    pub id: JobId,
    /// What it ended as.
    pub state: JobState,
    /// Its result, if it succeeded.
    pub result: Option<&'a JsonText>,
}

/// A job that waits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct WaitState {
    /// How many edges, and signals, are still to come.
    pub waits_for: u32,
    /// Its ties.
    pub flow: JobFlags,
}

/// What becomes of a job that waits.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Fate {
    /// It waits on, for fewer.
    Waits(WaitState),
    /// It has nothing left to wait for.
    Released,
    /// It will not run, because of the end of this job.
    Canceled {
        /// The job that ended otherwise than was hoped, however far up.
        because: JobId,
    },
    /// It cannot be told whether it is to run.
    Failed {
        /// Why not.
        error: String,
    },
}

/// What follows from the ends of jobs.
#[derive(Debug, Default)]
pub struct Consequences {
    /// Edges that are decided now: parent, child, and how.
    pub edges: Vec<(JobId, JobId, EdgeState)>,
    /// What becomes of the jobs that waited for them.
    pub fates: BTreeMap<JobId, Fate>,
    /// Jobs that end by this, or have left their place in a queue, and may have dependants in turn.
    pub deeper: Vec<JobId>,
}

/// What follows from the ends of jobs, as far as `edges` go.
///
/// `edges` are those that begin at the ends, and may be more; `waiting` are the children that are WAITING now, `over` those
/// that are not live. If jobs end by this that others depend on, they are named in [`deeper`](Consequences::deeper): a store that did not give their edges
/// reads all of the workflow and asks again.
///
/// Work is bounded by the number of edges: each is decided at most once.
pub fn follow(
    ends: &[End<'_>],
    edges: &[Edge],
    waiting: &BTreeMap<JobId, WaitState>,
    over: &BTreeSet<JobId>,
) -> Consequences {
    let mut of_parent: HashMap<JobId, Vec<&Edge>> = HashMap::new();
    for edge in edges.iter().filter(|edge| edge.state == EdgeState::Open) {
        of_parent.entry(edge.parent).or_default().push(edge);
    }
    let mut waiting = waiting.clone();
    let mut done = Consequences::default();
    let mut ended: VecDeque<(End<'_>, JobId)> = ends.iter().map(|end| (*end, end.id)).collect();
    while let Some((end, because)) = ended.pop_front() {
        let Some(mut edges) = of_parent.remove(&end.id) else { continue };
        edges.sort_unstable_by_key(|edge| (edge.priority, edge.order));
        let mut taken = false;
        for edge in edges {
            let verdict = if edge.exclusive && taken { Ok(false) } else { edge.condition.holds(end.state, end.result) };
            // One that cannot be told might have been the one: the next are not taken in its stead.
            taken |= edge.exclusive && verdict != Ok(false);
            let state = if verdict == Ok(true) { EdgeState::Held } else { EdgeState::NotHeld };
            done.edges.push((edge.parent, edge.child, state));
            let Some(child) = waiting.get_mut(&edge.child) else {
                // It was canceled while it waited for this: who waits behind it has waited for this, too.
                if edge.condition == Condition::Ended && over.contains(&edge.child) {
                    done.deeper.push(edge.child);
                    ended.push_back((End { id: edge.child, state: JobState::Canceled, result: None }, because));
                }
                continue;
            };
            // It waits for its signal alone: it was retried without regard to this.
            if child.waits_for <= u32::from(child.flow.has(JobFlags::SIGNAL)) {
                continue;
            }
            let fate = match verdict {
                Ok(holds) => decided(*child, holds, because),
                Err(problem) => Fate::Failed {
                    error: format!(
                        "whether to run could not be told from job {}: {problem} ({})",
                        end.id, edge.condition
                    ),
                },
            };
            let state = match fate {
                Fate::Waits(left) => {
                    *child = left;
                    None
                }
                Fate::Released => None,
                Fate::Canceled { .. } => Some(JobState::Canceled),
                Fate::Failed { .. } => Some(JobState::Failed),
            };
            if let Some(state) = state {
                if child.flow.has(JobFlags::DEPENDANTS) {
                    done.deeper.push(edge.child);
                }
                ended.push_back((End { id: edge.child, state, result: None }, because));
            }
            if !matches!(fate, Fate::Waits(_)) {
                waiting.remove(&edge.child);
            }
            done.fates.insert(edge.child, fate);
        }
    }
    done
}

/// What one decided edge means for the job that waits at its end.
fn decided(child: WaitState, holds: bool, because: JobId) -> Fate {
    let waits_for = child.waits_for.saturating_sub(1);
    let flow = if holds && child.flow.join() == Join::Any { child.flow.with(JobFlags::HELD) } else { child.flow };
    let open_edges = waits_for - u32::from(flow.has(JobFlags::SIGNAL)).min(waits_for);
    match flow.join() {
        Join::All if !holds => Fate::Canceled { because },
        Join::Any if open_edges == 0 && !flow.has(JobFlags::HELD) => Fate::Canceled { because },
        _ if waits_for == 0 => Fate::Released,
        _ => Fate::Waits(WaitState { waits_for, flow }),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;
    use uuid::Uuid;

    use super::*;
    use crate::flow::{Operator, ResultTest};

    fn follow(ends: &[End<'_>], edges: &[Edge], waiting: &BTreeMap<JobId, WaitState>) -> Consequences {
        super::follow(ends, edges, waiting, &BTreeSet::new())
    }

    const fn id(number: u128) -> JobId {
        JobId(Uuid::from_u128(number))
    }

    fn edge(parent: u128, child: u128, condition: Condition) -> Edge {
        Edge::new(id(0), id(parent), id(child), condition)
    }

    fn ended(number: u128, state: JobState) -> End<'static> {
        End { id: id(number), state, result: None }
    }

    fn waits(number: u128, waits_for: u32, flow: JobFlags) -> (JobId, WaitState) {
        (id(number), WaitState { waits_for, flow })
    }

    const HAS_MORE: JobFlags = JobFlags::DEPENDANTS;

    #[test]
    fn success_releases_the_next_step_and_failure_cancels_all_that_follow() {
        let edges = [edge(1, 2, Condition::Success), edge(2, 3, Condition::Success)];
        let waiting = BTreeMap::from([waits(2, 1, HAS_MORE), waits(3, 1, JobFlags::none())]);
        let won = follow(&[ended(1, JobState::Succeeded)], &edges, &waiting);
        assert_eq!(won.edges, [(id(1), id(2), EdgeState::Held)]);
        assert_eq!(won.fates, BTreeMap::from([(id(2), Fate::Released)]));
        for state in [JobState::Failed, JobState::Canceled] {
            let lost = follow(&[ended(1, state)], &edges, &waiting);
            let canceled = || Fate::Canceled { because: id(1) };
            assert_eq!(lost.fates, BTreeMap::from([(id(2), canceled()), (id(3), canceled())]));
            assert_eq!(lost.deeper, [id(2)]);
        }
    }

    #[test]
    fn a_join_counts_down_and_the_last_parent_releases_it() {
        let edges = [edge(1, 3, Condition::Success), edge(2, 3, Condition::Success)];
        let waiting = BTreeMap::from([waits(3, 2, JobFlags::none())]);
        let first = follow(&[ended(1, JobState::Succeeded)], &edges, &waiting);
        let left = WaitState { waits_for: 1, flow: JobFlags::none() };
        assert_eq!(first.fates[&id(3)], Fate::Waits(left));
        let second = follow(&[ended(2, JobState::Succeeded)], &edges, &BTreeMap::from([(id(3), left)]));
        assert_eq!(second.fates[&id(3)], Fate::Released);
        let both = follow(&[ended(1, JobState::Succeeded), ended(2, JobState::Succeeded)], &edges, &waiting);
        assert_eq!(both.fates[&id(3)], Fate::Released);
    }

    #[test]
    fn any_join_waits_for_all_and_runs_if_one_edge_held() {
        let edges = [edge(1, 3, Condition::Success), edge(2, 3, Condition::Success)];
        let waiting = BTreeMap::from([waits(3, 2, JobFlags::JOIN_ANY)]);
        let check = |first, second, expected: Fate| {
            let fate = follow(&[ended(1, first), ended(2, second)], &edges, &waiting).fates.remove(&id(3));
            assert_eq!(fate, Some(expected));
        };
        check(JobState::Succeeded, JobState::Canceled, Fate::Released);
        check(JobState::Failed, JobState::Succeeded, Fate::Released);
        check(JobState::Failed, JobState::Canceled, Fate::Canceled { because: id(2) });
        let one = follow(&[ended(1, JobState::Failed)], &edges, &waiting);
        assert_eq!(one.fates[&id(3)], Fate::Waits(WaitState { waits_for: 1, flow: JobFlags::JOIN_ANY }));
    }

    #[test]
    fn of_exclusive_branches_the_lowest_priority_that_holds_is_taken_then_the_first_defined() {
        let branch = |child, priority, order, test: &str| Edge {
            priority,
            order,
            exclusive: true,
            ..edge(1, child, Condition::Result(ResultTest::new(test, Operator::Exists, json!(null)).unwrap()))
        };
        let result = JsonText::encode("result", &json!({ "a": 1, "b": 1 }), 100).unwrap();
        let end = End { id: id(1), state: JobState::Succeeded, result: Some(&result) };
        let check = |edges: &[Edge], taken: u128| {
            let waiting =
                edges.iter().map(|edge| (edge.child, WaitState { waits_for: 1, flow: JobFlags::none() })).collect();
            let fates = follow(&[end], edges, &waiting).fates;
            let released: Vec<_> = fates.iter().filter(|(_, fate)| **fate == Fate::Released).collect();
            assert_eq!(released, [(&id(taken), &Fate::Released)]);
            assert_eq!(fates.len(), edges.len(), "the others are canceled");
        };
        check(&[branch(2, 5, 0, "/a"), branch(3, 1, 1, "/b")], 3);
        check(&[branch(2, 0, 7, "/a"), branch(3, 0, 1, "/b")], 3);
        check(&[branch(2, 0, 0, "/nothing"), branch(3, 1, 1, "/b")], 3);
    }

    #[test]
    fn of_exclusive_branches_none_is_taken_in_the_stead_of_one_that_cannot_be_told() {
        let branch = |child, order, test| Edge { order, exclusive: true, ..edge(1, child, Condition::Result(test)) };
        let broken = ResultTest::new("/text", Operator::MoreThan, 1).unwrap();
        let holds = ResultTest::new("/text", Operator::Exists, json!(null)).unwrap();
        let edges = [branch(2, 0, broken), branch(3, 1, holds)];
        let waiting = BTreeMap::from([waits(2, 1, JobFlags::none()), waits(3, 1, JobFlags::none())]);
        let result = JsonText::encode("result", &json!({ "text": "a" }), 100).unwrap();
        let end = End { id: id(1), state: JobState::Succeeded, result: Some(&result) };
        let fates = follow(&[end], &edges, &waiting).fates;
        assert!(matches!(fates[&id(2)], Fate::Failed { .. }), "{fates:?}");
        assert_eq!(fates[&id(3)], Fate::Canceled { because: id(1) });
    }

    #[test]
    fn a_condition_that_cannot_be_told_fails_its_branch_and_says_why() {
        let test = ResultTest::new("/total", Operator::MoreThan, 1).unwrap();
        let edges = [edge(1, 2, Condition::Result(test)), edge(2, 3, Condition::Failure)];
        let waiting = BTreeMap::from([waits(2, 1, HAS_MORE), waits(3, 1, JobFlags::none())]);
        let done = follow(&[ended(1, JobState::Succeeded)], &edges, &waiting);
        let Fate::Failed { error } = &done.fates[&id(2)] else { panic!("{done:?}") };
        assert!(error.ends_with("the result has nothing at \"/total\" (/total > 1)"), "{error}");
        assert_eq!(done.fates[&id(3)], Fate::Released, "what was meant for its failure runs");
    }

    #[test]
    fn an_edge_is_decided_once() {
        let mut decided = edge(1, 2, Condition::Success);
        decided.state = EdgeState::Held;
        let done = follow(&[ended(1, JobState::Failed)], &[decided], &BTreeMap::from([waits(2, 1, JobFlags::none())]));
        assert!(done.edges.is_empty() && done.fates.is_empty(), "{done:?}");
    }

    #[test]
    fn a_signal_that_has_not_come_holds_a_job_whose_edges_are_done() {
        let edges = [edge(1, 2, Condition::Success)];
        let waiting = BTreeMap::from([waits(2, 2, JobFlags::SIGNAL)]);
        let done = follow(&[ended(1, JobState::Succeeded)], &edges, &waiting);
        assert_eq!(done.fates[&id(2)], Fate::Waits(WaitState { waits_for: 1, flow: JobFlags::SIGNAL }));
        let any = BTreeMap::from([waits(2, 2, JobFlags::SIGNAL.with(JobFlags::JOIN_ANY))]);
        let lost = follow(&[ended(1, JobState::Failed)], &edges, &any);
        assert_eq!(lost.fates[&id(2)], Fate::Canceled { because: id(1) });
    }

    #[test]
    fn who_waits_behind_a_job_that_left_its_queue_waits_for_the_one_before_it() {
        let edges = [edge(1, 2, Condition::Ended), edge(2, 3, Condition::Ended), edge(3, 4, Condition::Ended)];
        let waiting = BTreeMap::from([waits(4, 1, JobFlags::none())]);
        let over = BTreeSet::from([id(2), id(3)]);
        let done = super::follow(&[ended(1, JobState::Succeeded)], &edges, &waiting, &over);
        assert_eq!(done.fates, BTreeMap::from([(id(4), Fate::Released)]));
        assert_eq!(done.edges.len(), 3, "each is decided");
        let first = super::follow(&[ended(1, JobState::Succeeded)], &edges[..1], &waiting, &over);
        assert_eq!(first.deeper, [id(2)], "there may be more");
        let live = follow(&[ended(1, JobState::Succeeded)], &edges, &waiting);
        assert!(live.fates.is_empty(), "the second runs: {live:?}");
    }

    #[test]
    fn a_job_that_was_retried_without_regard_to_an_edge_does_not_heed_it() {
        let edges = [edge(1, 2, Condition::Success)];
        let waiting = BTreeMap::from([waits(2, 1, JobFlags::SIGNAL)]);
        for state in [JobState::Succeeded, JobState::Failed] {
            let done = follow(&[ended(1, state)], &edges, &waiting);
            assert_eq!((done.edges.len(), done.fates.len()), (1, 0), "{done:?}");
        }
    }
}
