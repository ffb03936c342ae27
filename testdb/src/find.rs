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

/// Whether a test may pass without its server, having said so: `cargo xtask test --allow-missing` sets
/// `RATCHET_TEST_ALLOW_MISSING`. Anywhere else, a missing server fails the test.
pub fn is_missing_allowed() -> bool {
    env::var_os(ALLOW_MISSING).is_some_and(|value| !value.is_empty())
}

/// The variable of [`is_missing_allowed`].
pub const ALLOW_MISSING: &str = "RATCHET_TEST_ALLOW_MISSING";

/// The server that the environment names for a kind, if it does.
pub fn from_environment(kind: Kind) -> Option<String> {
    env::var(kind.variable()).ok().filter(|url| !url.is_empty())
}

fn url(kind: Kind) -> Result<String> {
    match from_environment(kind) {
        Some(url) => Ok(url),
        None => left_running(kind, from_environment(Kind::Postgres).as_deref(), &Servers::left_running()?),
    }
}

fn left_running(kind: Kind, given_postgres: Option<&str>, servers: &Servers) -> Result<String> {
    let variable = kind.variable();
    if let (Kind::Pgbouncer, Some(postgres)) = (kind, given_postgres) {
        bail!("{} names {postgres}; set {variable} to a PgBouncer before it", Kind::Postgres.variable());
    }
    match servers.get(kind) {
        Some(server) if server.is_running() => Ok(server.url()),
        Some(_) => {
            bail!("the {kind} server for tests has ended; run `cargo xtask db start`, or set {variable} to a URL")
        }
        None => bail!("there is no {kind} server for tests; run `cargo xtask db start`, or set {variable} to a URL"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_missing_server_is_answered_with_what_to_do() {
        let check = |kind, given_postgres, expected: &str| {
            let text = left_running(kind, given_postgres, &Servers::default()).unwrap_err().to_string();
            assert!(text.contains(expected) && text.contains(kind.variable()), "{text}");
        };
        for kind in Kind::ALL {
            check(kind, None, "`cargo xtask db start`");
        }
        check(Kind::Mysql, Some("postgres://elsewhere"), "`cargo xtask db start`");
        check(Kind::Pgbouncer, Some("postgres://elsewhere"), "RATCHET_TEST_POSTGRES names postgres://elsewhere");
    }
}
