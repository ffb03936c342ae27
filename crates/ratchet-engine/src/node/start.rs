//! Setting a node running.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Instant;

use jiff::Timestamp;
use ratchet_core::breaker::BreakerConfig;
use ratchet_core::node::NodeRegistration;
use ratchet_core::schedule::NewSchedule;
use ratchet_core::{InvalidInput, Kind, QueueName, ResourceLimit, ResourceName, StoreError};
use tokio::sync::watch;

use crate::client::insight::NodeDefaults;
use crate::client::resources::declare_resources;
use crate::job::failure::{BoxError, with_sources};
use crate::job::inject::StateMap;
use crate::job::registry::{Registration, Registry};
use crate::node::builder::RatchetBuilder;
use crate::node::config::{Config, once};
use crate::node::context::NodeContext;
use crate::node::hooks::Hooks;
use crate::node::info::node_info;
use crate::node::ratchet::Ratchet;
use crate::node::tasks::Tasks;
use crate::observe::bus::Listener;
use crate::observe::events::JobEvent;
use crate::observe::metrics::Meter;
use crate::protect::breaker_orders::BreakerOrders;
use crate::protect::policy::PolicyRefusal;
use crate::protect::resilience::Guarded;
use crate::pump::polling::PollingStrategy;
use crate::pump::{Pump, PumpParts};
use crate::retention::BulkEvent;
use crate::run::Runner;
use crate::run::gate::gates;
use crate::schedule::Declarations;
use crate::upkeep::heartbeat::{Heartbeat, Standing};
use crate::upkeep::service_watch::ServiceWatch;

/// Why a node did not start.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum StartError {
    /// An option is out of bounds.
    #[error("the node's configuration was refused: {0}")]
    Invalid(InvalidInput),
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
    /// The job policy refuses a schedule that a registered kind declares.
    #[error("the job policy refused a declared schedule: {0}")]
    Refused(PolicyRefusal),
    /// A lifecycle hook refused.
    #[error("a lifecycle hook refused the start: {}", with_sources(&**.0))]
    Hook(BoxError),
    /// The store could not take the node in.
    #[error(transparent)]
    Store(#[from] StoreError),
}

impl From<InvalidInput> for StartError {
    fn from(refused: InvalidInput) -> Self {
        Self::Invalid(refused)
    }
}

impl From<PolicyRefusal> for StartError {
    fn from(refused: PolicyRefusal) -> Self {
        Self::Refused(refused)
    }
}

/// A node whose options are valid, and that can be registered.
struct ValidatedNode {
    node: NodeContext,
    config: Config,
    runner: Runner,
    states: StateMap,
    services: ServiceWatch,
    strategy: Box<dyn PollingStrategy>,
    listeners: Vec<Listener<JobEvent>>,
    bulk_listeners: Vec<Listener<BulkEvent>>,
    hooks: Hooks,
}

/// The writes of a starting node.
struct InitialWrites {
    registration: NodeRegistration,
    publish: watch::Sender<Standing>,
    schedules: Vec<NewSchedule>,
    limits: BTreeMap<ResourceName, ResourceLimit>,
}

/// What the tasks of a registered node begin with.
struct Registered {
    heartbeat: Heartbeat,
    orders: BreakerOrders,
    declarations: Declarations,
}

impl RatchetBuilder {
    /// Registers the node and sets it running.
    ///
    /// # Errors
    /// [`StartError`] names what is missing or refused; nothing is left behind then.
    pub async fn start(self) -> Result<Ratchet, StartError> {
        // In a box: a start holds several kilobytes, and is awaited inside futures of users.
        Box::pin(self.start_in_steps()).await
    }

    async fn start_in_steps(self) -> Result<Ratchet, StartError> {
        let (validated, entry) = self.validate()?;
        let (id, name) = (entry.registration.id, entry.registration.name.clone());
        validated.hooks.before_start().await?;
        match validated.register(entry).await {
            Ok(registered) => {
                let ratchet = validated.launch(registered);
                tracing::info!(node = %id, %name, "node started");
                ratchet.hooks.after_start().await;
                Ok(ratchet)
            }
            Err(error) => {
                validated.hooks.after_stop().await;
                Err(error.into())
            }
        }
    }

