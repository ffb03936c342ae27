//! What may happen between the look of a claim and its take.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use ratchet_core::store::{JobStore as _, SubmitUnit, TurnStore as _};
use ratchet_core::{Change, ErrorReport, NodeId, StoreError};
use ratchet_store_postgres::PostgresStore;
use ratchet_store_sql::{Conn, Row, Texts, Value, turn};

use super::database::TestDatabase;

/// A connection on which another node runs every waiting job, and puts it off for an hour, before the first take.
struct Overtaken<C> {
    inner: C,
    by: Option<(PostgresStore, NodeId)>,
}

#[async_trait]
impl<C: Conn> Conn for Overtaken<C> {
    fn texts(&self) -> &Texts {
        self.inner.texts()
    }

    async fn execute(&mut self, doing: &'static str, text: Arc<str>, values: Vec<Value>) -> Result<u64, StoreError> {
        self.inner.execute(doing, text, values).await
    }

    async fn fetch(&mut self, doing: &'static str, text: Arc<str>, values: Vec<Value>) -> Result<Vec<Row>, StoreError> {
        if doing == "claiming and reading jobs"
            && let Some((store, node)) = self.by.take()
        {
            let claimed = store.turn(&[], Some(&super::request(node, &["work"], 10))).await?.claimed;
            let (delay, error) = (Duration::from_hours(1), ErrorReport::new("Broken", "not yet"));
            let mut settlement = super::success(&claimed[0]);
            settlement.change = Change::Reschedule { delay, attempts: 1, error };
            store.turn(&[settlement], None).await?;
        }
        self.inner.fetch(doing, text, values).await
    }
}

#[test]
fn a_job_that_was_put_off_since_the_look_is_not_taken() {
    super::run(async {
        let database = TestDatabase::fresh().await;
        let store = database.store().await;
        let (slow, quick) = (super::register(&store).await, super::register(&store).await);
        store.submit(&[SubmitUnit::of(vec![super::job(1)])]).await.unwrap();
        let mut conn = database.connect().await;
        let inner = ratchet_store_postgres::conn(&mut conn);
        let mut conn = Overtaken { inner, by: Some((store.clone(), quick)) };
        let turn = turn::turn(&mut conn, &[], Some(&super::request(slow, &["work"], 10))).await.unwrap();
        assert!(conn.by.is_none(), "the other node was quicker");
        assert_eq!(turn.claimed, [], "its next attempt is due in an hour");
    });
}
