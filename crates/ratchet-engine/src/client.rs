//! Submitting jobs and steering them; the part of Ratchet that needs no handlers.

use std::collections::BTreeSet;
use std::fmt;
use std::sync::Arc;
use std::sync::OnceLock;

use jiff::Timestamp;
use ratchet_core::flow::{Edge, Workflow, WorkflowStep};
use ratchet_core::node::{NodeRecord, QueueRecord};
use ratchet_core::page::{JobCursor, JobFilter, Page};
use ratchet_core::store::{StateCounts, SubmitUnit, Transitioned};
use ratchet_core::{
    AttemptRecord, Clock, ClusterCoordinator, Flow, Followed, FollowedBy, Hint, InvalidInput, JobId, JobRecord,
    JobState, NodeId, Priority, QueueName, Store, StoreError, limits,
};
use tokio::sync::watch;

use crate::announcer::Announcer;
use crate::enqueue::{Enqueue, SubmitError, Waking};
use crate::events::{EventBus, EventStream, JobEventKind};
use crate::handle::JobHandle;
use crate::ids::new_node_id;
use crate::job::Job;
use crate::schedule::Notice;
use crate::signal::awaiting;
use crate::submitter::Submitter;
use crate::wake::Wake;
use crate::workflow::{WorkflowBuilder, WorkflowHandle};

/// Submits jobs and steers them. A process that only submits needs nothing else: [`Client::new`].
#[derive(Clone)]
pub struct Client {
    inner: Arc<Inner>,
}

struct Inner {
    store: Arc<dyn Store>,
    submitter: Arc<Submitter>,
    events: EventBus,
    wake: Wake,
    /// Tells other nodes, if there is a way to.
    announcer: Option<Arc<Announcer>>,
    /// Who this is in hints: made once, and an engine's first incarnation too.
    origin: NodeId,
    /// The engine's present incarnation, if this client belongs to one.
    node: OnceLock<watch::Receiver<NodeId>>,
    schedules: Notice,
}

impl Client {
    /// A client of this store, without handlers and without a poller.
    pub fn new(store: impl Store + 'static) -> Self {
        let coordinator = store.coordinator();
        Self::over(Arc::new(store), Arc::new(crate::ids::SystemClock), coordinator)
    }

    /// A client of a store that is shared with others.
    pub fn shared(store: Arc<dyn Store>) -> Self {
        let coordinator = store.coordinator();
        Self::over(store, Arc::new(crate::ids::SystemClock), coordinator)
    }

    /// A client that tells nodes of new work through `coordinator`, instead of the way that the store offers, if any.
    ///
    /// The client only uses it: it may be shared, and whoever made it closes it.
    pub fn with_coordinator(store: Arc<dyn Store>, coordinator: Arc<dyn ClusterCoordinator>) -> Self {
        Self::over(store, Arc::new(crate::ids::SystemClock), Some(coordinator))
    }

    pub(crate) fn over(
        store: Arc<dyn Store>,
        clock: Arc<dyn Clock>,
        coordinator: Option<Arc<dyn ClusterCoordinator>>,
    ) -> Self {
        let submitter = Submitter::new(store.clone());
        let origin = new_node_id();
        let announcer = coordinator.map(|coordinator| Announcer::new(coordinator, origin));
        let (events, wake, node) = (EventBus::new(clock), Wake::default(), OnceLock::new());
        let schedules = Notice::default();
        Self { inner: Arc::new(Inner { store, submitter, events, wake, announcer, origin, node, schedules }) }
    }

    /// Begins a submit: options follow, [`Enqueue::submit`] does it.
    #[expect(clippy::needless_pass_by_value, reason = "enqueue(charge(…)) reads as it is meant")]
    pub fn enqueue<J: Job>(&self, job: J) -> Enqueue<J> {
        Enqueue::new(self.clone(), &job)
    }

