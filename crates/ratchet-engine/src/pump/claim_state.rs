//! What a node remembers from one claim to the next.

use ratchet_core::NodeId;

/// What a node remembers from one claim to the next.
#[derive(Debug, Default)]
pub(super) struct ClaimState {
    /// Whether the last claim found work: then the next turn claims as well.
    pub(super) flowing: bool,
    /// Whether the last claim asked for jobs that try a service.
    pub(super) tried: bool,
    /// Whether the store may have jobs of this node that do not run here, because the reply to a claim was lost.
    pub(super) uncertain: bool,
    /// The incarnation whose claim was refused; a new one has to come first.
    pub(super) refused: Option<NodeId>,
}
