use ratchet_core::{ErrorKind, StoreError};

/// A driver's error with the kind that callers act on, by SQLite's result code.
pub(crate) fn store_error(doing: &'static str, error: sqlx::Error) -> StoreError {
    let (kind, problem) = classify(&error);
    StoreError::new(kind, doing, problem).with_source(error)
}

fn classify(error: &sqlx::Error) -> (ErrorKind, &'static str) {
    match error {
        sqlx::Error::Database(_) => classify_code(code(error).unwrap_or(1)),
        sqlx::Error::Io(_) => (ErrorKind::Unavailable, "the file could not be reached"),
        sqlx::Error::PoolTimedOut => (ErrorKind::Transient, "all connections were in use"),
        sqlx::Error::PoolClosed | sqlx::Error::WorkerCrashed => {
            (ErrorKind::Unavailable, "the connection was closed; it is opened anew at the next call")
        }
        sqlx::Error::InvalidSavePointStatement | sqlx::Error::BeginFailed => {
            (ErrorKind::Unavailable, "the connection had lost its transaction; it is opened anew at the next call")
        }
        _ => (ErrorKind::Invalid, "the driver refused the call"),
    }
}

fn code(error: &sqlx::Error) -> Option<i32> {
    error.as_database_error()?.code()?.parse().ok()
}

/// <https://www.sqlite.org/rescode.html>
fn classify_code(code: i32) -> (ErrorKind, &'static str) {
    match code {
        // CONSTRAINT_PRIMARYKEY, CONSTRAINT_UNIQUE
        1_555 | 2_067 => return (ErrorKind::Conflict, "a row with the same key is already there"),
        _ => {}
    }
    match code & 0xff {
        // BUSY, LOCKED, PROTOCOL
        5 | 6 | 15 => (ErrorKind::Transient, "another process holds the file's write lock; try again"),
        // NOMEM, INTERRUPT
        7 | 9 => (ErrorKind::Transient, "the database gave up; try again"),
        // READONLY
        8 => (ErrorKind::Unavailable, "the file cannot be written; check its permissions and those of its directory"),
        // IOERR
        10 => (ErrorKind::Unavailable, "reading or writing the file failed; check the disk"),
        // FULL
        13 => (ErrorKind::Unavailable, "the disk is full; make room"),
        // CANTOPEN
        14 => (ErrorKind::Unavailable, "the file cannot be opened; check its path and permissions"),
        // CORRUPT
        11 => (ErrorKind::Invalid, "the file is damaged; restore it from a backup"),
        // CONSTRAINT
        19 => (ErrorKind::Invalid, "a constraint of the schema forbids it"),
        // NOTADB
        26 => (ErrorKind::Invalid, "the file is not a SQLite database"),
        _ => (ErrorKind::Invalid, "the database refused the statement"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn result_codes_have_the_kind_that_callers_act_on() {
        let check = |code: i32, kind: ErrorKind| assert_eq!(classify_code(code).0, kind, "code {code}");
        check(5, ErrorKind::Transient);
        check(517, ErrorKind::Transient); // BUSY_SNAPSHOT
        check(6, ErrorKind::Transient);
        check(10, ErrorKind::Unavailable);
        check(1_034, ErrorKind::Unavailable); // IOERR_FSYNC
        check(13, ErrorKind::Unavailable);
        check(14, ErrorKind::Unavailable);
        check(1_555, ErrorKind::Conflict); // CONSTRAINT_PRIMARYKEY
        check(2_067, ErrorKind::Conflict); // CONSTRAINT_UNIQUE
        check(1_299, ErrorKind::Invalid); // CONSTRAINT_NOTNULL
        check(11, ErrorKind::Invalid);
        check(26, ErrorKind::Invalid);
    }
}
