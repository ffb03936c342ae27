//! Pages that are generated or can be checked.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;
use std::sync::LazyLock;

use anyhow::{Context, Result};
use ratchet_core::transition;
use regex_lite::Regex;

use super::tree::TextFile;
use super::{Finding, Project};
use crate::test::pages;
use crate::workspace::Workspace;

const STATE_MACHINE: &str = "docs/state-machine.md";
const OPTIONS: &str = "docs/guide/operations.md";
const BUILDER: &str = "crates/ratchet-engine/src/node/builder.rs";
const METRICS: &str = "crates/ratchet-engine/src/observe/metrics.rs";
const COUNTERS: &str = "crates/ratchet-engine/src/observe/stats.rs";
const SNIPPET_LINES_MAX: usize = 30;

/// Writes the generated pages.
pub(super) fn write_generated(workspace: &Workspace) -> Result<()> {
    let path = workspace.root.join(STATE_MACHINE);
    fs::write(&path, transition::markdown()).with_context(|| format!("cannot write {}", path.display()))
}

pub(super) fn state_machine(project: &Project<'_>) -> Vec<Finding> {
    let fresh = project.tree.file(STATE_MACHINE).is_some_and(|page| page.text == transition::markdown());
    let stale = || Finding::Error(format!("{STATE_MACHINE} is stale; run `cargo xtask tidy --fix`"));
    (!fresh).then(stale).into_iter().collect()
}

/// Every option of the builder stands in the guide, spelled as a call.
pub(super) fn options(project: &Project<'_>) -> Vec<Finding> {
    static OPTION: LazyLock<Regex> = LazyLock::new(|| pattern(r"pub fn (\w+)(?:<[^(]*>)?\(mut self"));
    let (Some(builder), Some(guide)) = (project.tree.file(BUILDER), project.tree.file(OPTIONS)) else {
        return vec![Finding::Error(format!("{BUILDER} or {OPTIONS} is missing"))];
    };
    let names = OPTION.captures_iter(&builder.text).map(|found| found[1].to_owned());
    let told = |name: &String| ["(", "::<"].iter().any(|call| guide.text.contains(&format!("`{name}{call}")));
    let absent = names.filter(|name| !told(name));
    absent.map(|name| Finding::Error(format!("{OPTIONS} lacks the builder's option `{name}(…)`"))).collect()
}

/// Every metric has its row in the guide, and every row is a metric.
pub(super) fn metrics(project: &Project<'_>) -> Vec<Finding> {
    let file = |path: &str| project.tree.file(path).map_or("", |file| file.text.as_str());
    let (named, listed) = (named_metrics(file(METRICS), file(COUNTERS)), listed_metrics(file(OPTIONS)));
    let missing = named.difference(&listed).map(|name| format!("{OPTIONS} lacks the metric `{name}`"));
    let unknown = listed
        .difference(&named)
        .map(|name| format!("{OPTIONS} lists the metric `{name}`, which is in neither {METRICS} nor {COUNTERS}"));
    missing.chain(unknown).map(Finding::Error).collect()
}

