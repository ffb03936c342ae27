use std::collections::{BTreeMap, BTreeSet};

use ratchet_core::flow::{Edge, Workflow, WorkflowStep};
use ratchet_core::page::{JobCursor, Page};
use ratchet_core::{JobFlags, JobId, JobType, StoreError};

use super::{WorkflowBuilder, WorkflowHandle};
use crate::client::Client;
use crate::client::caller::{Filling, no_page};
use crate::client::control::canceled_event;
use crate::protect::authorizer::{Action, Scope};

/// Workflows.
impl Client {
    /// Begins a workflow of any shape: steps and edges follow, [`WorkflowBuilder::submit`] does it.
    pub fn workflow(&self) -> WorkflowBuilder {
        WorkflowBuilder::new(self.clone())
    }

    /// A workflow as it stands, with all its steps and edges; `None` if there is none of this id.
    pub async fn workflow_graph(&self, id: JobId) -> Result<Option<Workflow>, StoreError> {
        if !self.may(Action::Read, id).await? {
            return Ok(None);
        }
        if let Some(workflow) = self.store().workflow(id).await? {
            return Ok(Some(workflow));
        }
        // A workflow of one step has no edge that tells of it; only the step's name does.
        let alone = self.find(id).await?.filter(|job| job.step.is_some() && job.workflow.is_none());
        Ok(alone.map(|job| Workflow { id, steps: vec![WorkflowStep::of(&job)], edges: Vec::new() }))
    }

    /// The ids of workflows, newest first, a page at a time. Those of a single step are jobs like others, and not among them.
    /// For a caller who may not read them all a page may be short though there is a next one.
    pub async fn workflows(&self, after: Option<JobCursor>, limit: usize) -> Result<Page<JobId>, StoreError> {
        match self.scope() {
            Scope::Everything => return self.store().workflows(after, limit).await,
            Scope::Nothing => return Ok(no_page()),
            Scope::Of(_) => {}
        }
        let mut filling = Filling::new(after, limit);
        while filling.goes_on() {
            let portion = self.store().workflows(filling.after(), limit).await?;
            let readable = self.readable(&portion.items).await?;
            filling.add(portion, |id| *id, |id| readable.contains(id));
        }
        Ok(filling.page())
    }

    /// A handle to a workflow that was submitted earlier, perhaps by another process; `None` if there is none of this id.
    pub async fn workflow_handle(&self, id: JobId) -> Result<Option<WorkflowHandle>, StoreError> {
        let Some(workflow) = self.workflow_graph(id).await? else { return Ok(None) };
        Ok(Some(WorkflowHandle::new(self.clone(), id, names(&workflow), false)))
    }

    /// Cancels every step of a workflow that has not ended; says how many those were.
    ///
    /// A step that stands for a batch takes the batch's children along, which are not counted; so does a batch that nothing
    /// follows, which is no workflow and counts as one step.
    pub async fn cancel_workflow(&self, id: JobId) -> Result<usize, StoreError> {
        if !self.may(Action::Cancel, id).await? {
            return Ok(0);
        }
        let Some(workflow) = self.workflow_graph(id).await? else {
            return self.cancel_lone_batch(id).await;
        };
        let mut canceled = 0;
        let mut gone = BTreeSet::new();
        // In the order in which they were made: the first ones take what follows along.
        for step in workflow.steps.iter().filter(|step| !step.state.is_terminal()) {
            if gone.contains(&step.id) {
                continue;
            }
            if let Some(done) = self.store().cancel(step.id).await? {
                canceled += 1 + done.followed.len();
                gone.extend(done.followed.iter().map(|followed| followed.id));
                let is_batch = done.job.flow.has(JobFlags::BATCH);
                self.after(Some(done), canceled_event);
                if is_batch {
                    self.cancel_children(step.id).await?;
                }
            }
        }
        Ok(canceled)
    }

    async fn cancel_lone_batch(&self, id: JobId) -> Result<usize, StoreError> {
        let Some(batch) = self.batch_record(id).await? else { return Ok(0) };
        self.cancel_batch(id).await?;
        Ok(usize::from(!batch.progress().ended))
    }

    /// The jobs that wait, or waited, for this one: each edge with its condition and what came of it.
    pub async fn dependants(&self, id: JobId) -> Result<Vec<Edge>, StoreError> {
        if !self.may(Action::Read, id).await? {
            return Ok(Vec::new());
        }
        self.store().edges_from(&[id]).await
    }
}

/// The steps by the names that they were given; those that ask conditions are Ratchet's own, whatever they were called.
pub(super) fn names(workflow: &Workflow) -> BTreeMap<String, JobId> {
    let own = workflow.steps.iter().filter(|step| step.job_type != JobType::Condition);
    own.filter_map(|step| Some((step.step.as_ref()?.as_str().to_owned(), step.id))).collect()
}