    /// Submits many jobs in one transaction: all of them, or none if one is refused.
    ///
    /// A job whose idempotency key was used before is no refusal: its handle follows the earlier job.
    ///
    /// # Errors
    /// As [`Enqueue::submit`]; at most 10,000 jobs a call.
    pub async fn submit_all<J: Job>(
        &self,
        jobs: impl IntoIterator<Item = Enqueue<J>>,
    ) -> Result<Vec<JobHandle<J::Output>>, SubmitError> {
        let mut unit = SubmitUnit::default();
        let mut waking = Waking::default();
        for enqueue in jobs {
            // Counted as they come, so that an endless iterator is refused too.
            limits::check_submit_count(unit.jobs.len() + 1)?;
            let (_, options) = enqueue.into_parts();
            let (one, wakes) = options.into_unit(self.now())?;
            waking = waking.max(wakes);
            if one.is_one_thing() {
                let problem = "is not for many jobs at once; submit each chain by itself, or all as one workflow";
                return Err(InvalidInput::new("then", problem).into());
            }
            unit.jobs.extend(one.jobs);
        }
        if unit.jobs.is_empty() {
            return Ok(Vec::new());
        }
        let awaiting = awaiting(&unit);
        let submitted = self.submitter().submit(unit).await?;
        self.submitted(waking);
        self.tell_awaiting(awaiting).await;
        Ok(submitted.into_iter().map(|one| JobHandle::new(self.clone(), one)).collect())
    }

    /// Begins a workflow of any shape: steps and edges follow, [`WorkflowBuilder::submit`] does it.
    pub fn workflow(&self) -> WorkflowBuilder {
        WorkflowBuilder::new(self.clone())
    }

    /// A workflow as it stands, with all its steps and edges; `None` if there is none of this id.
    pub async fn workflow_graph(&self, id: JobId) -> Result<Option<Workflow>, StoreError> {
        self.inner.store.workflow(id).await
    }

    /// The ids of workflows, newest first, a page at a time.
    pub async fn workflows(&self, after: Option<JobCursor>, limit: usize) -> Result<Page<JobId>, StoreError> {
        self.inner.store.workflows(after, limit).await
    }

    /// A handle to a workflow that was submitted earlier, perhaps by another process; `None` if there is none of this id.
    pub async fn workflow_handle(&self, id: JobId) -> Result<Option<WorkflowHandle>, StoreError> {
        let Some(workflow) = self.workflow_graph(id).await? else { return Ok(None) };
        let named = |step: &WorkflowStep| Some((step.step.as_ref()?.as_str().to_owned(), step.id));
        let steps = workflow.steps.iter().filter_map(named).collect();
        Ok(Some(WorkflowHandle::new(self.clone(), id, steps, false)))
    }

    /// Cancels every step of a workflow that has not ended; says how many those were.
    pub async fn cancel_workflow(&self, id: JobId) -> Result<usize, StoreError> {
        let Some(workflow) = self.workflow_graph(id).await? else { return Ok(0) };
        let mut canceled = 0;
        let mut gone = BTreeSet::new();
        // In the order in which they were made: the first ones take what follows along.
        for step in workflow.steps.iter().filter(|step| !step.state.is_terminal()) {
            if gone.contains(&step.id) {
                continue;
            }
            if let Some(done) = self.inner.store.cancel(step.id).await? {
                canceled += 1 + done.followed.len();
                gone.extend(done.followed.iter().map(|followed| followed.id));
                self.after(Some(done), cancelled);
            }
        }
        Ok(canceled)
    }

    /// The jobs that wait, or waited, for this one: each edge with its condition and what came of it.
    pub async fn dependants(&self, id: JobId) -> Result<Vec<Edge>, StoreError> {
        self.inner.store.edges_from(&[id]).await
    }

    /// A handle to a job that was submitted earlier, perhaps by another process.
    pub fn handle<T>(&self, id: JobId) -> JobHandle<T> {
        JobHandle::new(self.clone(), ratchet_core::store::Submitted::Created(id))
    }

    /// The job as it stands now.
    pub async fn find(&self, id: JobId) -> Result<Option<JobRecord>, StoreError> {
        Ok(self.inner.store.find(&[id]).await?.pop())
    }

