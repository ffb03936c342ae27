use ratchet_store_sql::{Backend as _, StoreContext, statements};

use super::SqlDatabase;

/// Rows of the lists in a statement's text.
const COUNTS: [usize; 5] = [1, 2, 8, 128, 256];

/// The database can prepare every statement in its list, also with the schema named before every table.
pub async fn every_statement_prepares<D: SqlDatabase>() {
    let database = D::fresh().await;
    let mut conn = database.connect().await;
    // As the server was identified.
    let dialect = database.store().await.backend().context().dialect();
    let context = StoreContext::new(dialect);
    let qualified = StoreContext::qualified(dialect, &format!("{}.", database.schema()));
    for stmt in statements(dialect) {
        let counts = if stmt.repeats(dialect) { &COUNTS[..] } else { &COUNTS[..1] };
        for count in counts {
            let prepared = D::prepare(&mut conn, context.render(stmt, *count)).await;
            assert!(prepared.is_ok(), "{} with {count}: {prepared:?}", stmt.doing());
        }
        let prepared = D::prepare(&mut conn, qualified.render(stmt, 1)).await;
        assert!(prepared.is_ok(), "{} with a schema: {prepared:?}", stmt.doing());
    }
}
