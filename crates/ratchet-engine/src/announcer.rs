//! Telling other nodes of new work, not more often than they can use.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use ratchet_core::{ClusterCoordinator, Hint, NodeId, Priority};
use tokio::runtime::Handle;
use tokio::time::Instant;

/// At most one hint in so long.
const WINDOW: Duration = Duration::from_millis(5);
/// A window that is closed for longer was left by its task: timers are late by a millisecond or two, not by a window.
const OVERDUE: Duration = Duration::from_millis(10);

/// Nobody waits longer for hints to leave: by then others find the work by polling.
const FLUSH_MAX: Duration = Duration::from_secs(1);

/// Gathers what an engine or client has to announce: the first goes out at once, those that follow within the window
/// go out together at its end, with the highest of their priorities.
#[derive(Debug)]
pub(crate) struct Announcer {
    coordinator: Arc<dyn ClusterCoordinator>,
    origin: NodeId,
    window: Mutex<Window>,
}

#[derive(Debug, Default)]
enum Window {
    /// Nothing went out lately.
    #[default]
    Open,
    /// A hint went out.
    Closed {
        /// When; it also tells the window of one task from that of another.
        since: Instant,
        /// What gathered since.
        gathered: Option<Priority>,
    },
}

impl Announcer {
    pub(crate) fn new(coordinator: Arc<dyn ClusterCoordinator>, origin: NodeId) -> Arc<Self> {
        Arc::new(Self { coordinator, origin, window: Mutex::default() })
    }

    pub(crate) fn coordinator(&self) -> &Arc<dyn ClusterCoordinator> {
        &self.coordinator
    }

    /// There is new work of this priority; its transaction is committed. Waits for nothing.
    pub(crate) fn announce(self: &Arc<Self>, priority: Priority) {
        // Without a runtime nobody could open the window again, so it stays open.
        let runtime = Handle::try_current().ok();
        let since = Instant::now();
        let mut highest = priority;
        {
            let mut window = self.lock();
            match &mut *window {
                Window::Closed { since, gathered } if since.elapsed() < OVERDUE => {
                    *gathered = (*gathered).max(Some(priority));
                    return;
                }
                // Its task is on a runtime that stands still. What it gathered goes out now.
                Window::Closed { gathered, .. } => highest = gathered.unwrap_or(priority).max(priority),
                Window::Open => {}
            }
            *window = if runtime.is_some() { Window::Closed { since, gathered: None } } else { Window::Open };
        }
        // After the lock: a runtime that ends drops the task within the call, and that opens the window.
        if let Some(runtime) = runtime {
            let gathering = Gathering { announcer: self.clone(), since, done: false };
            runtime.spawn(gathering.gather());
        }
        // Here and not in the task: a runtime that runs only while the caller waits for it may not come to it.
        self.send(highest);
    }

    /// Waits until all that was announced has left this process, and not for long.
    pub(crate) async fn flush(&self) {
        let gathered = match &mut *self.lock() {
            Window::Closed { gathered, .. } => gathered.take(),
            Window::Open => None,
        };
        if let Some(priority) = gathered {
            self.send(priority);
        }
        let _ = tokio::time::timeout(FLUSH_MAX, self.coordinator.flush()).await;
    }

    fn send(&self, priority: Priority) {
        let hint = Hint { origin: self.origin, priority, target: None };
        // The coordinator may be the user's: a panic costs a hint, not a submit that is already committed.
        if catch_unwind(AssertUnwindSafe(|| self.coordinator.notify(&hint))).is_err() {
            tracing::error!("the cluster coordinator panicked; other nodes find the work by polling");
        }
    }

    fn lock(&self) -> MutexGuard<'_, Window> {
        self.window.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The task that opens a window again. If it ends too soon, because its runtime does, what had gathered goes out then.
struct Gathering {
    announcer: Arc<Announcer>,
    since: Instant,
    done: bool,
}

impl Gathering {
    /// Sends what has gathered, window after window, until one passes in which nothing did.
    async fn gather(mut self) {
        while !self.done {
            tokio::time::sleep(WINDOW).await;
            let now = Instant::now();
            match self.take_gathered(Some(now)) {
                Some(priority) => self.announcer.send(priority),
                None => self.done = true,
            }
            self.since = now;
        }
    }

    /// What has gathered in the window of this task. Another window is closed then, or none if there is no `next`.
    fn take_gathered(&self, next: Option<Instant>) -> Option<Priority> {
        let mut window = self.announcer.lock();
        match *window {
            Window::Closed { since, gathered } if since == self.since => {
                *window = match next {
                    Some(since) if gathered.is_some() => Window::Closed { since, gathered: None },
                    _ => Window::Open,
                };
                gathered
            }
            // Somebody else's by now.
            _ => None,
        }
    }
}

impl Drop for Gathering {
    fn drop(&mut self) {
        if !self.done
            && let Some(priority) = self.take_gathered(None)
        {
            self.announcer.send(priority);
        }
    }
}

#[cfg(test)]
mod tests {
    use async_trait::async_trait;
    use ratchet_core::coordinator::{CoordinatorStats, ListenGuard, Listener};

    use super::*;

    #[derive(Debug, Default)]
    struct Recorder(Mutex<Vec<(Instant, Priority)>>);

