//! What string literals must not hold.

use std::sync::LazyLock;

use ratchet_core::JobState;
use regex_lite::Regex;

use super::rust_source::RustSource;
use super::{Finding, Project};

/// The only file that spells the states.
const STATES: &str = "crates/ratchet-core/src/job/state.rs";

/// Who speaks to databases without Ratchet: benchmarks, and what fills databases for tests.
const BESIDE: [&str; 2] = ["bench", "testdb"];

/// State names as data: a literal that is one, or that quotes one as SQL does. Prose may speak of them.
pub(super) fn state_names(project: &Project<'_>) -> Vec<Finding> {
    let beside = |source: &RustSource| BESIDE.iter().any(|folder| source.is_below(folder));
    let may = |source: &RustSource| source.path == STATES || beside(source) || source.is_test();
    let sources = project.sources.iter().filter(|source| !may(source));
    sources.flat_map(|source| literals(source, is_state_name, "spells a state; use JobState")).collect()
}

fn is_state_name(literal: &str) -> bool {
    JobState::ALL.iter().any(|state| literal == state.as_str() || literal.contains(&format!("'{state}'")))
}

/// SQL outside the crates whose business it is; examples have statements of their own.
pub(super) fn sql(project: &Project<'_>) -> Vec<Finding> {
    let may = |source: &RustSource| {
        let own = BESIDE.iter().chain(&["examples"]).any(|folder| source.is_below(folder));
        own || source.path.starts_with("crates/ratchet-store-")
    };
    let sources = project.sources.iter().filter(|source| !may(source) && !source.is_test());
    sources.flat_map(|source| literals(source, is_sql, "holds SQL; it belongs in crates/ratchet-store-sql")).collect()
}

fn is_sql(literal: &str) -> bool {
    static SQL: LazyLock<Regex> = LazyLock::new(|| {
        Regex::new(r"\b(SELECT\s.+\sFROM|INSERT\s+INTO|UPDATE\s.+\sSET|DELETE\s+FROM|CREATE\s+(TABLE|INDEX)|PRAGMA)\s")
            .expect("the pattern is a constant and tested")
    });
    SQL.is_match(&literal.replace('\n', " "))
}

fn literals(source: &RustSource, wrong: impl Fn(&str) -> bool, why: &str) -> Vec<Finding> {
    let found = source.literals.iter().filter(|(_, literal)| wrong(literal));
    found.map(|(line, literal)| Finding::Error(format!("{}:{line} {literal:?} {why}", source.path))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_state_name_is_data_or_prose() {
        let pending = JobState::Pending;
        assert!(is_state_name(pending.as_str()));
        assert!(is_state_name(&format!("WHERE status = '{pending}'")));
        assert!(!is_state_name(&format!("suspends a {pending} job")));
    }

    #[test]
    fn sql_is_told_from_english() {
        let check = |text: &str, expected: bool| assert_eq!(is_sql(text), expected, "{text}");
        check("SELECT a,\n b FROM t WHERE x = ?", true);
        check("UPDATE t SET a = 1", true);
        check("DELETE FROM t WHERE a = 1", true);
        check("INSERT INTO t VALUES (1)", true);
        check("select one from the list", false);
        check("Update the set of tags", false);
    }
}
