//! PgBouncer: any database goes through it, by the transaction, also after a crash behind it.

use ratchet_testdb::{Kind, Profile, Servers};

use crate::client::{can_be_had, psql};

#[test]
fn every_database_is_reached_through_pgbouncer_by_the_transaction() {
    if !can_be_had(&[Kind::Postgres, Kind::Pgbouncer]) {
        return;
    }
    // It brings the PostgreSQL that it stands before.
    let mut servers = Servers::start(&[Kind::Pgbouncer], Profile::Fast).unwrap();
    let directly = servers.get(Kind::Postgres).unwrap().url();
    let through = servers.get(Kind::Pgbouncer).unwrap().url();
    assert_eq!(
        servers.variables(),
        [("RATCHET_TEST_POSTGRES", directly.clone()), ("RATCHET_TEST_PGBOUNCER", through.clone())]
    );

    psql(&directly, "create database other").unwrap();
    let other = with_database(&through, "other");
    assert_eq!(psql(&other, "select current_database()").unwrap(), "other");
    let config = psql(&with_database(&through, "pgbouncer"), "show config").unwrap();
    assert!(config.contains("\npool_mode|transaction|"), "{config}");

    servers.get_mut(Kind::Postgres).unwrap().kill().unwrap();
    let pgbouncer = servers.get_mut(Kind::Pgbouncer).unwrap();
    pgbouncer.kill().unwrap();
    pgbouncer.start().unwrap();
    servers.get_mut(Kind::Postgres).unwrap().start().unwrap();
    assert_eq!(psql(&other, "select current_database()").unwrap(), "other");
    servers.stop().unwrap();
    psql(&through, "select 1").unwrap_err();
    psql(&directly, "select 1").unwrap_err();
}

fn with_database(url: &str, name: &str) -> String {
    let (server, _) = url.rsplit_once('/').unwrap();
    format!("{server}/{name}")
}
