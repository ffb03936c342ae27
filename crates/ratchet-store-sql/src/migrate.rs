//! Bringing the schema up to date.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use ratchet_core::{ErrorKind, StoreError};
use sha2::{Digest, Sha256};

use crate::waist::conn::Conn;
use crate::waist::dialect::Dialect;
use crate::waist::stmt::Stmt;
use crate::waist::value::Value;

const DOING: &str = "migrating the schema";

/// Statements on the table of versions; it is there once [`migrate`] has run.
pub(crate) const STATEMENTS: &[Stmt] = &[APPLIED, BEGIN_STEP, END_STEP];

/// They run before there is a schema, or are no statements for a prepared one.
pub(crate) const UNPREPARED: &[Stmt] = &[VERSION_TABLE, HAS_VERSION_TABLE, LOCK_MIGRATIONS, UNLOCK_MIGRATIONS];

/// One step of the schema.
#[derive(Debug, Clone, Copy)]
pub struct Migration {
    /// Its number; the first is 1 and none is left out.
    pub version: u32,
    /// What it brings, in a few words.
    pub description: &'static str,
    /// Its statements.
    pub sql: &'static str,
}

impl Migration {
    /// The fingerprint by which a step that was changed afterwards is recognised: 64 hexadecimal digits.
    pub fn checksum(&self) -> String {
        Sha256::digest(self.sql).iter().fold(String::with_capacity(64), |mut hex, byte| {
            let _ = write!(hex, "{byte:02x}");
            hex
        })
    }
}

/// All steps, the first first.
pub const fn migrations(dialect: Dialect) -> &'static [Migration] {
    match dialect {
        Dialect::Sqlite => &[
            Migration { version: 1, description: "jobs", sql: include_str!("../migrations/sqlite/V001__jobs.sql") },
            Migration {
                version: 2,
                description: "node vitals",
                sql: include_str!("../migrations/sqlite/V002__node_vitals.sql"),
            },
            Migration {
                version: 3,
                description: "composition",
                sql: include_str!("../migrations/sqlite/V003__composition.sql"),
            },
            Migration {
                version: 4,
                description: "queues of schedules",
                sql: include_str!("../migrations/sqlite/V004__schedule_queues.sql"),
            },
            Migration {
                version: 5,
                description: "archive",
                sql: include_str!("../migrations/sqlite/V005__archive.sql"),
            },
            Migration {
                version: 6,
                description: "permits",
                sql: include_str!("../migrations/sqlite/V006__permits.sql"),
            },
            Migration {
                version: 7,
                description: "job log",
                sql: include_str!("../migrations/sqlite/V007__job_log.sql"),
            },
            Migration {
                version: 8,
                description: "node services",
                sql: include_str!("../migrations/sqlite/V008__node_services.sql"),
            },
            Migration {
                version: 9,
                description: "breaker orders",
                sql: include_str!("../migrations/sqlite/V009__breaker_orders.sql"),
            },
            Migration {
                version: 10,
                description: "log groups",
                sql: include_str!("../migrations/sqlite/V010__log_groups.sql"),
            },
        ],
        Dialect::Postgres => &[
            Migration { version: 1, description: "jobs", sql: include_str!("../migrations/postgres/V001__jobs.sql") },
            Migration {
                version: 2,
                description: "composition",
                sql: include_str!("../migrations/postgres/V002__composition.sql"),
            },
            Migration {
                version: 3,
                description: "queues of schedules",
                sql: include_str!("../migrations/postgres/V003__schedule_queues.sql"),
            },
            Migration {
                version: 4,
                description: "archive",
                sql: include_str!("../migrations/postgres/V004__archive.sql"),
            },
            Migration {
                version: 5,
                description: "permits",
                sql: include_str!("../migrations/postgres/V005__permits.sql"),
            },
            Migration {
                version: 6,
                description: "job log",
                sql: include_str!("../migrations/postgres/V006__job_log.sql"),
            },
            Migration {
                version: 7,
                description: "node services",
                sql: include_str!("../migrations/postgres/V007__node_services.sql"),
            },
            Migration {
                version: 8,
                description: "breaker orders",
                sql: include_str!("../migrations/postgres/V008__breaker_orders.sql"),
            },
            Migration {
                version: 9,
                description: "keep pages",
                sql: include_str!("../migrations/postgres/V009__keep_pages.sql"),
            },
            Migration {
                version: 10,
                description: "log groups",
                sql: include_str!("../migrations/postgres/V010__log_groups.sql"),
            },
        ],
        Dialect::Mysql => &[
            Migration { version: 1, description: "jobs", sql: include_str!("../migrations/mysql/V001__jobs.sql") },
            Migration {
                version: 2,
                description: "composition",
                sql: include_str!("../migrations/mysql/V002__composition.sql"),
            },
            Migration {
                version: 3,
                description: "queues of schedules",
                sql: include_str!("../migrations/mysql/V003__schedule_queues.sql"),
            },
            Migration {
                version: 4,
                description: "archive",
                sql: include_str!("../migrations/mysql/V004__archive.sql"),
            },
            Migration {
                version: 5,
                description: "permits",
                sql: include_str!("../migrations/mysql/V005__permits.sql"),
            },
            Migration {
                version: 6,
                description: "job log",
                sql: include_str!("../migrations/mysql/V006__job_log.sql"),
            },
            Migration {
                version: 7,
                description: "node services",
                sql: include_str!("../migrations/mysql/V007__node_services.sql"),
            },
            Migration {
                version: 8,
                description: "jobs by principal",
                sql: include_str!("../migrations/mysql/V008__jobs_by_principal.sql"),
            },
            Migration {
                version: 9,
                description: "breaker orders",
                sql: include_str!("../migrations/mysql/V009__breaker_orders.sql"),
            },
            Migration {
                version: 10,
                description: "log groups",
                sql: include_str!("../migrations/mysql/V010__log_groups.sql"),
            },
        ],
    }
}

