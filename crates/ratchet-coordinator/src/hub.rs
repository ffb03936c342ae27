//! The hub: listeners, counters, suppression of a hub's own hints, and the pacing of outgoing hints.

use std::collections::BTreeMap;
use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::Duration;

use ratchet_core::coordinator::{CoordinatorStats, Hint, ListenGuard, Listener};
use ratchet_core::{NodeId, Priority};
use tokio::sync::{Notify, watch};
use tokio::time::Instant;
use uuid::Uuid;

use crate::Envelope;

/// The minimum time between two batches of outgoing hints.
pub const WINDOW: Duration = Duration::from_millis(5);
/// The maximum number of hints in a batch, one per origin. A hint of a further origin is merged into another origin's.
pub const ORIGINS_MAX: usize = 64;

/// The part of a [`ClusterCoordinator`](ratchet_core::ClusterCoordinator) that every transport needs.
///
/// A transport moves text. It sends the batches that [`next_outgoing`](Self::next_outgoing) returns, and passes every
/// text that it receives to [`incoming`](Self::incoming). It may bring a hub's own texts back: the hub recognizes them
/// by its id. Clones share one hub.
///
/// Outgoing hints are coalesced. On an idle hub, the first hint leaves at once. Hints that follow within 5 ms leave
/// together afterwards, one per origin, with the highest of their priorities. While the transport is busy or away,
/// pending hints take the space of one batch, however many there are.
///
/// ```
/// use std::sync::{Arc, Mutex};
/// use ratchet_coordinator::Hub;
/// use ratchet_core::{Hint, NodeId, Priority};
/// use uuid::Uuid;
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() {
/// let (a, b) = (Hub::new(Uuid::from_u128(1)), Hub::new(Uuid::from_u128(2)));
/// let heard = Arc::new(Mutex::new(Vec::new()));
/// let hints = heard.clone();
/// let node_b = NodeId(Uuid::from_u128(20));
/// let _guard = b.listen(node_b, Box::new(move |hint| hints.lock().unwrap().push(hint.clone())));
///
/// let origin = NodeId(Uuid::from_u128(10));
/// a.notify(&Hint { origin, priority: Priority::High });
/// a.notify(&Hint { origin, priority: Priority::Low });
/// // The transport's part: move each text to every hub.
/// for text in a.next_outgoing().await.unwrap() {
///     a.incoming(&text);
///     b.incoming(&text);
/// }
///
/// assert_eq!(*heard.lock().unwrap(), [Hint { origin, priority: Priority::High }]);
/// assert_eq!((a.stats().sent, a.stats().coalesced, a.stats().self_suppressed), (2, 1, 1));
/// # }
/// ```
#[derive(Clone)]
pub struct Hub {
    inner: Arc<Inner>,
}

struct Inner {
    id: Uuid,
    state: Mutex<State>,
    /// Wakes the transport.
    outgoing: Notify,
    /// The number of batches that the transport has sent or given up.
    done: watch::Sender<u64>,
}

#[derive(Default)]
struct State {
    /// One entry per [`ListenGuard`] that is alive.
    listeners: Vec<Arc<RegisteredListener>>,
    /// The most urgent hint received while there was no listener.
    early: Option<Hint>,
    /// Hints that wait to be sent: at most [`ORIGINS_MAX`].
    pending: BTreeMap<NodeId, Priority>,
    /// The number of batches handed to the transport.
    taken: u64,
    /// When the next batch may be taken.
    opens_at: Option<Instant>,
    closed: bool,
    stats: CoordinatorStats,
}

struct RegisteredListener {
    own: NodeId,
    call: Listener,
}

impl State {
    /// Adds a hint to those that wait to be sent. Returns whether it is the first of its batch.
    fn push(&mut self, hint: &Hint) -> bool {
        let waiting = self.pending.len();
        let full = waiting == ORIGINS_MAX && !self.pending.contains_key(&hint.origin);
        // At the limit any other origin will do: a node that receives the hint polls, whoever sent it.
        let origin = self.pending.keys().next().copied().filter(|_| full).unwrap_or(hint.origin);
        let priority = self.pending.entry(origin).or_insert(hint.priority);
        *priority = hint.priority.max(*priority);
        self.stats.sent += 1;
        self.stats.coalesced += u64::from(self.pending.len() == waiting);
        waiting == 0
    }
}

impl Hub {
    /// Creates a hub. Its id must be unique: use a random one for each coordinator.
    ///
    /// A node's id would not do. It changes when the node continues as a new incarnation, a client has none, and several
    /// engines may share a coordinator.
    pub fn new(id: Uuid) -> Self {
        let (state, outgoing, done) = (Mutex::default(), Notify::new(), watch::Sender::new(0));
        Self { inner: Arc::new(Inner { id, state, outgoing, done }) }
    }

    /// See [`ClusterCoordinator::notify`](ratchet_core::ClusterCoordinator::notify).
    ///
    /// Calls the listeners of this hub before it returns, so that engines and clients that share a coordinator notify
    /// each other even while the transport is away. Needs no runtime.
    pub fn notify(&self, hint: &Hint) {
        let (first, listeners) = {
            let mut state = self.lock();
            if state.closed {
                return;
            }
            (state.push(hint), state.listeners.clone())
        };
        if first {
            self.inner.outgoing.notify_one();
        }
        self.tell(&listeners, hint);
    }

    /// See [`ClusterCoordinator::listen`](ratchet_core::ClusterCoordinator::listen).
    ///
    /// Hints received before the first listener are passed to it at once, as one hint with the highest of their
    /// priorities.
    pub fn listen(&self, own: NodeId, listener: Listener) -> ListenGuard {
        let entry = Arc::new(RegisteredListener { own, call: listener });
        let early = {
            let mut state = self.lock();
            if !state.closed {
                state.listeners.push(entry.clone());
            }
            state.early.take()
        };
        if let Some(hint) = early {
            self.tell(std::slice::from_ref(&entry), &hint);
        }
        ListenGuard::new(Listening { hub: Arc::downgrade(&self.inner), entry })
    }

    /// Accepts a text that the transport received.
    pub fn incoming(&self, text: &str) {
        if self.lock().closed {
            return;
        }
        let Envelope { hub, hint } = match Envelope::decode(text) {
            Ok(envelope) => envelope,
            Err(rejected) => {
                self.lock().stats.rejected += 1;
                // The text may be anybody's and of any size: it is not logged.
                tracing::warn!(
                    bytes = text.len(),
                    reason = &rejected as &dyn std::error::Error,
                    "a wakeup message was rejected"
                );
                return;
            }
        };
        let listeners = {
            let mut state = self.lock();
            if hub == self.inner.id {
                state.stats.self_suppressed += 1;
                return;
            }
            state.stats.received += 1;
            if state.closed {
                return;
            }
            if state.listeners.is_empty() {
                if state.early.as_ref().is_none_or(|early| early.priority < hint.priority) {
                    state.early = Some(hint);
                }
                return;
            }
            state.listeners.clone()
        };
        self.tell(&listeners, &hint);
    }

    /// Waits for pending hints and takes all of them: one text per origin, at most 64. Returns `None` once the hub is
    /// closed and nothing is pending.
    ///
    /// Asking for the next batch means that the last one was sent, or given up. Batches are at least 5 ms apart, so this
    /// needs a tokio runtime with timers, which must not be blocked by the application. Only one task may send for a
    /// hub: of two that wait here, only one is woken.
    pub async fn next_outgoing(&self) -> Option<Vec<String>> {
        let opens_at = {
            let state = self.lock();
            self.inner.done.send_replace(state.taken);
            state.opens_at
        };
        if let Some(opens_at) = opens_at {
            tokio::time::sleep_until(opens_at).await;
        }
        loop {
            {
                let mut state = self.lock();
                if !state.pending.is_empty() {
                    state.taken += 1;
                    state.opens_at = Some(Instant::now() + WINDOW);
                    let batch = std::mem::take(&mut state.pending).into_iter();
                    return Some(batch.map(|(origin, priority)| self.encode(&Hint { origin, priority })).collect());
                }
                if state.closed {
                    return None;
                }
            }
            self.inner.outgoing.notified().await;
        }
    }

    /// Waits until the transport has sent, or given up, the hints that were pending before the call.
    pub async fn flushed(&self) {
        let last = {
            let state = self.lock();
            state.taken + u64::from(!state.pending.is_empty())
        };
        // The sender of the channel is in the hub, which outlives this.
        let _ = self.inner.done.subscribe().wait_for(|done| *done >= last).await;
    }

    /// Encodes a hint as text, for a transport that can send it in another way: within a caller's transaction, for
    /// example. The hint is not counted as sent, and listeners of this hub are not called.
    pub fn encode(&self, hint: &Hint) -> String {
        Envelope { hub: self.inner.id, hint: hint.clone() }.encode()
    }

    /// Closes the hub: hints are no longer accepted, and listeners no longer called. Pending hints can still be taken.
    /// Returns `false` if the hub was closed before.
    pub fn close(&self) -> bool {
        let (first, listeners) = {
            let mut state = self.lock();
            state.early = None;
            (!std::mem::replace(&mut state.closed, true), std::mem::take(&mut state.listeners))
        };
        self.inner.outgoing.notify_one();
        // Outside of the lock: what a listener holds may use the hub when it is dropped.
        drop(listeners);
        first
    }

    /// Returns whether the hub is closed.
    pub fn is_closed(&self) -> bool {
        self.lock().closed
    }

    /// Counts a failure of the transport.
    pub fn transport_failed(&self) {
        self.lock().stats.transport_failures += 1;
    }

    /// Counts that the transport came back after it was lost.
    pub fn reconnected(&self) {
        self.lock().stats.reconnects += 1;
    }

    /// Returns the counters.
    pub fn stats(&self) -> CoordinatorStats {
        self.lock().stats
    }

    /// Calls listeners. The caller holds no lock: a listener may notify, listen, or take long against its contract.
    fn tell(&self, listeners: &[Arc<RegisteredListener>], hint: &Hint) {
        for entry in listeners.iter().filter(|entry| entry.own != hint.origin) {
            if catch_unwind(AssertUnwindSafe(|| (entry.call)(hint))).is_err() {
                self.lock().stats.listener_failures += 1;
                tracing::error!("a listener for wakeups panicked");
            }
        }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        lock(&self.inner.state)
    }
}

impl fmt::Debug for Hub {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Hub").field("id", &self.inner.id).field("stats", &self.stats()).finish_non_exhaustive()
    }
}

