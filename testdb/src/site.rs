//! Where and how one server runs: its directory, its port, its account.

use std::fmt;
use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::str::FromStr;

use anyhow::{Context, Result, bail, ensure};

use crate::account::Account;
use crate::kind::Kind;
use crate::{packages, port};

/// Readable for other accounts, unlike most temporary directories, and the same for every user of the machine.
pub(crate) const TEMPORARY: &str = "/tmp";
const LOG_LINES_SHOWN: usize = 25;

/// What a server is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Profile {
    /// Benchmarks: every commit is on the disk before it returns, with memory as a real server has it.
    Durable,
    /// Tests: a commit survives a kill of the server, not a power cut of the machine.
    Fast,
}

impl fmt::Display for Profile {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Durable => "durable",
            Self::Fast => "fast",
        })
    }
}

impl FromStr for Profile {
    type Err = anyhow::Error;

    fn from_str(name: &str) -> Result<Self> {
        match name {
            "durable" => Ok(Self::Durable),
            "fast" => Ok(Self::Fast),
            _ => bail!("there is no profile {name:?}; there are durable and fast"),
        }
    }
}

/// Where and how one server runs.
#[derive(Clone, Debug)]
pub(crate) struct Site {
    pub(crate) kind: Kind,
    pub(crate) profile: Profile,
    pub(crate) directory: PathBuf,
    pub(crate) port: u16,
    /// The PostgreSQL that a new PgBouncer is to stand before.
    pub(crate) postgres_port: Option<u16>,
    pub(crate) account: Account,
}

impl Site {
    /// A new directory, which belongs to the server's account.
    pub(crate) fn new(kind: Kind, profile: Profile) -> Result<Self> {
        let account = Account::choose(kind.recipe().accounts())?;
        let directory = Path::new(TEMPORARY).join(format!("ratchet-db-{kind}-{:016x}", port::random()));
        fs::create_dir(&directory).with_context(|| format!("cannot make {}", directory.display()))?;
        let site = Self { kind, profile, directory, port: 0, postgres_port: None, account };
        site.account.give(&site.directory)?;
        Ok(site)
    }

    /// The database's own files.
    pub(crate) fn data(&self) -> PathBuf {
        self.directory.join("data")
    }

    pub(crate) fn log_path(&self) -> PathBuf {
        self.directory.join("log")
    }

    pub(crate) fn log(&self) -> Result<File> {
        let path = self.log_path();
        let log = File::options().create(true).append(true).open(&path);
        log.with_context(|| format!("cannot write {}", path.display()))
    }

    /// Writes a file that the server may read.
    pub(crate) fn write(&self, name: &str, text: &str) -> Result<PathBuf> {
        let path = self.directory.join(name);
        fs::write(&path, text).with_context(|| format!("cannot write {}", path.display()))?;
        self.account.give(&path)?;
        Ok(path)
    }

    /// What the server said last, for people who must find out what went wrong.
    pub(crate) fn log_tail(&self) -> String {
        let text = fs::read(self.log_path()).unwrap_or_default();
        let text = String::from_utf8_lossy(&text);
        let lines: Vec<&str> = text.lines().collect();
        lines[lines.len().saturating_sub(LOG_LINES_SHOWN)..].join("\n")
    }

    /// A program under the server's account, in its directory, without the variables of our own environment: `PGOPTIONS`
    /// and its like would change what it does.
    pub(crate) fn program(&self, name: &str) -> Result<Command> {
        let mut command = Command::new(packages::program(name)?);
        command.current_dir(&self.directory).env_clear().env("LC_ALL", "C.UTF-8").env("HOME", &self.directory);
        command.env("PATH", packages::path()).env("PGCONNECT_TIMEOUT", "5").stdin(Stdio::null());
        self.account.apply(&mut command);
        Ok(command)
    }

    /// Removes the directory. That it is ours is said by its name.
    pub(crate) fn remove(&self) -> Result<()> {
        let name = self.directory.file_name().unwrap_or_default().to_string_lossy();
        let ours = self.directory.parent() == Some(Path::new(TEMPORARY)) && name.starts_with("ratchet-db-");
        ensure!(ours, "{} is no directory of a private server; it was not removed", self.directory.display());
        match fs::remove_dir_all(&self.directory) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => {
                Err(error).with_context(|| format!("cannot remove {}", self.directory.display()))
            }
            _ => Ok(()),
        }
    }
}

/// Runs a helper of a server to its end; if it fails, its output is the error.
pub(crate) fn finish(command: &mut Command) -> Result<()> {
    let name = command.get_program().display().to_string();
    let output = command.output().with_context(|| format!("cannot run {name}"))?;
    let said = [output.stdout, output.stderr].concat();
    ensure!(output.status.success(), "{name} ended with {}:\n{}", output.status, String::from_utf8_lossy(&said).trim());
    Ok(())
}
