//! Submitting jobs and steering them; the part of Ratchet that needs no handlers.

pub(crate) mod caller;
pub(crate) mod handle;
pub(crate) mod find_by_key;
pub(crate) mod signals;
pub(crate) mod resources;
pub(crate) mod insight;

use std::fmt;
use std::sync::{Arc, OnceLock};

use jiff::Timestamp;
use ratchet_core::node::{NodeRecord, QueueRecord};
use ratchet_core::page::{JobFilter, ListCursor, Page};
use ratchet_core::store::{LastAttempts, StateCounts, Transitioned};
use ratchet_core::{
    AttemptRecord, Clock, ClusterCoordinator, CountBy, Counted, Followed, FollowedBy, Hint, JobFlags, JobId, JobRecord,
    JobState, JsonText, NodeId, Principal, Priority, QueueName, Store, StoreError,
};
use tokio::sync::watch;

use crate::announcer::Announcer;
use crate::client::caller::no_page;
use crate::client::handle::JobHandle;
use crate::job::Job;
use crate::node::ids::new_node_id;
use crate::observe::bus::{Bus, EventStream};
use crate::observe::events::{EventBus, JobEventKind};
use crate::observe::metered::Metered;
use crate::observe::metrics::Meter;
use crate::observe::trace::TraceCapture;
use crate::protect::authorizer::{Action, Authorizer, Scope, Target};
use crate::protect::codec::{Codec, CodecError, PayloadCodec};
use crate::protect::policy::JobPolicy;
use crate::pump::wake::Wake;
use crate::retention::{self, BulkEvent, BulkEventKind, BulkEventStream};
use crate::schedule::Notice;
use crate::submit::admission::Rules;
use crate::submit::enqueue::Enqueue;
use crate::submit::submitter::Submitter;
use crate::submit::unit::Waking;
use crate::upkeep::heartbeat::Standing;

/// Submits jobs and steers them. A process that only submits needs nothing else: [`Client::new`].
#[derive(Clone)]
pub struct Client {
    inner: Arc<Inner>,
    rules: Arc<Rules>,
    /// Whom it acts for; `None` is the application itself.
    caller: Option<Principal>,
}

struct Inner {
    store: Arc<dyn Store>,
    submitter: Arc<Submitter>,
    events: EventBus,
    bulk: Bus<BulkEvent>,
    wake: Arc<Wake>,
    /// Tells other nodes, if there is a way to.
    announcer: Option<Announcer>,
    /// Who this is in hints: made once, and an engine's first incarnation too.
    origin: NodeId,
    /// The standing of the engine, if this client belongs to one.
    standing: OnceLock<watch::Receiver<Standing>>,
    schedules: Notice,
    breakers: Notice,
    trace_capture: OnceLock<Arc<dyn TraceCapture>>,
}

impl Client {
    /// A client of this store, which may be a shared one, without handlers and without a poller.
    pub fn new(store: impl Store + 'static) -> Self {
        let coordinator = store.coordinator();
        Self::alone(Arc::new(store), coordinator)
    }

    /// A client that tells nodes of new work through `coordinator`, instead of the way that the store offers, if any.
    ///
    /// The client only uses it: it may be shared, and whoever made it closes it.
    pub fn with_coordinator(store: impl Store + 'static, coordinator: Arc<dyn ClusterCoordinator>) -> Self {
        Self::alone(Arc::new(store), Some(coordinator))
    }

    fn alone(store: Arc<dyn Store>, coordinator: Option<Arc<dyn ClusterCoordinator>>) -> Self {
        let meter = Meter::default();
        Self::over(
            Metered::for_client(store, meter.clone()),
            Arc::new(crate::node::ids::SystemClock),
            coordinator,
            meter,
        )
    }

