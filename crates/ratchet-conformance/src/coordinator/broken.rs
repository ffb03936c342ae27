//! Coordinators that break one rule each, to prove that the suite notices.
//!
//! [`BrokenTransport`] stands before a good one, passes everything on, and has one [`CoordinatorFlaw`].

use std::collections::{HashMap, HashSet};
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use async_trait::async_trait;
use ratchet_coordinator::{ENVELOPE_CHARS_MAX, WINDOW};
use ratchet_core::coordinator::{CoordinatorStats, ListenGuard, Listener};
use ratchet_core::{ClusterCoordinator, Hint, NodeId, Priority};
use uuid::Uuid;

use super::{CoordinatorFixture, LATENCY_MAX, Transport};

macro_rules! flaws {
    ($($(#[$doc:meta])* $name:ident,)*) => {
        /// The rule that a broken coordinator breaks.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
        pub enum CoordinatorFlaw {
            $($(#[$doc])* $name,)*
        }

        impl CoordinatorFlaw {
            /// Every flaw.
            pub const ALL: &'static [Self] = &[$(Self::$name,)*];
        }
    };
}

flaws! {
    /// Sends nothing.
    Mute,
    /// Tells its listeners too late.
    Slow,
    /// Tells every hint twice.
    TellsTwice,
    /// Sends every hint with the same priority.
    FlattensPriority,
    /// Tells hints without their origin.
    LosesOrigin,
    /// Tells its listeners what they said themselves.
    HearsItself,
    /// Keeps hints from all of its listeners if one of them sent it.
    DeafToNeighbors,
    /// Tells only the first of its listeners.
    TellsTheFirstAlone,
    /// Tells no listener after one that panicked.
    StopsAtPanic,
    /// Counts no listener that panicked.
    CountsNoPanics,
    /// Goes on telling a listener whose guard is gone.
    KeepsDroppedListeners,
    /// Reads messages of any version.
    AcceptsAnyVersion,
    /// Reads messages of any length.
    AcceptsAnyLength,
    /// Counts no message that it rejects.
    CountsNoRejects,
    /// Hears nothing more after a message that it cannot read.
    ChokesOnGarbage,
    /// Counts every hint as sent twice.
    CountsSentTwice,
    /// Counts every hint as received twice.
    CountsReceivedTwice,
    /// Counts its own hints as received when they come back.
    CountsOwnAsReceived,
    /// Counts its own hints twice when they come back.
    CountsOwnTwice,
    /// Panics at a hint while the transport is away.
    PanicsWhenCut,
    /// Waits for a transport that is away.
    BlocksWhenCut,
    /// Tells nothing any more once the transport was away.
    NeverComesBack,
    /// Counts no outage.
    HidesOutages,
    /// Panics when it is closed again.
    PanicsAtSecondClose,
    /// Goes on telling after it is closed.
    HearsAfterClose,
    /// Goes on sending after it is closed.
    SendsAfterClose,
    /// Panics at a hint after it is closed.
    PanicsAfterClose,
    /// Throws away what waits when it is closed.
    ForgetsWhenClosed,
    /// Sends every hint as a message of its own.
    CoalescesNothing,
    /// Counts no coalesced hint.
    CountsNothingCoalesced,
    /// Sends the rest of a window with the priority of its first hint.
    KeepsTheFirstPriority,
    /// Sends only the first hint of a window.
    LosesTheRestOfAWindow,
    /// Stores no hints for the first listener.
    ForgetsEarlyHints,
    /// Passes the latest early hint to the first listener instead of the most urgent one.
    TellsTheLastEarlyHint,
    /// Passes all early hints to the first listener.
    TellsEveryEarlyHint,
}

/// A good transport whose coordinators have one flaw.
pub struct BrokenTransport {
    inner: Box<dyn Transport>,
    flaw: CoordinatorFlaw,
    outage: Arc<Outage>,
}

/// What the coordinators of a transport know of its state.
#[derive(Debug, Default)]
struct Outage {
    cut: AtomicBool,
    was_cut: AtomicBool,
    choked: AtomicBool,
}

impl BrokenTransport {
    /// Puts a flaw before the transport of a good fixture.
    pub fn new(good: CoordinatorFixture, flaw: CoordinatorFlaw) -> Self {
        Self { inner: good.transport, flaw, outage: Arc::default() }
    }
}

impl std::fmt::Debug for BrokenTransport {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("BrokenTransport").field("flaw", &self.flaw).finish_non_exhaustive()
    }
}

#[async_trait]
impl Transport for BrokenTransport {
    async fn connect(&self) -> Arc<dyn ClusterCoordinator> {
        Arc::new(BrokenCoordinator::new(self.inner.connect().await, self.flaw, self.outage.clone()))
    }

    async fn inject(&self, text: &str) {
        match self.flaw {
            CoordinatorFlaw::AcceptsAnyVersion => self.inner.inject(&text.replace(r#""v":2"#, r#""v":1"#)).await,
            CoordinatorFlaw::AcceptsAnyLength if text.len() > ENVELOPE_CHARS_MAX => {
                let mut readable: serde_json::Value = serde_json::from_str(text).unwrap();
                readable["padding"] = "".into();
                self.inner.inject(&readable.to_string()).await;
            }
            CoordinatorFlaw::ChokesOnGarbage => {
                self.inner.inject(text).await;
                let garbage = serde_json::from_str::<serde_json::Value>(text).is_err();
                self.outage.choked.fetch_or(garbage, Ordering::SeqCst);
            }
            _ => self.inner.inject(text).await,
        }
    }

    async fn cut(&self) -> bool {
        self.outage.cut.store(true, Ordering::SeqCst);
        self.outage.was_cut.store(true, Ordering::SeqCst);
        self.inner.cut().await
    }

    async fn restore(&self) {
        self.outage.cut.store(false, Ordering::SeqCst);
        self.inner.restore().await;
    }
}

type SharedListener = Arc<dyn Fn(&Hint) + Send + Sync>;

struct BrokenCoordinator {
    inner: Arc<dyn ClusterCoordinator>,
    flaw: CoordinatorFlaw,
    outage: Arc<Outage>,
    closes: AtomicU32,
    blocked: AtomicBool,
    closed: Arc<AtomicBool>,
    said: Arc<Mutex<HashSet<NodeId>>>,
    /// When the window of an origin began, and with which priority.
    windows: Mutex<HashMap<NodeId, (Instant, Priority)>>,
    listeners: Arc<Mutex<Vec<SharedListener>>>,
    /// What was heard before the first listener came.
    early: Arc<Mutex<Vec<Hint>>>,
    early_guard: Mutex<Option<ListenGuard>>,
}

impl std::fmt::Debug for BrokenCoordinator {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("BrokenCoordinator").field("flaw", &self.flaw).finish_non_exhaustive()
    }
}

impl BrokenCoordinator {
    fn new(inner: Arc<dyn ClusterCoordinator>, flaw: CoordinatorFlaw, outage: Arc<Outage>) -> Self {
        let early = Arc::new(Mutex::new(Vec::new()));
        let own_buffer = matches!(
            flaw,
            CoordinatorFlaw::ForgetsEarlyHints
                | CoordinatorFlaw::TellsTheLastEarlyHint
                | CoordinatorFlaw::TellsEveryEarlyHint
        );
        let early_guard = own_buffer.then(|| {
            let early = early.clone();
            inner.listen(NodeId(Uuid::nil()), Box::new(move |hint| early.lock().unwrap().push(hint.clone())))
        });
        Self {
            inner,
            flaw,
            outage,
            closes: AtomicU32::new(0),
            blocked: AtomicBool::new(false),
            closed: Arc::default(),
            said: Arc::default(),
            windows: Mutex::default(),
            listeners: Arc::default(),
            early,
            early_guard: Mutex::new(early_guard),
        }
    }

    fn is(&self, flaw: CoordinatorFlaw) -> bool {
        self.flaw == flaw
    }

    /// Returns the priority with which the window of this hint began, if it is not the first.
    fn window_of(&self, hint: &Hint) -> Option<Priority> {
        let mut windows = self.windows.lock().unwrap();
        let began = windows.get(&hint.origin).filter(|(at, _)| at.elapsed() < WINDOW).map(|(_, priority)| *priority);
        if began.is_none() {
            windows.insert(hint.origin, (Instant::now(), hint.priority));
        }
        began
    }

    /// The listener as this coordinator treats it.
    fn flawed(&self, listener: Listener) -> Listener {
        let listener: SharedListener = Arc::from(listener);
        self.listeners.lock().unwrap().push(listener.clone());
        let (outage, closed, said) = (self.outage.clone(), self.closed.clone(), self.said.clone());
        match self.flaw {
            CoordinatorFlaw::TellsTwice => Box::new(move |hint| {
                listener(hint);
                listener(hint);
            }),
            CoordinatorFlaw::Slow => Box::new(move |hint| {
                let (listener, hint) = (listener.clone(), hint.clone());
                std::thread::spawn(move || {
                    std::thread::sleep(LATENCY_MAX + Duration::from_millis(100));
                    listener(&hint);
                });
            }),
            CoordinatorFlaw::LosesOrigin => {
                Box::new(move |hint| listener(&Hint { origin: NodeId(Uuid::nil()), ..hint.clone() }))
            }
            CoordinatorFlaw::DeafToNeighbors => Box::new(move |hint| {
                if !said.lock().unwrap().contains(&hint.origin) {
                    listener(hint);
                }
            }),
            CoordinatorFlaw::NeverComesBack => Box::new(move |hint| {
                if !outage.was_cut.load(Ordering::SeqCst) {
                    listener(hint);
                }
            }),
            CoordinatorFlaw::ChokesOnGarbage => Box::new(move |hint| {
                if !outage.choked.load(Ordering::SeqCst) {
                    listener(hint);
                }
            }),
            CoordinatorFlaw::SendsAfterClose => Box::new(move |hint| {
                if !closed.load(Ordering::SeqCst) {
                    listener(hint);
                }
            }),
            _ => Box::new(move |hint| listener(hint)),
        }
    }
}

#[async_trait]
impl ClusterCoordinator for BrokenCoordinator {
    fn notify(&self, hint: &Hint) {
        let (cut, closed) = (self.outage.cut.load(Ordering::SeqCst), self.closed.load(Ordering::SeqCst));
        match self.flaw {
            CoordinatorFlaw::Mute => return,
            CoordinatorFlaw::PanicsWhenCut if cut => panic!("the transport is away"),
            CoordinatorFlaw::BlocksWhenCut if cut && !self.blocked.swap(true, Ordering::SeqCst) => {
                std::thread::sleep(Duration::from_millis(1_200));
            }
            CoordinatorFlaw::PanicsAfterClose if closed => panic!("it is closed"),
            CoordinatorFlaw::HearsAfterClose if closed => return,
            CoordinatorFlaw::FlattensPriority => {
                return self.inner.notify(&Hint { priority: Priority::Normal, ..hint.clone() });
            }
            CoordinatorFlaw::CoalescesNothing => {
                return self.inner.notify(&Hint { origin: NodeId(Uuid::new_v4()), ..hint.clone() });
            }
            CoordinatorFlaw::KeepsTheFirstPriority => {
                let priority = self.window_of(hint).unwrap_or(hint.priority);
                return self.inner.notify(&Hint { priority, ..hint.clone() });
            }
            CoordinatorFlaw::LosesTheRestOfAWindow if self.window_of(hint).is_some() => return,
            CoordinatorFlaw::HearsItself => {
                for listener in self.listeners.lock().unwrap().iter() {
                    listener(hint);
                }
            }
            CoordinatorFlaw::ForgetsWhenClosed => {
                // Sent a moment later, unless it is closed first.
                let (inner, closed, hint) = (self.inner.clone(), self.closed.clone(), hint.clone());
                tokio::spawn(async move {
                    tokio::time::sleep(Duration::from_millis(20)).await;
                    if !closed.load(Ordering::SeqCst) {
                        inner.notify(&hint);
                    }
                });
                return;
            }
            _ => {}
        }
        self.said.lock().unwrap().insert(hint.origin);
        self.inner.notify(hint);
    }

    fn listen(&self, own: NodeId, listener: Listener) -> ListenGuard {
        let first = self.listeners.lock().unwrap().is_empty();
        let listener = self.flawed(listener);
        drop(self.early_guard.lock().unwrap().take());
        let early = std::mem::take(&mut *self.early.lock().unwrap());
        match self.flaw {
            CoordinatorFlaw::TellsTheLastEarlyHint => early.last().into_iter().for_each(&listener),
            CoordinatorFlaw::TellsEveryEarlyHint => early.iter().for_each(&listener),
            _ => {}
        }
        if !first && self.is(CoordinatorFlaw::TellsTheFirstAlone) {
            return ListenGuard::new(());
        }
        if self.is(CoordinatorFlaw::StopsAtPanic) {
            if !first {
                return ListenGuard::new(());
            }
            let listeners = self.listeners.clone();
            return self.inner.listen(
                own,
                Box::new(move |hint| {
                    let all = listeners.lock().unwrap().clone();
                    for listener in all {
                        listener(hint);
                    }
                }),
            );
        }
        let guard = self.inner.listen(own, listener);
        if self.is(CoordinatorFlaw::KeepsDroppedListeners) {
            std::mem::forget(guard);
            return ListenGuard::new(());
        }
        guard
    }

    async fn close(&self) {
        let again = self.closes.fetch_add(1, Ordering::SeqCst) > 0;
        assert!(!(again && self.is(CoordinatorFlaw::PanicsAtSecondClose)), "it is closed already");
        self.closed.store(true, Ordering::SeqCst);
        if !(self.is(CoordinatorFlaw::HearsAfterClose) || self.is(CoordinatorFlaw::SendsAfterClose)) {
            self.inner.close().await;
        }
    }

    fn stats(&self) -> CoordinatorStats {
        let mut stats = self.inner.stats();
        match self.flaw {
            CoordinatorFlaw::CountsNoPanics => stats.listener_failures = 0,
            CoordinatorFlaw::CountsNoRejects => stats.rejected = 0,
            CoordinatorFlaw::CountsSentTwice => stats.sent *= 2,
            CoordinatorFlaw::CountsReceivedTwice => stats.received *= 2,
            CoordinatorFlaw::CountsOwnAsReceived => stats.received += stats.self_suppressed,
            CoordinatorFlaw::CountsOwnTwice => stats.self_suppressed *= 2,
            CoordinatorFlaw::HidesOutages => (stats.transport_failures, stats.reconnects) = (0, 0),
            CoordinatorFlaw::CountsNothingCoalesced => stats.coalesced = 0,
            _ => {}
        }
        stats
    }
}