    /// Checks every option and puts the node together, without reading or writing the store.
    fn validate(self) -> Result<(ValidatedNode, InitialWrites), StartError> {
        let store = self.store.ok_or(StartError::NoStore)?;
        let (mut config, rules) = (self.config, self.rules);
        for (queue, slots) in self.queues {
            config.queues.insert(QueueName::new(queue)?, slots);
        }
        config.check()?;
        let schedules = declared_schedules(&self.registrations, self.clock.now())?;
        let called = called_services(&self.registrations);
        let limits = limits_by_resource(self.resources)?;
        let registry = Registry::build(self.registrations, &self.states)?;
        if registry.is_empty() {
            return Err(StartError::NoJobs);
        }
        let mut resilience = self.resilience;
        resilience.configure(&called)?;
        let name = self.identity.node_name()?;
        let meter = Meter::new(self.metrics);
        rules.admit_declared(&meter, &schedules)?;
        let info = node_info(&registry, &config, &schedules);
        // Refused here, before anything is begun, and not by the store.
        info.to_json()?;

        let gates = gates(&rules);
        let (node, publish) = NodeContext::new(store, self.coordinator, self.clock, &meter, rules, config.timing);
        if let Some(capture) = self.trace_capture {
            node.client.capture_traces(capture);
        }
        let resilience = Guarded::new(resilience.into(), meter.clone());
        let services = ServiceWatch::new(node.clone(), &registry, resilience.clone());
        let registration = NodeRegistration { id: node.client.origin(), name, info };
        let (executor, retry_policy, sanitizer) = (self.executor, self.retry_policy, self.sanitizer);
        let cancel_grace = config.timing.cancel_grace;
        let runner = Runner { registry, gates, executor, resilience, retry_policy, sanitizer, cancel_grace };
        let (states, strategy) = (self.states, self.strategy);
        let (listeners, bulk_listeners) = (self.listeners, self.bulk_listeners);
        let hooks = Hooks { hooks: self.hooks, meter };
        let validated =
            ValidatedNode { node, config, runner, states, services, strategy, listeners, bulk_listeners, hooks };
        Ok((validated, InitialWrites { registration, publish, schedules, limits }))
    }
}

impl ValidatedNode {
    /// Enters the node into the store, with what its code declares. If that fails, nothing is left behind.
    async fn register(&self, writes: InitialWrites) -> Result<Registered, StoreError> {
        let InitialWrites { registration, publish, schedules, limits } = writes;
        let (store, id) = (&self.node.store, registration.id);
        let orders = BreakerOrders::begin(self.node.clone(), &self.services).await?;
        let heartbeat = Heartbeat::start(self.node.clone(), publish, registration).await?;
        // After the node is registered: others see by that who counts on a schedule.
        let declared = async {
            declare_resources(&**store, limits.values()).await?;
            Declarations::declare(store.clone(), schedules, id).await
        };
        match declared.await {
            Ok(declarations) => Ok(Registered { heartbeat, orders, declarations }),
            Err(error) => {
                heartbeat.stop().await;
                // Should that fail too, others find the node dead after its grace.
                if let Err(error) = store.deregister(id).await {
                    tracing::warn!(error = &error as &dyn std::error::Error, "leaving the cluster failed");
                }
                Err(error)
            }
        }
    }

    /// Starts the tasks of the node.
    fn launch(self, registered: Registered) -> Ratchet {
        let Self { node, config, runner, states, services, strategy, listeners, bulk_listeners, hooks } = self;
        let Registered { heartbeat, orders, declarations } = registered;
        let (drain, draining) = watch::channel::<Option<Instant>>(None);
        let known = NodeDefaults { boost: config.boost, services: services.clone() };
        let drain_timeout = config.drain;
        node.client.belongs_to(node.standing.clone());
        let mut tasks = Tasks::default();
        tasks.spawn_listeners(&node, listeners, || node.client.events());
        tasks.spawn_listeners(&node, bulk_listeners, || node.client.bulk_events());
        tasks.spawn_upkeep(&node, services, orders, declarations, config.retention);
        let logs = tasks.spawn_log_writer(&node, config.job_logs.clone());
        tasks.watch_for_work(&node);
        let states = Arc::new(states);
        let parts = PumpParts { node: node.clone(), runner, states, logs, config, strategy, drain: draining };
        let pump = Pump::new(parts);
        tasks.spawn_pump(&node, pump, heartbeat.stopper());
        Ratchet { node, known, tasks, heartbeat, drain, drain_timeout, hooks }
    }
}

/// Returns the schedules that kinds declare.
fn declared_schedules(registrations: &[Registration], now: Timestamp) -> Result<Vec<NewSchedule>, InvalidInput> {
    let declared = registrations.iter().filter_map(Registration::schedule).cloned();
    declared.map(|schedule| schedule.into_new_schedule(now)).collect()
}

/// Refuses limits out of bounds, and two that differ for one resource.
fn limits_by_resource(limits: Vec<ResourceLimit>) -> Result<BTreeMap<ResourceName, ResourceLimit>, InvalidInput> {
    limits.iter().try_for_each(ResourceLimit::check)?;
    once("resource_limit", limits.into_iter().map(|limit| (limit.name.clone(), limit)), "keep one")
}

/// Returns the services that kinds call, with the breakers that these ask for, each once.
fn called_services(registrations: &[Registration]) -> BTreeMap<String, Vec<BreakerConfig>> {
    let mut services: BTreeMap<String, Vec<BreakerConfig>> = BTreeMap::new();
    for registration in registrations {
        let asked = services.entry(registration.service().to_owned()).or_default();
        if let Some(config) = registration.breaker().filter(|config| !asked.contains(config)) {
            asked.push(config);
        }
    }
    services
}