/// The whole schema as plain DDL, for whoever installs it by hand.
pub const fn clean_install(dialect: Dialect) -> &'static str {
    match dialect {
        Dialect::Sqlite => include_str!("../schema/sqlite.sql"),
        Dialect::Postgres => include_str!("../schema/postgres.sql"),
        Dialect::Mysql => include_str!("../schema/mysql.sql"),
    }
}

const VERSION_TABLE: Stmt = Stmt::shared(
    "creating the table of schema versions",
    "CREATE TABLE IF NOT EXISTS ratchet_schema_version (\
     version INTEGER NOT NULL PRIMARY KEY, description TEXT NOT NULL, checksum TEXT NOT NULL, \
     applied_at INTEGER NOT NULL, dirty INTEGER NOT NULL)",
)
.postgres(
    "CREATE TABLE IF NOT EXISTS ratchet_schema_version (\
     version INTEGER NOT NULL PRIMARY KEY, description TEXT NOT NULL, checksum TEXT NOT NULL, \
     applied_at TIMESTAMPTZ NOT NULL, dirty BOOLEAN NOT NULL)",
)
.mysql(
    "CREATE TABLE IF NOT EXISTS ratchet_schema_version (\
     version INTEGER NOT NULL PRIMARY KEY, description VARCHAR(255) NOT NULL, checksum CHAR(64) NOT NULL, \
     applied_at DATETIME(6) NOT NULL, dirty BOOLEAN NOT NULL) \
     ENGINE = InnoDB DEFAULT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin",
);

const HAS_VERSION_TABLE: Stmt = Stmt::shared(
    "looking for the table of schema versions",
    "SELECT name FROM sqlite_master WHERE type = 'table' AND name = 'ratchet_schema_version'",
)
.postgres("SELECT 1 AS found WHERE to_regclass('ratchet_schema_version') IS NOT NULL")
.mysql(
    "SELECT 1 AS found FROM information_schema.tables \
     WHERE table_schema = DATABASE() AND table_name = 'ratchet_schema_version'",
);

const APPLIED: Stmt = Stmt::shared(
    "reading schema versions",
    "SELECT version, checksum, dirty FROM ratchet_schema_version ORDER BY version",
);

const BEGIN_STEP: Stmt = Stmt::shared(
    "marking a schema version as begun",
    "INSERT INTO ratchet_schema_version (version, description, checksum, applied_at, dirty) \
     VALUES (?, ?, ?, /*now*/, /*yes*/)",
);

const END_STEP: Stmt = Stmt::shared(
    "marking a schema version as done",
    "UPDATE ratchet_schema_version SET dirty = /*no*/, applied_at = /*now*/ WHERE version = ?",
);

/// Applies the steps that are missing; says how many those were.
///
/// The caller keeps other migrations out: on SQLite by a transaction begun as IMMEDIATE, elsewhere by an advisory lock of the driver's. Where
/// DDL is no part of a transaction, a step that breaks off stays marked and is refused from then on.
pub async fn migrate(conn: &mut dyn Conn) -> Result<usize, StoreError> {
    conn.run(&VERSION_TABLE, vec![]).await?;
    let missing = missing(conn).await?;
    for migration in missing {
        let version = Value::count(migration.version);
        let values = vec![version.clone(), migration.description.into(), migration.checksum().as_str().into()];
        conn.run(&BEGIN_STEP, values).await?;
        for statement in statements(migration.sql) {
            conn.execute(DOING, statement.into(), vec![]).await?;
        }
        conn.run(&END_STEP, vec![version]).await?;
    }
    Ok(missing.len())
}

