/// The databases whose SQL is written here.
///
/// A closed list, matched exhaustively: another database makes the compiler name every place to think about.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Dialect {
    /// SQLite 3.42 or later.
    Sqlite,
    /// PostgreSQL 13 or later.
    Postgres,
    /// MySQL 8.0 or later, and any server that speaks its protocol until it is identified: what all of them have.
    Mysql,
    /// MariaDB 10.6 or later. A text for MySQL serves it too, unless it has another one of its own.
    Mariadb,
}

impl Dialect {
    /// Every dialect.
    pub const ALL: &'static [Self] = &[Self::Sqlite, Self::Postgres, Self::Mysql, Self::Mariadb];

    /// A short name, for files.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Sqlite => "sqlite",
            Self::Postgres => "postgres",
            Self::Mysql => "mysql",
            Self::Mariadb => "mariadb",
        }
    }

    /// The databases' own spelling of their names.
    pub const fn title(self) -> &'static str {
        match self {
            Self::Sqlite => "SQLite",
            Self::Postgres => "PostgreSQL",
            Self::Mysql => "MySQL",
            Self::Mariadb => "MariaDB",
        }
    }

    /// The database's clock, plus an offset that only tests set.
    pub(crate) fn now(self, offset_us: i64) -> String {
        let clock = match self {
            // SQLite's clock ticks in milliseconds.
            Self::Sqlite => "(CAST(ROUND(unixepoch('subsec') * 1000) AS INTEGER) * 1000)",
            // Not now(): that is when the transaction began.
            Self::Postgres => "clock_timestamp()",
            Self::Mysql | Self::Mariadb => "UTC_TIMESTAMP(6)",
        };
        if offset_us == 0 { clock.to_owned() } else { self.moved(clock, '+', &offset_us.to_string()) }
    }

    /// A time moved by a number of microseconds; `sign` is `+` or `-`.
    pub(crate) fn moved(self, time: &str, sign: char, micros: &str) -> String {
        match self {
            Self::Sqlite => format!("({time} {sign} {micros})"),
            Self::Postgres => format!("({time} {sign} {micros} * INTERVAL '1 microsecond')"),
            Self::Mysql | Self::Mariadb => format!("({time} {sign} INTERVAL {micros} MICROSECOND)"),
        }
    }

    /// A truth value in a text.
    pub(crate) const fn truth(self, yes: bool) -> &'static str {
        match (self, yes) {
            // SQLite proves that a partial index serves a query only if both spell the value alike.
            (Self::Sqlite | Self::Mysql | Self::Mariadb, true) => "1",
            (Self::Sqlite | Self::Mysql | Self::Mariadb, false) => "0",
            (Self::Postgres, true) => "TRUE",
            (Self::Postgres, false) => "FALSE",
        }
    }

    /// Whether transactions run side by side, so that rows must be locked before they are judged.
    ///
    /// On SQLite a write transaction holds the only write lock there is.
    pub(crate) const fn locks_rows(self) -> bool {
        match self {
            Self::Sqlite => false,
            Self::Postgres | Self::Mysql | Self::Mariadb => true,
        }
    }

    /// Whether a transaction that settles and one that claims are sooner done beside each other than one that does both.
    pub(crate) const fn settles_beside_claims(self) -> bool {
        match self {
            Self::Postgres => true,
            // SQLite has one writer at a time: two transactions are two waits for the disk. On MariaDB it was not measured.
            Self::Sqlite | Self::Mysql | Self::Mariadb => false,
        }
    }

    /// Whether a list is one value, an array: then a statement has one text for lists of any length.
    pub(crate) const fn has_arrays(self) -> bool {
        match self {
            Self::Sqlite | Self::Mysql | Self::Mariadb => false,
            Self::Postgres => true,
        }
    }

    /// Whether placeholders are numbered.
    pub(crate) const fn numbers_placeholders(self) -> bool {
        match self {
            Self::Sqlite | Self::Mysql | Self::Mariadb => false,
            Self::Postgres => true,
        }
    }

    /// What makes the database find rows by their primary key.
    pub(crate) const fn by_id(self) -> &'static str {
        match self {
            Self::Sqlite | Self::Postgres => "",
            // On a table that is nearly empty another index looks as good, and then rows are locked in its order:
            // claimers wait for each other in a circle.
            Self::Mysql | Self::Mariadb => "FORCE INDEX (PRIMARY)",
        }
    }

    /// What lets an insert pass over rows whose key is taken.
    ///
    /// MySQL's way also passes over every other fault of a row. There the insert fails as a conflict, and the transaction
    /// goes on.
    pub(crate) const fn or_nothing(self) -> &'static str {
        match self {
            Self::Sqlite | Self::Postgres => "ON CONFLICT DO NOTHING",
            Self::Mysql | Self::Mariadb => "",
        }
    }

    /// Whether the children of a job are listed in a table of their own, `scheduler_job_child`.
    ///
    /// There an index over the parents of all jobs has an entry for every job, also for those without a parent.
    pub(crate) const fn lists_children_apart(self) -> bool {
        match self {
            Self::Sqlite | Self::Postgres => false,
            Self::Mysql | Self::Mariadb => true,
        }
    }

    /// Whether a scan reads index entries of rows that are gone, so that it pays to resume behind them.
    pub(crate) const fn scans_dead_entries(self) -> bool {
        match self {
            Self::Sqlite | Self::Mysql | Self::Mariadb => false,
            Self::Postgres => true,
        }
    }

    /// Whether each range of a statement is planned anew in every call, at a cost that many lanes make felt.
    pub(crate) const fn plans_every_range(self) -> bool {
        match self {
            Self::Sqlite | Self::Postgres => false,
            Self::Mysql | Self::Mariadb => true,
        }
    }

    /// Whether one statement can change several tables, each by what the others have changed.
    pub(crate) const fn writes_tables_together(self) -> bool {
        match self {
            Self::Sqlite | Self::Mysql | Self::Mariadb => false,
            Self::Postgres => true,
        }
    }

    /// Whether a plain read in a transaction shows what was committed when the transaction began, and a locking one the latest.
    pub(crate) const fn reads_a_snapshot(self) -> bool {
        match self {
            Self::Sqlite | Self::Postgres => false,
            Self::Mysql | Self::Mariadb => true,
        }
    }
}
