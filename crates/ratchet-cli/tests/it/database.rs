use crate::support::{Place, Ran};

#[test]
fn looking_at_a_database_that_is_not_there_does_not_create_it() {
    let place = Place::empty();
    for args in [&["jobs", "list"][..], &["queues"], &["nodes"], &["queues", "pause", "default"]] {
        place.ratchet(args).expect(1, &["error: there is no database at ./ratchet.db", "`ratchet migrate` creates it"]);
    }
    assert!(!place.database().exists());
}

#[test]
fn migrate_creates_the_database_once() {
    let place = Place::empty();
    place.ratchet(&["migrate"]).expect(0, &["./ratchet.db created"]);
    assert_eq!(place.json(&["migrate"])["created"], false);
    place.ratchet(&["jobs", "list"]).expect(0, &["No jobs."]);
}

#[test]
fn a_path_can_be_given_by_option_or_environment() {
    let place = Place::empty();
    place.ratchet(&["--database", "other.db", "migrate"]).expect(0, &["other.db created"]);
    place.ratchet(&["nodes", "--database", "other.db"]).expect(0, &["No node"]);
    let by_environment = |path| Ran::of(place.command(&["nodes"]).env("RATCHET_DATABASE", path).output().unwrap());
    by_environment("other.db").expect(0, &["No node"]);
    by_environment("").expect(2, &["a value is required for '--database"]);
    assert!(!place.database().exists());
}

#[test]
fn files_that_cannot_be_used_are_an_error_that_names_them() {
    let place = Place::empty();
    std::fs::write(place.database(), "this is no database, it is a text ".repeat(100)).unwrap();
    place.ratchet(&["jobs", "list"]).expect(1, &["error: ", "caused by: ", "ratchet.db"]);
    place.ratchet(&["migrate"]).expect(1, &["error: ", "ratchet.db"]);
    std::fs::write(place.database(), "").unwrap();
    place.ratchet(&["jobs", "list"]).expect(1, &["ratchet migrate"]);
    place.ratchet(&["--database", "no/such/folder/x.db", "migrate"]).expect(1, &["no/such/folder"]);
}

#[test]
fn wrong_usage_is_2_and_help_names_the_codes() {
    let place = Place::empty();
    place.ratchet(&["jobs", "list", "--state", "sleeping"]).expect(2, &["sleeping", "pending, running"]);
    place.ratchet(&["jobs", "show", "17"]).expect(2, &["not a UUID"]);
    place.ratchet(&["jobs", "list", "--kind", "A b"]).expect(2, &["`kind` holds 'A'"]);
    place.ratchet(&["jobs", "list", "--limit", "0"]).expect(2, &["0 is not in 1..=1000"]);
    place.ratchet(&["jobs", "cancel"]).expect(2, &["ID"]);
    place.ratchet(&["frobnicate"]).expect(2, &["unrecognized"]);
    place.ratchet(&["--help"]).expect(0, &["Exit codes:", "3  not found", "4  refused"]);
}
