//! Redis: comes back after a kill, with its data only if it is durable.

use ratchet_testdb::{Kind, Profile, Server};

use crate::client::{can_be_had, redis};

#[test]
fn redis_comes_back_after_a_kill() {
    if !can_be_had(&[Kind::Redis]) {
        return;
    }
    for (profile, kept) in [(Profile::Durable, "1"), (Profile::Fast, "")] {
        let mut server = Server::redis(profile).unwrap();
        let url = server.url();
        assert_eq!(redis(&url, &["set", "a", "1"]).unwrap(), "OK");
        server.kill().unwrap();
        redis(&url, &["ping"]).unwrap_err();
        server.start().unwrap();
        assert_eq!(redis(&url, &["get", "a"]).unwrap(), kept);
        server.stop().unwrap();
        assert!(!server.is_running());
    }
}

#[test]
fn a_server_that_cannot_start_says_why() {
    if !can_be_had(&[Kind::Redis]) {
        return;
    }
    let mut server = Server::redis(Profile::Fast).unwrap();
    server.stop().unwrap();
    std::fs::remove_dir(server.directory().join("data")).unwrap();
    let text = format!("{:#}", server.start().unwrap_err());
    assert!(text.contains("redis does not start") && text.contains("FATAL CONFIG FILE ERROR"), "{text}");
    assert!(!server.is_running());
}
