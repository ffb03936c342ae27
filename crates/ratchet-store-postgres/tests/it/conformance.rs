use ratchet_conformance::Fixture;

use super::database::TestDatabase;

async fn fresh() -> Fixture {
    let database = TestDatabase::fresh().await;
    Fixture::new(database.store().await, database)
}

ratchet_conformance::suite!(fresh);
