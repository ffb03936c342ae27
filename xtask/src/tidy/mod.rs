//! `cargo xtask tidy`: the rules of ARCHITECTURE.md and CONVENTIONS.md that a compiler does not check.

mod core_purity;
mod dependencies;
mod docs;
mod files;
mod guards;
mod language;
mod literals;
mod loops;
mod rust_source;
mod sql;
mod tree;

use anyhow::{Result, ensure};

use crate::workspace::Workspace;
use rust_source::RustSource;
use tree::Tree;

/// What a check looks at: every text file of the project, the Rust ones taken apart.
struct Project<'a> {
    workspace: &'a Workspace,
    tree: Tree,
    sources: Vec<RustSource>,
}

/// Something that a check found.
enum Finding {
    /// It must be changed.
    Error(String),
    /// It is worth a look.
    Remark(String),
}

type Check = fn(&Project<'_>) -> Vec<Finding>;

/// Every check, with the rule that it is for.
const CHECKS: &[(&str, Check)] = &[
    ("dependencies point one way", dependencies::check),
    ("the core reads no clock, spawns nothing, opens nothing", core_purity::check),
    ("states are named in state.rs alone", literals::state_names),
    ("only stores hold SQL", literals::sql),
    ("panics are caught by the guards alone", guards::check),
    ("what runs on has a row in the table of loops", loops::check),
    ("a file has one idea", files::sizes),
    ("a file is named for what it holds", files::names),
    ("rooms have few files", files::rooms),
    ("canceled is spelled with one l", language::cancel),
    ("phrases that a reader stumbles over become fewer", language::phrases),
    ("a public type has a name of its own", language::public_types),
    ("the state machine's page is fresh", docs::state_machine),
    ("docs/sql and the schema scripts show the SQL as it is", sql::check),
    ("every option of the builder is in the guide", docs::options),
    ("every metric is in the guide", docs::metrics),
    ("links and paths in the docs lead somewhere", docs::paths),
    ("the README's first snippet is short", docs::readme_snippet),
    ("the project stands on its own", docs::stands_alone),
];

/// Runs every check; with `fix`, writes generated pages first.
pub(crate) fn run(workspace: &Workspace, fix: bool) -> Result<()> {
    if fix {
        docs::write_generated(workspace)?;
        sql::write(workspace)?;
        language::lower(workspace)?;
    }
    let tree = Tree::read(&workspace.root)?;
    let sources = tree.rust_sources();
    let project = Project { workspace, tree, sources };
    let mut errors = 0;
    for (rule, check) in CHECKS {
        let findings = check(&project);
        let failed = findings.iter().any(|finding| matches!(finding, Finding::Error(_)));
        println!("{} {rule}", if failed { "✗" } else { "✓" });
        for finding in findings {
            match finding {
                Finding::Error(text) => {
                    errors += 1;
                    println!("    error: {text}");
                }
                Finding::Remark(text) => println!("    remark: {text}"),
            }
        }
    }
    ensure!(errors == 0, "tidy found {errors} errors");
    Ok(())
}
