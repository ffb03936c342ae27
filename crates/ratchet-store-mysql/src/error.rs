use ratchet_core::{ErrorKind, StoreError};
use sqlx::mysql::MySqlDatabaseError;

/// A driver's error with the kind that callers act on, by the server's error number.
pub(crate) fn store_error(doing: &'static str, error: sqlx::Error) -> StoreError {
    let (kind, problem) = classify(&error);
    StoreError::new(kind, doing, problem).with_source(error)
}

fn classify(error: &sqlx::Error) -> (ErrorKind, &'static str) {
    match error {
        sqlx::Error::Database(database) => {
            classify_number(database.try_downcast_ref::<MySqlDatabaseError>().map_or(0, MySqlDatabaseError::number))
        }
        sqlx::Error::Io(_) | sqlx::Error::Protocol(_) | sqlx::Error::WorkerCrashed => {
            (ErrorKind::Unavailable, "the connection to the server was lost or refused")
        }
        sqlx::Error::Tls(_) => (ErrorKind::Unavailable, "the server and this program could not agree on encryption"),
        sqlx::Error::Configuration(_) => (ErrorKind::Invalid, "the connection's settings cannot be used"),
        _ => (ErrorKind::Invalid, "the driver refused the call"),
    }
}

/// <https://mariadb.com/docs/server/reference/error-codes>
fn classify_number(number: u16) -> (ErrorKind, &'static str) {
    match number {
        1213 => (ErrorKind::Transient, "it was rolled back to resolve a deadlock"),
        1205 => (ErrorKind::Transient, "it waited too long for a lock"),
        // The second: a cluster that wrote the same rows elsewhere, found at the commit.
        1020 | 3101 => (ErrorKind::Transient, "others changed the same rows"),
        1206 => (ErrorKind::Transient, "there were more locks than the server keeps"),
        // Interrupted, out of its time; a statement that was prepared before a migration.
        1317 | 1615 | 1969 | 3024 => (ErrorKind::Transient, "the server gave up; try again"),
        1062 => (ErrorKind::Conflict, "a row with the same key is already there"),
        // Shutting down, aborted connections, killed, too many connections or prepared statements.
        1040
        | 1053
        | 1077..=1079
        | 1152
        | 1158..=1161
        | 1184
        | 1203
        | 1226
        | 1243
        | 1461
        | 1927
        | 2006
        | 2013
        | 4031 => (ErrorKind::Unavailable, "the server ended the connection or cannot take another one"),
        1021 | 1037 | 1041 | 1114 => (ErrorKind::Unavailable, "the server is out of memory or disk"),
        1030 | 1180 => (ErrorKind::Unavailable, "the server's storage failed"),
        // A cluster that has no majority, or refuses to commit.
        1047 | 3100 => (ErrorKind::Unavailable, "the server's cluster cannot go on at the moment"),
        1290 | 1792 | 1836 => (ErrorKind::Unavailable, "the server is read-only; connect to the primary"),
        1044 | 1045 | 1698 => (ErrorKind::Invalid, "the server refuses this user or password"),
        1049 => (ErrorKind::Invalid, "the database does not exist; create it first"),
        1142 | 1227 => (ErrorKind::Invalid, "the user lacks a privilege"),
        1153 => (ErrorKind::Invalid, "it is larger than the server's max_allowed_packet; raise that"),
        1146 => (ErrorKind::Invalid, "a table is missing; run the migrations first"),
        _ => (ErrorKind::Invalid, "the database refused the statement"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_have_the_kind_that_callers_act_on() {
        let check = |number, kind: ErrorKind| assert_eq!(classify_number(number).0, kind, "error {number}");
        check(1213, ErrorKind::Transient);
        check(1205, ErrorKind::Transient);
        check(3101, ErrorKind::Transient); // rolled back by a cluster
        check(1206, ErrorKind::Transient); // too many locks
        check(1062, ErrorKind::Conflict);
        check(1180, ErrorKind::Unavailable); // a commit failed
        check(1030, ErrorKind::Unavailable); // storage failed
        check(1047, ErrorKind::Unavailable); // a cluster without majority
        check(3100, ErrorKind::Unavailable); // a cluster refuses the commit
        check(1153, ErrorKind::Invalid); // packet too large
        check(1053, ErrorKind::Unavailable); // shutting down
        check(1927, ErrorKind::Unavailable); // connection killed
        check(1040, ErrorKind::Unavailable); // too many connections
        check(1290, ErrorKind::Unavailable); // read-only
        check(1045, ErrorKind::Invalid);
        check(1064, ErrorKind::Invalid); // syntax error
        check(1406, ErrorKind::Invalid); // too long
    }
}
