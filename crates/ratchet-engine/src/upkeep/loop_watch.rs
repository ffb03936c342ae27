//! Telling those who watch what no loop tells of itself: how long ago each did what it is for, and what became of hints.

use std::sync::Arc;
use std::time::Duration;

use ratchet_core::ClusterCoordinator;
use ratchet_core::coordinator::CoordinatorStats;

use crate::guard;
use crate::node::context::NodeContext;
use crate::observe::metrics::{Meter, names};
use crate::observe::stats::{Counters, Loop};

/// It is told at least this often.
const TELL_MAX: Duration = Duration::from_secs(5);

/// Tells again and again, until the task is dropped.
///
/// A task of its own: a loop that has died could not tell of itself. Nor does the heartbeat's thread do it: the collector may be
/// the user's, and one that blocks must not keep the node from being heard.
pub(crate) async fn tell(node: NodeContext) {
    let NodeContext { counters, clock, client, .. } = node;
    let every = node.timing.heartbeat.min(TELL_MAX);
    let mut told = CoordinatorStats::default();
    let Counters { meter, last_success, .. } = &*counters;
    last_success.waits(Loop::Watch, every);
    loop {
        let tell = || {
            for one in last_success.ages(clock.now()) {
                meter.gauge(names::LOOP_AGE, &[("loop", one.which.as_str())], one.since.as_secs_f64());
            }
            let ask = |coordinator: &Arc<dyn ClusterCoordinator>| {
                guard::call(meter, guard::COORDINATOR, || coordinator.stats()).ok()
            };
            if let Some(now) = client.coordinator().and_then(ask) {
                tell_hints(meter, told, now);
                told = now;
            }
            last_success.mark(Loop::Watch, clock.now());
        };
        let _ = guard::call(meter, Loop::Watch.guarded(), tell);
        tokio::time::sleep(every).await;
    }
}

/// What has come to pass since it was last told. The first time that is everything since the coordinator was made.
fn tell_hints(meter: &Meter, before: CoordinatorStats, now: CoordinatorStats) {
    let table = [
        (names::HINTS_PUBLISHED, "sent", before.sent, now.sent),
        (names::HINTS_PUBLISHED, "coalesced", before.coalesced, now.coalesced),
        (names::HINTS_RECEIVED, "heard", before.received, now.received),
        (names::HINTS_RECEIVED, "own", before.self_suppressed, now.self_suppressed),
        (names::HINTS_RECEIVED, "rejected", before.rejected, now.rejected),
        (names::HINTS_RECEIVED, "listener_failed", before.listener_failures, now.listener_failures),
        (names::HINTS_TRANSPORT, "failed", before.transport_failures, now.transport_failures),
        (names::HINTS_TRANSPORT, "reconnected", before.reconnects, now.reconnects),
    ];
    for (name, outcome, before, now) in table {
        if now > before {
            meter.count(name, &[("outcome", outcome)], now - before);
        }
    }
}
