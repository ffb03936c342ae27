//! What every transport of hints shares: listeners, counters, self suppression, and the queue of what goes out.

use std::collections::VecDeque;
use std::fmt;
use std::future::poll_fn;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::task::{Context, Poll, Waker};

use uuid::Uuid;

use super::{CoordinatorStats, Envelope, Hint, ListenGuard, Listener};
use crate::id::NodeId;

/// Hints that wait for a first listener; the oldest go first when more come.
pub const EARLY_HINTS_MAX: usize = 256;
/// Hints that wait to be sent; the oldest go first when more come.
pub const OUTGOING_MAX: usize = 1_024;

/// The part of a [`ClusterCoordinator`](super::ClusterCoordinator) that is no transport.
///
/// A transport moves text and does two things with a hub: it sends what [`next_outgoing`](Self::next_outgoing) gives
/// it, and hands what comes in to [`incoming`](Self::incoming). It may bring a hub's own texts back to it; the hub
/// knows them by its id. Clones are the same hub.
///
/// ```
/// use std::sync::{Arc, Mutex};
/// use ratchet_core::coordinator::{Hint, Hub};
/// use ratchet_core::{NodeId, Priority};
/// use uuid::Uuid;
///
/// let (a, b) = (Hub::new(Uuid::from_u128(1)), Hub::new(Uuid::from_u128(2)));
/// let heard = Arc::new(Mutex::new(Vec::new()));
/// let told = heard.clone();
/// let node_b = NodeId(Uuid::from_u128(20));
/// let _guard = b.listen(node_b, Box::new(move |hint| told.lock().unwrap().push(hint.clone())));
///
/// let hint = Hint { origin: NodeId(Uuid::from_u128(10)), priority: Priority::High, target: None };
/// a.notify(&hint);
/// // The transport's part: move the text from one to all.
/// # let mut context = std::task::Context::from_waker(std::task::Waker::noop());
/// # let std::task::Poll::Ready(Some(text)) = a.poll_outgoing(&mut context) else { panic!() };
/// # /*
/// let text = a.next_outgoing().await.unwrap();
/// # */
/// a.incoming(&text);
/// b.incoming(&text);
///
/// assert_eq!(*heard.lock().unwrap(), [hint]);
/// assert_eq!(a.stats().self_suppressed, 1);
/// ```
#[derive(Clone)]
pub struct Hub {
    inner: Arc<Inner>,
}

struct Inner {
    id: Uuid,
    state: Mutex<State>,
    counters: Counters,
}

#[derive(Default)]
struct State {
    listeners: Vec<Arc<Entry>>,
    /// What came while nobody listened.
    early: VecDeque<Hint>,
    outgoing: VecDeque<String>,
    /// The transport, while it waits for something to send.
    sender: Option<Waker>,
    /// Whether the transport may have something left to send: it has not come back for more since something was handed over.
    busy: bool,
    /// Who waits until it has not.
    flushing: Vec<Waker>,
    closed: bool,
}

struct Entry {
    own: NodeId,
    call: Listener,
}

#[derive(Default)]
struct Counters {
    sent: AtomicU64,
    received: AtomicU64,
    self_suppressed: AtomicU64,
    rejected: AtomicU64,
    listener_failures: AtomicU64,
    transport_failures: AtomicU64,
    reconnects: AtomicU64,
    dropped: AtomicU64,
    unheard: AtomicU64,
}

impl Hub {
    /// A hub whose id no other has: take a random one for each coordinator.
    ///
    /// A node's id would not do. It changes when the node goes on as a new incarnation, a client has none, and several
    /// engines may share a coordinator.
    pub fn new(id: Uuid) -> Self {
        Self { inner: Arc::new(Inner { id, state: Mutex::default(), counters: Counters::default() }) }
    }

    /// See [`ClusterCoordinator::notify`](super::ClusterCoordinator::notify).
    ///
    /// Listeners of this hub are told here and now, so that engines and clients that share a coordinator hear each
    /// other even while the transport is down.
    pub fn notify(&self, hint: &Hint) {
        let text = self.encode(hint);
        let (listeners, sender) = {
            let mut state = self.lock();
            if state.closed {
                return;
            }
            if state.outgoing.len() == OUTGOING_MAX {
                state.outgoing.pop_front();
                add(&self.inner.counters.dropped);
            }
            state.outgoing.push_back(text);
            state.busy = true;
            (state.listeners.clone(), state.sender.take())
        };
        add(&self.inner.counters.sent);
        if let Some(sender) = sender {
            sender.wake();
        }
        self.tell(&listeners, hint);
    }

    /// See [`ClusterCoordinator::listen`](super::ClusterCoordinator::listen). Hints that came while nobody listened
    /// are told at once.
    pub fn listen(&self, own: NodeId, listener: Listener) -> ListenGuard {
        let entry = Arc::new(Entry { own, call: listener });
        let early: Vec<Hint> = {
            let mut state = self.lock();
            if !state.closed {
                state.listeners.push(entry.clone());
            }
            state.early.drain(..).collect()
        };
        for hint in early {
            self.tell(std::slice::from_ref(&entry), &hint);
        }
        ListenGuard::new(Listening { hub: Arc::downgrade(&self.inner), entry })
    }

