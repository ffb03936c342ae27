//! The suite for coordinators on LISTEN and NOTIFY, behind a proxy that can be cut.

use std::sync::Arc;

use async_trait::async_trait;
use ratchet_conformance::coordinator::{CoordinatorFixture, Proxy, Transport, Way};
use ratchet_core::{ClusterCoordinator, Store as _};
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
        store.until_heard().await;
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
        self.proxy.set(Way::Cut);
        true
    }

    async fn restore(&self) {
        self.proxy.set(Way::Open);
    }
}

async fn fresh() -> CoordinatorFixture {
    let database = TestDatabase::fresh().await;
    let proxy = Proxy::before(&database.url()).await;
    CoordinatorFixture::new(Notifications { database, proxy })
}

ratchet_conformance::coordinator_suite!(fresh);