    pub(crate) fn over(
        store: Arc<dyn Store>,
        clock: Arc<dyn Clock>,
        coordinator: Option<Arc<dyn ClusterCoordinator>>,
        meter: Meter,
    ) -> Self {
        let submitter = Submitter::new(store.clone());
        let origin = new_node_id();
        let announcer = coordinator.map(|coordinator| Announcer::new(coordinator, origin, meter.clone()));
        let (events, wake, standing) = (EventBus::new(clock, meter), Arc::default(), OnceLock::new());
        let (schedules, bulk, trace_capture) = (Notice::default(), Bus::new(retention::CAPACITY), OnceLock::new());
        let inner = Inner {
            store,
            submitter,
            events,
            bulk,
            wake,
            announcer,
            origin,
            standing,
            schedules,
            breakers: Notice::default(),
            trace_capture,
        };
        Self { inner: Arc::new(inner), rules: Arc::default(), caller: None }
    }

    /// The same client, which submits only what this policy allows.
    #[must_use]
    pub fn with_job_policy(self, policy: impl JobPolicy) -> Self {
        let policy = Some(Arc::new(policy) as Arc<dyn JobPolicy>);
        let rules = Rules { policy, ..Rules::clone(&self.rules) };
        self.under(rules)
    }

    /// The same client, which asks this authorizer about those whom it acts for: [`as_principal`](Self::as_principal).
    #[must_use]
    pub fn with_authorizer(self, authorizer: impl Authorizer) -> Self {
        let authorizer = Some(Arc::new(authorizer) as Arc<dyn Authorizer>);
        let rules = Rules { authorizer, ..Rules::clone(&self.rules) };
        self.under(rules)
    }

    /// The same client, which writes and reads arguments, results and signals by this codec.
    #[must_use]
    pub fn with_payload_codec(self, codec: impl PayloadCodec) -> Self {
        let codec = Codec(Some(Arc::new(codec)));
        let rules = Rules { codec, ..Rules::clone(&self.rules) };
        self.under(rules)
    }

    /// The JSON that is behind the arguments or the result of a record, which is as it is stored: the same, if no codec wrote
    /// it.
    ///
    /// # Errors
    /// If it was written by a codec that this client does not have, or that cannot decode it.
    pub fn decoded(&self, stored: &JsonText) -> Result<JsonText, CodecError> {
        self.rules.codec.open(self.meter(), stored)
    }

    pub(crate) fn under(self, rules: Rules) -> Self {
        Self { rules: Arc::new(rules), ..self }
    }

    pub(crate) fn rules(&self) -> &Rules {
        &self.rules
    }

    /// Whom this client acts for; `None` if it is the application itself.
    pub fn principal(&self) -> Option<&Principal> {
        self.caller.as_ref()
    }

    pub(crate) fn acting_for(self, caller: Principal) -> Self {
        Self { caller: Some(caller), ..self }
    }

    /// Begins a submit: options follow, [`Enqueue::submit`] does it.
    #[expect(clippy::needless_pass_by_value, reason = "enqueue(charge(…)) reads as it is meant")]
    pub fn enqueue<J: Job>(&self, job: J) -> Enqueue<J> {
        Enqueue::new(self.clone(), &job)
    }

    /// A handle to a job that was submitted earlier, perhaps by another process.
    pub fn handle<T>(&self, id: JobId) -> JobHandle<T> {
        JobHandle::new(self.clone(), ratchet_core::store::Submitted::Created(id))
    }

    /// The job as it stands now, or as it was when it was archived.
    pub async fn find(&self, id: JobId) -> Result<Option<JobRecord>, StoreError> {
        Ok(self.inner.store.find(&[id]).await?.pop().filter(|job| self.reads(job)))
    }

    /// Ends a live job; a running handler is told within a second, and its result is discarded.
    ///
    /// `false` if there is no such job or it has already ended.
    ///
    /// A job that stands for a batch takes the children of that along.
    pub async fn cancel(&self, id: JobId) -> Result<bool, StoreError> {
        if !self.may(Action::Cancel, id).await? {
            return Ok(false);
        }
        let changed = self.inner.store.cancel(id).await?;
        let is_batch = changed.as_ref().is_some_and(|changed| changed.job.flow.has(JobFlags::BATCH));
        let canceled = self.after(changed, canceled_event);
        if is_batch {
            self.cancel_children(id).await?;
        }
        Ok(canceled)
    }

