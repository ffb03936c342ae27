//! Submitting jobs and steering them; the part of Ratchet that needs no handlers.

pub(crate) mod caller;
pub(crate) mod handle;
mod lookup;
pub(crate) mod find_by_key;
mod lists;
pub(crate) mod control;
pub(crate) mod signals;
mod queues;
pub(crate) mod resources;
pub(crate) mod insight;
mod publish;
mod wakeups;

use std::fmt;
use std::sync::{Arc, OnceLock};

use jiff::Timestamp;
use ratchet_core::{Clock, ClusterCoordinator, JobId, JsonText, NodeId, Principal, Store};
use tokio::sync::watch;

use crate::client::handle::JobHandle;
use crate::client::wakeups::Wakeups;
use crate::job::Job;
use crate::observe::bus::Bus;
use crate::observe::events::EventBus;
use crate::observe::metered::Metered;
use crate::observe::metrics::Meter;
use crate::observe::trace::TraceCapture;
use crate::protect::authorizer::Authorizer;
use crate::protect::codec::{Codec, CodecError, PayloadCodec};
use crate::protect::policy::JobPolicy;
use crate::retention::{self, BulkEvent};
use crate::submit::admission::Rules;
use crate::submit::enqueue::Enqueue;
use crate::submit::submitter::Submitter;
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
    wakeups: Wakeups,
    /// The standing of the engine, if this client belongs to one.
    standing: OnceLock<watch::Receiver<Standing>>,
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
        let inner = Inner {
            submitter: Submitter::new(store.clone()),
            store,
            wakeups: Wakeups::new(coordinator, meter.clone()),
            events: EventBus::new(clock, meter),
            bulk: Bus::new(retention::CAPACITY),
            standing: OnceLock::new(),
            trace_capture: OnceLock::new(),
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

    /// The store, for what the client does not offer. It knows no caller, no policy and no codec.
    pub fn store(&self) -> &Arc<dyn Store> {
        &self.inner.store
    }

    pub(crate) fn submitter(&self) -> &Arc<Submitter> {
        &self.inner.submitter
    }

    pub(crate) fn now(&self) -> Timestamp {
        self.inner.events.now()
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

    /// The node that this client belongs to.
    pub(crate) fn node(&self) -> Option<NodeId> {
        self.inner.standing.get().map(|standing| standing.borrow().node)
    }
}

impl fmt::Debug for Client {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let store = self.inner.store.name();
        f.debug_struct("Client").field("store", &store).field("caller", &self.caller).finish_non_exhaustive()
    }
}
