//! What a node is put together from.

use std::sync::Arc;
use std::time::Duration;

use ratchet_core::claim::Boost;
use ratchet_core::{Clock, ClusterCoordinator, ResourceLimit, Retention, Store};

use crate::job::Job;
use crate::job::inject::StateMap;
use crate::job::registry::Registration;
use crate::job_log::JobLogs;
use crate::node::config::{Config, Slots};
use crate::node::hooks::{HostIdentity, LifecycleHook, NodeIdentity};
use crate::node::ids::SystemClock;
use crate::node::timing::Timing;
use crate::observe::bus::Listener;
use crate::observe::events::JobEvent;
use crate::observe::metrics::{FacadeMetrics, MetricsCollector};
use crate::observe::trace::TraceCapture;
use crate::protect::authorizer::Authorizer;
use crate::protect::codec::{Codec, PayloadCodec};
use crate::protect::policy::JobPolicy;
use crate::protect::resilience::{CircuitBreakers, ResilienceStrategy};
use crate::pump::polling::{AdaptivePolling, PollingStrategy};
use crate::retention::BulkEvent;
use crate::run::executor::{Executor, ExecutorProvider};
use crate::run::retry::{DefaultRetryPolicy, RetryPolicy};
use crate::run::sanitize::{DefaultErrorSanitizer, ErrorSanitizer};
use crate::submit::admission::Rules;

/// Puts a node together; [`start`](Self::start) sets it running.
#[must_use = "nothing runs before .start()"]
pub struct RatchetBuilder {
    pub(crate) store: Option<Arc<dyn Store>>,
    pub(crate) registrations: Vec<Registration>,
    pub(crate) states: StateMap,
    pub(crate) config: Config,
    pub(crate) queues: Vec<(String, Slots)>,
    pub(crate) identity: Box<dyn NodeIdentity>,
    pub(crate) hooks: Vec<Box<dyn LifecycleHook>>,
    pub(crate) listeners: Vec<Listener<JobEvent>>,
    pub(crate) bulk_listeners: Vec<Listener<BulkEvent>>,
    pub(crate) retry_policy: Arc<dyn RetryPolicy>,
    pub(crate) sanitizer: Arc<dyn ErrorSanitizer>,
    pub(crate) strategy: Box<dyn PollingStrategy>,
    pub(crate) resilience: Box<dyn ResilienceStrategy>,
    pub(crate) resources: Vec<ResourceLimit>,
    pub(crate) coordinator: Option<Arc<dyn ClusterCoordinator>>,
    pub(crate) clock: Arc<dyn Clock>,
    pub(crate) metrics: Arc<dyn MetricsCollector>,
    pub(crate) rules: Rules,
    pub(crate) executor: Executor,
    pub(crate) trace_capture: Option<Arc<dyn TraceCapture>>,
}

impl RatchetBuilder {
    pub(crate) fn new() -> Self {
        Self {
            store: None,
            registrations: Vec::new(),
            states: StateMap::default(),
            config: Config::default(),
            queues: Vec::new(),
            identity: Box::new(HostIdentity),
            hooks: Vec::new(),
            listeners: Vec::new(),
            bulk_listeners: Vec::new(),
            retry_policy: Arc::new(DefaultRetryPolicy),
            sanitizer: Arc::new(DefaultErrorSanitizer),
            strategy: Box::new(AdaptivePolling::default()),
            resilience: Box::new(CircuitBreakers::default()),
            resources: Vec::new(),
            coordinator: None,
            clock: Arc::new(SystemClock),
            metrics: Arc::new(FacadeMetrics),
            rules: Rules::default(),
            executor: Executor::default(),
            trace_capture: None,
        }
    }

    /// Where jobs are kept; a store that is shared with others, an `Arc<dyn Store>`, too.
    pub fn store(mut self, store: impl Store + 'static) -> Self {
        self.store = Some(Arc::new(store));
        self
    }

    /// The kinds that this node runs: `.jobs(jobs![charge, refund])`. May be called several times.
    pub fn jobs(mut self, registrations: impl IntoIterator<Item = Registration>) -> Self {
        self.registrations.extend(registrations);
        self
    }

    /// One more kind that this node runs.
    pub fn job<J: Job>(mut self) -> Self {
        self.registrations.push(Registration::of::<J>());
        self
    }

