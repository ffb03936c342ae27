//! Telling any number of listeners what happened, without waiting for any of them.

use std::fmt;
use std::sync::Arc;

use tokio::sync::broadcast;
use tokio_util::sync::CancellationToken;

use crate::guard;
use crate::observe::events::JobEvent;
use crate::observe::metrics::Meter;

/// Carries events of one sort from those who make them to those who listen.
#[derive(Debug)]
pub(crate) struct Bus<E>(broadcast::Sender<Arc<E>>);

impl<E> Bus<E> {
    /// `capacity` is how many events a slow listener may lag behind before it loses the oldest.
    pub(crate) fn new(capacity: usize) -> Self {
        Self(broadcast::Sender::new(capacity))
    }

    pub(crate) fn subscribe(&self) -> EventStream<E> {
        EventStream { receiver: self.0.subscribe() }
    }

    /// Whether anybody listens.
    pub(crate) fn is_heard(&self) -> bool {
        self.0.receiver_count() > 0
    }

    pub(crate) fn send(&self, event: E) {
        // Nobody listening is no error.
        let _ = self.0.send(Arc::new(event));
    }
}

/// Events as they come. One that does not keep up loses the oldest, and is told how many.
pub struct EventStream<E = JobEvent> {
    receiver: broadcast::Receiver<Arc<E>>,
}

impl<E> EventStream<E> {
    /// The next event; `None` when the engine has ended.
    pub async fn next(&mut self) -> Option<Arc<E>> {
        loop {
            match self.receiver.recv().await {
                Ok(event) => return Some(event),
                Err(broadcast::error::RecvError::Closed) => return None,
                Err(broadcast::error::RecvError::Lagged(lost)) => {
                    tracing::warn!(lost, "an event listener was too slow and lost events");
                }
            }
        }
    }
}

impl<E> fmt::Debug for EventStream<E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("EventStream").finish_non_exhaustive()
    }
}

/// A function that is told of every event, on a task of its own: it can neither slow nor break the engine.
pub(crate) type Listener<E> = Box<dyn Fn(&E) + Send + Sync>;

/// Tells a listener of events until `stop`, and then of those that are left.
pub(crate) async fn listen<E>(
    mut events: EventStream<E>,
    listener: Listener<E>,
    stop: CancellationToken,
    meter: Meter,
) {
    let tell = |event: Arc<E>| {
        let _ = guard::call(&meter, guard::EVENT_LISTENER, || listener(&event));
    };
    while let Some(Some(event)) = stop.run_until_cancelled(events.next()).await {
        tell(event);
    }
    while let Ok(event) = events.receiver.try_recv() {
        tell(event);
    }
}
