//! PostgreSQL: the loopback is trusted, `postgres` is the superuser.

use std::process::Command;

use anyhow::Result;
use nix::sys::signal::Signal;

use super::Recipe;
use crate::site::{Profile, Site, finish};

pub(super) struct Postgres;

const SETTINGS: &[(&str, &str)] = &[
    ("listen_addresses", "127.0.0.1"),
    ("max_connections", "200"),
    ("synchronous_commit", "on"),
    ("log_min_messages", "warning"),
    ("log_lock_waits", "on"),
];

const DURABLE: &[(&str, &str)] = &[
    ("fsync", "on"),
    ("full_page_writes", "on"),
    ("shared_buffers", "512MB"),
    ("max_wal_size", "4GB"),
    // Files of the log are used again and not made anew, as on a server that has run for a while: who commits waits for each
    // new one, some fifty milliseconds.
    ("min_wal_size", "4GB"),
    ("checkpoint_timeout", "15min"),
    // What is written reaches the disk as it comes. Else the kernel gathers it and writes some hundred megabytes every half minute,
    // and who commits meanwhile waits.
    ("backend_flush_after", "256kB"),
    // Half of what archiving writes to the log are whole pages.
    ("wal_compression", "lz4"),
];

const FAST: &[(&str, &str)] = &[
    ("fsync", "off"),
    ("full_page_writes", "off"),
    ("shared_buffers", "128MB"),
    ("max_wal_size", "1GB"),
    // A deadlock, and a lock that is waited for, are in the log soon.
    ("deadlock_timeout", "200ms"),
];

impl Recipe for Postgres {
    fn programs(&self) -> &'static [(&'static str, &'static str)] {
        &[
            ("postgres", "postgresql"),
            ("initdb", "postgresql"),
            ("pg_isready", "postgresql-client"),
            ("psql", "postgresql-client"),
        ]
    }

    fn accounts(&self) -> &'static [&'static str] {
        &["postgres"]
    }

    fn prepare(&self, site: &Site) -> Result<()> {
        let mut initdb = site.program("initdb")?;
        initdb.arg("-D").arg(site.data()).args(["--username=postgres", "--auth=trust", "--no-instructions"]);
        initdb.args(["--encoding=UTF8", "--locale=C.UTF-8"]);
        if site.profile == Profile::Fast {
            initdb.arg("--no-sync");
        }
        finish(&mut initdb)
    }

    fn command(&self, site: &Site) -> Result<Command> {
        let mut postgres = site.program("postgres")?;
        postgres.arg("-D").arg(site.data()).arg("-p").arg(site.port.to_string()).arg("-k").arg(&site.directory);
        let profile = match site.profile {
            Profile::Durable => DURABLE,
            Profile::Fast => FAST,
        };
        for (name, value) in SETTINGS.iter().chain(profile) {
            postgres.arg("-c").arg(format!("{name}={value}"));
        }
        Ok(postgres)
    }

    fn answers(&self, site: &Site) -> Result<bool> {
        let mut ask = site.program("pg_isready")?;
        ask.args(["--quiet", "--host=127.0.0.1", "--username=postgres", "--dbname=postgres", "--port"]);
        Ok(ask.arg(site.port.to_string()).output()?.status.success())
    }

    fn url(&self, port: u16) -> String {
        format!("postgres://postgres@127.0.0.1:{port}/postgres")
    }

    /// A "fast shutdown".
    fn stop_signal(&self) -> Signal {
        Signal::SIGINT
    }

    /// An "immediate shutdown": the postmaster ends its children, which a kill of it alone would not.
    fn end_signal(&self) -> Signal {
        Signal::SIGQUIT
    }
}
