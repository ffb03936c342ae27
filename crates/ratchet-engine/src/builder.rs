//! Putting a node together.

use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::time::{Duration, Instant};

use futures_util::FutureExt;
use ratchet_core::claim::Boost;
use ratchet_core::node::NodeRegistration;
use ratchet_core::recurring::NewRecurring;
use ratchet_core::store::Declared;
use ratchet_core::{
    Clock, ClusterCoordinator, ErrorKind, Hint, InvalidInput, JsonText, Kind, NodeName, QueueName, Store, StoreError,
};
use tokio::sync::watch;

use crate::batch::Canceler;
use crate::client::Client;
use crate::config::{Config, Slots};
use crate::deadline::within;
use crate::events::{JobEvent, Listener, listen};
use crate::failure::BoxError;
use crate::gate::gates;
use crate::hooks::{HostIdentity, LifecycleHook, NodeIdentity};
use crate::ids::SystemClock;
use crate::inject::StateMap;
use crate::job::Job;
use crate::polling::{AdaptivePolling, PollingStrategy};
use crate::pulse::{Pulse, PulseConfig};
use crate::pump::{Pump, PumpParts};
use crate::ratchet::{Draining, Ratchet, Tasks};
use crate::registry::{Registration, Registry};
use crate::rescue::Rescuer;
use crate::retry::{DefaultRetryPolicy, RetryPolicy};
use crate::run::Runner;
use crate::sanitize::{DefaultErrorSanitizer, ErrorSanitizer};
use crate::schedule::Firer;
use crate::signal_limit::SignalLimit;
use crate::stats::Counters;

