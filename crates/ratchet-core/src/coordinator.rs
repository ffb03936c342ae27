//! Hints of new work between nodes, and the trait that their transports implement.
//!
//! A hint says "there is new work" and nothing else. It is best effort: one that is lost costs latency, because the
//! others find the work at their next poll, and one too many costs a poll. Nothing that Ratchet promises rests on it.

use std::fmt;

use async_trait::async_trait;

use crate::id::NodeId;
use crate::priority::Priority;

/// Carries hints between the nodes of a cluster.
///
/// A transport over something that moves text needs little more than a `Hub` (crate `ratchet-coordinator`), which has the
/// listeners, the counters and the pacing. The suite in `ratchet-conformance` says whether it is right.
///
/// Who makes a coordinator closes it. Engines and clients that are given one only use it: several may share it.
#[async_trait]
pub trait ClusterCoordinator: Send + Sync + fmt::Debug {
    /// Notifies other nodes of new work. Engines and clients call it after each commit of jobs that can start now.
    ///
    /// It returns at once and does not fail: it leaves the hint to a task or thread of the coordinator. It may be
    /// called thousands of times a second: hints of one origin within 5 ms leave the process as one, with the highest
    /// priority.
    /// Listeners of this coordinator are called before it returns, except those whose own id is the hint's origin.
    fn notify(&self, hint: &Hint);

    /// Calls `listener` for hints until the guard is dropped; hints whose origin is `own` are kept from it.
    ///
    /// It is called on a thread of the transport, or of whoever notifies, and has to return at once. A panic in it is
    /// counted and harms nobody else.
    fn listen(&self, own: NodeId, listener: Listener) -> ListenGuard;

    /// Waits until the hints of earlier calls of [`notify`](Self::notify) have left this process, or are lost, for a process
    /// that is about to end. With a `Hub`, this is `Hub::flushed`. Callers limit how long they wait. By default it returns
    /// at once.
    async fn flush(&self) {}

    /// Sends what is waiting, if that is quick, and ends the transport. Nothing is sent or heard afterwards; closing
    /// again does nothing.
    async fn close(&self);

    /// What it has done since it was made.
    fn stats(&self) -> CoordinatorStats;
}

/// Is told of hints.
pub type Listener = Box<dyn Fn(&Hint) + Send + Sync>;

/// There is new work.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Hint {
    /// Who says so: an id that an engine or client makes once and keeps, for it to tell its own hints from others'. An
    /// engine takes that of its first incarnation and does not change it with later ones: the question is who spoke,
    /// not who may write.
    pub origin: NodeId,
    /// The most urgent priority among the new jobs.
    pub priority: Priority,
}

/// Keeps a listener in place; dropping it takes the listener away.
pub struct ListenGuard(#[expect(dead_code, reason = "held for its drop")] Box<dyn Send + Sync>);

impl ListenGuard {
    /// A guard that drops `inner` when it is dropped.
    pub fn new(inner: impl Send + Sync + 'static) -> Self {
        Self(Box::new(inner))
    }
}

impl fmt::Debug for ListenGuard {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("ListenGuard")
    }
}

/// What a coordinator has done since it was made.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct CoordinatorStats {
    /// Hints that were handed over to be sent.
    pub sent: u64,
    /// Those of them that were merged into another pending hint. The difference is the number of messages.
    pub coalesced: u64,
    /// Hints that came from others.
    pub received: u64,
    /// Own hints that the transport brought back, and that were passed by.
    pub self_suppressed: u64,
    /// Messages that were refused: of an unknown version, unreadable or too long.
    pub rejected: u64,
    /// Listeners that panicked, counted for each hint.
    pub listener_failures: u64,
    /// Times that the transport could not send or receive.
    pub transport_failures: u64,
    /// Times that the transport came back after it was lost.
    pub reconnects: u64,
}

/// Carries nothing: nodes find the work of others by polling alone.
#[derive(Debug, Clone, Copy, Default)]
pub struct NoCoordinator;

#[async_trait]
impl ClusterCoordinator for NoCoordinator {
    fn notify(&self, _hint: &Hint) {}

    fn listen(&self, _own: NodeId, _listener: Listener) -> ListenGuard {
        ListenGuard::new(())
    }

    async fn close(&self) {}

    fn stats(&self) -> CoordinatorStats {
        CoordinatorStats::default()
    }
}
