//! What is asked before a handler runs, in order.

use std::sync::Arc;

use async_trait::async_trait;

use crate::job::failure::Failure;
use crate::run::context::JobContext;
use crate::submit::admission::Rules;

/// One question before a handler runs. Gates are asked in the order of [`gates`]; the first that does not let the job
/// pass decides. Whatever would have to wait is not claimed at all: permits come with the claim, and services are asked in
/// the pump.
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
    Canceled,
    /// Never: the attempt fails with this.
    Refused(Failure),
}

/// The gates, in the order in which they are asked.
pub(crate) fn gates(rules: &Rules) -> Arc<[Box<dyn Gate>]> {
    let mut gates: Vec<Box<dyn Gate>> = vec![Box::new(StillWanted)];
    if rules.policy.is_some() {
        gates.push(Box::new(StillAllowed(rules.clone())));
    }
    gates.into()
}

/// Is the job still to run? It may have been canceled, or the node fenced, between claim and start.
struct StillWanted;

#[async_trait]
impl Gate for StillWanted {
    async fn check(&self, ctx: &JobContext) -> Passage {
        if ctx.is_canceled() { Passage::Canceled } else { Passage::Open }
    }
}

/// Does this node's policy allow the job? Who submitted it may have had another, or none.
struct StillAllowed(Rules);

#[async_trait]
impl Gate for StillAllowed {
    async fn check(&self, ctx: &JobContext) -> Passage {
        match self.0.check(ctx.client().meter(), &ctx.job().spec) {
            Ok(()) => Passage::Open,
            Err(refusal) => Passage::Refused(Failure::do_not_retry(refusal, "the job policy of this node refuses it")),
        }
    }
}
