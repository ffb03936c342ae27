use ratchet_store_mysql::sqlx::{AssertSqlSafe, Executor as _, SqlSafeStr as _};
use ratchet_store_sql::{Dialect, Texts, statements};

use super::database::TestDatabase;

#[test]
fn every_statement_prepares() {
    super::run(async {
        let mut conn = TestDatabase::fresh().await.connect().await;
        let texts = Texts::new(Dialect::Mysql);
        for stmt in statements(Dialect::Mysql) {
            for count in [1, 2, 8, 256] {
                if count == 1 || stmt.repeats(Dialect::Mysql) {
                    let text = texts.render(stmt, count);
                    let prepared = conn.prepare(AssertSqlSafe(text).into_sql_str()).await;
                    assert!(prepared.is_ok(), "{} with {count}: {:?}", stmt.doing(), prepared.err());
                }
            }
        }
    });
}
