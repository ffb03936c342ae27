use ratchet_store_postgres::sqlx::{AssertSqlSafe, Executor as _, SqlSafeStr as _};
use ratchet_store_sql::{Dialect, Texts, statements};

use super::database::TestDatabase;

#[test]
fn every_statement_prepares() {
    super::run(async {
        let mut conn = TestDatabase::fresh().await.connect().await;
        let texts = Texts::new(Dialect::Postgres);
        for stmt in statements(Dialect::Postgres) {
            let text = texts.render(stmt, 8);
            let prepared = conn.prepare(AssertSqlSafe(text).into_sql_str()).await;
            // Of a value that is only compared with NULL the type comes with the value.
            let code = prepared.as_ref().err().and_then(|error| error.as_database_error()?.code()).unwrap_or_default();
            assert!(prepared.is_ok() || code == "42P18", "{}: {:?}", stmt.doing(), prepared.err());
        }
    });
}
