use ratchet_core::{ErrorKind, StoreError};

/// A driver's error with the kind that callers act on, by SQLSTATE.
pub(crate) fn store_error(doing: &'static str, error: sqlx::Error) -> StoreError {
    let (kind, problem) = classify(&error);
    StoreError::new(kind, doing, problem).with_source(error)
}

/// Whether a statement was prepared before a migration changed what it returns.
pub(crate) fn is_stale_plan(error: &sqlx::Error) -> bool {
    error.as_database_error().and_then(sqlx::error::DatabaseError::code).as_deref() == Some(STALE_PLAN)
}

/// The code says more than that, but of the statements here nothing else.
const STALE_PLAN: &str = "0A000";

fn classify(error: &sqlx::Error) -> (ErrorKind, &'static str) {
    match error {
        sqlx::Error::Database(database) => classify_code(database.code().as_deref().unwrap_or("XX000")),
        sqlx::Error::Io(_) | sqlx::Error::Protocol(_) | sqlx::Error::WorkerCrashed => {
            (ErrorKind::Unavailable, "the connection to the server was lost or refused")
        }
        sqlx::Error::Tls(_) => (ErrorKind::Unavailable, "the server and this program could not agree on encryption"),
        sqlx::Error::Configuration(_) => (ErrorKind::Invalid, "the connection's settings cannot be used"),
        _ => (ErrorKind::Invalid, "the driver refused the call"),
    }
}

/// <https://www.postgresql.org/docs/current/errcodes-appendix.html>
fn classify_code(code: &str) -> (ErrorKind, &'static str) {
    match code {
        "40P01" => (ErrorKind::Transient, "it was rolled back to resolve a deadlock"),
        "40001" => (ErrorKind::Transient, "it was rolled back because others changed the same rows"),
        "55P03" | "57014" => (ErrorKind::Transient, "it waited too long for a lock or for its turn"),
        STALE_PLAN => (ErrorKind::Transient, "the schema was changed meanwhile"),
        "23505" => (ErrorKind::Conflict, "a row with the same key is already there"),
        "25P01" => (ErrorKind::Invalid, "this belongs in a transaction; begin one first"),
        "25P02" => (ErrorKind::Invalid, "the transaction has failed before; roll it back"),
        "25P03" => (ErrorKind::Unavailable, "the server ended a transaction that lay idle, and its connection"),
        "25P04" => (ErrorKind::Unavailable, "the server ended a transaction that took too long, and its connection"),
        "25006" => (ErrorKind::Unavailable, "the server is a read-only replica; connect to the primary"),
        "28000" | "28P01" => (ErrorKind::Invalid, "the server refuses this user or password"),
        "3D000" => (ErrorKind::Invalid, "the database does not exist; create it first"),
        "42501" => (ErrorKind::Invalid, "the user lacks a privilege"),
        "42P01" => (ErrorKind::Invalid, "a table is missing; run the migrations first"),
        "26000" | "42P05" => (
            ErrorKind::Invalid,
            "the server lost or mixed up prepared statements; if there is a transaction pooler in between, open the \
             store with .pooled(true)",
        ),
        _ => match code.get(..2) {
            Some("08" | "57" | "58") => (ErrorKind::Unavailable, "the server shuts down, starts or cannot go on"),
            Some("53") => (ErrorKind::Unavailable, "the server is out of connections, memory or disk"),
            Some("40") => (ErrorKind::Transient, "the transaction was rolled back"),
            _ => (ErrorKind::Invalid, "the database refused the statement"),
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn codes_have_the_kind_that_callers_act_on() {
        let check = |code: &str, kind: ErrorKind| assert_eq!(classify_code(code).0, kind, "code {code}");
        check("40P01", ErrorKind::Transient);
        check("40001", ErrorKind::Transient);
        check("23505", ErrorKind::Conflict);
        check("57P01", ErrorKind::Unavailable); // admin_shutdown
        check("57P03", ErrorKind::Unavailable); // cannot_connect_now
        check("57014", ErrorKind::Transient); // query_canceled
        check("08006", ErrorKind::Unavailable);
        check("53300", ErrorKind::Unavailable); // too_many_connections
        check("25006", ErrorKind::Unavailable);
        check("25P02", ErrorKind::Invalid);
        check("25P03", ErrorKind::Unavailable);
        check("25P04", ErrorKind::Unavailable); // transaction_timeout
        check("28P01", ErrorKind::Invalid);
        check("42601", ErrorKind::Invalid); // syntax_error
        check("22021", ErrorKind::Invalid);
    }
}
