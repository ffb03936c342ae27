use std::collections::HashMap;
use std::fmt::Write as _;
use std::sync::atomic::{AtomicI64, Ordering};
use std::sync::{Arc, OnceLock, PoisonError, RwLock};
use std::time::Duration;

use ratchet_core::{JobFlags, JobState};

use crate::claim::scan_start::ResumePoints;
use crate::waist::columns;
use crate::waist::dialect::Dialect;
use crate::waist::literal;
use crate::waist::value::Value;

/// A statement as it is written: one text for all databases, or another one where a database must differ.
///
/// A word that begins with `scheduler_` is a table, and gets the qualifier of the schema in front.
/// Placeholders are `?` and never reused. Everything that differs is a token, written as a comment so that the text
/// stays SQL that can be read:
///
/// | token | becomes |
/// |---|---|
/// | `/*now*/` | the database's clock |
/// | `/*in:x*/`, `/*ago:x*/` | the clock plus or minus `x` microseconds |
/// | `/*yes*/`, `/*no*/` | a truth value |
/// | `/*state:running*/` | the stored name of a state, quoted |
/// | `/*flags:batch,dependants*/` | the stored number of these flags of a job |
/// | `/*for_update*/` | the clause that locks the selected rows |
/// | `/*skip_locked*/` | the same, passing over rows that another transaction has locked |
/// | `/*by_id*/` | after a table: its rows are found by their primary key, whatever statistics say |
/// | `/*or_nothing*/` | the clause that lets an insert pass over taken keys |
/// | `/*columns:job.plain*/` | the columns of a group of `columns.rs`, as its argument says |
/// | `/*values:job.plain*/` | a placeholder for each of these columns |
/// | `/*set:signal*/`, `/*clear:signal*/` | the same with a value, or NULL, assigned to each of them |
/// | `/*any*/` | `IN (…)` or `= ANY (…)`: is one of a list of keys |
/// | `/*rows:id int*/` | the rows of a list, here of an id and a number each, as a table |
/// | `/*each*/ … /*end*/` | the part between, repeated with commas |
/// | `/*union*/ … /*end*/` | the part between, repeated with UNION ALL |
#[derive(Debug, Clone, Copy)]
pub struct Stmt {
    doing: &'static str,
    shared: Option<&'static str>,
    postgres: Option<&'static str>,
    mysql: Option<&'static str>,
    mariadb: Option<&'static str>,
}

impl Stmt {
    /// One text for all databases; `doing` says in errors what was being done and is different for every statement.
    pub const fn shared(doing: &'static str, text: &'static str) -> Self {
        Self { doing, shared: Some(text), postgres: None, mysql: None, mariadb: None }
    }

    /// A statement that only PostgreSQL has.
    pub const fn only_postgres(doing: &'static str, text: &'static str) -> Self {
        Self { doing, shared: None, postgres: Some(text), mysql: None, mariadb: None }
    }

    /// A statement that only MySQL and MariaDB have.
    pub const fn only_mysql(doing: &'static str, text: &'static str) -> Self {
        Self { doing, shared: None, postgres: None, mysql: Some(text), mariadb: None }
    }

    /// Whether it runs on a database at all.
    pub fn is_for(&self, dialect: Dialect) -> bool {
        self.own_text(dialect).is_some()
    }

    /// The same with another text for PostgreSQL; a comment beside it says why.
    #[must_use]
    pub const fn postgres(mut self, text: &'static str) -> Self {
        self.postgres = Some(text);
        self
    }

    /// The same with another text for MySQL and MariaDB; a comment beside it says why.
    #[must_use]
    pub const fn mysql(mut self, text: &'static str) -> Self {
        self.mysql = Some(text);
        self
    }

    /// The same with another text for MariaDB alone; a comment beside it says why.
    #[must_use]
    pub const fn mariadb(mut self, text: &'static str) -> Self {
        self.mariadb = Some(text);
        self
    }

