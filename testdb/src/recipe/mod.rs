//! How each kind of server is made, started, asked and stopped.

mod mariadb;
mod pgbouncer;
mod postgres;
mod redis;

use std::process::Command;

use anyhow::Result;
use nix::sys::signal::Signal;

use crate::kind::Kind;
use crate::site::Site;

/// All that differs between the kinds of servers.
pub(crate) trait Recipe {
    /// The programs that it needs, each with the Debian package that brings it.
    fn programs(&self) -> &'static [(&'static str, &'static str)];

    /// The accounts that may run it if we are root; the first that exists does.
    fn accounts(&self) -> &'static [&'static str];

    /// Once, before it has a port.
    fn prepare(&self, _site: &Site) -> Result<()> {
        Ok(())
    }

    /// Whenever it gets a port; the settings must outlive a restart.
    fn configure(&self, _site: &Site) -> Result<()> {
        Ok(())
    }

    /// The server itself, in the foreground.
    fn command(&self, site: &Site) -> Result<Command>;

    /// Whether it takes connections and answers.
    fn answers(&self, site: &Site) -> Result<bool>;

    /// Once, after the first start.
    fn furnish(&self, _site: &Site) -> Result<()> {
        Ok(())
    }

    fn url(&self, port: u16) -> String;

    /// The signal for an orderly stop that does not wait for clients.
    fn stop_signal(&self) -> Signal;

    /// The signal at which it ends at once with all its children.
    fn end_signal(&self) -> Signal {
        Signal::SIGKILL
    }
}

impl Kind {
    pub(crate) fn recipe(self) -> &'static dyn Recipe {
        match self {
            Self::Postgres => &postgres::Postgres,
            Self::Mysql => &mariadb::MariaDb,
            Self::Redis => &redis::Redis,
            Self::Pgbouncer => &pgbouncer::Pgbouncer,
        }
    }
}
