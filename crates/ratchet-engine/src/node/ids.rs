//! Ids and time from this machine.

use std::sync::LazyLock;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use jiff::Timestamp;
use ratchet_core::uuid7::{TickSource, Uuid7Generator};
use ratchet_core::{Clock, DeliveryId, JobId, NodeId};

/// The machine's clock: the only place in the engine that reads it.
#[derive(Debug, Clone, Copy, Default)]
pub struct SystemClock;

impl Clock for SystemClock {
    #[expect(clippy::disallowed_methods, reason = "this is the Clock that others are told to use")]
    fn now(&self) -> Timestamp {
        Timestamp::now()
    }
}

struct SystemTicks;

impl TickSource for SystemTicks {
    #[expect(clippy::disallowed_methods, reason = "ids carry the machine's time by definition")]
    fn unix_ms(&self) -> u64 {
        let since_epoch = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        u64::try_from(since_epoch.as_millis()).unwrap_or(u64::MAX)
    }

    fn wait_for_tick(&self, ms: u64) {
        let begun = Instant::now();
        while self.unix_ms() == ms && begun.elapsed() < Duration::from_millis(5) {
            std::hint::spin_loop();
        }
    }

    fn random(&self) -> u64 {
        // From the operating system's generator, by way of the uuid crate.
        uuid::Uuid::new_v4().as_u64_pair().1
    }
}

/// One generator a process, so that ids of one process sort in the order in which they were made.
static GENERATOR: LazyLock<Uuid7Generator> = LazyLock::new(|| Uuid7Generator::new(SystemTicks));

/// A new id for a job.
pub fn new_job_id() -> JobId {
    JobId(GENERATOR.next_uuid())
}

/// A new id for the delivery of a signal.
pub(crate) fn new_delivery_id() -> DeliveryId {
    DeliveryId(GENERATOR.next_uuid())
}

/// A new id for an incarnation of a node.
pub fn new_node_id() -> NodeId {
    NodeId(GENERATOR.next_uuid())
}
