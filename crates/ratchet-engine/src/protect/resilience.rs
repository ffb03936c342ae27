//! Leaving a service alone while it fails.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock};
use std::time::Duration;

use ratchet_core::breaker::{Admission, Breaker, BreakerConfig, BreakerState, CallEnd, Ticket};
use ratchet_core::{InvalidInput, ServiceName};
use tokio::time::Instant;

use crate::guard;
use crate::node::config::given_twice;
use crate::observe::metrics::Meter;

/// Decides whether the jobs of a service run now.
///
/// A service is what a job calls: `#[job(service = "payments")]`, or the job's kind if it names none. Kinds of a service
/// that admits nothing are not claimed, so that their jobs cost nothing while they wait; jobs that were claimed already
/// go back without an attempt consumed. The engine calls this for every claim and every job: it should be quick.
///
/// The built-in strategy is [`CircuitBreakers`]; [`AlwaysAdmit`] turns it off.
pub trait ResilienceStrategy: Send + Sync + 'static {
    /// Takes in the services that the node's kinds call, once, before the node starts. With each come the breakers that its kinds
    /// ask for, `#[job(breaker = "…")]`: none, one, or several that differ.
    ///
    /// # Errors
    /// The node does not start with what the strategy refuses.
    fn configure(&mut self, _services: &BTreeMap<String, Vec<BreakerConfig>>) -> Result<(), InvalidInput> {
        Ok(())
    }

    /// How many jobs of this service may be claimed now.
    fn admits(&self, service: &str) -> Admission;

    /// A job of this service is about to run. Refused with a delay, it goes back for about so long.
    fn enter(&self, service: &str) -> Result<Ticket, Duration>;

    /// The job that entered with this ticket has ended.
    fn leave(&self, service: &str, ticket: Ticket, end: CallEnd);

    /// What there is to tell of the services.
    fn services(&self) -> Vec<ServiceState> {
        Vec::new()
    }

    /// Admits nothing until [`reset`](Self::reset).
    fn open(&self, _service: &str) {}

    /// Begins anew, admitting all.
    fn reset(&self, _service: &str) {}
}

/// How a service stands, on one node.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct ServiceState {
    /// Its name.
    pub service: String,
    /// Where its breaker stands.
    pub state: BreakerState,
    /// The share of failed calls among the last ones, while calls go through.
    pub failure_rate: Option<f64>,
    /// How long until it is tried again, if it is open and nobody opened it by hand.
    pub retry_in: Option<Duration>,
}

/// Runs everything, whatever fails.
#[derive(Debug, Clone, Copy, Default)]
pub struct AlwaysAdmit;

impl ResilienceStrategy for AlwaysAdmit {
    fn admits(&self, _service: &str) -> Admission {
        Admission::All
    }

    fn enter(&self, _service: &str) -> Result<Ticket, Duration> {
        Ok(Ticket(0))
    }

    fn leave(&self, _service: &str, _ticket: Ticket, _end: CallEnd) {}
}

/// A circuit breaker for each service, in this node's memory.
///
/// Nodes judge apart: each has its own network and its own luck, and nothing has to be written to open a breaker.
///
/// A service whose breaker is not configured [here](Self::with) has the one that its kinds ask for, and else the default.
///
/// ```
/// use ratchet_core::BreakerConfig;
/// use ratchet_engine::{CircuitBreakers, Ratchet};
///
/// let breakers = CircuitBreakers::default().with("payments", BreakerConfig::CRITICAL);
/// let builder = Ratchet::builder().resilience_strategy(breakers);
/// ```
#[derive(Debug)]
pub struct CircuitBreakers {
    default: BreakerConfig,
    configured: BTreeMap<String, BreakerConfig>,
    /// The first service that was configured twice, and differently.
    contradiction: Option<InvalidInput>,
    began: Instant,
    breakers: Mutex<Breakers>,
}

#[derive(Debug, Default)]
struct Breakers {
    by_service: HashMap<String, Used>,
    swept: Duration,
}

#[derive(Debug)]
struct Used {
    breaker: Breaker,
    last: Duration,
    /// Where it stood when that was last told.
    told: BreakerState,
}

impl Used {
    /// Says where it stands, if that was not said: also of one whose time was over when nobody asked.
    fn tell(&mut self, service: &str, now: Duration) {
        let state = self.breaker.state(now);
        if std::mem::replace(&mut self.told, state) == state {
            return;
        }
        match state {
            BreakerState::Open => tracing::warn!(service, "a circuit breaker opened: its jobs wait"),
            BreakerState::HalfOpen => tracing::info!(service, "a circuit breaker tries its service"),
            BreakerState::Closed => tracing::info!(service, "a circuit breaker closed: its jobs run again"),
        }
    }
}

