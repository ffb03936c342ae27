//! Which jobs somebody holds a handle of, so that they are not deleted at their end.

use std::collections::HashMap;
use std::fmt;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use ratchet_core::{JobId, StoreError};
use serde::Deserialize;

use crate::client::Client;

/// The jobs of all living handles. Only counted if this process deletes successes at once: otherwise nobody asks.
#[derive(Debug, Default)]
pub(crate) struct Handles {
    counts: AtomicBool,
    held: Mutex<HashMap<JobId, usize>>,
    /// Whether there are nodes that delete successes at once, and when they were asked.
    nodes: Mutex<Option<(Instant, bool)>>,
}

/// For how long the nodes are not asked again.
const BELIEVED: Duration = Duration::from_secs(10);

/// What a node says of itself, as far as it matters here.
#[derive(Deserialize, Default)]
#[serde(default)]
struct Info {
    discards: bool,
}

impl Client {
    /// Holds jobs for somebody in this process until the answer is dropped.
    pub(crate) fn hold(&self, ids: impl IntoIterator<Item = JobId>) -> Hold {
        self.handles().take(ids)
    }

    /// Sees to it that a live job is not deleted at its end, whichever node runs it, if there are nodes that would.
    pub(crate) async fn keep(&self, id: JobId) -> Result<(), StoreError> {
        let known = *lock(&self.handles().nodes);
        let discards = match known {
            Some((since, discards)) if since.elapsed() < BELIEVED => discards,
            _ => {
                let nodes = self.store().nodes().await?;
                let discards = nodes.iter().any(|node| node.info.decode::<Info>().unwrap_or_default().discards);
                *lock(&self.handles().nodes) = Some((Instant::now(), discards));
                discards
            }
        };
        if discards { self.store().keep(id).await } else { Ok(()) }
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Handles {
    /// From now on handles are counted.
    pub(crate) fn count(&self) {
        self.counts.store(true, Ordering::Release);
    }

    /// Whether somebody here may want to know how this job ends.
    pub(crate) fn hold(&self, id: JobId) -> bool {
        lock(&self.held).contains_key(&id)
    }

    /// Holds jobs until the answer is dropped.
    pub(crate) fn take(self: &Arc<Self>, ids: impl IntoIterator<Item = JobId>) -> Hold {
        if !self.counts.load(Ordering::Acquire) {
            return Hold::default();
        }
        let ids: Vec<JobId> = ids.into_iter().collect();
        let mut held = lock(&self.held);
        for id in &ids {
            *held.entry(*id).or_default() += 1;
        }
        Hold { handles: Some(self.clone()), ids }
    }
}

/// Somebody here holds these jobs.
#[derive(Default)]
pub(crate) struct Hold {
    handles: Option<Arc<Handles>>,
    ids: Vec<JobId>,
}

impl Clone for Hold {
    fn clone(&self) -> Self {
        self.handles.as_ref().map_or_else(Self::default, |handles| handles.take(self.ids.iter().copied()))
    }
}

impl Drop for Hold {
    fn drop(&mut self) {
        let Some(handles) = &self.handles else { return };
        let mut held = lock(&handles.held);
        for id in &self.ids {
            if let Some(count) = held.get_mut(id) {
                *count -= 1;
                if *count == 0 {
                    held.remove(id);
                }
            }
        }
    }
}

impl fmt::Debug for Hold {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Hold").field(&self.ids).finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ids::new_job_id;

    #[test]
    fn a_job_is_held_while_one_of_its_handles_lives() {
        let handles = Arc::new(Handles::default());
        let (one, other) = (new_job_id(), new_job_id());
        let unasked = handles.take([one]);
        assert!(!handles.hold(one), "nobody asks");
        handles.count();
        let first = handles.take([one, other]);
        let second = first.clone();
        drop((unasked, first));
        assert!(handles.hold(one) && handles.hold(other));
        drop(second);
        assert!(!handles.hold(one) && !handles.hold(other));
        assert!(lock(&handles.held).is_empty());
    }
}
