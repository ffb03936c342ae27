//! MariaDB: the user `ratchet`, with the password `ratchet`, may do everything.

use std::process::Command;

use anyhow::Result;
use nix::sys::signal::Signal;

use super::Recipe;
use crate::site::{Profile, Site, finish};

pub(super) struct MariaDb;

const SETTINGS: &[&str] = &[
    "--bind-address=127.0.0.1",
    "--skip-name-resolve",
    "--skip-log-bin",
    "--max-connections=200",
    "--character-set-server=utf8mb4",
    "--innodb-print-all-deadlocks=ON",
];

const DURABLE: &[&str] =
    &["--innodb-flush-log-at-trx-commit=1", "--innodb-buffer-pool-size=512M", "--innodb-log-file-size=512M"];

/// A commit is handed to the kernel before it returns (2), so that a kill of the server loses nothing; with 0, InnoDB
/// would keep up to a second of commits in its own memory.
const FAST: &[&str] = &[
    "--innodb-flush-log-at-trx-commit=2",
    "--innodb-buffer-pool-size=128M",
    "--innodb-log-file-size=64M",
    "--sync-frm=OFF",
];

/// Over TCP, names are not resolved and `%` matches; over the socket, the host is `localhost`.
const ACCOUNTS: &str = "
    CREATE DATABASE ratchet;
    CREATE USER 'ratchet'@'%' IDENTIFIED BY 'ratchet';
    CREATE USER 'ratchet'@'localhost' IDENTIFIED BY 'ratchet';
    GRANT ALL PRIVILEGES ON *.* TO 'ratchet'@'%' WITH GRANT OPTION;
    GRANT ALL PRIVILEGES ON *.* TO 'ratchet'@'localhost' WITH GRANT OPTION;
";

impl Recipe for MariaDb {
    fn programs(&self) -> &'static [(&'static str, &'static str)] {
        &[
            ("mariadbd", "mariadb-server"),
            ("mariadb-install-db", "mariadb-server"),
            ("mariadb-admin", "mariadb-client"),
            ("mariadb", "mariadb-client"),
        ]
    }

    fn accounts(&self) -> &'static [&'static str] {
        &["mysql"]
    }

    fn prepare(&self, site: &Site) -> Result<()> {
        let mut install = site.program("mariadb-install-db")?;
        install.arg("--no-defaults").args(places(site)).args(settings(site));
        install.args(["--auth-root-authentication-method=normal", "--skip-test-db"]);
        finish(&mut install)
    }

    fn command(&self, site: &Site) -> Result<Command> {
        let mut mariadbd = site.program("mariadbd")?;
        mariadbd.arg("--no-defaults").args(places(site)).args(settings(site)).arg(format!("--port={}", site.port));
        Ok(mariadbd)
    }

    fn answers(&self, site: &Site) -> Result<bool> {
        let mut ask = site.program("mariadb-admin")?;
        ask.args(["--no-defaults", "--protocol=tcp", "--host=127.0.0.1", "--user=ratchet", "--password=ratchet"]);
        ask.arg("--connect-timeout=5");
        Ok(ask.arg(format!("--port={}", site.port)).arg("ping").output()?.status.success())
    }

    fn furnish(&self, site: &Site) -> Result<()> {
        let mut client = site.program("mariadb")?;
        client.args(["--no-defaults", "--protocol=socket", "--user=root"]);
        client.arg(format!("--socket={}", site.directory.join("socket").display()));
        finish(client.args(["--execute", ACCOUNTS]))
    }

    fn url(&self, port: u16) -> String {
        format!("mysql://ratchet:ratchet@127.0.0.1:{port}/ratchet")
    }

    fn stop_signal(&self) -> Signal {
        Signal::SIGTERM
    }
}

/// The directory for temporary tables is its own, too: in a shared one, a server that starts removes those of the others.
fn places(site: &Site) -> [String; 4] {
    let own = |option: &str, name: &str| format!("--{option}={}", site.directory.join(name).display());
    [own("datadir", "data"), own("socket", "socket"), own("pid-file", "pid"), own("tmpdir", "")]
}

fn settings(site: &Site) -> impl Iterator<Item = &'static str> {
    let profile = match site.profile {
        Profile::Durable => DURABLE,
        Profile::Fast => FAST,
    };
    SETTINGS.iter().chain(profile).copied()
}
