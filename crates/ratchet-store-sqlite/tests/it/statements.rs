use std::collections::HashSet;

use ratchet_store_sql::{Dialect, StoreContext, all_statements, statements};
use ratchet_store_sqlite::sqlx::{self, AssertSqlSafe, Row as _};

use super::database::connect;

#[test]
fn every_statement_says_what_it_does_in_its_own_words() {
    let mut seen = HashSet::new();
    for stmt in all_statements() {
        assert!(seen.insert(stmt.doing()), "two statements are called {:?}", stmt.doing());
    }
}

/// The tables that hold as many rows as there are jobs, and more.
const LARGE: [&str; 9] = [
    "scheduler_job",
    "scheduler_job_queue",
    "scheduler_job_tag",
    "scheduler_job_execution",
    "scheduler_job_log",
    "scheduler_job_archive",
    "scheduler_job_archive_tag",
    "scheduler_business_key_reservation",
    "scheduler_workflow_condition",
];

#[test]
fn what_is_deleted_is_found_by_an_index() {
    super::run(async {
        let (_store, dir) = super::fresh().await;
        let mut conn = connect(dir.path()).await;
        let context = StoreContext::new(Dialect::Sqlite);
        let mut scanning = Vec::new();
        for stmt in statements(Dialect::Sqlite) {
            let text = context.render(stmt, 2);
            if !text.starts_with("DELETE") {
                continue;
            }
            let plan = sqlx::query(AssertSqlSafe(format!("EXPLAIN QUERY PLAN {text}")));
            for row in plan.fetch_all(&mut conn).await.unwrap() {
                let step: String = row.get("detail");
                if LARGE.iter().any(|table| step == format!("SCAN {table}")) {
                    scanning.push(format!("{}: {step}", stmt.doing()));
                }
            }
        }
        assert!(scanning.is_empty(), "{scanning:#?}");
    });
}
