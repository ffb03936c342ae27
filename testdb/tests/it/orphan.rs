//! A test that is killed leaves no server behind.

use std::env;
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use ratchet_testdb::{Kind, Profile, Server};

use crate::client::{can_be_had, psql};

/// Set for the process that will be killed.
const VICTIM: &str = "RATCHET_TESTDB_VICTIM";

#[test]
fn a_server_goes_when_its_owner_is_killed() {
    if env::var_os(VICTIM).is_some() {
        let postgres = Server::postgres(Profile::Fast).unwrap();
        println!("\nserver {} {}", postgres.directory().display(), postgres.url());
        // Until the kill.
        loop {
            std::thread::park();
        }
    }
    if !can_be_had(&[Kind::Postgres]) {
        return;
    }
    let mut owner = Command::new(env::current_exe().unwrap())
        .args(["--exact", "orphan::a_server_goes_when_its_owner_is_killed", "--nocapture"])
        .env(VICTIM, "1")
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let lines = BufReader::new(owner.stdout.take().unwrap()).lines().map(Result::unwrap);
    let said = lines.into_iter().find(|line| line.starts_with("server ")).unwrap();
    let [_, directory, url] = said.split(' ').collect::<Vec<_>>()[..] else { panic!("{said}") };
    psql(url, "select 1").unwrap();

    owner.kill().unwrap();
    owner.wait().unwrap();
    let begun = Instant::now();
    while Path::new(directory).exists() {
        assert!(begun.elapsed() < Duration::from_secs(20), "{directory} is still there");
        std::thread::sleep(Duration::from_millis(5));
    }
    psql(url, "select 1").unwrap_err();
}
