//! PostgreSQL: a kill loses no commit, and spares no session.

use std::process::Stdio;

use ratchet_testdb::{Kind, Profile, Server};

use crate::client::{can_be_had, psql, psql_command};

#[test]
fn postgres_keeps_its_commits_over_a_kill_and_a_stop() {
    if !can_be_had(&[Kind::Postgres]) {
        return;
    }
    let mut postgres = Server::postgres(Profile::Fast).unwrap();
    let (url, directory) = (postgres.url(), postgres.directory().to_owned());
    psql(&url, "create table t (a int); insert into t values (1)").unwrap();
    let wait_for_ever = "select 'asleep'; select pg_sleep(1000)";
    let mut session = psql_command(&url, wait_for_ever).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    let asleep = "select count(*) from pg_stat_activity where wait_event = 'PgSleep'";
    while psql(&url, asleep).unwrap() != "1" {}

    postgres.kill().unwrap();
    assert!(!postgres.is_running());
    assert!(!session.wait().unwrap().success(), "a session outlived the kill");
    psql(&url, "select 1").unwrap_err();

    postgres.start().unwrap();
    assert!(postgres.is_running());
    assert_eq!(psql(&postgres.url(), "update t set a = a + 1 returning a").unwrap(), "2");
    assert!(postgres.log_tail().contains("database system was not properly shut down"), "{}", postgres.log_tail());

    postgres.stop().unwrap();
    psql(&url, "select 1").unwrap_err();
    postgres.start().unwrap();
    assert_eq!(psql(&url, "select a from t").unwrap(), "2");

    drop(postgres);
    psql(&url, "select 1").unwrap_err();
    assert!(!directory.exists());
}

#[test]
fn a_durable_postgres_waits_for_the_disk() {
    if !can_be_had(&[Kind::Postgres]) {
        return;
    }
    let postgres = Server::postgres(Profile::Durable).unwrap();
    let check = |setting: &str, expected: &str| {
        assert_eq!(psql(&postgres.url(), &format!("show {setting}")).unwrap(), expected, "{setting}");
    };
    check("fsync", "on");
    check("full_page_writes", "on");
    check("synchronous_commit", "on");
    check("shared_buffers", "512MB");
    check("listen_addresses", "127.0.0.1");
}
