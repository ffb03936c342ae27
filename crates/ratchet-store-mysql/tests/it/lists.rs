use ratchet_core::page::{ArchiveScope, JobFilter};
use ratchet_core::store::ClusterStore as _;
use ratchet_store_sql::listing;
use ratchet_testdb::history::{self, Sql};

use super::database::TestDatabase;
use super::plan::reads;

/// The rows that each list reads, where so many jobs have ended and as many wait.
async fn reads_at(count: u64) -> Vec<(String, i64)> {
    let database = TestDatabase::fresh().await;
    let now = database.store().await.database_time().await.unwrap().as_millisecond();
    for statement in Sql::Mariadb.history(count, now).chain(Sql::Mariadb.backlog(count, now)) {
        database.execute(statement).await;
    }
    let mut conn = database.connect().await;
    let mut found = Vec::new();
    for (name, filter) in history::lists() {
        for (scope, archive) in [("", ArchiveScope::Live), (", archive too", ArchiveScope::Both)] {
            let before = reads(&mut conn).await;
            let filter = JobFilter { archive, ..filter.clone() };
            listing::list(&mut ratchet_store_mysql::conn(&mut conn), &filter, None, 10).await.unwrap();
            found.push((format!("{name}{scope}"), reads(&mut conn).await - before));
        }
    }
    found
}

#[test]
fn lists_read_as_much_of_many_jobs_as_of_few() {
    super::run(async {
        let few = reads_at(40_000).await;
        let many = reads_at(200_000).await;
        for ((name, few), (_, many)) in few.iter().zip(&many) {
            println!("{name}: {few} rows at 40,000, {many} at 200,000");
        }
        for ((name, few), (_, many)) in few.iter().zip(&many) {
            // Of five times as many. A little more is read where the fewer ones were all looked at.
            assert!(*few > 0 && *many <= few * 3, "{name} reads {many} rows at 200,000, {few} at 40,000");
        }
    });
}
