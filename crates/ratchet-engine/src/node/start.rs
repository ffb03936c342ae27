//! Setting a node running.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Instant;

use ratchet_core::breaker::BreakerConfig;
use ratchet_core::node::{NodeInfo, NodeRegistration, PoolInfo};
use ratchet_core::schedule::NewSchedule;
use ratchet_core::{Hint, InvalidInput, Kind, QueueName, ResourceLimit, ServiceName, StoreError};
use tokio::sync::watch;

use crate::batch::Canceler;
use crate::client::Client;
use crate::client::insight::{Gauges, NodeDefaults};
use crate::client::resources::declare_resources;
use crate::guard;
use crate::job::failure::{BoxError, with_sources};
use crate::job::registry::{RegisteredKind, Registration, Registry};
use crate::job_log::{LogQueue, LogWriter, StoreSink};
use crate::node::builder::RatchetBuilder;
use crate::node::config::{Config, once};
use crate::node::hooks::Hooks;
use crate::node::ratchet::{Draining, Ratchet};
use crate::node::tasks::Tasks;
use crate::observe::bus::listen;
use crate::observe::metered::Metered;
use crate::observe::metrics::Meter;
use crate::observe::stats::{Counters, Loop};
use crate::protect::breaker_orders::BreakerOrders;
use crate::protect::policy::PolicyRefusal;
use crate::protect::resilience::Guarded;
use crate::pump::slots::SlotPools;
use crate::pump::{Pump, PumpParts};
use crate::retention::Archiver;
use crate::run::Runner;
use crate::run::gate::gates;
use crate::schedule::{Declarations, Firer};
use crate::upkeep::heartbeat::{Heartbeat, HeartbeatConfig};
use crate::upkeep::loop_watch;
use crate::upkeep::rescue::Rescuer;
use crate::upkeep::service_watch::ServiceWatch;
use crate::upkeep::signal_limit::SignalLimit;

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

