//! The loops beside the pump: each looks after something again and again, and none may end before the node does.

pub(crate) mod lease;
pub(crate) mod heartbeat;
pub(crate) mod heartbeat_interval;
pub(crate) mod clock_skew;
pub(crate) mod rescue;
pub(crate) mod signal_limit;
pub(crate) mod service_watch;
pub(crate) mod loop_watch;

use std::future::Future;
use std::time::Duration;

use ratchet_core::StoreError;
use tracing::Instrument as _;

use crate::guard;
use crate::node::context::NodeContext;
use crate::observe::stats::Loop;
use crate::upkeep::heartbeat::Standing;

/// Something that a node looks after again and again.
pub(crate) trait Upkeep: Send {
    /// Which loop it is.
    const LOOP: Loop;

    /// Looks once; says how long to wait until the next look. Every call of the store has a deadline.
    fn look(&mut self, standing: &Standing) -> impl Future<Output = Result<Duration, StoreError>> + Send;

    /// Waits for the next look.
    fn wait(&self, wait: Duration) -> impl Future<Output = ()> + Send {
        tokio::time::sleep(wait)
    }
}

/// How soon a loop that failed looks again; twice as long after each further failure.
const PAUSE_MIN: Duration = Duration::from_millis(200);
const PAUSE_MAX: Duration = Duration::from_secs(30);
/// How soon a node that is fenced looks whether it still is.
const FENCED_PAUSE: Duration = Duration::from_millis(500);

/// Repeats a loop until the task is dropped, after errors and panics too.
pub(crate) async fn supervised<U: Upkeep>(mut upkeep: U, node: NodeContext) {
    let NodeContext { standing, counters, clock, .. } = node;
    let mut failures: u32 = 0;
    loop {
        let now = standing.borrow().clone();
        if now.fenced {
            tokio::time::sleep(FENCED_PAUSE).await;
            continue;
        }
        let span = tracing::debug_span!("node.upkeep", upkeep = U::LOOP.as_str(), node = %now.node);
        let look = async {
            let wait = upkeep.look(&now).instrument(span).await?;
            counters.last_success.mark(U::LOOP, clock.now());
            counters.last_success.waits(U::LOOP, wait);
            Ok::<_, StoreError>(wait)
        };
        let wait = match guard::run(&counters.meter, U::LOOP.guarded(), look).await {
            Ok(Ok(wait)) => {
                failures = 0;
                wait
            }
            Ok(Err(error)) => {
                failures = failures.saturating_add(1);
                if failures.is_power_of_two() {
                    let error = &error as &dyn std::error::Error;
                    tracing::warn!(upkeep = U::LOOP.as_str(), failures, error, "upkeep failed; trying again");
                }
                pause(failures)
            }
            Err(_) => {
                failures = failures.saturating_add(1);
                pause(failures)
            }
        };
        upkeep.wait(wait).await;
    }
}

fn pause(failures: u32) -> Duration {
    PAUSE_MIN.saturating_mul(1 << failures.saturating_sub(1).min(10)).min(PAUSE_MAX)
}

/// A wait that is a little longer each time, so that many nodes do not look at the same moment.
pub(crate) fn spread(every: Duration) -> Duration {
    every + Duration::from_millis(fastrand::u64(0..=100)).min(every / 10)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_loop_that_fails_looks_again_soon_and_then_less_often() {
        assert_eq!(pause(1), PAUSE_MIN);
        assert_eq!(pause(3), PAUSE_MIN * 4);
        assert_eq!(pause(u32::MAX), PAUSE_MAX);
    }
}
