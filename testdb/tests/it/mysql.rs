//! MariaDB: a kill loses no commit, and the tests' user may do everything.

use std::process::Stdio;

use ratchet_testdb::{Kind, Profile, Server};

use crate::client::{can_be_had, mariadb, mariadb_command};

#[test]
fn mariadb_keeps_its_commits_over_a_kill_and_a_stop() {
    if !can_be_had(&[Kind::Mysql]) {
        return;
    }
    let mut mysql = Server::mysql(Profile::Fast).unwrap();
    let (port, directory) = (mysql.port(), mysql.directory().to_owned());
    mariadb(port, "create table t (a int) engine = InnoDB; insert into t values (1)").unwrap();
    mysql.kill().unwrap();
    assert!(!mysql.is_running());
    mariadb(port, "select 1").unwrap_err();

    mysql.start().unwrap();
    assert!(mysql.is_running());
    assert_eq!(mariadb(port, "update t set a = a + 1; select a from t").unwrap(), "2");

    mysql.stop().unwrap();
    mysql.start().unwrap();
    assert_eq!(mariadb(port, "select a from t").unwrap(), "2");

    drop(mysql);
    mariadb(port, "select 1").unwrap_err();
    assert!(!directory.exists());
}

#[test]
fn the_user_may_create_databases_and_kill_connections() {
    if !can_be_had(&[Kind::Mysql]) {
        return;
    }
    let mysql = Server::mysql(Profile::Durable).unwrap();
    let port = mysql.port();
    assert_eq!(mariadb(port, "select @@character_set_database, @@log_bin").unwrap(), "utf8mb4\t0");
    assert_eq!(mariadb(port, "select @@innodb_flush_log_at_trx_commit").unwrap(), "1");
    mariadb(port, "create database other; create table other.t (a int); drop database other").unwrap();
    mariadb(port, "create user bob; grant all privileges on *.* to bob; set global max_connections = 150").unwrap();

    let mut session =
        mariadb_command(port, "select sleep(1000), 1").stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    let find = "select id from information_schema.processlist where info like 'select sleep%'";
    let id = loop {
        let id = mariadb(port, find).unwrap();
        if !id.is_empty() {
            break id;
        }
    };
    mariadb(port, &format!("kill connection {id}")).unwrap();
    assert!(!session.wait().unwrap().success(), "the connection was not killed");
}
