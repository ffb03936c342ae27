//! The gates that a job passes before its handler runs, in order.
//!
//! | | gate | asked by | a job that may not pass |
//! |---|---|---|---|
//! | 1 | the claim: paused queue, permit, probation, a service that admits nothing | `pump/claim_filter.rs`, the store | is not claimed |
//! | 2 | [`BreakerEntry`]: the circuit breaker of the service that the job calls | the pump, at dispatch | is deferred |
//! | 3 | [`StillWanted`]: canceled, or the node fenced, since the claim | the attempt | ends without a result |
//! | 4 | [`StillAllowed`]: the job policy of this node | the attempt | fails permanently |
//!
//! A job that would have to wait is best not claimed at all, so a new rule of that kind belongs into the claim. The second gate
//! stops only jobs whose breaker opened between the claim and the start.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;

use crate::job::failure::Failure;
use crate::protect::resilience::{Guarded, ServiceCall};
use crate::run::context::JobContext;
use crate::submit::admission::Rules;

/// The answer of the circuit breaker of the service that a job calls.
///
/// The breaker is entered by the pump and not by the attempt's own task, so that the next claim knows how many trials have begun.
/// It is not a [`Gate`] because passing it begins a call, which ends with the attempt.
pub(crate) enum BreakerEntry {
    /// The job calls no service.
    NoService,
    /// The service admits the job, and a call of it has begun.
    Admitted(ServiceCall),
    /// The service does not admit the job; it may after this time.
    Refused(Duration),
}

impl BreakerEntry {
    /// Enters the breaker of a service, if the job calls one.
    pub(crate) fn of(service: Option<&Arc<str>>, breakers: &Guarded) -> Self {
        match service.map(|service| breakers.enter(service)) {
            None => Self::NoService,
            Some(Ok(call)) => Self::Admitted(call),
            Some(Err(wait)) => Self::Refused(wait),
        }
    }
}

/// One question that an attempt asks before its handler runs. The first gate that does not let the job pass decides.
#[async_trait]
pub(crate) trait Gate: Send + Sync {
    async fn check(&self, ctx: &JobContext) -> Passage;
}

/// A gate's answer.
#[derive(Debug)]
pub(crate) enum Passage {
    /// The job passes.
    Open,
    /// The job is no longer wanted.
    Canceled,
    /// The attempt fails with this.
    Refused(Failure),
}

/// Returns the gates of an attempt, in order.
pub(crate) fn gates(rules: &Rules) -> Arc<[Box<dyn Gate>]> {
    let mut gates: Vec<Box<dyn Gate>> = vec![Box::new(StillWanted)];
    if rules.policy.is_some() {
        gates.push(Box::new(StillAllowed(rules.clone())));
    }
    gates.into()
}

/// Stops a job that was canceled, or whose node was fenced, between claim and start.
struct StillWanted;

#[async_trait]
impl Gate for StillWanted {
    async fn check(&self, ctx: &JobContext) -> Passage {
        if ctx.is_canceled() { Passage::Canceled } else { Passage::Open }
    }
}

/// Stops a job that this node's policy does not allow. Its submitter may have had another policy, or none.
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