    /// What the statement does, in a few words.
    pub const fn doing(&self) -> &'static str {
        self.doing
    }

    /// Whether its text depends on the length of a list.
    pub fn repeats(&self, dialect: Dialect) -> bool {
        let text = self.text(dialect);
        text.contains("/*end*/") || (!dialect.has_arrays() && (text.contains("/*rows:") || text.contains("/*any*/")))
    }

    fn text(&self, dialect: Dialect) -> &'static str {
        self.own_text(dialect).unwrap_or_else(|| panic!("{:?} is not for {dialect:?}", self.doing))
    }

    fn own_text(&self, dialect: Dialect) -> Option<&'static str> {
        let own = match dialect {
            Dialect::Sqlite => None,
            Dialect::Postgres => self.postgres,
            Dialect::Mysql => self.mysql,
            Dialect::Mariadb => self.mariadb.or(self.mysql),
        };
        own.or(self.shared)
    }
}

/// Statements as a database takes them: tokens filled in, lists written out, kept for the next time.
#[derive(Debug)]
pub struct Texts {
    dialect: Dialect,
    /// What stands before each table: nothing, or a schema and a dot.
    qualifier: String,
    /// The dialect of the server, once it is known.
    identified: OnceLock<Dialect>,
    offset_us: AtomicI64,
    rendered: RwLock<HashMap<(&'static str, usize), Arc<str>>>,
    resume_points: ResumePoints,
}

impl Texts {
    /// Statements for one database.
    pub fn new(dialect: Dialect) -> Self {
        Self::qualified(dialect, "")
    }

    /// Statements for one database, whose tables have a qualifier: a schema and a dot.
    pub fn qualified(dialect: Dialect, qualifier: &str) -> Self {
        Self {
            dialect,
            qualifier: qualifier.to_owned(),
            identified: OnceLock::new(),
            offset_us: AtomicI64::new(0),
            rendered: RwLock::default(),
            resume_points: ResumePoints::default(),
        }
    }

    /// Whose SQL it is.
    pub fn dialect(&self) -> Dialect {
        self.identified.get().copied().unwrap_or(self.dialect)
    }

    /// Goes on in the dialect of the server, now that it is known. Only the first call counts: a server does not change.
    pub fn identify(&self, server: Dialect) {
        let mut rendered = self.rendered.write().unwrap_or_else(PoisonError::into_inner);
        if self.identified.set(server).is_ok() {
            rendered.clear();
        }
    }

    /// Where the lanes of the claim index begin.
    pub(crate) const fn resume_points(&self) -> &ResumePoints {
        &self.resume_points
    }

    /// Moves what `/*now*/` means, for tests.
    pub fn advance_clock(&self, by: Duration) {
        let by = i64::try_from(by.as_micros()).unwrap_or(i64::MAX);
        let mut rendered = self.rendered.write().unwrap_or_else(PoisonError::into_inner);
        self.offset_us.fetch_add(by, Ordering::SeqCst);
        rendered.clear();
    }

    /// The text of a statement with its values written into it, for a list of `count` entries.
    pub(crate) fn inline(&self, stmt: &Stmt, count: usize, values: &[Value]) -> String {
        let text = self.render(stmt, count);
        let mut parts = text.split('?');
        let mut out = parts.next().unwrap_or_default().to_owned();
        for (part, value) in parts.zip(values) {
            literal::write(&mut out, value);
            out.push_str(part);
        }
        out
    }

