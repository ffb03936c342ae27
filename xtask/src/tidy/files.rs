//! How long a file is, and what it is called.

use std::path::Path;

use super::{Finding, Project};

/// Lines of code from which a file probably has a second idea.
const LINES_REMARK: usize = 400;
/// Lines of code that no file needs.
const LINES_MAX: usize = 500;

/// Names that say nothing about what is inside.
const EMPTY_NAMES: &[&str] = &["common", "helper", "helpers", "manager", "misc", "types", "util", "utils"];

pub(super) fn sizes(project: &Project<'_>) -> Vec<Finding> {
    let mut findings = Vec::new();
    for source in &project.sources {
        let lines = source.lines_of_code();
        let text = format!("{} has {lines} lines of code; look for its second idea", source.path);
        if lines > LINES_MAX {
            findings.push(Finding::Error(format!("{text} (the limit is {LINES_MAX})")));
        } else if lines > LINES_REMARK {
            findings.push(Finding::Remark(text));
        }
    }
    findings
}

/// Folders that are divided into rooms, and the number of files that may lie beside the rooms.
const ROOMS: &[&str] = &["crates/ratchet-core/src", "crates/ratchet-engine/src", "crates/ratchet-store-sql/src"];
const FILES_BESIDE_ROOMS_MAX: usize = 14;

pub(super) fn rooms(project: &Project<'_>) -> Vec<Finding> {
    let crowded = ROOMS.iter().filter_map(|room| {
        let inside = |path: &str| path.strip_prefix(room).is_some_and(|rest| rest.matches('/').count() == 1);
        let files = project.sources.iter().filter(|source| inside(&source.path)).count();
        (files > FILES_BESIDE_ROOMS_MAX).then(|| {
            Finding::Error(format!("{room} has {files} files beside its rooms; the limit is {FILES_BESIDE_ROOMS_MAX}"))
        })
    });
    crowded.collect()
}

pub(super) fn names(project: &Project<'_>) -> Vec<Finding> {
    let empty = |path: &&str| {
        // The parts of a path below the crate's own folder: files and modules.
        let stem = Path::new(path).with_extension("");
        stem.iter().any(|part| EMPTY_NAMES.iter().any(|name| part == *name))
    };
    let paths = project.sources.iter().map(|source| source.path.as_str());
    paths.filter(empty).map(|path| Finding::Error(format!("{path} is named for nothing that it holds"))).collect()
}