    #[async_trait]
    impl ClusterCoordinator for Recorder {
        fn notify(&self, hint: &Hint) {
            self.0.lock().unwrap().push((Instant::now(), hint.priority));
            assert_ne!(hint.priority, Priority::Lowest, "the test lets this one panic");
        }
        fn listen(&self, _own: NodeId, _listener: Listener) -> ListenGuard {
            ListenGuard::new(())
        }
        async fn close(&self) {}
        fn stats(&self) -> CoordinatorStats {
            CoordinatorStats::default()
        }
    }

    fn announcer() -> (Arc<Recorder>, Arc<Announcer>) {
        let recorder = Arc::new(Recorder::default());
        (recorder.clone(), Announcer::new(recorder, crate::new_node_id()))
    }

    fn priorities(recorder: &Recorder) -> Vec<Priority> {
        recorder.0.lock().unwrap().iter().map(|(_, priority)| *priority).collect()
    }

    #[tokio::test(start_paused = true)]
    async fn the_first_goes_at_once_and_the_rest_together_with_the_highest_priority() {
        let (recorder, announcer) = announcer();
        announcer.announce(Priority::Normal);
        assert_eq!(priorities(&recorder), [Priority::Normal]);
        for priority in [Priority::Low, Priority::Critical, Priority::High] {
            announcer.announce(priority);
        }
        assert_eq!(priorities(&recorder), [Priority::Normal]);
        tokio::time::sleep(WINDOW * 3).await;
        assert_eq!(priorities(&recorder), [Priority::Normal, Priority::Critical]);
        announcer.announce(Priority::Low);
        assert_eq!(priorities(&recorder), [Priority::Normal, Priority::Critical, Priority::Low]);
    }

    #[tokio::test(start_paused = true)]
    async fn however_many_there_are_one_goes_out_in_a_window_and_none_is_lost() {
        let (recorder, announcer) = announcer();
        let begun = Instant::now();
        let mut last = begun;
        while begun.elapsed() < Duration::from_millis(100) {
            for _ in 0..50 {
                announcer.announce(Priority::Normal);
            }
            last = Instant::now();
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
        tokio::time::sleep(WINDOW * 2).await;
        let sent: Vec<Instant> = recorder.0.lock().unwrap().iter().map(|(at, _)| *at).collect();
        assert!(sent.windows(2).all(|pair| pair[1] - pair[0] >= WINDOW), "{sent:?}");
        assert!(sent.len() >= 15 && sent.len() <= 22, "{}", sent.len());
        assert!(*sent.last().unwrap() >= last, "the last announcement was followed by a hint");
    }

    #[tokio::test(start_paused = true)]
    async fn a_flush_sends_what_has_gathered_once() {
        let (recorder, announcer) = announcer();
        announcer.announce(Priority::Normal);
        announcer.announce(Priority::High);
        announcer.flush().await;
        assert_eq!(priorities(&recorder), [Priority::Normal, Priority::High]);
        announcer.flush().await;
        tokio::time::sleep(WINDOW * 3).await;
        assert_eq!(priorities(&recorder), [Priority::Normal, Priority::High]);
    }

    #[tokio::test(start_paused = true)]
    async fn a_panicking_coordinator_harms_nobody() {
        let (recorder, announcer) = announcer();
        announcer.announce(Priority::Lowest);
        announcer.announce(Priority::Lowest);
        tokio::time::sleep(WINDOW * 3).await;
        announcer.announce(Priority::High);
        assert_eq!(priorities(&recorder), [Priority::Lowest, Priority::Lowest, Priority::High]);
    }

    #[test]
    fn what_gathered_goes_out_when_the_runtime_ends() {
        let (recorder, announcer) = announcer();
        let runtime = || tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        let first = runtime();
        first.block_on(async {
            announcer.announce(Priority::Normal);
            announcer.announce(Priority::High);
        });
        drop(first);
        assert_eq!(priorities(&recorder), [Priority::Normal, Priority::High]);
        runtime().block_on(async { announcer.announce(Priority::Low) });
        assert_eq!(priorities(&recorder), [Priority::Normal, Priority::High, Priority::Low]);
        announcer.announce(Priority::Critical);
        assert_eq!(priorities(&recorder).len(), 4, "without a runtime too");
    }
    #[test]
    fn announcing_on_a_runtime_that_has_ended_does_not_hang() {
        let (recorder, announcer) = announcer();
        let (sender, announced) = std::sync::mpsc::channel();
        std::thread::spawn(move || {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
            let handle = runtime.handle().clone();
            drop(runtime);
            let _within = handle.enter();
            announcer.announce(Priority::Normal);
            announcer.announce(Priority::High);
            sender.send(()).unwrap();
        });
        announced.recv_timeout(Duration::from_secs(5)).expect("it does not hang");
        assert_eq!(priorities(&recorder), [Priority::Normal, Priority::High]);
    }

    #[test]
    fn a_runtime_that_stands_still_does_not_keep_the_window_closed() {
        let (recorder, announcer) = announcer();
        let runtime = || tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        let (still, other) = (runtime(), runtime());
        still.block_on(async {
            announcer.announce(Priority::Normal);
            announcer.announce(Priority::Critical);
        });
        let begun = std::time::Instant::now();
        while priorities(&recorder).len() < 2 {
            assert!(begun.elapsed() < Duration::from_secs(5), "the window stays closed");
            other.block_on(async { announcer.announce(Priority::Low) });
        }
        assert_eq!(priorities(&recorder), [Priority::Normal, Priority::Critical], "with what had gathered");
        drop(still);
        assert_eq!(priorities(&recorder).len(), 2, "a window that is not its own is left alone");
    }
}