/// A closed breaker that nobody used for so long is forgotten.
const IDLE_MAX: Duration = Duration::from_mins(10);
const SWEEP_EVERY: Duration = Duration::from_mins(1);

impl Default for CircuitBreakers {
    fn default() -> Self {
        Self::new(BreakerConfig::DEFAULT)
    }
}

impl CircuitBreakers {
    /// Breakers of this configuration.
    pub fn new(default: BreakerConfig) -> Self {
        Self {
            default,
            configured: BTreeMap::new(),
            contradiction: None,
            began: Instant::now(),
            breakers: Mutex::default(),
        }
    }

    /// Sets the configuration of one service, whatever its kinds ask for. Two that differ for one service are refused when the
    /// node starts.
    #[must_use]
    pub fn with(mut self, service: impl Into<String>, config: BreakerConfig) -> Self {
        let service = service.into();
        if let Some(first) = self.configured.get(&service).filter(|first| **first != config) {
            let refused = || given_twice("breaker", &service, first, &config, "keep one");
            self.contradiction.get_or_insert_with(refused);
        }
        self.configured.insert(service, config);
        self
    }

    fn lock(&self) -> MutexGuard<'_, Breakers> {
        self.breakers.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Changes a service's breaker, and says so if it now stands elsewhere.
    fn change<T>(&self, service: &str, change: impl FnOnce(&mut Breaker, Duration) -> T) -> T {
        let now = self.began.elapsed();
        let mut breakers = self.lock();
        if now >= breakers.swept + SWEEP_EVERY {
            breakers.swept = now;
            let in_use =
                |used: &mut Used| used.last + IDLE_MAX > now || used.breaker.state(now) != BreakerState::Closed;
            breakers.by_service.retain(|_, used| in_use(used));
        }
        if !breakers.by_service.contains_key(service) {
            let config = self.configured.get(service).unwrap_or(&self.default);
            breakers.by_service.insert(
                service.to_owned(),
                Used { breaker: Breaker::new(*config), last: now, told: BreakerState::Closed },
            );
        }
        let used = breakers.by_service.get_mut(service).expect("it was just put there");
        used.last = now;
        used.tell(service, now);
        let changed = change(&mut used.breaker, now);
        used.tell(service, now);
        changed
    }
}

impl ResilienceStrategy for CircuitBreakers {
    fn configure(&mut self, services: &BTreeMap<String, Vec<BreakerConfig>>) -> Result<(), InvalidInput> {
        if let Some(refused) = self.contradiction.take() {
            return Err(refused);
        }
        for service in self.configured.keys().filter(|service| !services.contains_key(*service)) {
            // It may be the configuration of several nodes, but mostly it is a slip of the pen.
            let called = services.keys().map(String::as_str).collect::<Vec<_>>().join(", ");
            tracing::warn!(%service, %called, "a breaker is configured for a service that no kind of this node calls");
        }
        for (service, asked) in services {
            let open = !self.configured.contains_key(service);
            match asked.as_slice() {
                [first, second, ..] if open => {
                    let advice = "let its kinds ask for the same, or decide with CircuitBreakers::with";
                    return Err(given_twice("breaker", service, first, second, advice));
                }
                [config] if open => {
                    self.configured.insert(service.clone(), *config);
                }
                _ => {}
            }
        }
        self.configured.values().chain([&self.default]).try_for_each(BreakerConfig::check)
    }

    fn admits(&self, service: &str) -> Admission {
        let now = self.began.elapsed();
        self.lock().by_service.get_mut(service).map_or(Admission::All, |used| {
            used.tell(service, now);
            used.breaker.admits(now)
        })
    }

    fn enter(&self, service: &str) -> Result<Ticket, Duration> {
        self.change(service, Breaker::enter)
    }

    fn leave(&self, service: &str, ticket: Ticket, end: CallEnd) {
        self.change(service, |breaker, now| breaker.leave(ticket, end, now));
    }

    fn services(&self) -> Vec<ServiceState> {
        let now = self.began.elapsed();
        let breakers = self.lock();
        let state = |(service, used): (&String, &Used)| ServiceState {
            service: service.clone(),
            state: used.breaker.state(now),
            failure_rate: used.breaker.failure_rate(),
            retry_in: match used.breaker.admits(now) {
                Admission::None(wait) => wait,
                Admission::All | Admission::AtMost(_) => None,
            },
        };
        let mut services: Vec<_> = breakers.by_service.iter().map(state).collect();
        services.sort_by(|one, other| one.service.cmp(&other.service));
        services
    }

    fn open(&self, service: &str) {
        self.change(service, |breaker, _| breaker.open());
    }

    fn reset(&self, service: &str) {
        self.change(service, |breaker, _| breaker.reset());
    }
}

