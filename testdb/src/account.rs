//! As whom a server runs: database servers refuse to run as root, and rightly so.

use std::fs;
use std::os::unix::fs::{MetadataExt, chown};
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result};

/// The account of a server.
#[derive(Clone, Debug)]
pub(crate) enum Account {
    /// Ours, because we are not root.
    Own,
    /// Another's, because we are.
    Other { uid: u32, gid: u32 },
}

impl Account {
    /// Ours, or if we are root the first of these that the machine knows.
    pub(crate) fn choose(names: &[&str]) -> Result<Self> {
        if own_uid()? != 0 {
            return Ok(Self::Own);
        }
        let passwd = fs::read_to_string("/etc/passwd").context("cannot read /etc/passwd")?;
        let found = names.iter().find_map(|name| in_passwd(&passwd, name));
        let (uid, gid) = found.with_context(|| {
            format!(
                "a server must not run as root, and /etc/passwd knows no other account for it: {}",
                names.join(", ")
            )
        })?;
        Ok(Self::Other { uid, gid })
    }

    /// Makes the command run under the account. The standard library drops root's further groups with it.
    pub(crate) fn apply(&self, command: &mut Command) {
        if let Self::Other { uid, gid } = self {
            command.uid(*uid).gid(*gid);
        }
    }

    pub(crate) fn give(&self, path: &Path) -> Result<()> {
        let Self::Other { uid, gid } = self else { return Ok(()) };
        chown(path, Some(*uid), Some(*gid)).with_context(|| format!("cannot give {} to user {uid}", path.display()))
    }
}

/// Our own effective user, without a call that the standard library lacks: it owns our entry in `/proc`.
pub(crate) fn own_uid() -> Result<u32> {
    let entry = fs::metadata("/proc/self").context(
        "private database servers need Linux with /proc; elsewhere, name your own servers in the environment variables \
         RATCHET_TEST_POSTGRES, RATCHET_TEST_MYSQL, RATCHET_TEST_REDIS and RATCHET_TEST_PGBOUNCER",
    )?;
    Ok(entry.uid())
}

fn in_passwd(passwd: &str, name: &str) -> Option<(u32, u32)> {
    let fields = passwd.lines().map(|line| line.split(':').collect::<Vec<_>>()).find(|fields| fields[0] == name)?;
    Some((fields.get(2)?.parse().ok()?, fields.get(3)?.parse().ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_account_is_found_by_its_whole_name() {
        let passwd = "root:x:0:0:root:/root:/bin/sh\npostgresql:x:7:8::/:\npostgres:x:101:104:a,b:/var:/bin/sh\n";
        assert_eq!(in_passwd(passwd, "postgres"), Some((101, 104)));
        assert_eq!(in_passwd(passwd, "postgre"), None);
    }
}