    /// A text came in over the transport.
    pub fn incoming(&self, text: &str) {
        let counters = &self.inner.counters;
        if self.lock().closed {
            return;
        }
        let Envelope { hub, hint } = match Envelope::decode(text) {
            Ok(envelope) => envelope,
            Err(rejected) => {
                add(&counters.rejected);
                // The text may be anybody's and of any size: it is not logged.
                tracing::warn!(
                    bytes = text.len(),
                    reason = &rejected as &dyn std::error::Error,
                    "a wakeup message was rejected"
                );
                return;
            }
        };
        if hub == self.inner.id {
            add(&counters.self_suppressed);
            return;
        }
        add(&counters.received);
        let listeners = {
            let mut state = self.lock();
            if state.closed {
                return;
            }
            if state.listeners.is_empty() {
                if state.early.len() == EARLY_HINTS_MAX {
                    state.early.pop_front();
                    add(&counters.unheard);
                }
                state.early.push_back(hint);
                return;
            }
            state.listeners.clone()
        };
        self.tell(&listeners, &hint);
    }

    /// The next text to send, as soon as there is one; `None` once the hub is closed and everything is sent. Who asks for the
    /// next has sent the last, or given it up.
    ///
    /// One task sends for a hub: of two that wait here, only the last would be woken.
    pub async fn next_outgoing(&self) -> Option<String> {
        poll_fn(|context| self.poll_outgoing(context)).await
    }

    /// [`next_outgoing`](Self::next_outgoing) for a transport that polls by itself.
    pub fn poll_outgoing(&self, context: &mut Context<'_>) -> Poll<Option<String>> {
        let mut state = self.lock();
        if let Some(text) = state.outgoing.pop_front() {
            return Poll::Ready(Some(text));
        }
        state.busy = false;
        let flushed = std::mem::take(&mut state.flushing);
        let closed = state.closed;
        if !closed {
            state.sender = Some(context.waker().clone());
        }
        drop(state);
        flushed.into_iter().for_each(Waker::wake);
        if closed { Poll::Ready(None) } else { Poll::Pending }
    }

    /// Waits until the transport has sent, or given up, what was handed over before.
    pub async fn flushed(&self) {
        poll_fn(|context| {
            let mut state = self.lock();
            if !state.busy {
                return Poll::Ready(());
            }
            if !state.flushing.iter().any(|waker| waker.will_wake(context.waker())) {
                state.flushing.push(context.waker().clone());
            }
            Poll::Pending
        })
        .await;
    }

    /// The text of a hint, for a transport that can send it by another way than the queue: within a transaction, for
    /// instance. It is counted neither as sent nor told to listeners of this hub.
    pub fn encode(&self, hint: &Hint) -> String {
        Envelope { hub: self.inner.id, hint: hint.clone() }.encode()
    }

    /// Nothing is taken, told or heard from now on; what waits to be sent can still be fetched. `false` if it was
    /// closed before.
    pub fn close(&self) -> bool {
        let (first, sender, listeners) = {
            let mut state = self.lock();
            let first = !std::mem::replace(&mut state.closed, true);
            state.early.clear();
            (first, state.sender.take(), std::mem::take(&mut state.listeners))
        };
        if let Some(sender) = sender {
            sender.wake();
        }
        // Outside of the lock: what a listener holds may use the hub when it is dropped.
        drop(listeners);
        first
    }

    /// Whether it was closed.
    pub fn is_closed(&self) -> bool {
        self.lock().closed
    }

    /// Counts a failure of the transport.
    pub fn transport_failed(&self) {
        add(&self.inner.counters.transport_failures);
    }

    /// Counts that the transport came back after it was lost.
    pub fn reconnected(&self) {
        add(&self.inner.counters.reconnects);
    }

    /// What has been counted.
    pub fn stats(&self) -> CoordinatorStats {
        let read = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        let counters = &self.inner.counters;
        CoordinatorStats {
            sent: read(&counters.sent),
            received: read(&counters.received),
            self_suppressed: read(&counters.self_suppressed),
            rejected: read(&counters.rejected),
            listener_failures: read(&counters.listener_failures),
            transport_failures: read(&counters.transport_failures),
            reconnects: read(&counters.reconnects),
            dropped: read(&counters.dropped),
            unheard: read(&counters.unheard),
        }
    }

