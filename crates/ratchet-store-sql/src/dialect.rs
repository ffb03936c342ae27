/// The databases whose SQL is written here.
///
/// A closed list, matched exhaustively: another database makes the compiler name every place to think about.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Dialect {
    /// SQLite 3.42 or later.
    Sqlite,
}

impl Dialect {
    /// The database's clock in microseconds, plus an offset that only tests set.
    pub(crate) fn now(self, offset_us: i64) -> String {
        match self {
            // SQLite's clock ticks in milliseconds.
            Self::Sqlite if offset_us == 0 => "(CAST(ROUND(unixepoch('subsec') * 1000) AS INTEGER) * 1000)".to_owned(),
            Self::Sqlite => format!("(CAST(ROUND(unixepoch('subsec') * 1000) AS INTEGER) * 1000 + {offset_us})"),
        }
    }

    /// The clause that locks the rows of a SELECT until the end of the transaction.
    pub(crate) const fn for_update(self) -> &'static str {
        match self {
            // A write transaction holds the only write lock there is.
            Self::Sqlite => "",
        }
    }
}
