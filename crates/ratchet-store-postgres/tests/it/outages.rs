//! What becomes of connections that were kept: the server restarts, the way is lost, a statement leaves something behind.

use ratchet_conformance::coordinator::{Proxy, Way};
use ratchet_core::coordinator::Hint;
use ratchet_core::store::{ClusterStore as _, JobStore as _, QueueStore as _, Store as _, SubmitUnit, TurnStore as _};
use ratchet_core::{ErrorKind, NodeId, Priority};
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
                2 => drop(store.settle_and_claim(&[], Some(&super::request(node, &["work"], 5))).await.unwrap()),
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
        proxy.set(Way::Cut).await;
        for _ in 0..3 {
            let error = store.database_time().await.unwrap_err();
            assert_eq!(*error.kind(), ErrorKind::Unavailable, "{error}");
        }
        proxy.set(Way::Open).await;
        store.database_time().await.unwrap();
    });
}

#[test]
fn a_server_that_begins_to_refuse_is_unavailable_and_not_a_mistake() {
    super::run(async {
        let database = TestDatabase::without_schema().await;
        let store = PostgresStore::options(database.url()).migrate(true).connect().await.unwrap();
        let admin = TestDatabase::fresh().await;
        let allow = async |allowed: bool| {
            admin.execute(format!("ALTER DATABASE {} ALLOW_CONNECTIONS {allowed}", database.name())).await;
        };
        let others = "SELECT COUNT(pg_terminate_backend(pid)) FROM pg_stat_activity WHERE datname = ";
        allow(false).await;
        admin.execute(format!("{others} '{}'", database.name())).await;
        let error = PostgresStore::connect(&database.url()).await.expect_err("it refuses");
        assert_eq!(*error.kind(), ErrorKind::Invalid, "who comes first is told that it cannot be: {error}");
        let error = store.submit(&[SubmitUnit::of(vec![super::job(1)])]).await.unwrap_err();
        assert_eq!(*error.kind(), ErrorKind::Unavailable, "what a node has to write is kept: {error}");
        assert!(error.to_string().contains("accepted connections before"), "{error}");
        allow(true).await;
        store.submit(&[SubmitUnit::of(vec![super::job(1)])]).await.unwrap();
    });
}

#[test]
fn a_server_that_does_not_answer_is_given_up() {
    super::run(async {
        let database = TestDatabase::fresh().await;
        let proxy = Proxy::before(&database.url()).await;
        let limit = std::time::Duration::from_millis(300);
        let options = PostgresStore::options(proxy.url()).transaction_timeout(limit).connect_timeout(limit);
        let store = options.connect().await.unwrap();
        proxy.set(Way::Silent).await;
        let begun = std::time::Instant::now();
        let error = store.database_time().await.unwrap_err();
        assert_eq!(*error.kind(), ErrorKind::Unavailable, "{error}");
        assert!(begun.elapsed() < std::time::Duration::from_secs(3), "{:?}", begun.elapsed());
        proxy.set(Way::Open).await;
        store.database_time().await.unwrap();
    });
}

/// Keeps `count` connections of a store: so many transactions wait for the same table at once.
async fn keep_connections(database: &TestDatabase, store: &PostgresStore, count: usize) {
    let mut conn = database.connect().await;
    sqlx::raw_sql("BEGIN; LOCK TABLE scheduler_lock").execute(&mut conn).await.unwrap();
    let node = super::register(store).await;
    let waiting: Vec<_> = (0..count)
        .map(|number| {
            let store = store.clone();
            let minute = std::time::Duration::from_mins(1);
            tokio::spawn(async move { store.acquire_lease(&format!("lease {number}"), node, minute).await })
        })
        .collect();
    let mut observer = database.connect().await;
    loop {
        let waits = "SELECT COUNT(*) FROM pg_locks WHERE NOT granted AND relation = 'scheduler_lock'::regclass";
        let waits: i64 = sqlx::query_scalar(waits).fetch_one(&mut observer).await.unwrap();
        if usize::try_from(waits).unwrap() == count {
            break;
        }
        tokio::task::yield_now().await;
    }
    sqlx::raw_sql("ROLLBACK").execute(&mut conn).await.unwrap();
    for waiting in waiting {
        waiting.await.unwrap().unwrap();
    }
}

#[test]
fn connections_that_fell_silent_cost_one_short_wait_together() {
    super::run(async {
        let database = TestDatabase::fresh().await;
        let proxy = Proxy::before(&database.url()).await;
        let limit = std::time::Duration::from_secs(5);
        let store = PostgresStore::options(proxy.url()).transaction_timeout(limit).connect().await.unwrap();
        keep_connections(&database, &store, 4).await;
        let node = super::register(&store).await;
        proxy.set(Way::Forgotten).await;
        let begun = std::time::Instant::now();
        for _ in 0..4 {
            store.acquire_lease("lease", node, limit).await.unwrap();
        }
        assert!(begun.elapsed() < limit, "{:?}", begun.elapsed());
        // What runs without a transaction was kept elsewhere, and all of them were forgotten.
        store.submit(&[SubmitUnit::of(vec![super::job(1)])]).await.unwrap();
        store.database_time().await.unwrap();
        assert!(begun.elapsed() < limit, "{:?}", begun.elapsed());
    });
}

#[test]
fn a_connection_on_which_a_hint_failed_is_not_left_in_its_transaction() {
    super::run(async {
        let database = TestDatabase::without_schema().await;
        PostgresStore::options(database.url()).migrate(true).connect().await.unwrap();
        // In the place of the server's own: it fails in the midst of what the store sends.
        let name = database.url().rsplit('/').next().unwrap().to_owned();
        database
            .execute(format!(
                "CREATE FUNCTION public.pg_notify(text, text) RETURNS void LANGUAGE plpgsql AS \
                 'BEGIN RAISE EXCEPTION ''the test refuses it''; END'; \
                 ALTER DATABASE {name} SET search_path = public, pg_catalog"
            ))
            .await;
        let store = database.store().await;
        let coordinator = store.coordinator().unwrap();
        coordinator.notify(&Hint { origin: NodeId(uuid::Uuid::new_v4()), priority: Priority::Normal });
        while coordinator.stats().transport_failures == 0 {
            tokio::task::yield_now().await;
        }
        super::register(&store).await;
    });
}

#[test]
fn statements_that_were_prepared_before_a_change_of_the_schema_are_prepared_again() {
    super::run(async {
        let database = TestDatabase::without_schema().await;
        PostgresStore::options(database.url()).migrate(true).connect().await.unwrap();
        let store = database.store().await;
        let node = super::register(&store).await;
        for number in 1..4 {
            store.submit(&[SubmitUnit::of(vec![super::job(number)])]).await.unwrap();
            let turn = store.settle_and_claim(&[], Some(&super::request(node, &["work"], 5))).await.unwrap();
            assert_eq!(turn.claimed.len(), 1, "in a transaction");
            store.queues().await.expect("without one");
            // What these statements return has another type from now on.
            let length = 200 + number;
            database
                .execute(format!(
                    "ALTER TABLE scheduler_job ALTER COLUMN queue TYPE varchar({length}); \
                     ALTER TABLE scheduler_queue ALTER COLUMN name TYPE varchar({length})"
                ))
                .await;
        }
    });
}
