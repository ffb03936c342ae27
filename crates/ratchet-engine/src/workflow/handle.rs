use std::collections::BTreeMap;
use std::time::Duration;

use ratchet_core::flow::{Workflow, WorkflowState};
use ratchet_core::store::Submitted;
use ratchet_core::{ErrorKind, JobId, StoreError};

use crate::client::Client;
use crate::client::handle::JobHandle;

/// A workflow that was submitted.
#[derive(Debug, Clone)]
pub struct WorkflowHandle {
    client: Client,
    id: JobId,
    steps: BTreeMap<String, JobId>,
    duplicate: bool,
}

const LOOK_AGAIN_MIN: Duration = Duration::from_millis(10);
const LOOK_AGAIN_MAX: Duration = Duration::from_millis(500);

impl WorkflowHandle {
    pub(crate) fn new(client: Client, id: JobId, steps: BTreeMap<String, JobId>, duplicate: bool) -> Self {
        Self { client, id, steps, duplicate }
    }

    /// The workflow's id.
    pub fn id(&self) -> JobId {
        self.id
    }

    /// Whether an earlier workflow with the same idempotency key stands for this submit.
    pub fn is_duplicate(&self) -> bool {
        self.duplicate
    }

    /// A handle to one of its steps; `None` if there is none of this name.
    pub fn step<T>(&self, name: &str) -> Option<JobHandle<T>> {
        let id = self.steps.get(name)?;
        Some(JobHandle::new(self.client.clone(), Submitted::Created(*id)))
    }

    /// The workflow as it stands: its steps, its edges, and what came of them.
    ///
    /// # Errors
    /// [`NotFound`](ErrorKind::NotFound) if it was deleted.
    pub async fn graph(&self) -> Result<Workflow, StoreError> {
        self.client.workflow_graph(self.id).await?.ok_or_else(|| {
            let problem = "there is no such workflow; its jobs were deleted";
            StoreError::new(ErrorKind::NotFound, format!("reading workflow {}", self.id), problem)
        })
    }

    /// What has come of it as a whole.
    pub async fn status(&self) -> Result<WorkflowState, StoreError> {
        Ok(self.graph().await?.state())
    }

    /// Waits until every step has ended, wherever they run.
    pub async fn wait(&self) -> Result<Workflow, StoreError> {
        let mut look_again = LOOK_AGAIN_MIN;
        loop {
            let graph = self.graph().await?;
            if graph.state() != WorkflowState::Running {
                return Ok(graph);
            }
            tokio::time::sleep(look_again).await;
            look_again = (look_again * 2).min(LOOK_AGAIN_MAX);
        }
    }

    /// Cancels every step that has not ended; says how many those were.
    pub async fn cancel(&self) -> Result<usize, StoreError> {
        self.client.cancel_workflow(self.id).await
    }
}