    /// The text of a statement whose list, if it has one, holds `count` entries.
    pub fn render(&self, stmt: &Stmt, count: usize) -> Arc<str> {
        let key = (stmt.doing, count);
        if let Some(text) = self.rendered.read().unwrap_or_else(PoisonError::into_inner).get(&key) {
            return text.clone();
        }
        let mut rendered = self.rendered.write().unwrap_or_else(PoisonError::into_inner);
        let text = render(stmt.text(self.dialect()), self.dialect(), self.offset_us.load(Ordering::SeqCst), count);
        let text: Arc<str> = qualify(text, &self.qualifier).into();
        rendered.insert(key, text.clone());
        text
    }
}

fn render(text: &str, dialect: Dialect, offset_us: i64, count: usize) -> String {
    let filled = fill(text, dialect, offset_us, count);
    if dialect.numbers_placeholders() { numbered(&filled) } else { filled }
}

/// The beginnings of the names of our tables. No other name begins with one of them.
const TABLES: [&str; 2] = ["scheduler_", "ratchet_schema_"];

/// Writes a qualifier before every table.
fn qualify(text: String, qualifier: &str) -> String {
    if qualifier.is_empty() {
        return text;
    }
    let is_part = |before: char| before.is_ascii_alphanumeric() || before == '_' || before == '@';
    let tables = TABLES.iter().flat_map(|table| text.match_indices(table).map(|(at, _)| at));
    let mut begins: Vec<usize> = tables.filter(|at| !text[..*at].ends_with(is_part)).collect();
    begins.sort_unstable();
    let mut out = String::with_capacity(text.len() + begins.len() * qualifier.len());
    let mut done = 0;
    for at in begins {
        out.push_str(&text[done..at]);
        out.push_str(qualifier);
        done = at;
    }
    out.push_str(&text[done..]);
    out
}

/// Fills the tokens in.
fn fill(text: &str, dialect: Dialect, offset_us: i64, count: usize) -> String {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some((before, token, after)) = next_token(rest) {
        out.push_str(before);
        rest = after;
        let now = || dialect.now(offset_us);
        let (name, argument) = token.split_once(':').unwrap_or((token, ""));
        match name {
            "now" => out.push_str(&now()),
            "in" => out.push_str(&dialect.moved(&now(), '+', argument)),
            "ago" => out.push_str(&dialect.moved(&now(), '-', argument)),
            "yes" => out.push_str(dialect.truth(true)),
            "no" => out.push_str(dialect.truth(false)),
            "for_update" if dialect.locks_rows() => out.push_str("FOR UPDATE"),
            "skip_locked" if dialect.locks_rows() => out.push_str("FOR UPDATE SKIP LOCKED"),
            "for_update" | "skip_locked" => {}
            "by_id" => out.push_str(dialect.by_id()),
            "or_nothing" => out.push_str(dialect.or_nothing()),
            "any" if dialect.has_arrays() => out.push_str("= ANY (?)"),
            "any" => {
                let _ = write!(out, "IN ({})", repeated("?", ", ", count));
            }
            "columns" => out.push_str(&columns::listed(argument)),
            "values" => out.push_str(&columns::placeholders(argument)),
            "set" => out.push_str(&columns::assigned(argument)),
            "clear" => out.push_str(&columns::cleared(argument)),
            "rows" => {
                let kinds = columns::kinds(argument);
                if dialect.has_arrays() {
                    let arrays: Vec<_> = kinds.iter().map(|kind| format!("?::{}[]", array_of(kind))).collect();
                    let _ = write!(out, "SELECT * FROM unnest({})", arrays.join(", "));
                } else {
                    let row = format!("({})", repeated("?", ", ", kinds.len()));
                    let _ = write!(out, "VALUES {}", repeated(&row, ", ", count));
                }
            }
            "each" | "union" => {
                let (part, after) = rest.split_once("/*end*/").expect("a repeated part has an end");
                let part = fill(part, dialect, offset_us, 1);
                out.push_str(&repeated(&part, if name == "each" { ", " } else { " UNION ALL " }, count));
                rest = after;
            }
            "state" => {
                let state: JobState =
                    argument.parse().unwrap_or_else(|_| panic!("/*{token}*/ names one of the states"));
                let _ = write!(out, "'{state}'");
            }
            "flags" => {
                let _ = write!(out, "{}", argument.split(',').map(flag).fold(JobFlags::none(), JobFlags::with).bits());
            }
            _ => panic!("the token /*{token}*/ is one of those that Stmt lists"),
        }
    }
    out.push_str(rest);
    out
}

/// Returns the flag that a statement names.
fn flag(name: &str) -> JobFlags {
    match name {
        "dependants" => JobFlags::DEPENDANTS,
        "batch" => JobFlags::BATCH,
        "batch_child" => JobFlags::BATCH_CHILD,
        _ => panic!("{name} is one of the flags that statements read"),
    }
}

/// The type whose array holds a column of a list.
fn array_of(kind: &str) -> &'static str {
    match kind {
        "id" => "uuid",
        "text" => "text",
        "json" => "jsonb",
        "int" => "bigint",
        "real" => "double precision",
        "bool" => "boolean",
        "time" => "timestamptz",
        _ => panic!("{kind} is one of the kinds of values"),
    }
}

fn repeated(part: &str, between: &str, count: usize) -> String {
    vec![part; count].join(between)
}