    /// Without the lock: a listener may notify, listen, or take long in spite of what it is told.
    fn tell(&self, listeners: &[Arc<Entry>], hint: &Hint) {
        for entry in listeners.iter().filter(|entry| entry.own != hint.origin) {
            if catch_unwind(AssertUnwindSafe(|| (entry.call)(hint))).is_err() {
                add(&self.inner.counters.listener_failures);
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

/// Takes its listener away when it is dropped.
struct Listening {
    hub: Weak<Inner>,
    entry: Arc<Entry>,
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

fn add(counter: &AtomicU64) {
    counter.fetch_add(1, Ordering::Relaxed);
}

#[cfg(test)]
mod tests {
    use std::pin::pin;

    use super::*;
    use crate::priority::Priority;

    fn hint(origin: u128) -> Hint {
        Hint { origin: NodeId(Uuid::from_u128(origin)), priority: Priority::Normal, target: None }
    }

    fn heard(hub: &Hub, own: u128) -> (Arc<Mutex<Vec<Hint>>>, ListenGuard) {
        let heard = Arc::new(Mutex::new(Vec::new()));
        let told = heard.clone();
        let guard =
            hub.listen(NodeId(Uuid::from_u128(own)), Box::new(move |hint| told.lock().unwrap().push(hint.clone())));
        (heard, guard)
    }

    #[test]
    fn all_is_flushed_when_the_transport_comes_back_for_more() {
        let hub = Hub::new(Uuid::from_u128(1));
        let mut context = Context::from_waker(Waker::noop());
        let is_flushed = || pin!(hub.flushed()).poll(&mut Context::from_waker(Waker::noop())).is_ready();
        assert!(is_flushed(), "nothing was handed over");
        assert!(hub.poll_outgoing(&mut context).is_pending());
        hub.notify(&hint(1));
        hub.notify(&hint(2));
        assert!(!is_flushed(), "two wait");
        assert!(matches!(hub.poll_outgoing(&mut context), Poll::Ready(Some(_))));
        assert!(!is_flushed(), "one waits");
        assert!(matches!(hub.poll_outgoing(&mut context), Poll::Ready(Some(_))));
        assert!(!is_flushed(), "the last one is on its way");
        assert!(hub.poll_outgoing(&mut context).is_pending());
        assert!(is_flushed());
        hub.notify(&hint(3));
        hub.close();
        assert!(!is_flushed(), "what waits can still be fetched");
        assert!(matches!(hub.poll_outgoing(&mut context), Poll::Ready(Some(_))));
        assert_eq!(hub.poll_outgoing(&mut context), Poll::Ready(None));
        assert!(is_flushed());
    }

    #[test]
    fn a_full_queue_loses_the_oldest_and_counts_them() {
        let hub = Hub::new(Uuid::from_u128(1));
        for origin in 0..OUTGOING_MAX as u128 + 3 {
            hub.notify(&hint(origin));
        }
        assert_eq!((hub.stats().sent, hub.stats().dropped), (OUTGOING_MAX as u64 + 3, 3));
        let mut context = Context::from_waker(Waker::noop());
        let Poll::Ready(Some(first)) = hub.poll_outgoing(&mut context) else { panic!("something waits") };
        assert_eq!(Envelope::decode(&first).unwrap().hint, hint(3));
    }

    #[test]
    fn what_waits_can_still_be_sent_after_the_close() {
        let hub = Hub::new(Uuid::from_u128(1));
        hub.notify(&hint(5));
        assert!(hub.close());
        hub.notify(&hint(6));
        let mut context = Context::from_waker(Waker::noop());
        assert!(matches!(hub.poll_outgoing(&mut context), Poll::Ready(Some(_))));
        assert!(matches!(hub.poll_outgoing(&mut context), Poll::Ready(None)));
        assert!(!hub.close());
    }

    #[tokio::test]
    async fn whoever_waits_to_send_is_woken_by_a_hint_and_by_the_close() {
        let hub = Hub::new(Uuid::from_u128(1));
        let sending = tokio::spawn({
            let hub = hub.clone();
            async move { (hub.next_outgoing().await.is_some(), hub.next_outgoing().await.is_some()) }
        });
        tokio::task::yield_now().await;
        hub.notify(&hint(5));
        tokio::task::yield_now().await;
        hub.close();
        assert_eq!(sending.await.unwrap(), (true, false));
    }

    #[test]
    fn a_listener_may_use_the_hub() {
        let hub = Hub::new(Uuid::from_u128(1));
        let inside = hub.clone();
        let listener = move |heard: &Hint| {
            if heard.origin == hint(5).origin {
                inside.notify(&hint(9));
            }
        };
        let _guard = hub.listen(NodeId(Uuid::from_u128(9)), Box::new(listener));
        let (second, _guard) = heard(&hub, 7);
        hub.notify(&hint(5));
        assert_eq!(*second.lock().unwrap(), [hint(9), hint(5)]);
    }

    #[test]
    fn those_who_share_a_hub_hear_each_other_once() {
        let hub = Hub::new(Uuid::from_u128(1));
        let ((one, _g1), (two, _g2)) = (heard(&hub, 1), heard(&hub, 2));
        hub.notify(&hint(1));
        hub.incoming(&hub.encode(&hint(1)));
        assert_eq!((one.lock().unwrap().len(), two.lock().unwrap().len()), (0, 1));
        assert_eq!((hub.stats().received, hub.stats().self_suppressed), (0, 1));
    }
}
