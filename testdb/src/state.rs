//! The file that says which servers `cargo xtask db start` left running.

use std::fs::{self, File};
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, ensure};

use crate::account::{Account, own_uid};
use crate::process::Process;
use crate::server::Server;
use crate::site::{Site, TEMPORARY};

const HEADER: &str = "# kind profile port pid begun directory url";

/// As long as it lives, no other command starts or stops servers of this workspace.
#[derive(Debug)]
pub(crate) struct Lock(#[expect(dead_code, reason = "the lock goes with the file")] File);

impl Lock {
    pub(crate) fn take() -> Result<Self> {
        let path = path("lock");
        let file = File::create(&path).with_context(|| format!("cannot write {}", path.display()))?;
        file.lock().with_context(|| format!("cannot lock {}", path.display()))?;
        Ok(Self(file))
    }
}

/// The servers that were left running; whether they still are is theirs to say.
pub(crate) fn read() -> Result<Vec<Server>> {
    let path = path("state");
    let text = match fs::read_to_string(&path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        text => text.with_context(|| format!("cannot read {}", path.display()))?,
    };
    // Anybody may write to /tmp, and what stands here is connected to, stopped and removed.
    let (owner, own) = (fs::metadata(&path)?.uid(), own_uid()?);
    ensure!(owner == own, "{} belongs to user {owner}; it counts only for that one", path.display());
    let lines = text.lines().filter(|line| !line.starts_with('#'));
    let parsed = lines.map(|line| parse(line).with_context(|| format!("{}: cannot read {line:?}", path.display())));
    parsed.collect()
}

/// Writes the servers down, all at once.
pub(crate) fn write(servers: &[Server]) -> Result<()> {
    let path = path("state");
    if servers.is_empty() {
        return match fs::remove_file(&path) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => {
                Err(error).with_context(|| format!("cannot remove {}", path.display()))
            }
            _ => Ok(()),
        };
    }
    let lines = servers.iter().map(line).collect::<Result<Vec<_>>>()?;
    let new = path.with_extension("new");
    fs::write(&new, format!("{HEADER}\n{}\n", lines.join("\n")))
        .and_then(|()| fs::rename(&new, &path))
        .with_context(|| format!("cannot write {}", path.display()))
}

/// One place a workspace, whatever directory cargo builds into.
fn path(extension: &str) -> PathBuf {
    let workspace = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap_or(Path::new("/"));
    let name = workspace.to_string_lossy().replace('/', "%");
    Path::new(TEMPORARY).join(format!("ratchet-db{name}.{extension}"))
}

fn line(server: &Server) -> Result<String> {
    let process = server.process.as_ref().context("a server that is left running has a process")?;
    let (site, url) = (&server.site, server.url());
    let Process { pid, begun, .. } = process;
    Ok(format!("{} {} {} {pid} {begun} {} {url}", site.kind, site.profile, site.port, site.directory.display()))
}

fn parse(line: &str) -> Result<Server> {
    let mut words = line.split(' ');
    let mut word = || words.next().context("it is too short");
    let kind: crate::Kind = word()?.parse()?;
    let profile = word()?.parse()?;
    let port = word()?.parse()?;
    let process = Process::known(word()?.parse()?, word()?.to_owned());
    let directory = word()?.into();
    let account = Account::choose(kind.recipe().accounts())?;
    Ok(Server::known(Site { kind, profile, directory, port, postgres_port: None, account }, process))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_server_is_read_as_it_was_written() {
        let text = "redis fast 20001 12 boot/34 /tmp/ratchet-db-redis-1 redis://127.0.0.1:20001";
        assert_eq!(line(&parse(text).unwrap()).unwrap(), text);
        assert!(parse("redis fast 20001").is_err());
        assert!(parse("oracle fast 20001 12 boot/34 /tmp/ratchet-db-x url").is_err());
    }
}
