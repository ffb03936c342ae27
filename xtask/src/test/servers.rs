//! The database servers of a test run: those that are there already, and new ones for the rest.

use anyhow::Result;
use ratchet_testdb::{ALLOW_MISSING, Kind, Profile, Servers, from_environment, install};

use super::steps::Ended;

/// Starts what neither the environment names nor `cargo xtask db start` left running.
pub(crate) fn start(servers: &mut Servers) -> Result<Ended> {
    *servers = Servers::running()?;
    let (mut absent, mut missing) = (Vec::new(), Vec::new());
    for kind in Kind::ALL {
        if let Some(url) = from_environment(kind) {
            println!("{kind:<11}{url}, as {} says", kind.variable());
        } else if kind == Kind::Pgbouncer && from_environment(Kind::Postgres).is_some() {
            missing.push(format!("{kind}: set {} to one before your PostgreSQL", kind.variable()));
        } else if let Some(server) = servers.get(kind) {
            println!("{kind:<11}{}, left running", server.url());
        } else if let Err(error) = install(&[kind]) {
            missing.push(format!("{kind}: {error:#}"));
        } else {
            absent.push(kind);
        }
    }
    // It would bring a PostgreSQL of its own, which was just found to be missing.
    if !absent.contains(&Kind::Postgres) && servers.get(Kind::Postgres).is_none() {
        absent.retain(|kind| *kind != Kind::Pgbouncer);
    }
    servers.add(&absent, Profile::Fast)?;
    for server in absent.iter().filter_map(|kind| servers.get(*kind)) {
        println!("{:<11}{}, started", server.kind(), server.url());
    }
    Ok(if missing.is_empty() { Ended::Done } else { Ended::Skipped(missing.join("; ")) })
}

/// What tells the tests about the servers. What our own environment names, they inherit.
pub(crate) fn environment(servers: &Servers, allow_missing: bool) -> Vec<(&'static str, String)> {
    let new = servers.iter().filter(|server| from_environment(server.kind()).is_none());
    let mut variables: Vec<_> = new.map(|server| (server.kind().variable(), server.url())).collect();
    if allow_missing {
        variables.push((ALLOW_MISSING, "1".to_owned()));
    }
    variables
}
