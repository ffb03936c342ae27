//! The table of loops, queues and buffers in ARCHITECTURE.md.

use std::sync::LazyLock;

use regex_lite::Regex;

use super::rust_source::RustSource;
use super::{Finding, Project};

const PAGE: &str = "ARCHITECTURE.md";
const HEADING: &str = "## Loops, queues and buffers";
/// Two printed lines.
const ROW_CHARS_MAX: usize = 220;
/// Paths of the table without a crate are below this folder.
const ENGINE: &str = "crates/ratchet-engine/src";
/// The suite, whose tests spawn what they like.
const SUITE: &str = "crates/ratchet-conformance";

pub(super) fn check(project: &Project<'_>) -> Vec<Finding> {
    let page = project.tree.file(PAGE).map_or("", |page| page.text.as_str());
    check_page(page, &project.sources).into_iter().map(Finding::Error).collect()
}

fn check_page(page: &str, sources: &[RustSource]) -> Vec<String> {
    let Some((_, table)) = page.split_once(HEADING) else {
        return vec![format!("{PAGE} lacks the section \"{HEADING}\"")];
    };
    let table = table.split("\n## ").next().unwrap_or(table);
    let named = paths(table);
    let long = table.lines().filter(|row| row.starts_with('|') && row.chars().count() > ROW_CHARS_MAX);
    let long = long.map(|row| format!("{PAGE}: a row has more than {ROW_CHARS_MAX} characters: {row}"));
    let is_source = |path: &String| sources.iter().any(|source| source.path == *path);
    let gone = named.iter().filter(|path| !is_source(path));
    let gone = gone.map(|path| format!("{PAGE}: the table of loops names {path}, which does not exist"));
    let unnamed = sources.iter().filter(|source| is_product(source) && !named.contains(&source.path));
    let unnamed = unnamed.filter_map(|source| {
        let line = first_spawn(source)?;
        Some(format!("{}:{line} spawns a task or a thread; give it a row in \"{HEADING}\" of {PAGE}", source.path))
    });
    long.chain(gone).chain(unnamed).collect()
}

/// The Rust files that the rows of the table name.
fn paths(table: &str) -> Vec<String> {
    static PATH: LazyLock<Regex> =
        LazyLock::new(|| Regex::new(r"`([\w/-]+\.rs)`").expect("the pattern is a constant and tested"));
    let rows = table.lines().filter(|line| line.starts_with('|'));
    let found = rows.flat_map(|row| PATH.captures_iter(row).map(|found| found[1].to_owned()));
    found.map(|path| if path.starts_with("crates/") { path } else { format!("{ENGINE}/{path}") }).collect()
}

fn is_product(source: &RustSource) -> bool {
    source.is_below("crates") && !source.is_below(SUITE) && source.path.contains("/src/") && !source.is_test()
}

/// The first line that calls something named `spawn…`.
fn first_spawn(source: &RustSource) -> Option<usize> {
    static SPAWN: LazyLock<Regex> = LazyLock::new(|| {
        Regex::new(r"(?:\.|::)spawn\w*(?:::<[^(]*>)?\(").expect("the pattern is a constant and tested")
    });
    source.code.iter().find(|(_, code)| SPAWN.is_match(code)).map(|(line, _)| *line)
}

#[cfg(test)]
mod tests {
    use super::*;

    const TABLE: &str = "## Loops, queues and buffers\n\n| what | where |\n|---|---|\n| pump | `pump/mod.rs` |\n\
                         | thread | `crates/a/src/thread.rs` |\n";

    #[test]
    fn every_file_that_spawns_has_a_row_and_every_row_a_file() {
        let check = |files: &[(&str, &str)], page: &str, expected: &[&str]| {
            let sources: Vec<_> = files.iter().map(|(path, text)| RustSource::read(path, text)).collect();
            let found = check_page(page, &sources);
            assert_eq!(found.len(), expected.len(), "{found:?}");
            for (found, expected) in found.iter().zip(expected) {
                assert!(found.contains(expected), "{found} lacks {expected}");
            }
        };
        let pump = ("crates/ratchet-engine/src/pump/mod.rs", "fn f() {\n tokio::spawn(g());\n}");
        let thread = ("crates/a/src/thread.rs", "fn f() { std::thread::Builder::new().spawn(g); }");
        check(&[pump, thread], TABLE, &[]);
        check(&[pump], TABLE, &["names crates/a/src/thread.rs, which does not exist"]);
        for code in ["x.spawn(g);", "tokio::spawn(g);", "runtime.spawn_blocking(g);", "set\n.spawn(g);"] {
            check(&[pump, thread, ("crates/a/src/new.rs", code)], TABLE, &["crates/a/src/new.rs:"]);
        }
        for code in
            ["fn spawn(task: Task) {}", "// x.spawn(g);", "#[cfg(test)]\nmod tests {\n fn f() { x.spawn(g); }\n}"]
        {
            check(&[pump, thread, ("crates/a/src/new.rs", code)], TABLE, &[]);
        }
        check(&[pump, thread, ("crates/ratchet-conformance/src/new.rs", "x.spawn(g);")], TABLE, &[]);
        check(&[pump, thread, ("crates/a/tests/it/new.rs", "x.spawn(g);")], TABLE, &[]);
        let long = format!("{TABLE}| {} |\n", "x".repeat(ROW_CHARS_MAX));
        check(&[pump, thread], &long, &["a row has more than 220 characters"]);
        check(&[pump, thread], "# A page\n", &["lacks the section"]);
        let below = format!("{TABLE}\n## More\n\n| other | `other.rs` |\n");
        check(&[pump, thread], &below, &[]);
    }
}
