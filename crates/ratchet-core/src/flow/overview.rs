use serde::Serialize;

use super::{Edge, EdgeState};
use crate::id::JobId;
use crate::name::{Kind, StepName};
use crate::record::JobRecord;
use crate::spec::JobType;
use crate::state::JobState;
use crate::store::StateCounts;

/// A workflow as it stands.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Workflow {
    /// Its id.
    pub id: JobId,
    /// Its steps, in the order in which they were made.
    pub steps: Vec<WorkflowStep>,
    /// What ties them together, in the order of definition.
    pub edges: Vec<Edge>,
}

/// A step of a workflow as it stands.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct WorkflowStep {
    /// The job.
    pub id: JobId,
    /// Its name.
    pub step: Option<StepName>,
    /// Its kind.
    pub kind: Kind,
    /// How it came to be.
    pub job_type: JobType,
    /// Where it stands.
    pub state: JobState,
    /// If it is paused, what it goes back to.
    pub paused_from: Option<JobState>,
    /// The sanitized error of its last failed attempt.
    pub error: Option<String>,
    /// The job whose end canceled it.
    pub canceled_because: Option<JobId>,
}

impl WorkflowStep {
    /// The step that this job is.
    pub fn of(job: &JobRecord) -> Self {
        Self {
            id: job.id,
            step: job.step.clone(),
            kind: job.spec.kind.clone(),
            job_type: job.job_type,
            state: job.state,
            paused_from: job.paused_from,
            error: job.last_error.clone(),
            canceled_because: job.canceled_because,
        }
    }

    /// What it has ended as, also if it was put aside since: nothing will come of a dead letter by itself, paused or not.
    fn ended_as(&self) -> Option<JobState> {
        let state = self.paused_from.unwrap_or(self.state);
        state.is_terminal().then_some(state)
    }
}

/// What has come of a workflow.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "UPPERCASE")]
pub enum WorkflowState {
    /// A step is still to come to its end.
    Running,
    /// Every step has ended, and every failure had a branch that took care of it.
    Succeeded,
    /// A step has failed, and nothing took care of it.
    Failed,
    /// A person has canceled a step.
    Canceled,
}

impl WorkflowState {
    /// Its name, in capitals.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Running => JobState::Running.as_str(),
            Self::Succeeded => JobState::Succeeded.as_str(),
            Self::Failed => JobState::Failed.as_str(),
            Self::Canceled => JobState::Canceled.as_str(),
        }
    }
}

impl Workflow {
    /// How many steps stand where.
    pub fn counts(&self) -> StateCounts {
        let mut counts = StateCounts::new();
        for step in &self.steps {
            *counts.entry(step.state).or_default() += 1;
        }
        counts
    }

    /// What has come of it, as a whole.
    pub fn state(&self) -> WorkflowState {
        let any = |wanted: &dyn Fn(&WorkflowStep) -> bool| self.steps.iter().any(wanted);
        let cared_for = |id| self.edges.iter().any(|edge| edge.parent == id && edge.state == EdgeState::Held);
        if any(&|step| step.ended_as().is_none()) {
            WorkflowState::Running
        } else if any(&|step| step.ended_as() == Some(JobState::Failed) && !cared_for(step.id)) {
            WorkflowState::Failed
        } else if any(&|step| step.state == JobState::Canceled && step.canceled_because.is_none()) {
            WorkflowState::Canceled
        } else {
            WorkflowState::Succeeded
        }
    }
}

#[cfg(test)]
mod tests {
    use uuid::Uuid;

    use super::*;
    use crate::flow::Condition;

    #[test]
    fn a_workflow_is_what_its_steps_are() {
        use JobState::{Canceled, Failed, Pending, Succeeded, Waiting};
        let id = |number: usize| JobId(Uuid::from_u128(number as u128));
        let check = |states: &[(JobState, bool)], edges: &[(usize, usize)], expected| {
            let step = |(place, (state, blamed)): (usize, &(JobState, bool))| WorkflowStep {
                id: id(place),
                step: None,
                kind: Kind::new("test").unwrap(),
                job_type: JobType::Single,
                state: *state,
                paused_from: None,
                error: None,
                canceled_because: blamed.then_some(id(0)),
            };
            let edge = |(parent, child): &(usize, usize)| Edge {
                state: EdgeState::Held,
                ..Edge::new(id(0), id(*parent), id(*child), Condition::Failure)
            };
            let steps = states.iter().enumerate().map(step).collect();
            let workflow = Workflow { id: id(0), steps, edges: edges.iter().map(edge).collect() };
            assert_eq!(workflow.state(), expected, "{states:?}");
        };
        check(&[(Succeeded, false), (Succeeded, false)], &[], WorkflowState::Succeeded);
        check(&[(Failed, false), (Waiting, false)], &[], WorkflowState::Running);
        check(&[(Failed, false), (Canceled, true)], &[], WorkflowState::Failed);
        check(&[(Failed, false), (Succeeded, false)], &[(0, 1)], WorkflowState::Succeeded);
        check(&[(Succeeded, false), (Canceled, true)], &[], WorkflowState::Succeeded);
        check(&[(Canceled, false), (Canceled, true)], &[], WorkflowState::Canceled);
        check(&[(Succeeded, false), (Pending, false)], &[], WorkflowState::Running);
    }
}
