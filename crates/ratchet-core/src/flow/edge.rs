use std::collections::HashMap;

use serde::{Deserialize, Serialize};

use super::Condition;
use crate::id::JobId;

/// One job waits for another's end.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Edge {
    /// The workflow that both belong to.
    pub workflow: JobId,
    /// The job that ends.
    pub parent: JobId,
    /// The job that waits.
    pub child: JobId,
    /// What the parent's end must be like for the edge to hold.
    pub condition: Condition,
    /// What the condition means, for people.
    pub description: Option<String>,
    /// Among exclusive edges of one parent, the lowest is asked first.
    pub priority: i32,
    /// Where it was defined among the edges of the workflow; of equal priorities the first defined is asked first.
    pub order: u32,
    /// Whether at most one of the parent's exclusive edges may hold.
    pub exclusive: bool,
    /// What has become of it.
    pub state: EdgeState,
}

impl Edge {
    /// An edge that holds if the parent succeeds.
    pub fn new(workflow: JobId, parent: JobId, child: JobId, condition: Condition) -> Self {
        Self {
            workflow,
            parent,
            child,
            condition,
            description: None,
            priority: 0,
            order: 0,
            exclusive: false,
            state: EdgeState::Open,
        }
    }
}

/// The edges that can be reached from these jobs.
pub fn below(from: &[JobId], edges: Vec<Edge>) -> Vec<Edge> {
    let mut of_parent: HashMap<JobId, Vec<Edge>> = HashMap::new();
    for edge in edges {
        of_parent.entry(edge.parent).or_default().push(edge);
    }
    let mut reached = Vec::new();
    let mut next = from.to_vec();
    while let Some(parent) = next.pop() {
        for edge in of_parent.remove(&parent).into_iter().flatten() {
            next.push(edge.child);
            reached.push(edge);
        }
    }
    reached
}

/// What has become of an edge.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
pub enum EdgeState {
    /// Its parent has not ended.
    Open,
    /// Its parent has ended as the condition asks.
    Held,
    /// Its parent has ended otherwise.
    NotHeld,
}

impl EdgeState {
    /// Every state.
    pub const ALL: [Self; 3] = [Self::Open, Self::Held, Self::NotHeld];

    /// Its name, in capitals.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Open => "OPEN",
            Self::Held => "HELD",
            Self::NotHeld => "NOT_HELD",
        }
    }

    /// The state of a stored name.
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|state| state.as_str() == name)
    }
}

/// When a job that waits for several others is let go.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
pub enum Join {
    /// When every edge holds; the first that does not cancels it.
    #[default]
    All,
    /// When every edge is decided and at least one holds; if none does it is canceled.
    ///
    /// So a job after two exclusive branches runs after the one that was taken.
    Any,
}

#[cfg(test)]
mod tests {
    use uuid::Uuid;

    use super::*;

    #[test]
    fn what_is_below_jobs_is_reached_once() {
        const fn id(number: u128) -> JobId {
            JobId(Uuid::from_u128(number))
        }
        let edges: Vec<Edge> = [(1, 2), (1, 3), (2, 4), (3, 4), (4, 5), (8, 9), (6, 1)]
            .map(|(parent, child)| Edge::new(id(0), id(parent), id(child), Condition::Success))
            .into();
        let check = |from: &[u128], expected: &[(u128, u128)]| {
            let from: Vec<JobId> = from.iter().copied().map(id).collect();
            let mut found: Vec<_> = below(&from, edges.clone()).iter().map(|edge| (edge.parent, edge.child)).collect();
            found.sort_unstable();
            let expected: Vec<_> = expected.iter().map(|(parent, child)| (id(*parent), id(*child))).collect();
            assert_eq!(found, expected, "from {from:?}");
        };
        check(&[1], &[(1, 2), (1, 3), (2, 4), (3, 4), (4, 5)]);
        check(&[3, 8], &[(3, 4), (4, 5), (8, 9)]);
        check(&[5], &[]);
    }
}