    /// Ends a live job; a running handler is told within a second, and its result is discarded.
    ///
    /// `false` if there is no such job or it has already ended.
    ///
    /// A job that stands for a batch takes the children of that along.
    pub async fn cancel(&self, id: JobId) -> Result<bool, StoreError> {
        let changed = self.inner.store.cancel(id).await?;
        let is_batch = changed.as_ref().is_some_and(|changed| changed.job.flow.has(Flow::BATCH));
        let canceled = self.after(changed, cancelled);
        if is_batch {
            self.cancel_children(id).await?;
        }
        Ok(canceled)
    }

    /// Cancels the job that stands for a batch, and leaves its children to whoever asked.
    pub(crate) async fn cancel_parent(&self, id: JobId) -> Result<bool, StoreError> {
        let changed = self.inner.store.cancel(id).await?;
        Ok(self.after(changed, cancelled))
    }

    /// Suspends a PENDING or FAILED job. Pausing a paused job is `true` too; anything else is `false`.
    pub async fn pause(&self, id: JobId) -> Result<bool, StoreError> {
        let changed = self.inner.store.pause(id).await?;
        if self.after(changed, |_| JobEventKind::Paused) {
            return Ok(true);
        }
        Ok(self.find(id).await?.is_some_and(|job| job.state == JobState::Paused))
    }

    /// Lets a paused job go on from where it was; `false` if it is not paused.
    pub async fn resume(&self, id: JobId) -> Result<bool, StoreError> {
        let changed = self.inner.store.resume(id).await?;
        Ok(self.after(changed, |_| JobEventKind::Resumed))
    }

    /// Gives a FAILED job a new life: attempts 0, error cleared, due now; `false` if it has not failed. A job whose signal
    /// did not come waits for it again.
    ///
    /// # Errors
    /// [`Duplicate`](ratchet_core::ErrorKind::Duplicate) if another live job holds its business key by now,
    /// [`Conflict`](ratchet_core::ErrorKind::Conflict) if it is a child of a batch that is over.
    pub async fn retry(&self, id: JobId) -> Result<bool, StoreError> {
        let changed = self.inner.store.retry(id).await?;
        Ok(self.after(changed, |t| match t.job.state {
            JobState::Waiting => JobEventKind::SignalWaiting,
            _ => JobEventKind::Retrying { error: None, attempt: 0, due: t.job.scheduled_time },
        }))
    }

    /// Deletes a job that has ended; `false` if there is none.
    ///
    /// # Errors
    /// [`Conflict`](ratchet_core::ErrorKind::Conflict) if it is live: cancel it first.
    pub async fn delete(&self, id: JobId) -> Result<bool, StoreError> {
        self.inner.store.delete(id).await
    }

    /// Makes every node pass the queue by; `true` if it was not paused before. Jobs that run go on.
    pub async fn pause_queue(&self, queue: &QueueName) -> Result<bool, StoreError> {
        self.inner.store.pause_queue(queue).await
    }

    /// Lets the queue's jobs run again; `true` if it was paused before.
    pub async fn resume_queue(&self, queue: &QueueName) -> Result<bool, StoreError> {
        let resumed = self.inner.store.resume_queue(queue).await?;
        self.wake().work();
        self.announce(Priority::default());
        Ok(resumed)
    }

    /// Every queue that is paused or has live jobs.
    pub async fn queues(&self) -> Result<Vec<QueueRecord>, StoreError> {
        self.inner.store.queues().await
    }

    /// Every node that the store knows, the most recently heard of first.
    pub async fn nodes(&self) -> Result<Vec<NodeRecord>, StoreError> {
        self.inner.store.nodes().await
    }

    /// A page of jobs, newest first.
    pub async fn list(
        &self,
        filter: &JobFilter,
        after: Option<JobCursor>,
        limit: usize,
    ) -> Result<Page<JobRecord>, StoreError> {
        self.inner.store.list(filter, after, limit).await
    }

    /// How many jobs stand where.
    pub async fn count_by_state(&self) -> Result<StateCounts, StoreError> {
        self.inner.store.count_by_state().await
    }

