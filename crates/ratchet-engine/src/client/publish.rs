//! Publishing events, and listening to them.

use ratchet_core::{Followed, FollowedBy, JobRecord, NodeId};

use crate::client::Client;
use crate::observe::bus::EventStream;
use crate::observe::events::{EventBus, JobEventKind};
use crate::retention::{BulkEvent, BulkEventKind, BulkEventStream};

impl Client {
    /// Subscribes to the events of jobs that this process changes from now on. A client that acts for a principal gets all of
    /// them too, whatever that principal may read.
    pub fn events(&self) -> EventStream {
        self.inner.events.subscribe()
    }

    /// Subscribes to the events about many jobs at once that this process publishes from now on.
    pub fn bulk_events(&self) -> BulkEventStream {
        self.inner.bulk.subscribe()
    }

    pub(crate) fn bus(&self) -> &EventBus {
        &self.inner.events
    }

    pub(crate) fn publish(&self, job: &JobRecord, what: JobEventKind) {
        self.inner.events.publish(job, self.node(), what);
    }

    /// Publishes an event about many jobs.
    pub(crate) fn publish_bulk(&self, what: BulkEventKind) {
        self.inner.bulk.send(BulkEvent { node: self.node(), at: self.now(), what });
    }

    /// Publishes the effects of other jobs' ends. Returns whether one of these jobs can run now.
    pub(crate) fn followed(&self, followed: &[Followed], node: Option<NodeId>) -> bool {
        let node = node.or_else(|| self.node());
        let mut released = false;
        for one in followed {
            released |= one.what == FollowedBy::Released;
            self.inner.events.publish_followed(one, node);
        }
        released
    }
}
