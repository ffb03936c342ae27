//! Looking how the services stand that this node's jobs call, for the heartbeat to tell.

use std::sync::Arc;
use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use ratchet_core::node::NodeVitals;
use ratchet_core::service::{NodeServices, ServiceStand, ServiceVitals};

use crate::guard;
use crate::job::registry::Registry;
use crate::node::context::NodeContext;
use crate::observe::metrics::names;
use crate::observe::stats::{Counters, Loop};
use crate::protect::resilience::Guarded;

/// The services that this node's jobs call, and who judges them.
#[derive(Clone)]
pub(crate) struct ServiceWatch {
    services: Arc<[Arc<str>]>,
    resilience: Guarded,
    node: NodeContext,
}

/// Looks are no farther apart than this.
const LOOK_MAX: Duration = Duration::from_secs(1);

impl ServiceWatch {
    pub(crate) fn new(node: NodeContext, registry: &Registry, resilience: Guarded) -> Self {
        let mut services: Vec<_> = registry.own().filter_map(|(_, entry)| entry.service.clone()).collect();
        services.sort_unstable();
        services.dedup();
        Self { services: services.into(), resilience, node }
    }

    pub(crate) fn services(&self) -> &Arc<[Arc<str>]> {
        &self.services
    }

    pub(crate) fn resilience(&self) -> &Guarded {
        &self.resilience
    }

    /// Whether a job of this node calls it.
    pub(crate) fn has(&self, service: &str) -> bool {
        self.services.iter().any(|called| **called == *service)
    }

    /// How the node is at this moment.
    pub(crate) fn vitals(&self) -> NodeVitals {
        let mut vitals = self.node.counters.vitals.read();
        vitals.services = self.look(vitals.clock_skew_us, |_, _| ());
        vitals
    }

    /// How the services stand; each is told as it is looked at.
    fn look(&self, skew_us: Option<i64>, tell: impl Fn(&str, Option<ServiceStand>)) -> NodeServices {
        let now = database_time(self.node.clock.now(), skew_us);
        let look = |service: &Arc<str>| {
            let stand = ServiceStand::of(self.resilience.admits(service), now);
            tell(service, stand);
            Some(ServiceVitals { service: service.to_string(), stand: stand? })
        };
        NodeServices::of(self.services.iter().filter_map(look))
    }

    /// Looks again and again, until the task is dropped. Not the heartbeat does it: the strategy may be the user's, and one
    /// that blocks must not keep the node from being heard.
    pub(crate) async fn run(self) {
        let every = (self.node.timing.heartbeat / 2).min(LOOK_MAX);
        // At every look and not only when something happens to a breaker: it comes to be half open by time alone.
        let tell = |service: &str, stand: Option<ServiceStand>| {
            self.node.counters.meter.gauge(names::BREAKER, &[("service", service)], metric(stand));
        };
        let Counters { meter, vitals, last_success, .. } = &*self.node.counters;
        last_success.waits(Loop::ServiceWatch, every);
        loop {
            let look = || {
                vitals.set_services(self.look(vitals.read().clock_skew_us, tell));
                last_success.mark(Loop::ServiceWatch, self.node.clock.now());
            };
            let _ = guard::call(meter, Loop::ServiceWatch.guarded(), look);
            tokio::time::sleep(every).await;
        }
    }
}

fn metric(stand: Option<ServiceStand>) -> f64 {
    match stand {
        None => 0.0,
        Some(ServiceStand::HalfOpen) => 1.0,
        // Whatever else there may be, it is not called as usual.
        Some(_) => 2.0,
    }
}

/// This machine's time, as the database would tell it.
fn database_time(here: Timestamp, skew_us: Option<i64>) -> Timestamp {
    here.checked_sub(SignedDuration::from_micros(skew_us.unwrap_or(0))).unwrap_or(here)
}
