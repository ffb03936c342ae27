//! PgBouncer in transaction mode: whatever a session holds, a client loses at the end of its transaction.

use std::process::Command;

use anyhow::{Context, Result};
use nix::sys::signal::Signal;

use super::Recipe;
use crate::site::Site;

pub(super) struct Pgbouncer;

impl Recipe for Pgbouncer {
    fn programs(&self) -> &'static [(&'static str, &'static str)] {
        &[("pgbouncer", "pgbouncer"), ("psql", "postgresql-client")]
    }

    fn accounts(&self) -> &'static [&'static str] {
        &["postgres", "pgbouncer", "nobody"]
    }

    /// Any name of a database goes through.
    fn configure(&self, site: &Site) -> Result<()> {
        let postgres_port = site.postgres_port.context("pgbouncer stands before a PostgreSQL; none was named")?;
        let accounts = site.write("accounts", "\"postgres\" \"\"\n")?;
        let settings = format!(
            "[databases]\n\
             * = host=127.0.0.1 port={postgres_port}\n\
             [pgbouncer]\n\
             listen_addr = 127.0.0.1\n\
             listen_port = {port}\n\
             unix_socket_dir =\n\
             auth_type = trust\n\
             auth_file = {accounts}\n\
             admin_users = postgres\n\
             pool_mode = transaction\n\
             max_client_conn = 500\n\
             default_pool_size = 20\n\
             ignore_startup_parameters = extra_float_digits,options\n\
             ; A PostgreSQL that was killed is back soon; the default is 15 s.\n\
             server_login_retry = 1\n",
            port = site.port,
            accounts = accounts.display(),
        );
        site.write("settings.ini", &settings)?;
        Ok(())
    }

    fn command(&self, site: &Site) -> Result<Command> {
        let mut pgbouncer = site.program("pgbouncer")?;
        pgbouncer.arg(site.directory.join("settings.ini"));
        Ok(pgbouncer)
    }

    /// Asked at its own console, which answers whether or not the PostgreSQL behind it runs.
    fn answers(&self, site: &Site) -> Result<bool> {
        let mut ask = site.program("psql")?;
        ask.args(["--no-psqlrc", "--host=127.0.0.1", "--username=postgres", "--dbname=pgbouncer", "--port"]);
        Ok(ask.arg(site.port.to_string()).args(["--command", "SHOW VERSION"]).output()?.status.success())
    }

    fn url(&self, port: u16) -> String {
        format!("postgres://postgres@127.0.0.1:{port}/postgres")
    }

    /// At once; SIGINT would wait for the clients' transactions.
    fn stop_signal(&self) -> Signal {
        Signal::SIGTERM
    }
}