    /// Cancels the job that stands for a batch, and leaves its children to whoever asked.
    pub(crate) async fn cancel_parent(&self, id: JobId) -> Result<bool, StoreError> {
        let changed = self.inner.store.cancel(id).await?;
        Ok(self.after(changed, canceled_event))
    }

    /// Suspends a PENDING or FAILED job. Pausing a paused job is `true` too; anything else is `false`.
    pub async fn pause(&self, id: JobId) -> Result<bool, StoreError> {
        if !self.may(Action::Pause, id).await? {
            return Ok(false);
        }
        let changed = self.inner.store.pause(id).await?;
        if self.after(changed, |_| JobEventKind::Paused) {
            return Ok(true);
        }
        // The store answers the same for a job that is paused already, for one that cannot be paused and for none at all.
        Ok(self.find(id).await?.is_some_and(|job| job.state == JobState::Paused))
    }

    /// Lets a paused job go on from where it was; `false` if it is not paused.
    pub async fn resume(&self, id: JobId) -> Result<bool, StoreError> {
        if !self.may(Action::Resume, id).await? {
            return Ok(false);
        }
        let changed = self.inner.store.resume(id).await?;
        Ok(self.after(changed, |_| JobEventKind::Resumed))
    }

    /// Retries a FAILED job: attempts 0, error cleared, due now; `false` if it has not failed. A job whose signal did not come
    /// waits for it again.
    ///
    /// # Errors
    /// [`Duplicate`](ratchet_core::ErrorKind::Duplicate) if another live job holds its business key by now,
    /// [`Conflict`](ratchet_core::ErrorKind::Conflict) if it is a child of a batch that is over, or never ran because whether
    /// to run could not be told from the job before it.
    pub async fn retry(&self, id: JobId) -> Result<bool, StoreError> {
        if !self.may(Action::Retry, id).await? {
            return Ok(false);
        }
        let changed = self.inner.store.retry(id).await?;
        Ok(self.after(changed, |t| match t.job.state {
            JobState::Waiting => JobEventKind::SignalWaiting,
            _ => JobEventKind::Retrying { error: None, attempt: 0, due: t.job.scheduled_time },
        }))
    }

    /// Deletes a job that has ended, archived or not; `false` if there is none.
    ///
    /// # Errors
    /// [`Conflict`](ratchet_core::ErrorKind::Conflict) if it is live: cancel it first; and if another job waits for it or
    /// would need its result in a retry.
    pub async fn delete(&self, id: JobId) -> Result<bool, StoreError> {
        if !self.may(Action::Delete, id).await? {
            return Ok(false);
        }
        self.inner.store.delete(id).await
    }

    /// Makes every node pass the queue by; `true` if it was not paused before. Jobs that run go on.
    pub async fn pause_queue(&self, queue: &QueueName) -> Result<bool, StoreError> {
        self.demand(Action::Pause, &Target::Queue(queue))?;
        self.inner.store.pause_queue(queue).await
    }

    /// Lets the queue's jobs run again; `true` if it was paused before.
    pub async fn resume_queue(&self, queue: &QueueName) -> Result<bool, StoreError> {
        self.demand(Action::Resume, &Target::Queue(queue))?;
        let resumed = self.inner.store.resume_queue(queue).await?;
        self.wake().work();
        self.announce(Priority::default());
        Ok(resumed)
    }

    /// Every queue that is paused or has live jobs.
    pub async fn queues(&self) -> Result<Vec<QueueRecord>, StoreError> {
        self.demand(Action::Read, &Target::Queues)?;
        self.inner.store.queues().await
    }

    /// Every node that the store knows, the most recently heard of first.
    pub async fn nodes(&self) -> Result<Vec<NodeRecord>, StoreError> {
        self.demand(Action::Read, &Target::Nodes)?;
        self.inner.store.nodes().await
    }