impl RatchetBuilder {
    /// Registers the node and sets it running.
    ///
    /// # Errors
    /// [`StartError`] names what is missing or refused; nothing is left behind then.
    pub async fn start(self) -> Result<Ratchet, StartError> {
        let Self {
            store, registrations, states, mut config, queues, identity, hooks, listeners, bulk_listeners, ..
        } = self;
        let store = store.ok_or(StartError::NoStore)?;
        for (queue, slots) in queues {
            config.queues.insert(QueueName::new(queue)?, slots);
        }
        config.check()?;
        let mut schedules = Vec::new();
        for scheduled in registrations.iter().filter_map(Registration::schedule) {
            schedules.push(scheduled.clone().into_new_schedule(self.clock.now())?);
        }
        let called = called_services(&registrations);
        self.resources.iter().try_for_each(ResourceLimit::check)?;
        let limits = self.resources.into_iter().map(|limit| (limit.name.clone(), limit));
        let resources = once("resource_limit", limits, "keep one")?;
        let registry = Registry::build(registrations, &states)?;
        if registry.is_empty() {
            return Err(StartError::NoJobs);
        }
        let mut resilience = self.resilience;
        resilience.configure(&called)?;
        let name = identity.node_name()?;
        let meter = Meter::new(self.metrics);
        let shared = Metered::for_client(store.clone(), meter.clone());
        let store = Metered::for_node(store, meter.clone(), config.timing.store_deadline);
        let counters = Arc::new(Counters::new(meter.clone()));
        let coordinator = self.coordinator.or_else(|| store.coordinator());
        let rules = self.rules;
        rules.admit_declared(&meter, &schedules)?;
        let client = Client::over(shared.clone(), self.clock.clone(), coordinator, meter.clone()).under(rules.clone());
        if let Some(capture) = self.trace_capture {
            client.capture_traces(capture);
        }
        let resilience = Guarded::new(resilience.into(), meter.clone());
        let runner = Runner {
            registry,
            gates: gates(&rules),
            executor: self.executor,
            resilience: resilience.clone(),
            retry_policy: self.retry_policy,
            sanitizer: self.sanitizer,
            cancel_grace: config.timing.cancel_grace,
        };
        let services = ServiceWatch::new(&runner.registry, resilience.clone(), counters.clone(), self.clock.clone());
        let known = NodeDefaults { boost: config.boost, services: services.clone() };
        let info = node_info(&runner.registry, &config, &schedules);
        // Refused here, before anything is begun, and not by the store.
        info.to_json()?;
        let registration = NodeRegistration { id: client.origin(), name, info };

        let hooks = Hooks { hooks, meter: meter.clone() };
        hooks.before_start().await?;
        let begun = async {
            let (client, resilience, called) = (client.clone(), resilience.clone(), services.services().clone());
            let orders = BreakerOrders::begin(store.clone(), client, resilience, called, config.timing.heartbeat);
            let orders = orders.await?;
            let heartbeat = Heartbeat::start(HeartbeatConfig {
                store: store.clone(),
                registration: registration.clone(),
                heartbeat: config.timing.heartbeat,
                grace: config.timing.grace,
                clock: self.clock.clone(),
                counters: counters.clone(),
            });
            Ok::<_, StoreError>((orders, heartbeat.await?))
        };
        let (orders, heartbeat) = match begun.await {
            Ok(begun) => begun,
            Err(error) => {
                hooks.after_stop().await;
                return Err(error.into());
            }
        };
        // After the node is registered: others see by that who counts on a schedule.
        let declared = async {
            declare_resources(&*store, resources.values()).await?;
            Declarations::declare(store.clone(), schedules, registration.id).await
        };
        let declarations = match declared.await {
            Ok(declarations) => declarations,
            Err(error) => {
                heartbeat.stop().await;
                // Should that fail too, others find the node dead after its grace.
                if let Err(error) = store.deregister(registration.id).await {
                    tracing::warn!(error = &error as &dyn std::error::Error, "leaving the cluster failed");
                }
                hooks.after_stop().await;
                return Err(error.into());
            }
        };
        let (node, present) = watch::channel(registration.id);
        client.belongs_to(present);
        let (drain, draining) = watch::channel::<Option<Instant>>(None);
        let mut tasks = Tasks::new(counters.clone(), self.clock.clone(), heartbeat.standing.clone());
        for listener in listeners {
            let stop = tasks.stop_listening.clone();
            tasks.add(Loop::Listeners, listen(client.events(), listener, stop, meter.clone()));
        }
        for listener in bulk_listeners {
            let stop = tasks.stop_listening.clone();
            tasks.add(Loop::Listeners, listen(client.bulk_events(), listener, stop, meter.clone()));
        }
        let mut standing = heartbeat.standing.clone();
        tasks.add(Loop::Standing, async move {
            while standing.changed().await.is_ok() {
                node.send_replace(standing.borrow().node);
            }
        });
        tasks.add(Loop::ServiceWatch, services.run(config.timing.heartbeat));
        let coordinator = client.coordinator().cloned();
        let watch = loop_watch::tell(counters.clone(), self.clock.clone(), coordinator, config.timing.heartbeat);
        tasks.add(Loop::Watch, watch);
        let (scan, deadline) = (config.timing.scan, config.timing.store_deadline);
        let rescuer = Rescuer {
            store: store.clone(),
            client: client.clone(),
            scan,
            grace: config.timing.grace,
            counters: counters.clone(),
        };
        let firer = Firer::new(store.clone(), client.clone(), declarations);
        let signals = SignalLimit::new(store.clone(), client.clone(), scan);
        let canceler = Canceler::new(store.clone(), client.clone(), scan, deadline);
        tasks.add_upkeep(rescuer);
        tasks.add_upkeep(firer);
        tasks.add_upkeep(signals);
        tasks.add_upkeep(canceler);
        tasks.add_upkeep(orders);
        if !config.retention.keeps_everything() {
            let archiver = Archiver::new(
                store.clone(),
                client.clone(),
                counters.clone(),
                config.retention,
                config.timing.retention_interval,
            );
            tasks.add_upkeep(archiver);
        }
        tasks.add_upkeep(Gauges::new(store.clone(), counters.meter.clone(), config.timing.gauges));
        let logs = LogQueue::new(config.job_logs.clone(), counters.clone());
        // The writer has a deadline of its own, whatever the sink.
        let sink = config.job_logs.sink.clone().unwrap_or_else(|| Arc::new(StoreSink(shared)));
        let writer = LogWriter { queue: logs.clone(), sink, deadline };
        tasks.add(Loop::LogWriter, writer.run());
        tasks.logs = Some(logs.clone());
        let woken = client.clone();
        tasks.watch = store.watch(Box::new(move || woken.wake().work()));
        let woken = client.clone();
        let hints = counters.clone();
        let heard = move |_: &Hint| {
            hints.hints.add(1);
            woken.wake().work();
        };
        // Without hints the node finds work by polling.
        tasks.hints = client.coordinator().and_then(|coordinator| {
            guard::call(&meter, guard::COORDINATOR, || coordinator.listen(client.origin(), Box::new(heard))).ok()
        });
        let (drain_timeout, store_deadline) = (config.drain, config.timing.store_deadline);
        let pump = Pump::new(PumpParts {
            store: store.clone(),
            client: client.clone(),
            runner,
            states: Arc::new(states),
            logs,
            config,
            counters: counters.clone(),
            strategy: self.strategy,
            standing: heartbeat.standing.clone(),
            drain: draining,
        });
        tasks.add_pump(pump.run(), heartbeat.stopper());
        tracing::info!(node = %registration.id, name = %registration.name, "node started");
        hooks.after_start().await;
        let draining = Draining { drain, drain_timeout, store_deadline, store };
        Ok(Ratchet::new(client, counters, (resilience, known), tasks, heartbeat, draining, hooks))
    }
}

/// The services that kinds call, with the breakers that these ask for, each once.
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

/// What others can read of this node.
fn node_info(registry: &Registry, config: &Config, schedules: &[NewSchedule]) -> NodeInfo {
    let slots = SlotPools::new(registry, &config.queues);
    let mut queues: Vec<_> = slots.queues().cloned().collect();
    queues.dedup();
    let kinds = || registry.own().map(|(kind, entry)| (kind.clone(), entry));
    // A kind that names no service is its own, which goes without saying.
    let service = |(kind, entry): (Kind, &RegisteredKind)| {
        let service = ServiceName::new(entry.service.as_deref()?).ok()?;
        (kind.as_str() != service.as_str()).then_some((kind, service))
    };
    let pool = |(queue, blocking, slots): (&QueueName, bool, usize)| PoolInfo {
        queue: queue.clone(),
        blocking,
        slots: slots as u64,
    };
    NodeInfo {
        version: env!("CARGO_PKG_VERSION").to_owned(),
        kinds: kinds().map(|(kind, _)| kind).collect(),
        queues,
        slots: slots.total() as u64,
        pools: slots.info().map(pool).collect(),
        blocking: kinds().filter_map(|(kind, entry)| entry.blocking.then_some(kind)).collect(),
        services: kinds().filter_map(service).collect(),
        schedules: schedules.iter().map(|one| one.id).collect(),
        grace_ms: Some(u64::try_from(config.timing.grace.as_millis()).unwrap_or(u64::MAX)),
    }
}
