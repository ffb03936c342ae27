//! How tests find a server.

use std::env;

use anyhow::{Result, bail};

use crate::kind::Kind;
use crate::servers::Servers;

/// The URL of a PostgreSQL for tests, as its superuser.
///
/// # Errors
///
/// If neither `RATCHET_TEST_POSTGRES` names one nor `cargo xtask db start` left one running; the text says what to do.
pub fn postgres_url() -> Result<String> {
    url(Kind::Postgres)
}

/// The URL of a MariaDB or MySQL for tests, as a user that may create databases.
///
/// # Errors
///
/// If neither `RATCHET_TEST_MYSQL` names one nor `cargo xtask db start` left one running; the text says what to do.
pub fn mysql_url() -> Result<String> {
    url(Kind::Mysql)
}

/// The URL of a Redis for tests.
///
/// # Errors
///
/// If neither `RATCHET_TEST_REDIS` names one nor `cargo xtask db start` left one running; the text says what to do.
pub fn redis_url() -> Result<String> {
    url(Kind::Redis)
}

/// The URL of a PgBouncer in transaction mode before the PostgreSQL of [`postgres_url`].
///
/// # Errors
///
/// If neither `RATCHET_TEST_PGBOUNCER` names one nor `cargo xtask db start` left one running; the text says what to do.
pub fn pgbouncer_url() -> Result<String> {
    url(Kind::Pgbouncer)
}

/// The server that the environment names for a kind, if it does.
pub fn from_environment(kind: Kind) -> Option<String> {
    env::var(kind.variable()).ok().filter(|url| !url.is_empty())
}

fn url(kind: Kind) -> Result<String> {
    if let Some(url) = from_environment(kind) {
        return Ok(url);
    }
    let variable = kind.variable();
    let servers = Servers::left_running()?;
    match servers.get(kind) {
        Some(server) if server.is_running() => Ok(server.url()),
        Some(_) => {
            bail!("the {kind} server for tests has ended; run `cargo xtask db start`, or set {variable} to a URL")
        }
        None => bail!("there is no {kind} server for tests; run `cargo xtask db start`, or set {variable} to a URL"),
    }
}
