//! Publishing events, and listening to them.

use ratchet_core::{Followed, FollowedBy, JobRecord, NodeId};

use crate::client::Client;
use crate::observe::bus::EventStream;
use crate::observe::events::{EventBus, JobEventKind};
use crate::retention::{BulkEvent, BulkEventKind, BulkEventStream};

impl Client {
    /// What happens to jobs from now on, as far as this process does it; also on a client that acts for somebody, whatever he
    /// may see.
    pub fn events(&self) -> EventStream {
        self.inner.events.subscribe()
    }

    /// What happens to many jobs at once from now on, as far as this process does it.
    pub fn bulk_events(&self) -> BulkEventStream {
        self.inner.bulk.subscribe()
    }

    pub(crate) fn bus(&self) -> &EventBus {
        &self.inner.events
    }

    pub(crate) fn publish(&self, job: &JobRecord, what: JobEventKind) {
        self.inner.events.publish(job, self.node(), what);
    }

    /// Tells what happened to many jobs at once.
    pub(crate) fn tell(&self, what: BulkEventKind) {
        self.inner.bulk.send(BulkEvent { node: self.node(), at: self.now(), what });
    }

    /// Tells what became of jobs because others ended; says whether one of them can run now.
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