/// The metrics of the code: constants, and the counters of a node.
fn named_metrics(constants: &str, counters: &str) -> BTreeSet<String> {
    static CONSTANT: LazyLock<Regex> = LazyLock::new(|| pattern(r#"pub const \w+: &str =\s+"(ratchet\.[\w.]+)";"#));
    static COUNTER: LazyLock<Regex> = LazyLock::new(|| pattern(r"(?m)^    (\w+)$"));
    let counters = counters.split_once("\ncounters! {").and_then(|(_, rest)| rest.split_once("\n}"));
    let counters = COUNTER.captures_iter(counters.map_or("", |(block, _)| block));
    let counters = counters.map(|found| format!("ratchet.node.{}", &found[1]));
    CONSTANT.captures_iter(constants).map(|found| found[1].to_owned()).chain(counters).collect()
}

/// The metrics in the first column of the guide's table. After the first of a row, names are given without what they share
/// with it.
fn listed_metrics(guide: &str) -> BTreeSet<String> {
    static NAME: LazyLock<Regex> = LazyLock::new(|| pattern(r"`([\w.…]+)`"));
    let mut listed = BTreeSet::new();
    for row in guide.lines().filter_map(|line| line.strip_prefix("| `ratchet.")) {
        let cell = row.split_once(" |").map_or(row, |(cell, _)| cell);
        let cell = format!("`ratchet.{cell}");
        let mut names = NAME.captures_iter(&cell).map(|found| found[1].to_owned());
        let Some(first) = names.next() else { continue };
        let Some((shared, _)) = first.rsplit_once('.') else { continue };
        listed.extend(names.map(|name| format!("{shared}.{}", name.trim_start_matches('.'))));
        if !first.ends_with('…') {
            listed.insert(first);
        }
    }
    listed
}

/// Relative links, and paths in backticks that begin at the root, lead to something that exists.
pub(super) fn paths(project: &Project<'_>) -> Vec<Finding> {
    static LINK: LazyLock<Regex> = LazyLock::new(|| pattern(r"\]\(([^)#\s]+)(?:#[^)]*)?\)"));
    static QUOTED: LazyLock<Regex> = LazyLock::new(|| pattern(r"`((?:crates|docs|examples|xtask|bench)/[\w./-]+)`"));
    let mut findings = Vec::new();
    for page in project.tree.with_extension("md") {
        let folder = Path::new(&page.path).parent().unwrap_or(Path::new(""));
        let links = LINK.captures_iter(&page.text).map(|found| found[1].to_owned());
        let relative = links.filter(|link| !link.contains("://") && !link.starts_with("mailto:"));
        let quoted = QUOTED.captures_iter(&page.text).map(|found| found[1].to_owned());
        let targets = relative.map(|link| folder.join(link)).chain(quoted.map(Into::into));
        for target in targets.filter(|target| !project.tree.root.join(target).exists()) {
            findings.push(Finding::Error(format!("{} names {}, which does not exist", page.path, target.display())));
        }
    }
    findings
}

pub(super) fn readme_snippet(project: &Project<'_>) -> Vec<Finding> {
    let snippet = project.tree.file("README.md").and_then(|page| pages::snippet(&page.text));
    match snippet.map(|snippet| snippet.lines().count()) {
        None => vec![Finding::Error("README.md has no ```rust block with a `fn main`".to_owned())],
        Some(lines) if lines > SNIPPET_LINES_MAX => {
            vec![Finding::Error(format!(
                "README.md: the first snippet has {lines} lines; the limit is {SNIPPET_LINES_MAX}"
            ))]
        }
        Some(_) => Vec::new(),
    }
}

/// No file leans on something that a reader of the project cannot see: folders beside it, numbers of a tracker.
pub(super) fn stands_alone(project: &Project<'_>) -> Vec<Finding> {
    project.tree.files.iter().filter(|file| file.path != "Cargo.lock").flat_map(leans).map(Finding::Error).collect()
}

fn leans(file: &TextFile) -> Vec<String> {
    static OUTSIDE: LazyLock<Regex> = LazyLock::new(|| pattern(r"\.\./shared|(?i)\bissues? #?\d+\b|(?:^|[\s(])#\d+\b"));
    let mut found = Vec::new();
    for (at, line) in file.text.lines().enumerate() {
        if let Some(hit) = OUTSIDE.find(line) {
            let hit = hit.as_str().trim();
            found.push(format!("{}:{} mentions {hit:?}; say what it means instead", file.path, at + 1));
        }
    }
    found
}

fn pattern(text: &str) -> Regex {
    Regex::new(text).expect("the patterns are constants and tested")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn metrics_are_read_from_the_code_and_from_the_guide() {
        let set = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect::<BTreeSet<_>>();
        let constants = "    pub const A: &str = \"ratchet.jobs.started\";\n    pub const B: &str =\n        \"ratchet.jobs.wait\";\n";
        let counters = "macro_rules! counters {\n    x\n}\ncounters! {\n    /// Jobs.\n    claimed\n}\nother";
        assert_eq!(
            named_metrics(constants, counters),
            set(&["ratchet.jobs.started", "ratchet.jobs.wait", "ratchet.node.claimed"])
        );
        let guide = "| `ratchet.jobs.a`, `.b` | counters | `kind` |\n| `other` |\n| `ratchet.node.…`: `claimed`, `turns` | c | |";
        let listed = ["ratchet.jobs.a", "ratchet.jobs.b", "ratchet.node.claimed", "ratchet.node.turns"];
        assert_eq!(listed_metrics(guide), set(&listed));
    }

    #[test]
    fn leaning_on_what_is_elsewhere_is_found() {
        let check = |text: &str, expected: usize| {
            let file = TextFile { path: "a.md".to_owned(), text: text.to_owned() };
            assert_eq!(leans(&file).len(), expected, "{text}");
        };
        let (number, folder) = (7, "shared");
        check(&format!("see ../{folder}/x.md"), 1);
        check(&format!("see issue {number} and Issue #{number}"), 1);
        check(&format!("fixed (#{number})"), 1);
        check("https://github.com/launchbadge/sqlx/issues/1220", 0);
        check("#[job] r#\"x\"# \"#1a2b3c\" the issuer 5", 0);
    }
}