    /// A page of jobs, in the order of the filter; of the archive too, if the filter says so.
    ///
    /// A page may be shorter than asked for, even empty, and have a next one: go on while there is one.
    ///
    /// # Errors
    /// [`Invalid`](ratchet_core::ErrorKind::Invalid) if `limit` is not 1 to 1,000, or `after` is of a list in another order.
    pub async fn list(
        &self,
        filter: &JobFilter,
        after: Option<ListCursor>,
        limit: usize,
    ) -> Result<Page<JobRecord, ListCursor>, StoreError> {
        match self.scoped(filter) {
            Some(filter) => self.inner.store.list(&filter, after, limit).await,
            None => Ok(no_page()),
        }
    }

    /// How many jobs there are of a filter, and in which groups: failed ones by kind, waiting ones by priority, those of a tag
    /// by state or by node.
    ///
    /// No more than 100,000 jobs are looked at, the newest; [`Counted::more`] says whether there are others.
    ///
    /// ```
    /// # use ratchet_core::page::JobFilter;
    /// # use ratchet_core::{CountBy, JobState, StoreError, Tag};
    /// # async fn count(client: ratchet_engine::Client, tag: Tag) -> Result<(), StoreError> {
    /// let pending = JobFilter { states: vec![JobState::Pending], tag: Some(tag), ..JobFilter::default() };
    /// for (priority, jobs) in client.count(&pending, &CountBy::Priority).await?.groups {
    ///     println!("{jobs} of priority {priority}");
    /// }
    /// # Ok(())
    /// # }
    /// ```
    pub async fn count(&self, filter: &JobFilter, by: &CountBy) -> Result<Counted, StoreError> {
        match self.scoped(filter) {
            Some(filter) => self.inner.store.count(&filter, by).await,
            None => Ok(Counted::default()),
        }
    }

    /// How many jobs stand where.
    pub async fn count_by_state(&self) -> Result<StateCounts, StoreError> {
        match self.scope() {
            Scope::Everything => self.inner.store.count_by_state().await,
            Scope::Of(principal) => self.inner.store.count_by_state_of(&principal).await,
            Scope::Nothing => Ok(StateCounts::new()),
        }
    }

    /// The attempts of a job, the first first.
    pub async fn attempts(&self, id: JobId) -> Result<Vec<AttemptRecord>, StoreError> {
        if !self.may(Action::Read, id).await? {
            return Ok(Vec::new());
        }
        self.inner.store.attempts(id).await
    }

    /// The last attempts of a job before that of a version, the last first, and how many are recorded in all; `limit` is 1 to
    /// 1,000.
    pub async fn last_attempts(
        &self,
        id: JobId,
        before: Option<u64>,
        limit: usize,
    ) -> Result<LastAttempts, StoreError> {
        if !self.may(Action::Read, id).await? {
            return Ok(LastAttempts::default());
        }
        self.inner.store.last_attempts(id, before, limit).await
    }

    /// Returns the number of alerts that were recorded for a job: one for each error that made it a dead letter, at most one an
    /// hour.
    pub async fn alert_count(&self, id: JobId) -> Result<u64, StoreError> {
        if !self.may(Action::Read, id).await? {
            return Ok(0);
        }
        self.inner.store.alert_count(id).await
    }

    /// What happens to jobs from now on, as far as this process does it; also on a client that acts for somebody, whatever he
    /// may see.
    pub fn events(&self) -> EventStream {
        self.inner.events.subscribe()
    }

    /// What happens to many jobs at once from now on, as far as this process does it.
    pub fn bulk_events(&self) -> BulkEventStream {
        self.inner.bulk.subscribe()
    }

    /// The store, for what the client does not offer. It knows no caller, no policy and no codec.
    pub fn store(&self) -> &Arc<dyn Store> {
        &self.inner.store
    }

    pub(crate) fn submitter(&self) -> &Arc<Submitter> {
        &self.inner.submitter
    }

    pub(crate) fn wake(&self) -> &Arc<Wake> {
        &self.inner.wake
    }

