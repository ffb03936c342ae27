//! The text files of the project.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};

use super::rust_source::RustSource;

/// A text file of the project.
pub(super) struct TextFile {
    /// From the root of the workspace, with forward slashes.
    pub(super) path: String,
    pub(super) text: String,
}

/// Every text file of the project, by path.
pub(super) struct Tree {
    pub(super) root: PathBuf,
    pub(super) files: Vec<TextFile>,
}

impl Tree {
    pub(super) fn read(root: &Path) -> Result<Self> {
        let mut files = Vec::new();
        walk(root, root, &mut files)?;
        files.sort_by(|a, b| a.path.cmp(&b.path));
        Ok(Self { root: root.to_owned(), files })
    }

    pub(super) fn with_extension(&self, extension: &str) -> impl Iterator<Item = &TextFile> {
        self.files.iter().filter(move |file| Path::new(&file.path).extension().is_some_and(|e| e == extension))
    }

    pub(super) fn file(&self, path: &str) -> Option<&TextFile> {
        self.files.iter().find(|file| file.path == path)
    }

    pub(super) fn rust_sources(&self) -> Vec<RustSource> {
        self.with_extension("rs").map(|file| RustSource::read(&file.path, &file.text)).collect()
    }
}

fn walk(root: &Path, directory: &Path, files: &mut Vec<TextFile>) -> Result<()> {
    for entry in fs::read_dir(directory).with_context(|| format!("cannot list {}", directory.display()))? {
        let entry = entry?;
        let (path, name) = (entry.path(), entry.file_name());
        if entry.file_type()?.is_dir() {
            // Builds and version control; `.ci` and `.cargo` are ours.
            let foreign = name == ".git" || path.join("CACHEDIR.TAG").exists();
            if !foreign {
                walk(root, &path, files)?;
            }
        } else if let Ok(text) = fs::read_to_string(&path) {
            let relative = path.strip_prefix(root).context("a file of the walk lies below its root")?;
            files.push(TextFile { path: relative.to_string_lossy().replace('\\', "/"), text });
        }
    }
    Ok(())
}
