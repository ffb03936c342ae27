use std::collections::HashMap;
use std::fmt;
use std::sync::{Mutex, MutexGuard, PoisonError};

use tokio::runtime::{Handle, Id};

/// Connections that are open and not in use.
///
/// A connection is used only on the runtime that opened it: elsewhere every answer would have to cross from one thread to
/// another. On one runtime the one that was used last is used next, so that few are enough.
pub(crate) struct Kept<C>(Mutex<HashMap<Option<Id>, Vec<C>>>);

impl<C> Kept<C> {
    pub(crate) fn new() -> Self {
        Self(Mutex::default())
    }

    /// A connection of this runtime.
    pub(crate) fn take(&self) -> Option<C> {
        self.lock().get_mut(&here())?.pop()
    }

    pub(crate) fn keep(&self, connection: C) {
        self.lock().entry(here()).or_default().push(connection);
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

    fn lock(&self) -> MutexGuard<'_, HashMap<Option<Id>, Vec<C>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn here() -> Option<Id> {
    Handle::try_current().ok().map(|runtime| runtime.id())
}

impl<C> fmt::Debug for Kept<C> {
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
        let kept = Kept::new();
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
}