/// The strategy may be the user's: a panic costs its opinion, not the node. And what is held open for the whole cluster is,
/// whatever it says.
#[derive(Clone)]
pub(crate) struct Guarded {
    strategy: Arc<dyn ResilienceStrategy>,
    held: Arc<RwLock<BTreeSet<ServiceName>>>,
    meter: Meter,
}

/// How long jobs are put off that were claimed before their service was held open. Later ones are not claimed, so that the end
/// of it costs nothing.
const HELD_DELAY: Duration = Duration::from_secs(1);

impl Guarded {
    pub(crate) fn new(strategy: Arc<dyn ResilienceStrategy>, meter: Meter) -> Self {
        Self { strategy, held: Arc::default(), meter }
    }

    pub(crate) fn admits(&self, service: &str) -> Admission {
        if self.is_held(service) {
            return Admission::None(None);
        }
        self.ask(Admission::All, |strategy| strategy.admits(service))
    }

    fn is_held(&self, service: &str) -> bool {
        self.held.read().unwrap_or_else(PoisonError::into_inner).contains(service)
    }

    /// Admits nothing until [`let_go`](Self::let_go).
    pub(crate) fn hold(&self, service: &ServiceName) {
        self.held.write().unwrap_or_else(PoisonError::into_inner).insert(service.clone());
        // Calls that run say nothing about it any more, and the metrics are those of an open breaker.
        self.open(service.as_str());
    }

    /// Begins anew, held open before or not.
    pub(crate) fn let_go(&self, service: &ServiceName) {
        self.held.write().unwrap_or_else(PoisonError::into_inner).remove(service);
        self.reset(service.as_str());
    }

    pub(crate) fn open(&self, service: &str) {
        self.ask((), |strategy| strategy.open(service));
    }

    /// Begins anew, unless it is held open.
    pub(crate) fn reset(&self, service: &str) {
        if !self.is_held(service) {
            self.ask((), |strategy| strategy.reset(service));
        }
    }

    pub(crate) fn services(&self) -> Vec<ServiceState> {
        let mut services = self.ask(Vec::new(), ResilienceStrategy::services);
        let held = self.held.read().unwrap_or_else(PoisonError::into_inner);
        services.retain(|one| !held.contains(one.service.as_str()));
        services.extend(held.iter().map(|service| ServiceState {
            service: service.to_string(),
            state: BreakerState::Open,
            failure_rate: None,
            retry_in: None,
        }));
        services.sort_by(|one, other| one.service.cmp(&other.service));
        services
    }

    /// Begins a call; it ends at the latest when the answer is dropped.
    pub(crate) fn enter(&self, service: &Arc<str>) -> Result<ServiceCall, Duration> {
        if self.is_held(service) {
            return Err(HELD_DELAY);
        }
        let ticket = self.ask(Ok(Ticket(0)), |strategy| strategy.enter(service))?;
        Ok(ServiceCall { strategy: self.clone(), service: service.clone(), ticket, ended: false })
    }

    fn ask<T>(&self, otherwise: T, ask: impl FnOnce(&dyn ResilienceStrategy) -> T) -> T {
        guard::call(&self.meter, guard::RESILIENCE_STRATEGY, || ask(&*self.strategy)).unwrap_or(otherwise)
    }
}

/// One call of a service.
pub(crate) struct ServiceCall {
    strategy: Guarded,
    service: Arc<str>,
    ticket: Ticket,
    ended: bool,
}

impl ServiceCall {
    pub(crate) fn end(mut self, end: CallEnd) {
        self.leave(end);
    }

    fn leave(&mut self, end: CallEnd) {
        if !std::mem::replace(&mut self.ended, true) {
            let (service, ticket) = (&self.service, self.ticket);
            self.strategy.ask((), |strategy| strategy.leave(service, ticket, end));
        }
    }
}