/// Removes its listener when it is dropped.
struct Listening {
    hub: Weak<Inner>,
    entry: Arc<RegisteredListener>,
}

impl Drop for Listening {
    fn drop(&mut self) {
        let Some(hub) = self.hub.upgrade() else { return };
        lock(&hub.state).listeners.retain(|entry| !Arc::ptr_eq(entry, &self.entry));
    }
}

fn lock(state: &Mutex<State>) -> MutexGuard<'_, State> {
    state.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use std::pin::pin;
    use std::task::{Context, Poll, Waker};

    use super::*;

    fn hint(origin: u128, priority: Priority) -> Hint {
        Hint { origin: NodeId(Uuid::from_u128(origin)), priority }
    }

    fn normal(origin: u128) -> Hint {
        hint(origin, Priority::Normal)
    }

    fn hub() -> Hub {
        Hub::new(Uuid::from_u128(1))
    }

    fn heard(hub: &Hub, own: u128) -> (Arc<Mutex<Vec<Hint>>>, ListenGuard) {
        let heard = Arc::new(Mutex::new(Vec::new()));
        let hints = heard.clone();
        let guard =
            hub.listen(NodeId(Uuid::from_u128(own)), Box::new(move |hint| hints.lock().unwrap().push(hint.clone())));
        (heard, guard)
    }

    async fn soon<T>(future: impl Future<Output = T>) -> T {
        tokio::time::timeout(Duration::from_secs(10), future).await.expect("it does not end")
    }

    async fn next(hub: &Hub) -> Vec<Hint> {
        let texts = soon(hub.next_outgoing()).await.expect("the hub has something to send");
        texts.iter().map(|text| Envelope::decode(text).unwrap().hint).collect()
    }

    fn is_ready(future: impl Future) -> bool {
        matches!(pin!(future).poll(&mut Context::from_waker(Waker::noop())), Poll::Ready(_))
    }

    #[tokio::test(start_paused = true)]
    async fn the_first_hint_leaves_at_once_and_the_rest_of_the_window_together() {
        let hub = hub();
        let begun = Instant::now();
        hub.notify(&hint(1, Priority::Low));
        assert_eq!(next(&hub).await, [hint(1, Priority::Low)]);
        assert_eq!(begun.elapsed(), Duration::ZERO);
        for priority in [Priority::Normal, Priority::Critical, Priority::High] {
            hub.notify(&hint(1, priority));
        }
        hub.notify(&hint(2, Priority::Lowest));
        assert_eq!(next(&hub).await, [hint(1, Priority::Critical), hint(2, Priority::Lowest)]);
        assert!(begun.elapsed() >= WINDOW && begun.elapsed() < WINDOW * 2, "{:?}", begun.elapsed());
        assert_eq!((hub.stats().sent, hub.stats().coalesced), (5, 2));
    }

    #[tokio::test(start_paused = true)]
    async fn a_hint_on_an_idle_hub_leaves_at_once() {
        let hub = hub();
        let sending = tokio::spawn({
            let hub = hub.clone();
            async move { [(next(&hub).await, Instant::now()), (next(&hub).await, Instant::now())] }
        });
        let mut sent = Vec::new();
        for priority in [Priority::Low, Priority::High] {
            tokio::time::sleep(WINDOW * 3).await;
            hub.notify(&hint(1, priority));
            sent.push((vec![hint(1, priority)], Instant::now()));
        }
        assert_eq!(soon(sending).await.unwrap(), *sent);
    }

    #[tokio::test(start_paused = true)]
    async fn one_batch_leaves_in_a_window_and_no_hint_is_lost() {
        let hub = hub();
        let sending = tokio::spawn({
            let hub = hub.clone();
            async move {
                let mut sent = Vec::new();
                while hub.next_outgoing().await.is_some() {
                    sent.push(Instant::now());
                }
                sent
            }
        });
        let begun = Instant::now();
        let mut last = begun;
        while begun.elapsed() < Duration::from_millis(100) {
            for _ in 0..50 {
                hub.notify(&normal(1));
            }
            last = Instant::now();
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
        soon(hub.flushed()).await;
        hub.close();
        let sent = soon(sending).await.unwrap();
        assert!(sent.windows(2).all(|pair| pair[1] - pair[0] >= WINDOW), "{sent:?}");
        assert!(sent.len() >= 15 && sent.len() <= 22, "{}", sent.len());
        assert!(*sent.last().unwrap() >= last, "the last hint is sent too");
        assert_eq!(hub.stats().sent - hub.stats().coalesced, sent.len() as u64);
    }

    #[tokio::test]
    async fn at_the_limit_of_origins_hints_are_merged_and_none_is_lost() {
        let hub = hub();
        for origin in 0..ORIGINS_MAX as u128 + 2 {
            hub.notify(&hint(origin, Priority::Low));
        }
        hub.notify(&hint(1_000, Priority::Critical));
        hub.notify(&hint(1, Priority::High));
        let batch = next(&hub).await;
        assert_eq!(batch.len(), ORIGINS_MAX);
        assert_eq!(batch[..3], [hint(0, Priority::Critical), hint(1, Priority::High), hint(2, Priority::Low)]);
        assert_eq!((hub.stats().sent, hub.stats().coalesced), (ORIGINS_MAX as u64 + 4, 4));
    }

    #[tokio::test(start_paused = true)]
    async fn a_flush_ends_when_the_transport_returns_for_the_next_batch() {
        let hub = hub();
        assert!(is_ready(hub.flushed()), "nothing is pending");
        hub.notify(&normal(1));
        assert!(!is_ready(hub.flushed()), "one is pending");
        next(&hub).await;
        let mut first = pin!(hub.flushed());
        assert!(!is_ready(first.as_mut()), "the batch is being sent");
        hub.notify(&normal(1));
        assert!(!is_ready(hub.next_outgoing()), "the window is not over");
        assert!(is_ready(first), "hints that came after the call do not delay it");
        hub.close();
        let mut second = pin!(hub.flushed());
        assert!(!is_ready(second.as_mut()), "pending hints can be taken after the close");
        next(&hub).await;
        assert!(!is_ready(second.as_mut()), "the second batch is being sent");
        assert_eq!(soon(hub.next_outgoing()).await, None);
        assert!(is_ready(second));
    }

    #[tokio::test]
    async fn pending_hints_are_sent_after_the_close_and_no_others() {
        let hub = hub();
        hub.notify(&normal(5));
        assert!(hub.close());
        hub.notify(&normal(6));
        assert_eq!(next(&hub).await, [normal(5)]);
        assert_eq!(soon(hub.next_outgoing()).await, None);
        assert!(!hub.close());
    }

    #[tokio::test(start_paused = true)]
    async fn a_waiting_transport_is_woken_by_a_hint_and_by_the_close() {
        let hub = hub();
        let sending = tokio::spawn({
            let hub = hub.clone();
            async move { (next(&hub).await, hub.next_outgoing().await) }
        });
        tokio::task::yield_now().await;
        // From a thread without a runtime.
        let notifying = hub.clone();
        std::thread::spawn(move || notifying.notify(&normal(5))).join().unwrap();
        soon(hub.flushed()).await;
        tokio::time::sleep(WINDOW * 2).await;
        hub.close();
        assert_eq!(soon(sending).await.unwrap(), (vec![normal(5)], None));
    }

    #[test]
    fn a_listener_may_use_the_hub() {
        let hub = hub();
        let inside = hub.clone();
        let listener = move |heard: &Hint| {
            if heard.origin == normal(5).origin {
                inside.notify(&normal(9));
            }
        };
        let _guard = hub.listen(NodeId(Uuid::from_u128(9)), Box::new(listener));
        let (second, _guard) = heard(&hub, 7);
        hub.notify(&normal(5));
        assert_eq!(*second.lock().unwrap(), [normal(9), normal(5)]);
    }

    #[test]
    fn those_who_share_a_hub_hear_each_other_once() {
        let hub = hub();
        let ((one, _g1), (two, _g2)) = (heard(&hub, 1), heard(&hub, 2));
        hub.notify(&normal(1));
        hub.incoming(&hub.encode(&normal(1)));
        assert_eq!((one.lock().unwrap().len(), two.lock().unwrap().len()), (0, 1));
        assert_eq!((hub.stats().received, hub.stats().self_suppressed), (0, 1));
    }
}
