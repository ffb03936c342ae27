//! The one place that every call of a store passes: it is timed, and a call of the node itself is given up after a deadline.

use std::fmt;
use std::future::Future;
use std::sync::Arc;
use std::time::{Duration, Instant};

use async_trait::async_trait;
use ratchet_core::node::{NodeRegistration, NodeVitals};
use ratchet_core::store::{Call, HeartbeatStore, StoreDecorator};
use ratchet_core::{ErrorKind, NodeId, Store, StoreError, Timestamp};

use crate::observe::metrics::{Meter, names};

/// A store whose calls are timed, and have a deadline if they are the node's own.
#[derive(Clone)]
pub(crate) struct Metered {
    store: Arc<dyn Store>,
    meter: Meter,
    deadline: Option<Duration>,
}

impl Metered {
    /// The store as a client uses it: without a deadline. The caller knows how long an answer is worth waiting for, and gives up by
    /// dropping the future; a deadline of ours would leave every write that is slow in doubt.
    pub(crate) fn for_client(store: Arc<dyn Store>, meter: Meter) -> Arc<dyn Store> {
        Arc::new(Self { store, meter, deadline: None })
    }

    /// The store as the node's own tasks use it: no call lasts longer than `deadline`, because what waits for it must go on. What
    /// the call asked for may or may not have happened then.
    pub(crate) fn for_node(store: Arc<dyn Store>, meter: Meter, deadline: Duration) -> Arc<dyn Store> {
        Arc::new(Self { store, meter, deadline: Some(deadline) })
    }

    async fn time<T>(
        &self,
        operation: &'static str,
        answer: impl Future<Output = Result<T, StoreError>>,
    ) -> Result<T, StoreError> {
        let call = Timed { meter: &self.meter, operation, begun: Instant::now(), outcome: "given_up" };
        call.end(answer.await)
    }

    async fn within_deadline<T>(
        &self,
        operation: &'static str,
        answer: impl Future<Output = Result<T, StoreError>>,
    ) -> Result<T, StoreError> {
        let answer = self.time(operation, answer);
        let Some(deadline) = self.deadline else { return answer.await };
        tokio::time::timeout(deadline, answer).await.unwrap_or_else(|_| {
            let problem = format!("the database did not answer within {deadline:?}");
            Err(StoreError::new(ErrorKind::Unavailable, format!("calling {operation}"), problem))
        })
    }
}

impl fmt::Debug for Metered {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.store.fmt(f)
    }
}

/// A call that is under way. One that is dropped before its answer was given up: by its deadline, or by its caller.
struct Timed<'a> {
    meter: &'a Meter,
    operation: &'static str,
    begun: Instant,
    outcome: &'static str,
}

impl Timed<'_> {
    fn end<T>(mut self, answer: Result<T, StoreError>) -> Result<T, StoreError> {
        self.outcome = if answer.is_ok() { "ok" } else { "error" };
        answer
    }
}

impl Drop for Timed<'_> {
    fn drop(&mut self) {
        let labels = [("operation", self.operation), ("outcome", self.outcome)];
        self.meter.time(names::STORE_OPERATION, &labels, self.begun.elapsed());
    }
}

impl StoreDecorator for Metered {
    fn inner(&self) -> &dyn Store {
        &*self.store
    }

    async fn around<T: Send>(
        &self,
        call: Call,
        answer: impl Future<Output = Result<T, StoreError>> + Send,
    ) -> Result<T, StoreError> {
        self.within_deadline(call.operation, answer).await
    }

    async fn open_heartbeat(&self) -> Result<Box<dyn HeartbeatStore>, StoreError> {
        let heartbeat = self.within_deadline("open_heartbeat", self.store.open_heartbeat()).await?;
        Ok(Box::new(MeteredHeartbeat { heartbeat, metered: self.clone() }))
    }
}

/// The heartbeat's connection. Only registering has the deadline: the heartbeat bounds what it repeats by its grace, which is what
/// it may not miss.
struct MeteredHeartbeat {
    heartbeat: Box<dyn HeartbeatStore>,
    metered: Metered,
}

#[async_trait]
impl HeartbeatStore for MeteredHeartbeat {
    async fn beat(&mut self, node: NodeId, vitals: NodeVitals) -> Result<bool, StoreError> {
        self.metered.time("heartbeat", self.heartbeat.beat(node, vitals)).await
    }
    async fn database_time(&mut self) -> Result<Timestamp, StoreError> {
        self.metered.time("database_time", self.heartbeat.database_time()).await
    }
    async fn register(&mut self, node: &NodeRegistration) -> Result<(), StoreError> {
        self.metered.within_deadline("register", self.heartbeat.register(node)).await
    }
}
