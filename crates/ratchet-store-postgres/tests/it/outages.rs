//! What a restart of the server leaves of the connections that were kept.

use ratchet_conformance::coordinator::{Proxy, Way};
use ratchet_core::ErrorKind;
use ratchet_core::store::{ClusterStore as _, JobStore as _, SubmitUnit, TurnStore as _};
use ratchet_store_postgres::PostgresStore;
use ratchet_store_postgres::sqlx;

use super::database::TestDatabase;

/// Ends every connection to the database but one's own.
async fn end_connections(database: &TestDatabase) {
    let mut conn = database.connect().await;
    let ended: i64 = sqlx::query_scalar(
        "SELECT COUNT(pg_terminate_backend(pid)) FROM pg_stat_activity \
         WHERE datname = current_database() AND pid <> pg_backend_pid()",
    )
    .fetch_one(&mut conn)
    .await
    .unwrap();
    assert!(ended > 0);
}

#[test]
fn connections_that_the_server_ended_are_replaced_without_an_error() {
    super::run(async {
        let database = TestDatabase::fresh().await;
        let store = database.store().await;
        let node = super::register(&store).await;
        for number in 1..20 {
            end_connections(&database).await;
            match number % 4 {
                0 => drop(store.database_time().await.unwrap()),
                1 => drop(store.submit(&[SubmitUnit::of(vec![super::job(number)])]).await.unwrap()),
                2 => drop(store.turn(&[], Some(&super::request(node, &["work"], 5))).await.unwrap()),
                _ => drop(store.acquire_lease("lease", node, std::time::Duration::from_secs(1)).await.unwrap()),
            }
        }
    });
}

#[test]
fn a_server_that_is_away_is_unavailable_and_found_again() {
    super::run(async {
        let database = TestDatabase::fresh().await;
        let proxy = Proxy::before(&database.url()).await;
        let store = PostgresStore::connect(&proxy.url()).await.unwrap();
        proxy.set(Way::Cut);
        for _ in 0..3 {
            let error = store.database_time().await.unwrap_err();
            assert_eq!(*error.kind(), ErrorKind::Unavailable, "{error}");
        }
        proxy.set(Way::Open);
        store.database_time().await.unwrap();
    });
}

#[test]
fn a_server_that_does_not_answer_is_given_up() {
    super::run(async {
        let database = TestDatabase::fresh().await;
        let proxy = Proxy::before(&database.url()).await;
        let limit = std::time::Duration::from_millis(300);
        let options = PostgresStore::options(&proxy.url()).transaction_timeout(limit).connect_timeout(limit);
        let store = options.connect().await.unwrap();
        proxy.set(Way::Silent);
        let begun = std::time::Instant::now();
        let error = store.database_time().await.unwrap_err();
        assert_eq!(*error.kind(), ErrorKind::Unavailable, "{error}");
        assert!(begun.elapsed() < std::time::Duration::from_secs(3), "{:?}", begun.elapsed());
        proxy.set(Way::Open);
        store.database_time().await.unwrap();
    });
}
