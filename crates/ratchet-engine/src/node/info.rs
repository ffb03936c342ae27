//! What a node says of itself when it registers.

use ratchet_core::node::{NodeInfo, PoolInfo};
use ratchet_core::schedule::NewSchedule;
use ratchet_core::{Kind, QueueName, ServiceName};

use crate::job::registry::{RegisteredKind, Registry};
use crate::node::config::Config;
use crate::pump::slots::SlotPools;

/// Returns what others can read of this node.
pub(super) fn node_info(registry: &Registry, config: &Config, schedules: &[NewSchedule]) -> NodeInfo {
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
