//! The whole suite through pgbouncer in transaction mode.

use ratchet_conformance::Fixture;
use ratchet_core::Store as _;
use ratchet_store_postgres::PostgresStore;

use super::database::TestDatabase;

async fn fresh() -> Fixture {
    let database = TestDatabase::fresh().await;
    let url = database.url_through(&ratchet_testdb::pgbouncer_url().unwrap());
    let store = PostgresStore::options(&url).pooled(true).connect().await.unwrap();
    Fixture::new(store, database)
}

ratchet_conformance::suite!(fresh);

#[test]
fn without_a_way_around_the_pooler_nobody_listens() {
    super::run(async {
        let database = TestDatabase::fresh().await;
        let url = database.url_through(&ratchet_testdb::pgbouncer_url().unwrap());
        let deaf = PostgresStore::options(&url).pooled(true).connect().await.unwrap();
        assert!(deaf.coordinator().is_none());
        let hearing = PostgresStore::options(&url).pooled(true).listen_url(database.url()).connect().await.unwrap();
        hearing.backend().until_heard().await;
        assert!(hearing.coordinator().is_some());
    });
}