    /// Waits until other nodes have been told of the work that this client has for them, a second at most.
    ///
    /// They are told in the background. A process that ends right after a submit may end before, and then they find the job by
    /// polling, seconds later.
    ///
    /// ```
    /// # use ratchet_core::MemoryStore;
    /// # use ratchet_engine::Client;
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() {
    /// # let client = Client::new(MemoryStore::manual().0);
    /// // client.enqueue(…).submit().await?;
    /// client.flush().await;
    /// # }
    /// ```
    pub async fn flush(&self) {
        if let Some(announcer) = &self.inner.announcer {
            announcer.flush().await;
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
        waking.0.map(|priority| Hint { origin: self.origin(), priority })
    }

    /// Told when schedules were created or resumed here.
    pub(crate) fn schedules_notice(&self) -> &Notice {
        &self.inner.schedules
    }

    /// Told when something was ordered here about circuit breakers.
    pub(crate) fn breakers_notice(&self) -> &Notice {
        &self.inner.breakers
    }

    pub(crate) fn origin(&self) -> NodeId {
        self.inner.origin
    }

    pub(crate) fn coordinator(&self) -> Option<&Arc<dyn ClusterCoordinator>> {
        self.inner.announcer.as_ref().map(Announcer::coordinator)
    }

    pub(crate) fn now(&self) -> Timestamp {
        self.inner.events.now()
    }

    pub(crate) fn bus(&self) -> &EventBus {
        &self.inner.events
    }

    pub(crate) fn meter(&self) -> &Meter {
        self.inner.events.meter()
    }

    pub(crate) fn trace_capture(&self) -> Option<&Arc<dyn TraceCapture>> {
        self.inner.trace_capture.get()
    }

    pub(crate) fn capture_traces(&self, capture: Arc<dyn TraceCapture>) {
        // The first one counts.
        let _ = self.inner.trace_capture.set(capture);
    }

    pub(crate) fn belongs_to(&self, standing: watch::Receiver<Standing>) {
        // A client is made for one engine; a second call cannot happen.
        let _ = self.inner.standing.set(standing);
    }

    pub(crate) fn publish(&self, job: &JobRecord, what: JobEventKind) {
        self.inner.events.publish(job, self.node(), what);
    }

    /// Tells what happened to many jobs at once.
    pub(crate) fn tell(&self, what: BulkEventKind) {
        self.inner.bulk.send(BulkEvent { node: self.node(), at: self.now(), what });
    }

    /// Tells what became of jobs because others ended; says whether one of them can run now.
    pub(crate) fn followed(&self, followed: &[Followed], node: Option<NodeId>) -> bool {
        let node = node.or_else(|| self.node());
        let mut released = false;
        for one in followed {
            released |= one.what == FollowedBy::Released;
            self.inner.events.publish_followed(one, node);
        }
        released
    }

    /// Wakes this node and others for those of these jobs that can run now.
    pub(crate) fn wake_for(&self, followed: &[Followed]) {
        let released = followed.iter().filter(|one| one.what == FollowedBy::Released);
        if let Some(priority) = released.map(|one| one.priority).max() {
            self.wake().work();
            self.announce(priority);
        }
    }

    /// The node that this client belongs to.
    pub(crate) fn node(&self) -> Option<NodeId> {
        self.inner.standing.get().map(|standing| standing.borrow().node)
    }

    pub(crate) fn after(
        &self,
        changed: Option<Transitioned>,
        what: impl FnOnce(&Transitioned) -> JobEventKind,
    ) -> bool {
        let Some(transitioned) = changed else { return false };
        self.publish(&transitioned.job, what(&transitioned));
        self.followed(&transitioned.followed, None);
        self.wake_for(&transitioned.followed);
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
pub(crate) fn canceled_event(transitioned: &Transitioned) -> JobEventKind {
    let previous = transitioned.from.state();
    let timing = transitioned.job.timing.filter(|_| previous == JobState::Running);
    JobEventKind::Canceled { previous, duration: timing.map(|timing| timing.duration) }
}

impl fmt::Debug for Client {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let store = self.inner.store.name();
        f.debug_struct("Client").field("store", &store).field("caller", &self.caller).finish_non_exhaustive()
    }
}
