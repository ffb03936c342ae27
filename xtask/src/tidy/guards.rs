//! Where panics are caught.

use super::rust_source::RustSource;
use super::{Finding, Project};

/// The files that catch panics. Everything else calls the guard of its crate, which logs and counts them.
const GUARDS: &[&str] = &["crates/ratchet-engine/src/guard.rs", "crates/ratchet-coordinator/src/hub.rs"];

/// The suite, whose tests panic on purpose.
const SUITE: &str = "crates/ratchet-conformance";

pub(super) fn check(project: &Project<'_>) -> Vec<Finding> {
    check_sources(&project.sources, GUARDS).into_iter().map(Finding::Error).collect()
}

fn check_sources(sources: &[RustSource], guards: &[&str]) -> Vec<String> {
    let product = sources.iter().filter(|source| {
        source.is_below("crates") && !source.is_below(SUITE) && source.path.contains("/src/") && !source.is_test()
    });
    let first_catch =
        |source: &RustSource| source.code.iter().find(|(_, code)| code.contains("catch_unwind")).map(|(line, _)| *line);
    let mut catching: Vec<(&str, usize)> =
        product.filter_map(|source| Some((source.path.as_str(), first_catch(source)?))).collect();
    let unused = guards.iter().filter(|guard| !catching.iter().any(|(path, _)| path == *guard));
    let mut found: Vec<String> =
        unused.map(|guard| format!("{guard} catches no panics; take it from the list of guards")).collect();
    catching.retain(|(path, _)| !guards.contains(path));
    found.extend(catching.into_iter().map(|(path, line)| format!("{path}:{line} catches panics; call the guard")));
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn panics_are_caught_by_the_guards_alone_and_by_each_of_them() {
        let catches = "use std::panic::catch_unwind;";
        let check = |files: &[(&str, &str)], expected: &[&str]| {
            let sources: Vec<_> = files.iter().map(|(path, text)| RustSource::read(path, text)).collect();
            assert_eq!(check_sources(&sources, &["crates/a/src/guard.rs"]), expected, "{files:?}");
        };
        let guard = ("crates/a/src/guard.rs", catches);
        check(&[guard], &[]);
        check(
            &[guard, ("crates/a/src/b.rs", "fn f() {}\nx.catch_unwind();")],
            &["crates/a/src/b.rs:2 catches panics; call the guard"],
        );
        check(
            &[guard, ("crates/a/src/b.rs", "// catch_unwind\n#[cfg(test)]\nmod tests {\n use catch_unwind;\n}")],
            &[],
        );
        check(&[guard, ("crates/a/tests/it/b.rs", catches), ("bench/src/b.rs", catches)], &[]);
        check(&[guard, ("crates/ratchet-conformance/src/b.rs", catches)], &[]);
        check(&[], &["crates/a/src/guard.rs catches no panics; take it from the list of guards"]);
    }
}
