use std::collections::HashSet;

use ratchet_store_sql::{Dialect, STATEMENTS, Texts, statements};
use ratchet_store_sqlite::sqlx::sqlite::SqliteConnectOptions;
use ratchet_store_sqlite::sqlx::{AssertSqlSafe, ConnectOptions as _, Executor as _, SqlSafeStr as _};

#[test]
fn every_statement_prepares() {
    super::run(async {
        let (_store, dir) = super::fresh().await;
        let options = SqliteConnectOptions::new().filename(dir.path().join("jobs.db"));
        let mut conn = options.connect().await.unwrap();
        let texts = Texts::new(Dialect::Sqlite);
        for stmt in statements(Dialect::Sqlite) {
            for count in [1, 2, 128, 256] {
                if count == 1 || (stmt.repeats(Dialect::Sqlite)) {
                    let text = texts.render(stmt, count);
                    let prepared = conn.prepare(AssertSqlSafe(text).into_sql_str()).await;
                    assert!(prepared.is_ok(), "{} with {count}: {:?}", stmt.doing(), prepared.err());
                }
            }
        }
    });
}

#[test]
fn every_statement_says_what_it_does_in_its_own_words() {
    let mut seen = HashSet::new();
    for stmt in STATEMENTS.iter().flat_map(|of_one_file| of_one_file.iter()) {
        assert!(seen.insert(stmt.doing()), "two statements are called {:?}", stmt.doing());
    }
}
