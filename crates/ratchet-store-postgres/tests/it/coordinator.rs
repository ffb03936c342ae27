//! The suite for coordinators on LISTEN and NOTIFY, behind a proxy that can be cut.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use ratchet_conformance::coordinator::{CoordinatorFixture, Proxy, Transport, Way};
use ratchet_core::{ClusterCoordinator, Hint, NodeId, Priority, Store as _};
use ratchet_store_postgres::PostgresStore;
use ratchet_store_postgres::sqlx;

use super::database::TestDatabase;

struct Notifications {
    database: TestDatabase,
    proxy: Proxy,
}

#[async_trait]
impl Transport for Notifications {
    async fn connect(&self) -> Arc<dyn ClusterCoordinator> {
        let store = PostgresStore::connect(&self.proxy.url()).await.unwrap();
        store.backend().until_heard().await;
        store.coordinator().unwrap()
    }

    async fn inject(&self, text: &str) {
        let mut conn = self.database.connect().await;
        let notify = sqlx::query("SELECT pg_notify('ratchet_wakeup', $1)").bind(text);
        notify.execute(&mut conn).await.unwrap();
    }

    fn message_bytes_max(&self) -> usize {
        7_999
    }

    async fn cut(&self) -> bool {
        self.proxy.set(Way::Cut).await;
        true
    }

    async fn restore(&self) {
        self.proxy.set(Way::Open).await;
    }
}

async fn fresh() -> CoordinatorFixture {
    let database = TestDatabase::fresh().await;
    let proxy = Proxy::before(&database.url()).await;
    CoordinatorFixture::new(Notifications { database, proxy })
}

ratchet_conformance::coordinator_suite!(fresh);

#[tokio::test(flavor = "multi_thread")]
async fn what_was_said_before_a_flush_is_heard_though_the_store_is_gone() {
    let database = TestDatabase::fresh().await;
    let listening = PostgresStore::connect(&database.url()).await.unwrap();
    listening.backend().until_heard().await;
    let (told, mut heard) = tokio::sync::mpsc::unbounded_channel();
    let own = NodeId(uuid::Uuid::new_v4());
    let tell = move |hint: &Hint| told.send(hint.origin).unwrap();
    let _guard = listening.coordinator().unwrap().listen(own, Box::new(tell));
    for _ in 0..20 {
        let origin = NodeId(uuid::Uuid::new_v4());
        let store = PostgresStore::connect(&database.url()).await.unwrap();
        let coordinator = store.coordinator().unwrap();
        coordinator.notify(&Hint { origin, priority: Priority::Normal });
        coordinator.flush().await;
        drop((coordinator, store));
        let first = tokio::time::timeout(Duration::from_secs(5), heard.recv()).await;
        assert_eq!(first.expect("it is heard"), Some(origin));
    }
}