    /// The attempts of a job, the first first.
    pub async fn attempts(&self, id: JobId) -> Result<Vec<AttemptRecord>, StoreError> {
        self.inner.store.attempts(id).await
    }

    /// What happens to jobs from now on, as far as this process does it.
    pub fn events(&self) -> EventStream {
        self.inner.events.subscribe()
    }

    /// The store, for what the client does not offer.
    pub fn store(&self) -> &Arc<dyn Store> {
        &self.inner.store
    }

    pub(crate) fn submitter(&self) -> &Arc<Submitter> {
        &self.inner.submitter
    }

    pub(crate) fn wake(&self) -> &Wake {
        &self.inner.wake
    }

    /// Jobs were committed: wakes this node, and others if they should know.
    pub(crate) fn submitted(&self, waking: Waking) {
        self.wake().submitted(waking.0.is_some());
        if let Some(priority) = waking.0 {
            self.announce(priority);
        }
    }

    /// There is work that other nodes could take.
    pub(crate) fn announce(&self, priority: Priority) {
        if let Some(announcer) = &self.inner.announcer {
            announcer.announce(priority);
        }
    }

    /// What to tell other nodes of jobs that somebody else will commit.
    pub(crate) fn hint(&self, waking: Waking) -> Option<Hint> {
        waking.0.map(|priority| Hint { origin: self.origin(), priority, target: None })
    }

    /// Told when schedules were created or resumed here.
    pub(crate) fn schedules_notice(&self) -> &Notice {
        &self.inner.schedules
    }

    pub(crate) fn origin(&self) -> NodeId {
        self.inner.origin
    }

    pub(crate) fn coordinator(&self) -> Option<&Arc<dyn ClusterCoordinator>> {
        self.inner.announcer.as_ref().map(|announcer| announcer.coordinator())
    }

    pub(crate) fn now(&self) -> Timestamp {
        self.inner.events.now()
    }

    pub(crate) fn bus(&self) -> &EventBus {
        &self.inner.events
    }

    pub(crate) fn belongs_to(&self, node: watch::Receiver<NodeId>) {
        // A client is made for one engine; a second call cannot happen.
        let _ = self.inner.node.set(node);
    }

    pub(crate) fn publish(&self, job: &JobRecord, what: JobEventKind) {
        let node = self.inner.node.get().map(|node| *node.borrow());
        self.inner.events.publish(job, node, what);
    }

    /// Tells what became of jobs because others ended; says whether one of them can run now.
    pub(crate) fn followed(&self, followed: &[Followed], node: Option<NodeId>) -> bool {
        let node = node.or_else(|| self.inner.node.get().map(|node| *node.borrow()));
        let mut released = false;
        for one in followed {
            released |= one.what == FollowedBy::Released;
            self.inner.events.publish_followed(one, node);
        }
        released
    }

    /// The node that this client belongs to.
    pub(crate) fn node(&self) -> Option<NodeId> {
        self.inner.node.get().map(|node| *node.borrow())
    }

    fn after(&self, changed: Option<Transitioned>, what: impl FnOnce(&Transitioned) -> JobEventKind) -> bool {
        let Some(transitioned) = changed else { return false };
        self.publish(&transitioned.job, what(&transitioned));
        self.followed(&transitioned.followed, None);
        if transitioned.from.state() == JobState::Running {
            self.wake().revoked();
        } else {
            // It may be due.
            self.wake().work();
            if transitioned.job.state == JobState::Pending {
                self.announce(transitioned.job.spec.priority);
            }
        }
        true
    }
}

/// What to tell of a cancellation.
pub(crate) fn cancelled(transitioned: &Transitioned) -> JobEventKind {
    let previous = transitioned.from.state();
    let timing = transitioned.job.timing.filter(|_| previous == JobState::Running);
    JobEventKind::Cancelled { previous, duration: timing.map(|timing| timing.duration) }
}

impl fmt::Debug for Client {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Client").field("store", &self.inner.store.name()).finish_non_exhaustive()
    }
}