/// Why a node did not start.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum StartError {
    /// An option is out of bounds.
    #[error("the node's configuration was refused: {0}")]
    Invalid(#[from] InvalidInput),
    /// The builder has no store.
    #[error("no store was given; add .store(…), for instance SqliteStore::open(\"jobs.db\").await?")]
    NoStore,
    /// Nothing is registered, so the node could run nothing.
    #[error("no job is registered; add .jobs(jobs![…]), or use Ratchet::client(store) to submit only")]
    NoJobs,
    /// Two handlers have the same kind.
    #[error("the kind {kind} is registered twice; every handler needs a kind of its own")]
    DuplicateKind {
        /// The kind.
        kind: Kind,
    },
    /// A handler needs state that the builder lacks.
    #[error("the handler of {kind} needs a State<{type_name}>; add .state(…) with a value of that type")]
    MissingState {
        /// The kind.
        kind: Kind,
        /// The type.
        type_name: &'static str,
    },
    /// A lifecycle hook refused.
    #[error("a lifecycle hook refused the start")]
    Hook(#[source] BoxError),
    /// The store could not take the node in.
    #[error("the node could not register")]
    Store(#[from] StoreError),
}

/// Puts a node together; [`start`](Self::start) sets it running.
#[must_use = "nothing runs before .start()"]
pub struct RatchetBuilder {
    store: Option<Arc<dyn Store>>,
    registrations: Vec<Registration>,
    states: StateMap,
    config: Config,
    queues: Vec<(String, Slots)>,
    identity: Box<dyn NodeIdentity>,
    hooks: Vec<Box<dyn LifecycleHook>>,
    listeners: Vec<Listener>,
    retry_policy: Arc<dyn RetryPolicy>,
    sanitizer: Arc<dyn ErrorSanitizer>,
    strategy: Box<dyn PollingStrategy>,
    coordinator: Option<Arc<dyn ClusterCoordinator>>,
    clock: Arc<dyn Clock>,
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
            retry_policy: Arc::new(DefaultRetryPolicy),
            sanitizer: Arc::new(DefaultErrorSanitizer),
            strategy: Box::new(AdaptivePolling::default()),
            coordinator: None,
            clock: Arc::new(SystemClock),
        }
    }

    /// Where jobs are kept.
    pub fn store(mut self, store: impl Store + 'static) -> Self {
        self.store = Some(Arc::new(store));
        self
    }

    /// Where jobs are kept, shared with others.
    pub fn shared_store(mut self, store: Arc<dyn Store>) -> Self {
        self.store = Some(store);
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

    /// The node's name for people; by default the host's name and the process id.
    pub fn node_name(mut self, name: impl Into<String>) -> Self {
        struct Fixed(String);
        impl NodeIdentity for Fixed {
            fn node_name(&self) -> Result<NodeName, InvalidInput> {
                NodeName::new(&self.0)
            }
        }
        self.identity = Box::new(Fixed(name.into()));
        self
    }

    /// Where the node's name comes from.
    pub fn node_identity(mut self, identity: impl NodeIdentity + 'static) -> Self {
        self.identity = Box::new(identity);
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

    /// Decides how long to wait between polls.
    pub fn polling_strategy(mut self, strategy: impl PollingStrategy + 'static) -> Self {
        self.strategy = Box::new(strategy);
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

    /// Carries word of new work between nodes, instead of the way that the store offers, if any.
    ///
    /// The node only uses it: it may be shared, and whoever made it closes it.
    pub fn coordinator(mut self, coordinator: Arc<dyn ClusterCoordinator>) -> Self {
        self.coordinator = Some(coordinator);
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

    /// How often the node says that it lives. Five seconds by default; up to a quarter of the grace while the database is
    /// slow to answer.
    pub fn heartbeat(mut self, every: Duration) -> Self {
        self.config.heartbeat = every;
        self
    }

    /// A node that was not heard of for so long is dead, and its jobs go to others. At least three heartbeats; thirty
    /// seconds by default.
    pub fn grace(mut self, grace: Duration) -> Self {
        self.config.grace = grace;
        self
    }

    /// How often the node looks for jobs of dead nodes. Ten seconds by default.
    pub fn rescue_scan(mut self, every: Duration) -> Self {
        self.config.scan = every;
        self
    }

    /// How often the node compares what it runs with what the store says: how fast a cancellation arrives. 750 ms
    /// by default.
    pub fn reconcile(mut self, every: Duration) -> Self {
        self.config.reconcile = every;
        self
    }

    /// How long a stopping node lets its jobs finish. Thirty seconds by default.
    pub fn drain_timeout(mut self, timeout: Duration) -> Self {
        self.config.drain = timeout;
        self
    }

    /// How long a handler that is told to end may take to notice. One second by default.
    pub fn cancel_grace(mut self, grace: Duration) -> Self {
        self.config.cancel_grace = grace;
        self
    }

    /// How long one transaction may take before it counts as lost. Thirty seconds by default.
    pub fn store_deadline(mut self, deadline: Duration) -> Self {
        self.config.store_deadline = deadline;
        self
    }

    /// Registers the node and sets it running.
    ///
    /// # Errors
    /// [`StartError`] names what is missing or refused; nothing is left behind then.
    pub async fn start(self) -> Result<Ratchet, StartError> {
        let Self { store, registrations, states, mut config, queues, identity, hooks, listeners, .. } = self;
        let store = store.ok_or(StartError::NoStore)?;
        for (queue, slots) in queues {
            config.queues.insert(QueueName::new(queue)?, slots);
        }
        config.check()?;
        let mut schedules = Vec::new();
        for scheduled in registrations.iter().filter_map(Registration::schedule) {
            schedules.push(scheduled.clone().into_recurring(self.clock.now())?);
        }
        let registry = Registry::build(registrations, &states)?;
        if registry.is_empty() {
            return Err(StartError::NoJobs);
        }
        let name = identity.node_name()?;
        let counters = Arc::new(Counters::default());
        let coordinator = self.coordinator.or_else(|| store.coordinator());
        let client = Client::over(store.clone(), self.clock.clone(), coordinator);
        let runner = Runner {
            registry,
            gates: gates(),
            retry_policy: self.retry_policy,
            sanitizer: self.sanitizer,
            cancel_grace: config.cancel_grace,
        };
        let info = node_info(&runner.registry, &config, &schedules)?;
        let registration = NodeRegistration { id: client.origin(), name, info };

        let hooks = Hooks(hooks);
        hooks.before_start().await?;
        let pulse = Pulse::start(PulseConfig {
            store: store.clone(),
            registration: registration.clone(),
            heartbeat: config.heartbeat,
            grace: config.grace,
            deadline: config.store_deadline,
            clock: self.clock,
            counters: counters.clone(),
        })
        .await;
        let pulse = match pulse {
            Ok(pulse) => pulse,
            Err(error) => {
                hooks.after_stop().await;
                return Err(error.into());
            }
        };
        // After the node is registered: others see by that who counts on a schedule.
        if let Err(error) = declare(&*store, schedules, config.store_deadline).await {
            pulse.stop().await;
            hooks.after_stop().await;
            return Err(error.into());
        }
        let (node, present) = watch::channel(registration.id);
        client.belongs_to(present);
        let (drain, draining) = watch::channel::<Option<Instant>>(None);
        let mut tasks = Tasks::default();
        for listener in listeners {
            tasks.listeners.spawn(listen(client.events(), listener, tasks.stop_listening.clone()));
        }
        let mut standing = pulse.standing.clone();
        tasks.side.spawn(async move {
            while standing.changed().await.is_ok() {
                node.send_replace(standing.borrow().node);
            }
        });
        let rescuer = Rescuer {
            store: store.clone(),
            client: client.clone(),
            standing: pulse.standing.clone(),
            scan: config.scan,
            grace: config.grace,
            deadline: config.store_deadline,
            counters: counters.clone(),
        };
        tasks.side.spawn(rescuer.run());
        let firer = Firer {
            store: store.clone(),
            client: client.clone(),
            standing: pulse.standing.clone(),
            changed: client.schedules_notice().clone(),
            deadline: config.store_deadline,
        };
        tasks.side.spawn(firer.run());
        let signals = SignalLimit {
            store: store.clone(),
            client: client.clone(),
            standing: pulse.standing.clone(),
            scan: config.scan,
            deadline: config.store_deadline,
        };
        tasks.side.spawn(signals.run());
        let canceler = Canceler {
            store: store.clone(),
            client: client.clone(),
            standing: pulse.standing.clone(),
            scan: config.scan,
            deadline: config.store_deadline,
        };
        tasks.side.spawn(canceler.run());
        let woken = client.clone();
        tasks.watch = store.watch(Box::new(move || woken.wake().work()));
        let woken = client.clone();
        let hints = counters.clone();
        let heard = move |_: &Hint| {
            hints.hints.add(1);
            woken.wake().work();
        };
        tasks.hints = client.coordinator().map(|coordinator| coordinator.listen(client.origin(), Box::new(heard)));
        let (drain_timeout, store_deadline) = (config.drain, config.store_deadline);
        let pump = Pump::new(PumpParts {
            store: store.clone(),
            client: client.clone(),
            runner,
            states: Arc::new(states),
            config,
            counters: counters.clone(),
            strategy: self.strategy,
            standing: pulse.standing.clone(),
            drain: draining,
        });
        let (stop_pulse, standing) = (pulse.stopper(), pulse.standing.clone());
        tasks.pump.spawn(async move {
            if AssertUnwindSafe(pump.run()).catch_unwind().await.is_ok() {
                return;
            }
            // A fault of our own. A node that beats but runs nothing would keep its jobs from being rescued.
            tracing::error!("the pump panicked: this node stops, and others take its jobs");
            stop_pulse();
            let node = standing.borrow().node;
            if let Err(error) = within(store_deadline, "leaving the cluster", store.deregister(node)).await {
                tracing::error!(error = &error as &dyn std::error::Error, "leaving the cluster failed");
            }
        });
        tracing::info!(node = %registration.id, name = %registration.name, "node started");
        hooks.after_start().await;
        Ok(Ratchet::new(client, counters, tasks, pulse, Draining { drain, drain_timeout, store_deadline }, hooks))
    }
}

impl std::fmt::Debug for RatchetBuilder {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("RatchetBuilder").field("registrations", &self.registrations).finish_non_exhaustive()
    }
}

/// Makes sure that what the code declares is there, as the code says.
async fn declare(store: &dyn Store, schedules: Vec<NewRecurring>, deadline: Duration) -> Result<(), StoreError> {
    const TRIES: u32 = 5;
    for mut new in schedules {
        let now = within(deadline, "reading the database's time", store.database_time()).await?;
        new.next_fire = new.schedule.next_after(now);
        let mut tries = 1;
        let declared = loop {
            match within(deadline, "declaring a schedule", store.declare_recurring(&new)).await {
                // Another node declares the same at this moment.
                Err(error) if *error.kind() == ErrorKind::Transient && tries < TRIES => {
                    tokio::time::sleep(Duration::from_millis(20) * tries).await;
                    tries += 1;
                }
                other => break other?,
            }
        };
        if declared != Declared::Unchanged {
            tracing::info!(schedule = %new.id, job.kind = %new.spec.kind, ?declared, "declared a schedule");
        }
    }
    Ok(())
}

/// What others can read of this node.
fn node_info(registry: &Registry, config: &Config, schedules: &[NewRecurring]) -> Result<JsonText, InvalidInput> {
    let slots = crate::slots::SlotPools::new(registry, &config.queues);
    let mut queues: Vec<_> = slots.queues().collect();
    queues.dedup();
    let info = serde_json::json!({
        "version": env!("CARGO_PKG_VERSION"),
        "kinds": registry.own().map(|(kind, _)| kind).collect::<Vec<_>>(),
        "queues": queues,
        "slots": slots.total(),
        "schedules": schedules.iter().map(|one| one.id).collect::<Vec<_>>(),
    });
    JsonText::encode("node info", &info, 1024 * 1024)
}

/// Hooks are called in order at the start and in reverse order at the stop.
pub(crate) struct Hooks(Vec<Box<dyn LifecycleHook>>);

impl Hooks {
    async fn before_start(&self) -> Result<(), StartError> {
        for (at, hook) in self.0.iter().enumerate() {
            if let Err(error) = hook.before_start().await {
                // Paired: those that were called are told that it is over.
                for begun in self.0[..=at].iter().rev() {
                    logged("after_stop", begun.after_stop().await);
                }
                return Err(StartError::Hook(error));
            }
        }
        Ok(())
    }

    async fn after_start(&self) {
        for hook in &self.0 {
            logged("after_start", hook.after_start().await);
        }
    }

    pub(crate) async fn before_stop(&self) {
        for hook in self.0.iter().rev() {
            logged("before_stop", hook.before_stop().await);
        }
    }

    pub(crate) async fn after_stop(&self) {
        for hook in self.0.iter().rev() {
            logged("after_stop", hook.after_stop().await);
        }
    }
}

fn logged(which: &str, result: Result<(), BoxError>) {
    if let Err(error) = result {
        tracing::error!(hook = which, error = &*error as &dyn std::error::Error, "a lifecycle hook failed");
    }
}
