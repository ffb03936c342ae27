//! Telling those who watch what no loop tells of itself: how long ago each did what it is for.

use std::sync::Arc;
use std::time::Duration;

use ratchet_core::Clock;

use crate::metrics::names;
use crate::stats::Counters;

/// It is told at least this often.
const TELL_MAX: Duration = Duration::from_secs(5);

/// Tells again and again, until the task is dropped.
///
/// A task of its own: a loop that has died could not tell of itself. Nor does the heartbeat's thread do it: the collector may be
/// the user's, and one that blocks must not keep the node from being heard.
pub(crate) async fn tell(counters: Arc<Counters>, clock: Arc<dyn Clock>, heartbeat: Duration) {
    let every = heartbeat.min(TELL_MAX);
    loop {
        for one in counters.last_success.ages(clock.now()) {
            counters.meter.gauge(names::LOOP_AGE, &[("loop", one.which.as_str())], one.age.as_secs_f64());
        }
        tokio::time::sleep(every).await;
    }
}