impl Drop for ServiceCall {
    fn drop(&mut self) {
        // A task that was aborted tells nothing of the service, but its trial must not be lost.
        self.leave(CallEnd::Neutral);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::log_lines::LogLines;

    fn fail(breakers: &CircuitBreakers, service: &str, times: usize) {
        for _ in 0..times {
            let ticket = breakers.enter(service).unwrap();
            breakers.leave(service, ticket, CallEnd::Failed);
        }
    }

    #[tokio::test(start_paused = true)]
    async fn breakers_that_nobody_uses_are_forgotten_unless_they_are_open() {
        let breakers = CircuitBreakers::default();
        fail(&breakers, "quiet", 1);
        breakers.open("shut");
        tokio::time::advance(IDLE_MAX + SWEEP_EVERY).await;
        fail(&breakers, "busy", 1);
        let names: Vec<_> = breakers.services().into_iter().map(|one| one.service).collect();
        assert_eq!(names, ["busy", "shut"]);
    }

    #[tokio::test(start_paused = true)]
    async fn each_service_has_its_own_breaker_and_configuration() {
        let breakers = CircuitBreakers::default().with("quick", BreakerConfig::FAST);
        fail(&breakers, "quick", 3);
        fail(&breakers, "plain", 3);
        assert_eq!(breakers.admits("quick"), Admission::None(Some(Duration::from_secs(10))));
        assert_eq!(breakers.admits("plain"), Admission::All, "its minimum is five calls");
        assert_eq!(breakers.admits("never called"), Admission::All);
        tokio::time::advance(Duration::from_secs(10)).await;
        assert_eq!(breakers.admits("quick"), Admission::AtMost(2));
    }

    #[tokio::test(start_paused = true)]
    async fn kinds_configure_the_services_that_the_node_leaves_open() {
        let asked = |configs: &[BreakerConfig]| configs.to_vec();
        let (fast, critical) = (BreakerConfig::FAST, BreakerConfig::CRITICAL);
        let mut breakers = CircuitBreakers::new(critical).with("decided", critical);
        let services = [("asks", asked(&[fast])), ("decided", asked(&[fast, critical])), ("plain", asked(&[]))];
        let services = services.map(|(service, asked)| (service.to_owned(), asked));
        breakers.configure(&services.into()).unwrap();
        for service in ["asks", "decided", "plain"] {
            fail(&breakers, service, 3);
        }
        let open: Vec<_> = breakers.services().into_iter().filter(|one| one.state == BreakerState::Open).collect();
        assert_eq!(open.iter().map(|one| one.service.as_str()).collect::<Vec<_>>(), ["asks"]);
        let two = [("asks".to_owned(), asked(&[fast, critical]))].into();
        let refused = CircuitBreakers::default().configure(&two).unwrap_err().to_string();
        assert!(refused.ends_with("or decide with CircuitBreakers::with"), "{refused}");
        assert!(AlwaysAdmit.configure(&two).is_ok(), "without breakers there is nothing to decide");
    }

    #[tokio::test(start_paused = true)]
    async fn every_change_of_a_breaker_is_logged_once() {
        let (lines, _listening) = LogLines::listen();
        let breakers = CircuitBreakers::new(BreakerConfig::FAST);
        fail(&breakers, "s", 3);
        for _ in 0..3 {
            tokio::time::advance(Duration::from_secs(9)).await;
            breakers.admits("s");
        }
        for _ in 0..2 {
            let ticket = breakers.enter("s").unwrap();
            breakers.leave("s", ticket, CallEnd::Succeeded);
        }
        let expected = [
            "a circuit breaker opened: its jobs wait",
            "a circuit breaker tries its service",
            "a circuit breaker closed: its jobs run again",
        ];
        assert_eq!(lines.field("message"), expected);
    }

    #[tokio::test]
    async fn a_call_that_is_dropped_gives_its_trial_back() {
        let breakers = Arc::new(CircuitBreakers::new(BreakerConfig::FAST.open_for(Duration::from_millis(1))));
        fail(&breakers, "s", 3);
        tokio::time::sleep(Duration::from_millis(5)).await;
        let guarded = Guarded::new(breakers.clone(), Meter::default());
        let trials = [guarded.enter(&"s".into()).ok().unwrap(), guarded.enter(&"s".into()).ok().unwrap()];
        assert_eq!(breakers.admits("s"), Admission::AtMost(0));
        drop(trials);
        assert_eq!(breakers.admits("s"), Admission::AtMost(2));
    }

    #[tokio::test(start_paused = true)]
    async fn what_is_held_open_is_whatever_the_strategy_says() {
        let payments = ServiceName::new("payments").unwrap();
        let open = |guarded: &Guarded| {
            let named = guarded.services().into_iter().find(|one| one.service == "payments");
            let entered = guarded.enter(&"payments".into()).is_ok();
            (guarded.admits("payments"), entered, named.is_some_and(|one| one.state == BreakerState::Open))
        };
        let strategies: [Arc<dyn ResilienceStrategy>; 2] =
            [Arc::new(AlwaysAdmit), Arc::new(CircuitBreakers::default())];
        for strategy in strategies {
            let guarded = Guarded::new(strategy, Meter::default());
            guarded.hold(&payments);
            assert_eq!(open(&guarded), (Admission::None(None), false, true));
            assert_eq!(guarded.admits("others"), Admission::All);
            guarded.reset("payments");
            tokio::time::advance(Duration::from_hours(1)).await;
            assert_eq!(open(&guarded), (Admission::None(None), false, true), "a node alone cannot reset it");
            guarded.let_go(&payments);
            assert_eq!(open(&guarded), (Admission::All, true, false));
            guarded.open("payments");
            guarded.let_go(&payments);
            assert_eq!(guarded.admits("payments"), Admission::All, "what one node had opened is reset with the rest");
        }
    }
}