/// `?` becomes `$1`, `$2`, …; no statement has one in a string.
fn numbered(text: &str) -> String {
    let mut parts = text.split('?');
    let mut out = parts.next().unwrap_or_default().to_owned();
    for (index, part) in parts.enumerate() {
        let _ = write!(out, "${}{part}", index + 1);
    }
    out
}

fn next_token(text: &str) -> Option<(&str, &str, &str)> {
    let (before, rest) = text.split_once("/*")?;
    let (token, after) = rest.split_once("*/")?;
    Some((before, token, after))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_table_gets_the_qualifier() {
        let check = |text: &str, expected: &str| assert_eq!(qualify(text.to_owned(), "app."), expected);
        check("SELECT a FROM scheduler_job", "SELECT a FROM app.scheduler_job");
        check(
            "UPDATE scheduler_lock SET a = scheduler_lock.b",
            "UPDATE app.scheduler_lock SET a = app.scheduler_lock.b",
        );
        check("(scheduler_job),scheduler_node", "(app.scheduler_job),app.scheduler_node");
        check("SELECT version FROM ratchet_schema_version", "SELECT version FROM app.ratchet_schema_version");
        check("SELECT idx_scheduler_job, @scheduler_now", "SELECT idx_scheduler_job, @scheduler_now");
    }

    #[test]
    fn tokens_become_what_the_table_says() {
        let check = |text: &str, count, sqlite: &str, postgres: &str, mysql: &str| {
            assert_eq!(render(text, Dialect::Sqlite, 0, count), sqlite);
            assert_eq!(render(text, Dialect::Postgres, 0, count), postgres);
            assert_eq!(render(text, Dialect::Mysql, 0, count), mysql);
        };
        check("a = ? AND b = ?", 1, "a = ? AND b = ?", "a = $1 AND b = $2", "a = ? AND b = ?");
        check("s = /*state:running*/", 1, "s = 'RUNNING'", "s = 'RUNNING'", "s = 'RUNNING'");
        check("flow & /*flags:batch,dependants*/ = 0", 1, "flow & 33 = 0", "flow & 33 = 0", "flow & 33 = 0");
        check("/*for_update*/", 1, "", "FOR UPDATE", "FOR UPDATE");
        check("/*skip_locked*/", 1, "", "FOR UPDATE SKIP LOCKED", "FOR UPDATE SKIP LOCKED");
        check("/*or_nothing*/", 1, "ON CONFLICT DO NOTHING", "ON CONFLICT DO NOTHING", "");
        check("a = /*yes*/ AND b = /*no*/", 1, "a = 1 AND b = 0", "a = TRUE AND b = FALSE", "a = 1 AND b = 0");
        check(
            "a /*any*/ AND b = ?",
            3,
            "a IN (?, ?, ?) AND b = ?",
            "a = ANY ($1) AND b = $2",
            "a IN (?, ?, ?) AND b = ?",
        );
        check(
            "INSERT INTO t (a, b) /*rows:id int*/",
            2,
            "INSERT INTO t (a, b) VALUES (?, ?), (?, ?)",
            "INSERT INTO t (a, b) SELECT * FROM unnest($1::uuid[], $2::bigint[])",
            "INSERT INTO t (a, b) VALUES (?, ?), (?, ?)",
        );
        check("/*each*/(?, 1)/*end*/", 2, "(?, 1), (?, 1)", "($1, 1), ($2, 1)", "(?, 1), (?, 1)");
        let union = "SELECT 'PENDING', ? UNION ALL SELECT 'PENDING', ? LIMIT 1";
        let numbered = "SELECT 'PENDING', $1 UNION ALL SELECT 'PENDING', $2 LIMIT 1";
        check("/*union*/SELECT /*state:pending*/, ?/*end*/ LIMIT 1", 2, union, numbered, union);
        let mysql = |text| render(text, Dialect::Mysql, 0, 1);
        assert_eq!(mysql("/*in:v.x*/"), "(UTC_TIMESTAMP(6) + INTERVAL v.x MICROSECOND)");
        let postgres = |text| render(text, Dialect::Postgres, 7, 1);
        assert_eq!(postgres("/*now*/"), "(clock_timestamp() + 7 * INTERVAL '1 microsecond')");
        assert!(render("/*ago:?*/", Dialect::Sqlite, 7, 1).ends_with("+ 7) - ?)"));
    }
}
