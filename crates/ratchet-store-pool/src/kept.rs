use std::collections::HashMap;
use std::fmt;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::runtime::{Handle, Id};
use tokio::time::Instant;

/// A connection that was not used for longer is closed instead of used: servers, firewalls and address translations end
/// what lies idle, and not all of them say so. The shortest that is known here is MySQL's session setting of a minute.
const IDLE_MAX: Duration = Duration::from_secs(50);

/// Connections that are open and not in use.
///
/// A connection is used only on the runtime that opened it: elsewhere every answer would have to cross from one thread to
/// another. On one runtime the one that was used last is used next, so that few are enough.
pub(crate) struct IdleConnections<C>(Mutex<ByRuntime<C>>);

/// With the time at which each was last used.
type ByRuntime<C> = HashMap<Option<Id>, Vec<(Instant, C)>>;

impl<C> IdleConnections<C> {
    pub(crate) fn new() -> Self {
        Self(Mutex::default())
    }

    /// A connection of this runtime.
    pub(crate) fn take(&self) -> Option<C> {
        let (used, connection) = self.lock().get_mut(&here())?.pop()?;
        if used.elapsed() < IDLE_MAX {
            return Some(connection);
        }
        // It was the last that was used, so the others lay idle for longer.
        let idle = self.lock().remove(&here());
        drop(idle);
        None
    }

    pub(crate) fn keep(&self, connection: C) {
        self.lock().entry(here()).or_default().push((Instant::now(), connection));
    }

    /// Closes connections, those of other runtimes first, until at most `most` are left.
    pub(crate) fn shrink_to(&self, most: usize) {
        let mut closed = Vec::new();
        let mut kept = self.lock();
        let mut left: usize = kept.values().map(Vec::len).sum();
        let mut runtimes: Vec<Option<Id>> = kept.keys().copied().collect();
        runtimes.sort_unstable_by_key(|runtime| *runtime == here());
        for runtime in runtimes {
            while left > most
                && let Some(connection) = kept.get_mut(&runtime).and_then(Vec::pop)
            {
                closed.push(connection);
                left -= 1;
            }
        }
        kept.retain(|_, connections| !connections.is_empty());
        drop(kept);
        drop(closed);
    }

    /// Closes all of them.
    pub(crate) fn forget(&self) {
        let kept = std::mem::take(&mut *self.lock());
        drop(kept);
    }

    fn lock(&self) -> MutexGuard<'_, ByRuntime<C>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn here() -> Option<Id> {
    Handle::try_current().ok().map(|runtime| runtime.id())
}

impl<C> fmt::Debug for IdleConnections<C> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} connections", self.lock().values().map(Vec::len).sum::<usize>())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_runtime_gets_its_own_connections_and_the_last_one_first() {
        let runtime = || tokio::runtime::Builder::new_current_thread().build().expect("a test can start a runtime");
        let (one, other) = (runtime(), runtime());
        let kept = IdleConnections::new();
        one.block_on(async {
            kept.keep(1);
            kept.keep(2);
        });
        assert_eq!(other.block_on(async { kept.take() }), None);
        assert_eq!(one.block_on(async { kept.take() }), Some(2));
        other.block_on(async {
            kept.keep(3);
            kept.shrink_to(1);
            assert_eq!(kept.take(), Some(3), "those of other runtimes are closed first");
        });
        assert_eq!(one.block_on(async { kept.take() }), None);
    }

    #[tokio::test(start_paused = true)]
    async fn what_lay_idle_for_long_is_closed() {
        let kept = IdleConnections::new();
        kept.keep(1);
        tokio::time::advance(IDLE_MAX / 2).await;
        kept.keep(2);
        tokio::time::advance(IDLE_MAX / 2).await;
        assert_eq!(kept.take(), Some(2));
        assert_eq!(kept.take(), None, "the first was idle for too long");
        kept.keep(3);
        kept.keep(4);
        tokio::time::advance(IDLE_MAX).await;
        assert_eq!(kept.take(), None);
        kept.keep(5);
        assert_eq!((kept.take(), kept.take()), (Some(5), None));
    }
}
