//! Whether a node is well, for those who restart it or send it work.

use std::sync::Arc;
use std::time::{Duration, Instant};

use tokio::sync::watch;
use tokio::task::AbortHandle;

use crate::client::Client;
use crate::observe::stats::{Counters, LastSuccess, Loop};
use crate::upkeep::heartbeat::Standing;

/// A loop that did not succeed for so long is not well; nor is one that looks seldom and missed two looks.
const OVERDUE: Duration = Duration::from_mins(5);

/// How a node is.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
#[expect(clippy::struct_excessive_bools, reason = "each answers a question of its own")]
pub struct Health {
    /// The node runs; if not, only a restart helps. A database that cannot be reached does not count: a restart would not
    /// help, and would lose the results that wait to be written.
    pub live: bool,
    /// The node claims jobs: it is live, not draining, and the database has heard of it lately.
    pub ready: bool,
    /// The node is stopping: it claims nothing more and lets its jobs finish.
    pub draining: bool,
    /// The database has not heard of the node for two thirds of its grace, so that it has stopped its jobs.
    pub fenced: bool,
    /// When each loop last did what it is for.
    pub last_success: LastSuccess,
    /// Loops that did not succeed for five minutes, or for twice as long as they wait between two looks.
    pub overdue: Vec<&'static str>,
}

/// Tells how a node is, for as long as anybody asks: also while it drains, and after its end.
#[derive(Debug, Clone)]
pub struct HealthProbe {
    pub(crate) counters: Arc<Counters>,
    pub(crate) standing: watch::Receiver<Standing>,
    pub(crate) drain: watch::Receiver<Option<Instant>>,
    pub(crate) pump: AbortHandle,
    pub(crate) client: Client,
}

impl HealthProbe {
    /// How the node is now.
    pub fn health(&self) -> Health {
        let live = !self.pump.is_finished();
        let draining = self.drain.borrow().is_some();
        let fenced = self.standing.borrow().fenced;
        let last_success = self.counters.read().last_success;
        // A node that drains claims nothing, and may have nothing to settle for as long as its jobs run.
        let ages = self.counters.last_success.ages(self.client.now());
        let judged = ages.filter(|one| !(draining && one.which == Loop::Turn));
        let late = judged.filter(|one| one.since > OVERDUE.max(one.wait.saturating_mul(2)));
        let overdue = late.map(|one| one.which.as_str()).collect();
        Health { live, ready: live && !draining && !fenced, draining, fenced, last_success, overdue }
    }
}
