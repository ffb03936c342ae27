//! Bringing the schema up to date.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use ratchet_core::{ErrorKind, StoreError};
use sha2::{Digest, Sha256};

use crate::conn::Conn;
use crate::dialect::Dialect;
use crate::stmt::Stmt;
use crate::value::Value;

const DOING: &str = "migrating the schema";

/// Statements on the table of versions; it is there once [`migrate`] has run.
pub(crate) const STATEMENTS: &[Stmt] = &[APPLIED, RECORD];

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
        Dialect::Sqlite => {
            &[Migration { version: 1, description: "jobs", sql: include_str!("../migrations/sqlite/V001__jobs.sql") }]
        }
    }
}

/// The whole schema as plain DDL, for whoever installs it by hand.
pub const fn clean_install(dialect: Dialect) -> &'static str {
    match dialect {
        Dialect::Sqlite => include_str!("../schema/sqlite.sql"),
    }
}

const VERSION_TABLE: Stmt = Stmt::shared(
    "creating the table of schema versions",
    "CREATE TABLE IF NOT EXISTS ratchet_schema_version (\
     version INTEGER NOT NULL PRIMARY KEY, description TEXT NOT NULL, checksum TEXT NOT NULL, \
     applied_at INTEGER NOT NULL, dirty INTEGER NOT NULL)",
);

const HAS_VERSION_TABLE: Stmt = Stmt::per_dialect(
    "looking for the table of schema versions",
    "SELECT name FROM sqlite_master WHERE type = 'table' AND name = 'ratchet_schema_version'",
);

const APPLIED: Stmt = Stmt::shared(
    "reading schema versions",
    "SELECT version, checksum, dirty FROM ratchet_schema_version ORDER BY version",
);

const RECORD: Stmt = Stmt::shared(
    "recording a schema version",
    "INSERT INTO ratchet_schema_version (version, description, checksum, applied_at, dirty) \
     VALUES (?, ?, ?, /*now*/, 0)",
);

/// Applies the steps that are missing; says how many those were.
///
/// The caller holds the lock that keeps other migrations out: on SQLite, a transaction begun as IMMEDIATE.
pub async fn migrate(conn: &mut dyn Conn) -> Result<usize, StoreError> {
    conn.run(&VERSION_TABLE, vec![]).await?;
    let missing = missing(conn).await?;
    for migration in missing {
        for statement in statements(migration.sql) {
            conn.execute(DOING, statement.into(), vec![]).await?;
        }
        let values =
            vec![Value::count(migration.version), migration.description.into(), migration.checksum().as_str().into()];
        conn.run(&RECORD, values).await?;
    }
    Ok(missing.len())
}

/// Refuses a schema that this version cannot work with, and changes nothing.
pub async fn check(conn: &mut dyn Conn) -> Result<(), StoreError> {
    if conn.row(&HAS_VERSION_TABLE, vec![]).await?.is_none() {
        return Err(invalid("the database has no Ratchet schema; run the migrations first".to_owned()));
    }
    match missing(conn).await?.first() {
        None => Ok(()),
        Some(first) => Err(invalid(format!(
            "the schema lacks version {} ({}); run the migrations first",
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
