//! The public suite on a real server, behind a proxy that can be cut.

use std::sync::Arc;

use async_trait::async_trait;
use ratchet_conformance::coordinator::{CoordinatorFixture, Proxy, Transport, Way};
use ratchet_coordinator_redis::RedisCoordinator;
use ratchet_core::ClusterCoordinator;
use ratchet_core::coordinator::Hint;

pub(crate) fn server() -> String {
    ratchet_testdb::redis_url().expect("these tests need a Redis server")
}

/// A channel that no other test uses.
pub(crate) fn channel() -> String {
    format!("test_{}", ratchet_engine::new_node_id())
}

struct Redis {
    server: String,
    proxy: Proxy,
    channel: String,
}

#[async_trait]
impl Transport for Redis {
    async fn connect(&self) -> Arc<dyn ClusterCoordinator> {
        let options = RedisCoordinator::options(self.proxy.url()).channel(&self.channel);
        Arc::new(options.connect().await.unwrap())
    }

    async fn inject(&self, text: &str) {
        let client = redis::Client::open(&*self.server).unwrap();
        let mut connection = client.get_multiplexed_async_connection().await.unwrap();
        redis::cmd("PUBLISH").arg(&self.channel).arg(text).query_async::<()>(&mut connection).await.unwrap();
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
    let server = server();
    let proxy = Proxy::before(&server).await;
    CoordinatorFixture::new(Redis { server, proxy, channel: channel() })
}

ratchet_conformance::coordinator_suite!(fresh);

/// What two coordinators need to speak.
pub(crate) fn hint() -> Hint {
    Hint { origin: ratchet_engine::new_node_id(), priority: ratchet_core::Priority::Normal }
}
