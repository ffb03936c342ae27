//! What may happen between a claim's search for jobs and its take.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use jiff::Timestamp;
use ratchet_conformance::success;
use ratchet_core::store::{JobStore as _, ResourceStore as _, SubmitUnit, TurnStore as _};
use ratchet_core::{Change, Due, ErrorReport, NodeId, ResourceLimit, ResourceName, StoreError};
use ratchet_store_sql::{Backend, Conn, Row, SqlStore, StoreContext, Value, calls};

use super::{ServerDatabase, TestServer, job, register, request};

/// A connection on which another node runs every waiting job, and puts it off for an hour, before the first take.
struct Overtaken<C, B> {
    inner: C,
    by: Option<(SqlStore<B>, NodeId)>,
    taking: &'static str,
}

#[async_trait]
impl<C: Conn, B: Backend> Conn for Overtaken<C, B> {
    fn context(&self) -> &StoreContext {
        self.inner.context()
    }

    async fn execute(&mut self, doing: &'static str, text: Arc<str>, values: Vec<Value>) -> Result<u64, StoreError> {
        self.inner.execute(doing, text, values).await
    }

    async fn fetch(&mut self, doing: &'static str, text: Arc<str>, values: Vec<Value>) -> Result<Vec<Row>, StoreError> {
        if doing == self.taking
            && let Some((store, node)) = self.by.take()
        {
            let claimed = store.settle_and_claim(&[], Some(&request(node, &["work"], 10))).await?.claimed;
            let (delay, error) = (Duration::from_hours(1), ErrorReport::new("Broken", "not yet"));
            let mut settlement = success(&claimed[0]);
            settlement.change = Change::Reschedule { delay, attempts: 1, error };
            store.settle_and_claim(&[settlement], None).await?;
        }
        self.inner.fetch(doing, text, values).await
    }
}

/// The take checks again what the search has seen.
pub async fn a_job_that_was_put_off_since_the_look_is_not_taken<S: TestServer>() {
    let database = ServerDatabase::<S>::fresh().await;
    let store = database.store().await;
    let (slow, quick) = (register(&store).await, register(&store).await);
    store.submit(&[SubmitUnit::of(vec![job(1)])]).await.unwrap();
    let mut conn = database.connect().await;
    let mut conn = Overtaken { inner: S::waist(&mut conn), by: Some((store.clone(), quick)), taking: S::TAKING };
    let turn = calls::settle_and_claim(&mut conn, &[], Some(&request(slow, &["work"], 10))).await.unwrap();
    assert!(conn.by.is_none(), "the other node was quicker");
    assert_eq!(turn.claimed, [], "its next attempt is due in an hour");
}

/// A claim skips limits that are locked.
pub async fn a_limit_that_a_stalled_node_has_locked_holds_up_no_other_resource<S: TestServer>() {
    let database = ServerDatabase::<S>::fresh().await;
    let store = database.store().await;
    let node = register(&store).await;
    let mut jobs = Vec::new();
    for (number, resource) in (1..).zip(["a", "b", "c", "d"]) {
        store.set_resource(&ResourceLimit::new(resource, 1).unwrap()).await.unwrap();
        let mut job = job(number);
        job.spec.resource = Some(ResourceName::new(resource).unwrap());
        job.due = Due::At(Timestamp::from_second(i64::try_from(number).unwrap()).unwrap());
        jobs.push(job);
    }
    store.submit(&[SubmitUnit::of(jobs.clone())]).await.unwrap();
    let mut stalled = database.connect().await;
    let lock = "SELECT * FROM scheduler_resource_limit WHERE resource_name < 'd' FOR UPDATE";
    S::execute(&mut stalled, format!("{}; {lock}", S::BEGIN)).await;
    let claimed = store.settle_and_claim(&[], Some(&request(node, &["work"], 1))).await.unwrap().claimed;
    assert_eq!(claimed.iter().map(|claim| claim.job.id).collect::<Vec<_>>(), [jobs[3].id]);
}
