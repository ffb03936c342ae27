//! What is asked before a handler runs, in order.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use ratchet_core::DeferReason;

use crate::context::JobContext;
use crate::failure::Failure;

/// One question before a handler runs. Gates are asked in the order of [`gates`]; the first that does not let the job
/// pass decides.
#[async_trait]
pub(crate) trait Gate: Send + Sync {
    async fn check(&self, ctx: &JobContext) -> Passage;
}

/// A gate's answer.
#[derive(Debug)]
pub(crate) enum Passage {
    /// Go on.
    Open,
    /// The job is no longer wanted.
    Cancelled,
    #[cfg_attr(not(test), expect(dead_code, reason = "the answer of breaker and permit gates, which slot in here"))]
    /// Not now: the job goes back without an attempt consumed.
    NotNow { delay: Duration, reason: DeferReason },
    #[cfg_attr(not(test), expect(dead_code, reason = "the answer of policy gates, which slot in here"))]
    /// Never: the attempt fails with this.
    Refused(Failure),
}

/// The gates, in the order in which they are asked.
pub(crate) fn gates() -> Arc<[Box<dyn Gate>]> {
    Arc::new([Box::new(StillWanted) as Box<dyn Gate>])
}

/// Is the job still to run? It may have been cancelled, or the node fenced, between claim and start.
struct StillWanted;

#[async_trait]
impl Gate for StillWanted {
    async fn check(&self, ctx: &JobContext) -> Passage {
        if ctx.is_cancelled() { Passage::Cancelled } else { Passage::Open }
    }
}
