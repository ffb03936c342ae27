//! The clients that come with the servers.

use std::process::{Command, Stdio};

use ratchet_testdb::{Kind, install, is_missing_allowed};

/// Whether servers of these kinds can be had here. If not, the test fails, unless the run was told to go on.
pub(crate) fn can_be_had(kinds: &[Kind]) -> bool {
    let Err(error) = install(kinds) else { return true };
    assert!(is_missing_allowed(), "{error:#}");
    eprintln!("NOT TESTED: {error:#}");
    false
}

/// One statement's values, a line each, from a database by its URL.
pub(crate) fn psql(url: &str, statement: &str) -> Result<String, String> {
    answer(&mut psql_command(url, statement))
}

pub(crate) fn psql_command(url: &str, statement: &str) -> Command {
    let mut psql = Command::new("psql");
    psql.args(["--no-psqlrc", "--tuples-only", "--no-align", "--quiet", "--command", statement, url]);
    psql
}

/// One statement's values, a line each, as the user that the URL of a MariaDB names.
pub(crate) fn mariadb(port: u16, statement: &str) -> Result<String, String> {
    answer(&mut mariadb_command(port, statement))
}

pub(crate) fn mariadb_command(port: u16, statement: &str) -> Command {
    let mut mariadb = Command::new("mariadb");
    mariadb.args(["--no-defaults", "--protocol=tcp", "--host=127.0.0.1", "--user=ratchet", "--password=ratchet"]);
    mariadb.arg(format!("--port={port}")).args(["--skip-column-names", "--batch", "--execute", statement, "ratchet"]);
    mariadb
}

pub(crate) fn redis(url: &str, words: &[&str]) -> Result<String, String> {
    answer(Command::new("redis-cli").args(["-u", url]).args(words))
}

fn answer(command: &mut Command) -> Result<String, String> {
    let output = command.stdin(Stdio::null()).output().unwrap();
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).trim().to_owned();
    if output.status.success() { Ok(text(&output.stdout)) } else { Err(text(&output.stderr)) }
}
