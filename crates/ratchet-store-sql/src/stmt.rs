use std::collections::HashMap;
use std::fmt::Write as _;
use std::sync::atomic::{AtomicI64, Ordering};
use std::sync::{Arc, PoisonError, RwLock};
use std::time::Duration;

use ratchet_core::JobState;

use crate::dialect::Dialect;

/// A statement as it is written: one text for all databases, or one for each where they must differ.
///
/// Placeholders are `?` and never reused. Everything that differs is a token, written as a comment so that the text
/// stays SQL that can be pasted into a shell:
///
/// | token | becomes |
/// |---|---|
/// | `/*now*/` | the database's clock in microseconds |
/// | `/*for_update*/` | the clause that locks the selected rows |
/// | `/*state:running*/` | the stored name of a state, quoted |
/// | `/*each*/ … /*end*/` | the part between, repeated with commas |
/// | `/*union*/ … /*end*/` | the part between, repeated with UNION ALL |
#[derive(Debug, Clone, Copy)]
pub struct Stmt {
    doing: &'static str,
    text: Text,
}

#[derive(Debug, Clone, Copy)]
enum Text {
    Shared(&'static str),
    PerDialect { sqlite: &'static str },
}

impl Stmt {
    /// One text for all databases; `doing` says in errors what was being done and is different for every statement.
    pub const fn shared(doing: &'static str, text: &'static str) -> Self {
        Self { doing, text: Text::Shared(text) }
    }

    /// One text for each database; a comment beside it says why.
    pub const fn per_dialect(doing: &'static str, sqlite: &'static str) -> Self {
        Self { doing, text: Text::PerDialect { sqlite } }
    }

    /// What the statement does, in a few words.
    pub const fn doing(&self) -> &'static str {
        self.doing
    }

    /// Whether a part of it is repeated for a list.
    pub fn repeats(&self, dialect: Dialect) -> bool {
        self.text(dialect).contains("/*end*/")
    }

    fn text(&self, dialect: Dialect) -> &'static str {
        match (self.text, dialect) {
            (Text::Shared(text), _) => text,
            (Text::PerDialect { sqlite }, Dialect::Sqlite) => sqlite,
        }
    }
}

/// Statements as a database takes them: tokens filled in, lists written out, kept for the next time.
#[derive(Debug)]
pub struct Texts {
    dialect: Dialect,
    offset_us: AtomicI64,
    rendered: RwLock<HashMap<(&'static str, usize), Arc<str>>>,
}

impl Texts {
    /// Statements for one database.
    pub fn new(dialect: Dialect) -> Self {
        Self { dialect, offset_us: AtomicI64::new(0), rendered: RwLock::default() }
    }

    /// Whose SQL it is.
    pub const fn dialect(&self) -> Dialect {
        self.dialect
    }

    /// Moves what `/*now*/` means, for tests.
    pub fn advance_clock(&self, by: Duration) {
        let by = i64::try_from(by.as_micros()).unwrap_or(i64::MAX);
        let mut rendered = self.rendered.write().unwrap_or_else(PoisonError::into_inner);
        self.offset_us.fetch_add(by, Ordering::SeqCst);
        rendered.clear();
    }

    /// The text of a statement whose list, if it has one, holds `count` entries.
    pub fn render(&self, stmt: &Stmt, count: usize) -> Arc<str> {
        let key = (stmt.doing, count);
        if let Some(text) = self.rendered.read().unwrap_or_else(PoisonError::into_inner).get(&key) {
            return text.clone();
        }
        let mut rendered = self.rendered.write().unwrap_or_else(PoisonError::into_inner);
        let text: Arc<str> =
            render(stmt.text(self.dialect), self.dialect, self.offset_us.load(Ordering::SeqCst), count).into();
        rendered.insert(key, text.clone());
        text
    }
}

fn render(text: &str, dialect: Dialect, offset_us: i64, count: usize) -> String {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some((before, token, after)) = next_token(rest) {
        out.push_str(before);
        rest = after;
        let between = match token {
            "now" => {
                out.push_str(&dialect.now(offset_us));
                continue;
            }
            "for_update" => {
                out.push_str(dialect.for_update());
                continue;
            }
            "each" => ", ",
            "union" => " UNION ALL ",
            _ => {
                let state = token.strip_prefix("state:").and_then(|name| name.parse::<JobState>().ok());
                let state = state.unwrap_or_else(|| panic!("the token /*{token}*/ is one of those that Stmt lists"));
                let _ = write!(out, "'{state}'");
                continue;
            }
        };
        let (part, after) = rest.split_once("/*end*/").expect("a repeated part has an end");
        let part = render(part, dialect, offset_us, 1);
        for index in 0..count {
            if index > 0 {
                out.push_str(between);
            }
            out.push_str(&part);
        }
        rest = after;
    }
    out.push_str(rest);
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
    fn tokens_become_what_the_table_says() {
        let check = |text: &str, count, expected: &str| assert_eq!(render(text, Dialect::Sqlite, 0, count), expected);
        check("a = ?", 1, "a = ?");
        check("s = /*state:running*/ /*for_update*/", 1, "s = 'RUNNING' ");
        check("IN (/*each*/?/*end*/) AND b = ?", 3, "IN (?, ?, ?) AND b = ?");
        check(
            "/*union*/SELECT /*state:pending*/, ?/*end*/ LIMIT 1",
            2,
            "SELECT 'PENDING', ? UNION ALL SELECT 'PENDING', ? LIMIT 1",
        );
        assert!(render("/*now*/", Dialect::Sqlite, 7, 1).ends_with("+ 7)"));
    }
}
