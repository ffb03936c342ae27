//! Telling other nodes of new work, not more often than they can use.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use ratchet_core::{ClusterCoordinator, Hint, NodeId, Priority};

/// At most one hint in so long.
const WINDOW: Duration = Duration::from_millis(5);

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
    /// A hint went out; this gathered since.
    Closed(Option<Priority>),
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
        {
            let mut window = self.lock();
            if let Window::Closed(gathered) = &mut *window {
                *gathered = (*gathered).max(Some(priority));
                return;
            }
            // Without a runtime nobody could open the window again, so it stays open.
            if let Ok(runtime) = tokio::runtime::Handle::try_current() {
                *window = Window::Closed(None);
                let gathering = Gathering { announcer: self.clone(), done: false };
                runtime.spawn(async move {
                    gathering.announcer.gather().await;
                    gathering.finish();
                });
            }
        }
        // Here and not in the task: a runtime that runs only while the caller waits for it may not come to it.
        self.send(priority);
    }

    /// Sends what has gathered, window after window, until one passes in which nothing did.
    async fn gather(&self) {
        loop {
            tokio::time::sleep(WINDOW).await;
            let gathered = {
                let mut window = self.lock();
                match &mut *window {
                    Window::Closed(gathered) if gathered.is_some() => gathered.take(),
                    _ => {
                        *window = Window::Open;
                        None
                    }
                }
            };
            match gathered {
                Some(priority) => self.send(priority),
                None => return,
            }
        }
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

/// Opens the window if the task that would have done it ends too soon, because its runtime does; what had gathered
/// goes out then.
struct Gathering {
    announcer: Arc<Announcer>,
    done: bool,
}

impl Gathering {
    fn finish(mut self) {
        self.done = true;
    }
}

impl Drop for Gathering {
    fn drop(&mut self) {
        if self.done {
            return;
        }
        let left = std::mem::take(&mut *self.announcer.lock());
        if let Window::Closed(Some(priority)) = left {
            self.announcer.send(priority);
        }
    }
}

#[cfg(test)]
mod tests {
    use async_trait::async_trait;
    use ratchet_core::coordinator::{CoordinatorStats, ListenGuard, Listener};
    use tokio::time::Instant;

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
}