/// The same, waiting for whoever else migrates. On PostgreSQL in the caller's transaction, which also ends the lock.
pub async fn migrate_exclusively(conn: &mut dyn Conn) -> Result<usize, StoreError> {
    match conn.texts().dialect() {
        Dialect::Sqlite => migrate(conn).await,
        Dialect::Postgres => {
            conn.row(&LOCK_MIGRATIONS, vec![]).await?;
            migrate(conn).await
        }
        Dialect::Mysql => {
            let row = conn.row(&LOCK_MIGRATIONS, vec![]).await?;
            let locked = row.map(|row| row.fields().opt_int("locked")).transpose()?.flatten();
            if locked.is_none() {
                let problem = "the address names no database; put its name after the host, like mysql://app@db/app";
                return Err(StoreError::new(ErrorKind::Invalid, DOING, problem));
            }
            if locked != Some(1) {
                let problem = "another node has been migrating for five minutes; look what it does, then try again";
                return Err(StoreError::new(ErrorKind::Unavailable, DOING, problem));
            }
            let migrated = migrate(conn).await;
            conn.row(&UNLOCK_MIGRATIONS, vec![]).await?;
            migrated
        }
    }
}

// The number is arbitrary. Not in the list of statements: there is nothing to prepare.
const LOCK_MIGRATIONS: Stmt = Stmt::only_postgres(
    "waiting for other migrations",
    "SELECT CAST(pg_advisory_xact_lock(7236824) AS text) AS locked",
)
.mysql("SELECT GET_LOCK(CONCAT('ratchet:', MD5(DATABASE())), 300) AS locked");

const UNLOCK_MIGRATIONS: Stmt = Stmt::shared("letting other migrations go on", "SELECT 1 AS unlocked")
    .mysql("SELECT RELEASE_LOCK(CONCAT('ratchet:', MD5(DATABASE()))) AS unlocked");

/// Refuses a schema that this version cannot work with, and changes nothing.
pub async fn check(conn: &mut dyn Conn) -> Result<(), StoreError> {
    if conn.row(&HAS_VERSION_TABLE, vec![]).await?.is_none() {
        return Err(invalid(
            "the database has no Ratchet schema; run the migrations first, by `ratchet migrate` or with migrate(true)"
                .to_owned(),
        ));
    }
    match missing(conn).await?.first() {
        None => Ok(()),
        Some(first) => Err(invalid(format!(
            "the schema lacks version {} ({}); run the migrations first, by `ratchet migrate` or with migrate(true)",
            first.version, first.description
        ))),
    }
}

/// The steps that have not been applied, if those that have are the ones that this version knows.
async fn missing(conn: &mut dyn Conn) -> Result<&'static [Migration], StoreError> {
    let known = migrations(conn.texts().dialect());
    let mut applied = BTreeMap::new();
    for row in conn.rows(&APPLIED, vec![]).await? {
        let mut fields = row.fields();
        let version: u32 = fields.number("version")?;
        applied.insert(version, (fields.text("checksum")?.to_owned(), fields.bool("dirty")?));
    }
    let newest = known.last().map_or(0, |migration| migration.version);
    if let Some((version, _)) = applied.last_key_value()
        && *version > newest
    {
        return Err(invalid(format!(
            "the schema has version {version}, this program knows versions up to {newest}; use a newer program"
        )));
    }
    for migration in known.iter().take(applied.len()) {
        let version = migration.version;
        match applied.get(&version) {
            None => {
                return Err(invalid(format!(
                    "schema version {version} was left out; restore the database from a backup"
                )));
            }
            Some((_, true)) => {
                return Err(invalid(format!(
                    "schema version {version} was begun and not finished; repair it by hand, then clear its dirty mark"
                )));
            }
            Some((checksum, false)) if *checksum != migration.checksum() => {
                return Err(invalid(format!(
                    "schema version {version} was applied from a different script (checksum {checksum}, this program \
                     has {}); use the program that made this database",
                    migration.checksum()
                )));
            }
            Some(_) => {}
        }
    }
    Ok(&known[applied.len()..])
}

/// The statements of a script: they end with a semicolon at the end of a line, comments are whole lines.
pub fn statements(script: &str) -> impl Iterator<Item = String> {
    let code: Vec<&str> = script.lines().filter(|line| !line.trim_start().starts_with("--")).collect();
    let code = code.join("\n") + "\n";
    let statements: Vec<String> =
        code.split(";\n").map(str::trim).filter(|statement| !statement.is_empty()).map(str::to_owned).collect();
    statements.into_iter()
}

fn invalid(problem: String) -> StoreError {
    StoreError::new(ErrorKind::Invalid, DOING, problem)
}