    /// A value for handlers that take a `State<T>`.
    pub fn state<T: Send + Sync + 'static>(mut self, value: T) -> Self {
        self.states.insert(value);
        self
    }

    /// Serves a queue with so many slots. Queues that registered kinds name are served with [`Slots::default`].
    pub fn queue(mut self, queue: impl Into<String>, slots: impl Into<Slots>) -> Self {
        self.queues.push((queue.into(), slots.into()));
        self
    }

    /// Sets the node's name for people: a text, or a [`NodeIdentity`] that finds one at the start. Defaults to [`HostIdentity`].
    pub fn node_name(mut self, name: impl NodeIdentity + 'static) -> Self {
        self.identity = Box::new(name);
        self
    }

    /// Asked after every failed attempt.
    pub fn retry_policy(mut self, policy: impl RetryPolicy + 'static) -> Self {
        self.retry_policy = Arc::new(policy);
        self
    }

    /// Cleans error texts before anybody sees them.
    pub fn error_sanitizer(mut self, sanitizer: impl ErrorSanitizer + 'static) -> Self {
        self.sanitizer = Arc::new(sanitizer);
        self
    }

    /// Narrows what may be submitted and run. Everything registered, unless given.
    pub fn job_policy(mut self, policy: impl JobPolicy) -> Self {
        self.rules.policy = Some(Arc::new(policy));
        self
    }

    /// Decides what those may do and see for whom a client acts, [`as_principal`](crate::Client::as_principal). Everything,
    /// unless given.
    pub fn authorizer(mut self, authorizer: impl Authorizer) -> Self {
        self.rules.authorizer = Some(Arc::new(authorizer));
        self
    }

    /// Writes and reads arguments, results and signals. As plain JSON, unless given.
    pub fn payload_codec(mut self, codec: impl PayloadCodec) -> Self {
        self.rules.codec = Codec(Some(Arc::new(codec)));
        self
    }

    /// Says where handlers run. On the runtime on which the node is started, unless given.
    pub fn executor_provider(mut self, provider: impl ExecutorProvider) -> Self {
        self.executor = Executor(Some(Arc::new(provider)));
        self
    }

    /// Decides how long to wait between polls.
    pub fn polling_strategy(mut self, strategy: impl PollingStrategy + 'static) -> Self {
        self.strategy = Box::new(strategy);
        self
    }

    /// Sets what decides whether the jobs of a service run now. Defaults to [`CircuitBreakers::default`], and
    /// `CircuitBreakers::default().with("payments", config)` configures the breaker of one service. [`AlwaysAdmit`] turns
    /// breakers off.
    ///
    /// [`AlwaysAdmit`]: crate::AlwaysAdmit
    pub fn resilience_strategy(mut self, strategy: impl ResilienceStrategy) -> Self {
        self.resilience = Box::new(strategy);
        self
    }

    /// Limits how many jobs that name a resource run at once in the whole cluster, unless another limit was
    /// [set by hand](crate::Client::set_resource_limit). May be called several times, for several resources; two limits of one
    /// resource that differ are refused at the start.
    pub fn resource_limit(mut self, limit: ResourceLimit) -> Self {
        self.resources.push(limit);
        self
    }

    /// Runs around the node's start and stop. May be called several times.
    pub fn lifecycle_hook(mut self, hook: impl LifecycleHook + 'static) -> Self {
        self.hooks.push(Box::new(hook));
        self
    }

    /// Told of every event on a task of its own. May be called several times.
    pub fn on_event(mut self, listener: impl Fn(&JobEvent) + Send + Sync + 'static) -> Self {
        self.listeners.push(Box::new(listener));
        self
    }

    /// Told of every event about many jobs at once, on a task of its own. May be called several times.
    pub fn on_bulk_event(mut self, listener: impl Fn(&BulkEvent) + Send + Sync + 'static) -> Self {
        self.bulk_listeners.push(Box::new(listener));
        self
    }

    /// Carries word of new work between nodes, instead of the way that the store offers, if any.
    ///
    /// The node only uses it: it may be shared, and whoever made it closes it.
    pub fn coordinator(mut self, coordinator: Arc<dyn ClusterCoordinator>) -> Self {
        self.coordinator = Some(coordinator);
        self
    }

    /// Takes the node's metrics, instead of the `metrics` facade.
    pub fn metrics_collector(mut self, collector: impl MetricsCollector) -> Self {
        self.metrics = Arc::new(collector);
        self
    }

    /// Sets what is kept of jobs' logs, how much may wait to be written, and where it is written. [`JobLogs::off`] keeps
    /// nothing, and [`JobLogs::to`] writes somewhere else than to the store.
    pub fn job_logs(mut self, logs: JobLogs) -> Self {
        self.config.job_logs = logs;
        self
    }

    /// Finds out which trace is current where a job is submitted, and lets its run go on with it.
    pub fn trace_capture(mut self, capture: impl TraceCapture) -> Self {
        self.trace_capture = Some(Arc::new(capture));
        self
    }

    /// The node's own clock: stamps events, and is compared with the database's. For tests.
    pub fn clock(mut self, clock: Arc<dyn Clock>) -> Self {
        self.clock = clock;
        self
    }

    /// How long a job waits for one more level of priority; zero turns ageing off. Fifteen minutes by default.
    pub fn priority_boost(mut self, interval: Duration) -> Self {
        self.config.boost = Boost::every(interval);
        self
    }

    /// Most jobs in one claim. 200 by default.
    pub fn claim_max(mut self, claim_max: usize) -> Self {
        self.config.claim_max = claim_max;
        self
    }

    /// Sets the node's times, such as how long it may be silent before others rescue its jobs:
    /// `.timing(Timing::with_grace(Duration::from_secs(10)))`. Defaults to [`Timing::default`].
    pub fn timing(mut self, timing: Timing) -> Self {
        self.config.timing = timing;
        self
    }

    /// How long a stopping node lets its jobs finish. Thirty seconds by default.
    pub fn drain_timeout(mut self, timeout: Duration) -> Self {
        self.config.drain = timeout;
        self
    }

    /// How long jobs are kept after their end: ninety days, and a year in the archive, by default; logs thirty days.
    /// [`Retention::keep_everything`] archives and deletes nothing.
    pub fn retention(mut self, retention: Retention) -> Self {
        self.config.retention = retention;
        self
    }
}

impl std::fmt::Debug for RatchetBuilder {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("RatchetBuilder").field("registrations", &self.registrations).finish_non_exhaustive()
    }
}
