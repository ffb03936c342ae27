//! Completing in a caller's transaction that does not see what was committed since it began.

use ratchet_conformance::scene::Queueing;
use ratchet_conformance::{Fixture, Harness};
use ratchet_core::JobState;
use ratchet_store_mysql::sqlx::{self, AssertSqlSafe};
use ratchet_store_sql::calls;

use super::database::TestDatabase;

#[test]
fn a_completion_sees_who_has_begun_to_wait_for_it_since_its_transaction_began() {
    super::run(async {
        for isolation in ["REPEATABLE READ", "READ COMMITTED"] {
            let database = TestDatabase::fresh().await;
            let mut conn = database.connect().await;
            let scene = Queueing::new(Harness::new(Fixture::new(database.store().await, database)).await).await;
            let begin = format!(
                "SET TRANSACTION ISOLATION LEVEL {isolation}; START TRANSACTION; \
                 SELECT COUNT(*) FROM scheduler_workflow_condition"
            );
            sqlx::raw_sql(AssertSqlSafe(begin)).execute(&mut conn).await.unwrap();
            let second = scene.fire().await;
            assert_eq!(scene.state(second).await, JobState::Waiting);
            let success = [super::success(&scene.running)];
            calls::settle(&mut ratchet_store_mysql::conn(&mut conn), &success).await.unwrap();
            sqlx::raw_sql("COMMIT").execute(&mut conn).await.unwrap();
            assert_eq!(scene.state(second).await, JobState::Pending, "{isolation}");
        }
    });
}
