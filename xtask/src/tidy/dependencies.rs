//! Dependencies between the crates, and who may name a driver.

use crate::workspace::Package;

use super::{Finding, Project};

/// What a crate may depend on, apart from third parties. Dev-dependencies are free.
const OWN: &[(&str, &[&str])] = &[
    ("ratchet-core", &[]),
    ("ratchet-macros", &[]),
    ("ratchet-engine", &["ratchet-core"]),
    ("ratchet-coordinator", &["ratchet-core"]),
    ("ratchet-conformance", &["ratchet-coordinator", "ratchet-core"]),
    ("ratchet-store-sql", &["ratchet-core"]),
    ("ratchet-store-pool", &["ratchet-core", "ratchet-store-sql"]),
    ("ratchet-store-sqlite", &["ratchet-core", "ratchet-store-pool", "ratchet-store-sql"]),
    ("ratchet-store-postgres", &["ratchet-coordinator", "ratchet-core", "ratchet-store-pool", "ratchet-store-sql"]),
    ("ratchet-store-mysql", &["ratchet-core", "ratchet-store-pool", "ratchet-store-sql"]),
    ("ratchet-coordinator-redis", &["ratchet-coordinator", "ratchet-core"]),
    (
        "ratchet",
        &[
            "ratchet-coordinator",
            "ratchet-coordinator-redis",
            "ratchet-core",
            "ratchet-engine",
            "ratchet-macros",
            "ratchet-store-mysql",
            "ratchet-store-postgres",
            "ratchet-store-sqlite",
        ],
    ),
    ("ratchet-cli", &["ratchet", "ratchet-core"]),
    (
        "ratchet-bench",
        &[
            "ratchet",
            "ratchet-core",
            "ratchet-store-mysql",
            "ratchet-store-postgres",
            "ratchet-store-sqlite",
            "ratchet-testdb",
        ],
    ),
    ("ratchet-chaos", &["ratchet", "ratchet-conformance", "ratchet-core", "ratchet-testdb"]),
    ("ratchet-testdb", &["ratchet-conformance", "ratchet-core", "ratchet-store-sql"]),
    ("xtask", &["ratchet-core", "ratchet-store-sql", "ratchet-testdb"]),
];

/// Third parties that only some crates may depend on, and why.
const FOREIGN: &[(&str, &[&str], &str)] = &[
    (
        "sqlx",
        &["ratchet-store-sqlite", "ratchet-store-postgres", "ratchet-store-mysql", "ratchet-bench"],
        "only driver crates name a driver",
    ),
    ("redis", &["ratchet-coordinator-redis"], "only driver crates name a driver"),
    (
        "tokio",
        &[
            "ratchet-engine",
            "ratchet-conformance",
            "ratchet-coordinator",
            "ratchet-store-pool",
            "ratchet-store-sqlite",
            "ratchet-store-postgres",
            "ratchet-store-mysql",
            "ratchet-coordinator-redis",
            "ratchet",
            "ratchet-cli",
            "ratchet-bench",
            "ratchet-chaos",
            "ratchet-testdb",
        ],
        "words, rules and SQL need no runtime",
    ),
    (
        "anyhow",
        &["ratchet-cli", "ratchet-bench", "ratchet-chaos", "ratchet-testdb", "xtask"],
        "a library has typed errors",
    ),
];

pub(super) fn check(project: &Project<'_>) -> Vec<Finding> {
    project.workspace.packages.iter().flat_map(check_package).map(Finding::Error).collect()
}

fn check_package(package: &Package) -> Vec<String> {
    let name = package.name.as_str();
    let Some((_, allowed)) = OWN.iter().find(|(own, _)| *own == name) else {
        return vec![format!("{name} is not in xtask/src/tidy/dependencies.rs; say there what it may depend on")];
    };
    let mut found = Vec::new();
    for dependency in package.dependencies.iter().filter(|dependency| dependency.kind.is_none()) {
        let on = dependency.name.as_str();
        if OWN.iter().any(|(own, _)| *own == on) && !allowed.contains(&on) {
            found.push(format!("{name} depends on {on}; it may depend on {allowed:?}"));
        }
        for (third_party, users, why) in FOREIGN {
            if on == *third_party && !users.contains(&name) {
                found.push(format!("{name} depends on {on}; {why}"));
            }
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::workspace::Dependency;

    #[test]
    fn dependencies_against_the_direction_are_found() {
        let check = |name: &str, on: &str, kind: Option<&str>, expected: &str| {
            let dependency = Dependency { name: on.to_owned(), kind: kind.map(str::to_owned) };
            let package = Package {
                name: name.to_owned(),
                manifest_path: std::path::PathBuf::new(),
                dependencies: vec![dependency],
                targets: Vec::new(),
            };
            let found = check_package(&package).join("\n");
            assert!(if expected.is_empty() { found.is_empty() } else { found.contains(expected) }, "{found:?}");
        };
        check("ratchet-engine", "ratchet-core", None, "");
        check("ratchet-engine", "ratchet-store-sqlite", None, "may depend on");
        check("ratchet-engine", "ratchet-store-sqlite", Some("dev"), "");
        check("ratchet-core", "tokio", None, "no runtime");
        check("ratchet-core", "tokio", Some("dev"), "");
        check("ratchet-store-sql", "sqlx", None, "only driver crates");
        check("ratchet-store-sqlite", "ratchet-engine", None, "may depend on");
        check("ratchet-engine", "anyhow", None, "typed errors");
        check("ratchet-cli", "sqlx", None, "only driver crates");
        check("ratchet-new", "serde", None, "say there what it may depend on");
    }
}
