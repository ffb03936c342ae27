//! Calls of the store that are under way: at most one that settles, and one that claims.

use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Instant;

use ratchet_core::claim::ClaimRequest;
use ratchet_core::store::Turn;
use ratchet_core::{Fence, Settlement, StoreError};
use tokio_util::sync::ReusableBoxFuture;

use crate::pump::unsettled::{EndedAttempt, Unsettled};

/// The answer of the store. Nothing is reused: this box, unlike others, lets what has it be shared.
type Answer = ReusableBoxFuture<'static, Result<Turn, StoreError>>;

/// A call of the store that is under way, with what it was given.
pub(super) struct Flight {
    /// The attempts that it settles. They keep their slots until it has landed.
    pub(super) unsettled: Unsettled,
    /// What it claims, if it does.
    pub(super) request: Option<Arc<ClaimRequest>>,
    pub(super) began: Instant,
    answer: Answer,
}

impl Flight {
    pub(super) fn new(
        unsettled: Unsettled,
        request: Option<Arc<ClaimRequest>>,
        began: Instant,
        answer: Answer,
    ) -> Self {
        Self { unsettled, request, began, answer }
    }
}

/// The calls that are under way. Two of them never settle, and two of them never claim: two claims of one node would read the
/// same heads of the lanes.
#[derive(Default)]
pub(super) struct Flights(Vec<Flight>);

impl Flights {
    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Returns whether one of them settles.
    pub(super) fn settles(&self) -> bool {
        self.0.iter().any(|flight| !flight.unsettled.is_empty())
    }

    /// Returns whether one of them claims.
    pub(super) fn claims(&self) -> bool {
        self.0.iter().any(|flight| flight.request.is_some())
    }

    /// Returns whether one of them settles this attempt.
    pub(super) fn contains(&self, fence: &Fence) -> bool {
        self.0.iter().any(|flight| flight.unsettled.contains(fence))
    }

    /// Returns the attempts that they settle.
    pub(super) fn unsettled(&self) -> impl Iterator<Item = (&Settlement, &EndedAttempt)> {
        self.0.iter().flat_map(|flight| flight.unsettled.iter())
    }

    pub(super) fn push(&mut self, flight: Flight) {
        debug_assert!(!self.settles() || flight.unsettled.is_empty(), "one that settles");
        debug_assert!(!self.claims() || flight.request.is_none(), "one that claims");
        self.0.push(flight);
    }

    /// Waits for the next answer, and returns it with its flight. Never ends while there is none.
    pub(super) async fn landed(&mut self) -> (Flight, Result<Turn, StoreError>) {
        std::future::poll_fn(|context| self.poll_landed(context)).await
    }

    fn poll_landed(&mut self, context: &mut Context<'_>) -> Poll<(Flight, Result<Turn, StoreError>)> {
        for index in 0..self.0.len() {
            if let Poll::Ready(answer) = self.0[index].answer.poll(context) {
                return Poll::Ready((self.0.remove(index), answer));
            }
        }
        Poll::Pending
    }
}
