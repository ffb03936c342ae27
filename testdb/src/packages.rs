//! The servers' programs, and Debian's packages that bring them.

use std::collections::BTreeSet;
use std::env;
use std::ffi::OsString;
use std::fs::{self, File, OpenOptions};
use std::io::Write;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail, ensure};

use crate::account::own_uid;
use crate::kind::Kind;
use crate::site::finish;

/// Where Debian puts PostgreSQL's programs, each version below a folder of its own.
const POSTGRESQL: &str = "/usr/lib/postgresql";
/// Servers are often here, where the `PATH` of an ordinary user does not look.
const SBIN: &[&str] = &["/usr/local/sbin", "/usr/sbin", "/sbin"];
/// Only one install at a time may move the files below.
const LOCK: &str = "/run/ratchet-db-install.lock";
/// Debian's maintainer scripts ask it before they start a service; 101 says no.
const POLICY: &str = "/usr/sbin/policy-rc.d";
const POLICY_TEXT: &str = "#!/bin/sh\n# For the time of an install by `cargo xtask db`: no service starts.\nexit 101\n";
/// PostgreSQL's package makes a database of its own unless this says otherwise.
const CLUSTERS: &str = "/etc/postgresql-common/createcluster.conf";
const CLUSTERS_TEXT: &str =
    "# `cargo xtask db` installed PostgreSQL for private servers.\ncreate_main_cluster = false\n";

/// Makes sure that the programs of these servers are there, if need be by installing packages.
///
/// # Errors
///
/// If some are missing and cannot be installed: we are not root, there is no `apt-get`, or it failed. The text names the
/// packages.
pub fn install(kinds: &[Kind]) -> Result<()> {
    if missing(kinds).is_empty() {
        return Ok(());
    }
    let _lock = if own_uid()? == 0 { Some(lock()?) } else { None };
    // Another process may have done it while we waited.
    let packages = missing(kinds);
    if packages.is_empty() {
        return Ok(());
    }
    let names = packages.iter().copied().collect::<Vec<_>>().join(" ");
    let apt_get = program("apt-get").ok().filter(|_| own_uid().is_ok_and(|uid| uid == 0));
    let Some(apt_get) = apt_get else {
        bail!("these packages are missing, and only root on Debian can install them: `apt-get install {names}`");
    };
    eprintln!("installing {names}");
    create_if_absent(Path::new(CLUSTERS), CLUSTERS_TEXT, 0o644)?;
    let services = NoServices::begin(Path::new(POLICY))?;
    let done = apt_install(&apt_get, &packages).with_context(|| format!("cannot install {names}"));
    services.end()?;
    done?;
    let rest = missing(kinds);
    ensure!(rest.is_empty(), "apt-get installed {names}, but still there are no programs of {rest:?}");
    Ok(())
}

/// The path of a program, looked for where servers are.
pub(crate) fn program(name: &str) -> Result<PathBuf> {
    let found = directories().map(|directory| directory.join(name)).find(|path| path.is_file());
    found.with_context(|| format!("there is no program {name} in {}", path().display()))
}

/// The directories of [`program`] as a value for `PATH`.
pub(crate) fn path() -> OsString {
    env::join_paths(directories()).expect("they came from a PATH, or are constants without a colon")
}

fn directories() -> impl Iterator<Item = PathBuf> {
    // Before the PATH: there, Debian has wrappers that first look for clusters.
    let versions = postgresql_versions().into_iter().map(|version| format!("{POSTGRESQL}/{version}/bin").into());
    let path = env::var_os("PATH").unwrap_or_else(|| "/usr/local/bin:/usr/bin:/bin".into());
    let path: Vec<PathBuf> = env::split_paths(&path).collect();
    versions.chain(path).chain(SBIN.iter().map(PathBuf::from))
}

/// The newest first.
fn postgresql_versions() -> Vec<u32> {
    let entries = fs::read_dir(POSTGRESQL).into_iter().flatten().flatten();
    let mut versions: Vec<u32> = entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok()).collect();
    versions.sort_unstable_by(|a, b| b.cmp(a));
    versions
}

fn missing(kinds: &[Kind]) -> BTreeSet<&'static str> {
    let programs = kinds.iter().flat_map(|kind| kind.recipe().programs());
    programs.filter(|(name, _)| program(name).is_err()).map(|(_, package)| *package).collect()
}

fn lock() -> Result<File> {
    let file = File::create(LOCK).with_context(|| format!("cannot write {LOCK}"))?;
    file.lock().with_context(|| format!("cannot lock {LOCK}"))?;
    Ok(file)
}

/// The lists of packages may be old or absent, so a failure is tried again with new ones.
fn apt_install(apt_get: &Path, packages: &BTreeSet<&str>) -> Result<()> {
    let apt_get = || {
        let mut command = Command::new(apt_get);
        command.env("DEBIAN_FRONTEND", "noninteractive").args(["--option", "DPkg::Lock::Timeout=300"]);
        command
    };
    let install = || finish(apt_get().args(["install", "--yes", "--no-install-recommends"]).args(packages));
    if install().is_ok() {
        return Ok(());
    }
    finish(apt_get().arg("update"))?;
    install()
}

/// While it exists, packages that are installed start no services.
struct NoServices<'a> {
    policy: &'a Path,
    /// Whether the policy is ours to remove: ours of now, or of a run that was killed.
    is_ours: bool,
}

impl<'a> NoServices<'a> {
    fn begin(policy: &'a Path) -> Result<Self> {
        create_if_absent(policy, POLICY_TEXT, 0o755)?;
        let is_ours = fs::read(policy).is_ok_and(|text| text == POLICY_TEXT.as_bytes());
        Ok(Self { policy, is_ours })
    }

    fn end(self) -> Result<()> {
        if self.is_ours {
            let policy = self.policy;
            fs::remove_file(policy)
                .with_context(|| format!("cannot remove {}, which forbids services to start", policy.display()))?;
        }
        Ok(())
    }
}

fn create_if_absent(path: &Path, text: &str, mode: u32) -> Result<()> {
    if let Some(parent) = path.parent() {
        fs::create_dir_all(parent).with_context(|| format!("cannot make {}", parent.display()))?;
    }
    match OpenOptions::new().write(true).create_new(true).mode(mode).open(path) {
        Ok(mut file) => file.write_all(text.as_bytes()).with_context(|| format!("cannot write {}", path.display())),
        Err(error) if error.kind() == std::io::ErrorKind::AlreadyExists => Ok(()),
        Err(error) => Err(error).with_context(|| format!("cannot make {}", path.display())),
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    #[test]
    fn services_are_forbidden_for_the_time_of_an_install() {
        let folder = tempfile::tempdir().unwrap();
        let policy = folder.path().join("policy-rc.d");
        let services = NoServices::begin(&policy).unwrap();
        assert_eq!(fs::metadata(&policy).unwrap().permissions().mode() & 0o111, 0o111);
        // As if that run had been killed: the next one takes the file for its own.
        NoServices::begin(&policy).unwrap().end().unwrap();
        assert!(!policy.exists());
        services.end().unwrap_err();

        fs::write(&policy, "somebody else's").unwrap();
        NoServices::begin(&policy).unwrap().end().unwrap();
        assert_eq!(fs::read_to_string(&policy).unwrap(), "somebody else's");
    }
}
