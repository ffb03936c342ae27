//! One word for one thing: the spelling of *cancel*, phrases that a reader stumbles over, public names of types.

use std::collections::BTreeMap;
use std::fs;

use anyhow::{Context, Result};

use super::tree::Tree;
use super::{Finding, Project};
use crate::workspace::Workspace;

/// The number of phrases that are left in the tree. It only falls.
const PHRASES_LEFT: &str = "xtask/phrases-left.txt";

/// This file, which names what it forbids.
const SELF: &str = "xtask/src/tidy/language.rs";

/// Phrases to replace by the term that a reader would search for.
const PHRASES: &[&str] = &[
    "a look",
    "anew",
    "came to be",
    "comes of it",
    "figures",
    "for ever",
    "for good",
    "goes back",
    "hang on",
    "hang together",
    "hangs on",
    "he",
    "hears of",
    "him",
    "his",
    "how often it is",
    "is looked for",
    "is no",
    "is put off",
    "is told",
    "let go",
    "looked at",
    "looks at",
    "no such",
    "nobody",
    "none that",
    "put off",
    "so long as",
    "so many",
    "somebody",
    "stands for",
    "stands in",
    "tells",
    "told",
    "was told",
    "what became of",
    "what came of",
    "whoever",
    "word of",
];

/// Methods of a dependency that are spelled otherwise.
const FOREIGN_SPELLING: &[&str] = &[".cancelled()", ".is_cancelled()", "run_until_cancelled("];

pub(super) fn cancel(project: &Project<'_>) -> Vec<Finding> {
    let product = project.tree.with_extension("rs").filter(|file| file.path.starts_with("crates/"));
    let lines = product.flat_map(|file| file.text.lines().enumerate().map(|(at, line)| (&file.path, at + 1, line)));
    let misspelled = lines.filter(|(_, _, line)| has_british_cancel(line));
    misspelled.map(|(path, line, _)| Finding::Error(format!("{path}:{line} spells canceled with two l"))).collect()
}

fn has_british_cancel(line: &str) -> bool {
    let foreign = |line: String, call: &&str| line.replace(call, "");
    let line = FOREIGN_SPELLING.iter().fold(line.to_owned(), foreign).to_lowercase();
    ["cancelled", "cancelling", "canceller"].iter().any(|word| line.contains(word))
}

pub(super) fn phrases(project: &Project<'_>) -> Vec<Finding> {
    let (count, left) = (count(&project.tree), project.tree.file(PHRASES_LEFT));
    let Some(left) = left.and_then(|file| file.text.trim().parse::<usize>().ok()) else {
        return vec![Finding::Error(format!("{PHRASES_LEFT} holds no number"))];
    };
    let most: Vec<String> =
        most_frequent(&project.tree).into_iter().map(|(phrase, n)| format!("{phrase} {n}")).collect();
    match count {
        _ if count > left => vec![Finding::Error(format!(
            "there are {count} phrases of the list in {SELF}, and {left} were left; say it in plain words ({})",
            most.join(", ")
        ))],
        _ if count < left => {
            vec![Finding::Error(format!(
                "{PHRASES_LEFT} says {left}, and {count} are left; run `cargo xtask tidy --fix`"
            ))]
        }
        _ => Vec::new(),
    }
}

/// Lowers the number of phrases that are left, if it has fallen.
pub(super) fn lower(workspace: &Workspace) -> Result<()> {
    let path = workspace.root.join(PHRASES_LEFT);
    let left: usize = fs::read_to_string(&path).unwrap_or_default().trim().parse().unwrap_or(usize::MAX);
    let count = count(&Tree::read(&workspace.root)?);
    if count < left {
        fs::write(&path, format!("{count}\n")).with_context(|| format!("cannot write {}", path.display()))?;
    }
    Ok(())
}

fn prose(tree: &Tree) -> impl Iterator<Item = &str> {
    let files = tree.with_extension("rs").chain(tree.with_extension("md"));
    files.filter(|file| file.path != SELF).map(|file| file.text.as_str())
}

fn count(tree: &Tree) -> usize {
    prose(tree).map(|text| PHRASES.iter().map(|phrase| occurrences(text, phrase)).sum::<usize>()).sum()
}

fn most_frequent(tree: &Tree) -> Vec<(&'static str, usize)> {
    let mut by_phrase: Vec<(&str, usize)> =
        PHRASES.iter().map(|phrase| (*phrase, prose(tree).map(|text| occurrences(text, phrase)).sum())).collect();
    by_phrase.sort_by_key(|(_, count)| std::cmp::Reverse(*count));
    by_phrase.truncate(8);
    by_phrase
}

/// Counts a phrase where it is not a part of a longer word.
fn occurrences(text: &str, phrase: &str) -> usize {
    let is_word = |c: char| c.is_alphanumeric() || c == '_';
    let alone =
        |(at, found): &(usize, &str)| !text[..*at].ends_with(is_word) && !text[at + found.len()..].starts_with(is_word);
    text.match_indices(phrase).filter(alone).count()
}

/// Names that each driver has on purpose: users import one of them.
const ONE_PER_DRIVER: &[&str] = &["CompleteIn", "SubmitIn"];

pub(super) fn public_types(project: &Project<'_>) -> Vec<Finding> {
    let mut defined: BTreeMap<&str, Vec<String>> = BTreeMap::new();
    let sources = project.sources.iter().filter(|source| source.path.starts_with("crates/") && !source.is_test());
    for source in sources {
        for (line, code) in &source.code {
            if let Some(name) = public_type(code).filter(|name| !ONE_PER_DRIVER.contains(name)) {
                defined.entry(name).or_default().push(format!("{}:{line}", source.path));
            }
        }
    }
    let twice = defined.into_iter().filter(|(_, places)| places.len() > 1);
    twice.map(|(name, places)| Finding::Error(format!("{name} is defined in {}", places.join(" and ")))).collect()
}

/// Returns the name of the public type that a line defines.
fn public_type(code: &str) -> Option<&str> {
    let rest = code.trim_start().strip_prefix("pub ")?;
    let name = ["struct ", "enum ", "trait ", "type ", "union "].iter().find_map(|word| rest.strip_prefix(word))?;
    let end = name.find(|c: char| !c.is_alphanumeric() && c != '_').unwrap_or(name.len());
    Some(&name[..end]).filter(|name| name.starts_with(char::is_uppercase))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cancel_has_one_l_but_for_what_a_dependency_calls_so() {
        assert!(has_british_cancel("// the job was cancelled"));
        assert!(has_british_cancel("Cancelled,"));
        assert!(has_british_cancel("token.cancelled().await; // cancelling"));
        assert!(!has_british_cancel("token.cancelled().await; right.is_cancelled()"));
        assert!(!has_british_cancel("canceled, cancellation"));
    }

    #[test]
    fn a_phrase_is_counted_as_whole_words() {
        let check = |text: &str, phrase: &str, expected| assert_eq!(occurrences(text, phrase), expected, "{text}");
        check("whoever asks, whoever answers", "whoever", 2);
        check("the cache, and he", "he", 1);
        check("untold", "told", 0);
        check("is_told", "told", 0);
    }

    #[test]
    fn a_public_type_is_found_by_its_definition() {
        let check = |code: &str, expected: Option<&str>| assert_eq!(public_type(code), expected, "{code}");
        check("pub struct Page<T> {", Some("Page"));
        check("    pub enum Kind {", Some("Kind"));
        check("pub(crate) struct Page;", None);
        check("pub fn page() {}", None);
        check("pub type out = u8;", None);
    }
}
