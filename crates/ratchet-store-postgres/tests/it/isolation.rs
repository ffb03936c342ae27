//! Completing in a caller's transaction that does not see what was committed since it began.

use ratchet_conformance::scene::Queueing;
use ratchet_conformance::{Fixture, Harness};
use ratchet_core::store::{JobStore as _, SubmitUnit, TurnStore as _};
use ratchet_core::{ErrorKind, JobState};
use ratchet_store_postgres::PostgresStore;
use ratchet_store_postgres::sqlx::{self, AssertSqlSafe};
use ratchet_store_sql::calls;

use super::database::TestDatabase;

/// Counting permits after a lock means nothing where the transaction sees only what was there when it began.
#[test]
fn a_store_sees_what_is_committed_whatever_its_database_is_set_to() {
    const NOTE: &str = "CREATE TABLE seen (level text); \
         CREATE FUNCTION note() RETURNS trigger LANGUAGE plpgsql AS \
         $$ BEGIN INSERT INTO seen VALUES (current_setting('transaction_isolation')); RETURN NULL; END $$; \
         CREATE TRIGGER note AFTER UPDATE ON scheduler_job_queue EXECUTE FUNCTION note()";
    super::run(async {
        let database = TestDatabase::without_schema().await;
        let set = format!("ALTER DATABASE {} SET default_transaction_isolation = 'repeatable read'", database.name());
        database.execute(set).await;
        PostgresStore::options(database.url()).migrate(true).connect().await.unwrap();
        database.execute(NOTE).await;
        for pooled in [false, true] {
            let store = PostgresStore::options(database.url()).pooled(pooled).connect().await.unwrap();
            let node = super::register(&store).await;
            store.submit(&[SubmitUnit::of(vec![super::job(1 + u128::from(pooled))])]).await.unwrap();
            let turn = store.settle_and_claim(&[], Some(&super::request(node, &["work"], 1))).await.unwrap();
            assert_eq!(turn.claimed.len(), 1);
        }
        let mut conn = database.connect().await;
        let seen: Vec<String> = sqlx::query_scalar("SELECT level FROM seen").fetch_all(&mut conn).await.unwrap();
        assert_eq!(seen, ["read committed"; 2]);
    });
}

#[test]
fn a_completion_that_cannot_see_who_waits_for_it_is_refused() {
    super::run(async {
        let database = TestDatabase::fresh().await;
        let mut conn = database.connect().await;
        let scene = Queueing::new(Harness::new(Fixture::new(database.store().await, database)).await).await;
        let mut second = None;
        for (isolation, sees) in [("REPEATABLE READ", false), ("SERIALIZABLE", false), ("READ COMMITTED", true)] {
            let begin = format!("BEGIN ISOLATION LEVEL {isolation}; SELECT COUNT(*) FROM scheduler_workflow_condition");
            sqlx::raw_sql(AssertSqlSafe(begin)).execute(&mut conn).await.unwrap();
            if second.is_none() {
                second = Some(scene.fire().await);
            }
            let success = [super::success(&scene.running)];
            let settled = calls::settle(&mut ratchet_store_postgres::conn(&mut conn), &success).await;
            match settled {
                Ok(_) => assert!(sees, "{isolation}"),
                Err(error) => {
                    assert_eq!((error.kind(), sees), (&ErrorKind::Invalid, false), "{error}");
                    assert!(error.to_string().contains(isolation), "{error}");
                }
            }
            let end = if sees { "COMMIT" } else { "ROLLBACK" };
            sqlx::raw_sql(end).execute(&mut conn).await.unwrap();
        }
        assert_eq!(scene.state(second.unwrap()).await, JobState::Pending);
    });
}
