//! Completing in a caller's transaction that does not see what was committed since it began.

use std::time::Duration;

use ratchet_core::recurring::NewRecurring;
use ratchet_core::schedule::{Every, MisfirePolicy, OverlapPolicy, Schedule};
use ratchet_core::store::{JobStore as _, RecurringStore as _, TurnStore as _};
use ratchet_core::{Claim, ErrorKind, JobId, JobState};
use ratchet_store_postgres::PostgresStore;
use ratchet_store_postgres::sqlx::{self, AssertSqlSafe};
use ratchet_store_sql::settle;

use super::database::TestDatabase;

/// A schedule whose fires wait for each other, and the first of them, which runs.
async fn running(store: &PostgresStore) -> (JobId, Claim) {
    let job = super::job(1);
    let (now, _) = store.due_recurring(1).await.unwrap();
    let schedule = Schedule::Every(Every::new(Duration::from_mins(10), now).unwrap());
    let new = NewRecurring {
        id: job.id,
        spec: job.spec,
        on_success: None,
        on_failure: None,
        next_fire: schedule.next_after(now),
        schedule,
        misfire: MisfirePolicy::default(),
        overlap: OverlapPolicy::Queue,
        business_key: None,
        declared: false,
    };
    store.create_recurring(&NewRecurring { next_fire: Some(now), ..new.clone() }).await.unwrap();
    fire(store, new.id).await;
    let node = super::register(store).await;
    let claim = store.turn(&[], Some(&super::request(node, &["work"], 10))).await.unwrap().claimed.remove(0);
    (new.id, claim)
}

/// Fires a schedule for its next instant, and says which job that is.
async fn fire(store: &PostgresStore, id: JobId) -> JobId {
    let one = store.find_recurring(&[id]).await.unwrap().remove(0);
    let firing = one.firing(one.next_fire.unwrap()).unwrap();
    store.fire_recurring(std::slice::from_ref(&firing)).await.unwrap();
    firing.jobs[0].id
}

async fn state(store: &PostgresStore, id: JobId) -> JobState {
    store.find(&[id]).await.unwrap()[0].state
}

#[test]
fn a_completion_that_cannot_see_who_waits_for_it_is_refused() {
    super::run(async {
        let database = TestDatabase::fresh().await;
        let store = database.store().await;
        let (schedule, claim) = running(&store).await;
        let mut conn = database.connect().await;
        let mut second = None;
        for (isolation, sees) in [("REPEATABLE READ", false), ("SERIALIZABLE", false), ("READ COMMITTED", true)] {
            let begin = format!("BEGIN ISOLATION LEVEL {isolation}; SELECT COUNT(*) FROM scheduler_workflow_condition");
            sqlx::raw_sql(AssertSqlSafe(begin)).execute(&mut conn).await.unwrap();
            if second.is_none() {
                second = Some(fire(&store, schedule).await);
            }
            let settled = settle::settle(&mut ratchet_store_postgres::conn(&mut conn), &[super::success(&claim)]).await;
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
        assert_eq!(state(&store, second.unwrap()).await, JobState::Pending);
    });
}
