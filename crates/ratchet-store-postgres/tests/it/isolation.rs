//! Completing in a caller's transaction that does not see what was committed since it began.

use ratchet_conformance::scene::Queueing;
use ratchet_conformance::{Bench, Fixture};
use ratchet_core::{ErrorKind, JobState};
use ratchet_store_postgres::sqlx::{self, AssertSqlSafe};
use ratchet_store_sql::settle;

use super::database::TestDatabase;

#[test]
fn a_completion_that_cannot_see_who_waits_for_it_is_refused() {
    super::run(async {
        let database = TestDatabase::fresh().await;
        let mut conn = database.connect().await;
        let scene = Queueing::new(Bench::new(Fixture::new(database.store().await, database)).await).await;
        let mut second = None;
        for (isolation, sees) in [("REPEATABLE READ", false), ("SERIALIZABLE", false), ("READ COMMITTED", true)] {
            let begin = format!("BEGIN ISOLATION LEVEL {isolation}; SELECT COUNT(*) FROM scheduler_workflow_condition");
            sqlx::raw_sql(AssertSqlSafe(begin)).execute(&mut conn).await.unwrap();
            if second.is_none() {
                second = Some(scene.fire().await);
            }
            let success = [super::success(&scene.running)];
            let settled = settle::settle(&mut ratchet_store_postgres::conn(&mut conn), &success).await;
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
