use ratchet_store_sql::{Texts, statements};

use super::SqlDatabase;

/// Rows of the lists in a statement's text.
const COUNTS: [usize; 5] = [1, 2, 8, 128, 256];

/// The database can prepare every statement in its list.
pub async fn every_statement_prepares<D: SqlDatabase>() {
    let database = D::fresh().await;
    let mut conn = database.connect().await;
    let texts = Texts::new(D::DIALECT);
    for stmt in statements(D::DIALECT) {
        let counts = if stmt.repeats(D::DIALECT) { &COUNTS[..] } else { &COUNTS[..1] };
        for count in counts {
            let prepared = D::prepare(&mut conn, texts.render(stmt, *count)).await;
            assert!(prepared.is_ok(), "{} with {count}: {prepared:?}", stmt.doing());
        }
    }
}
