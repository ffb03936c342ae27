//! What the core must not name: time and randomness come in as arguments, and it does no I/O.

use super::rust_source::RustSource;
use super::{Finding, Project};

const FORBIDDEN: &[&str] = &[
    "SystemTime::now",
    "Instant::now",
    "Timestamp::now",
    "Zoned::now",
    "new_v4",
    "tokio",
    "std::env",
    "std::fs",
    "std::net",
    "std::process",
    "std::thread",
];

pub(super) fn check(project: &Project<'_>) -> Vec<Finding> {
    project
        .sources
        .iter()
        .filter(|source| source.is_below("crates/ratchet-core/src") && !source.is_test())
        .flat_map(check_source)
        .map(Finding::Error)
        .collect()
}

fn check_source(source: &RustSource) -> Vec<String> {
    let mut found = Vec::new();
    for (line, code) in &source.code {
        for word in FORBIDDEN.iter().filter(|word| code.contains(**word)) {
            found.push(format!("{}:{line} names `{word}`; take what it gives as an argument", source.path));
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn clocks_are_found_in_code_but_not_in_comments_texts_or_tests() {
        let found = |text: &str| check_source(&RustSource::read("a.rs", text)).len();
        assert_eq!(found("let now = std::time::Instant::now();"), 1);
        assert_eq!(found("use tokio::time::sleep;"), 1);
        assert_eq!(found("// Instant::now\nlet a = \"Instant::now\";"), 0);
        assert_eq!(found("#[cfg(test)]\nmod tests {\n use tokio::test;\n}"), 0);
    }
}
