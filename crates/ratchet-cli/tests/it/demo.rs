use std::collections::BTreeSet;
use std::process::Stdio;
use std::time::{Duration, Instant};

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

use crate::support::{Place, Ran};

#[test]
fn the_demo_shows_every_way_to_end_and_can_be_repeated() {
    let place = Place::empty();
    let begun = Instant::now();
    let ran = place.ratchet(&["demo"]);
    ran.expect(
        0,
        &["KIND", "P99", "is a dead letter", "timed out", "was canceled", "203 jobs", "0 waiting to be retried"],
    );
    assert!(begun.elapsed() < Duration::from_secs(30), "it took {:?}", begun.elapsed());

    let summary = place.json(&["demo"]);
    assert_eq!(summary["jobs"], 203, "the second run counts its own jobs only");
    let rows = summary["rows"].as_array().unwrap();
    let outcomes: BTreeSet<&str> = rows.iter().map(|row| row["outcome"].as_str().unwrap()).collect();
    assert_eq!(outcomes, BTreeSet::from(["CANCELED", "FAILED", "SUCCEEDED"]));
    let email = rows.iter().find(|row| row["kind"] == "demo.email").unwrap();
    assert!(email["attempts"].as_u64() > email["jobs"].as_u64(), "no retries: {email}");

    let failed = place.json(&["jobs", "list", "--state", "failed", "--kind", "demo.report"]);
    let id = failed["items"][0]["id"].as_str().unwrap();
    let job = place.json(&["jobs", "show", id]);
    assert_eq!(job["attempt_records"][0]["status"], "TIMED_OUT", "{job}");
    place.ratchet(&["nodes"]).expect(0, &["No node runs"]);
    place.ratchet(&["queues"]).expect(0, &["No queue has live jobs"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_node_of_the_demo_leaves_when_it_is_told_to() {
    let place = Place::migrated().await;
    let mut command = place.command(&["demo", "--node"]);
    let node = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let begun = Instant::now();
    while place.json(&["nodes"])[0]["standing"] != "alive" {
        assert!(begun.elapsed() < Duration::from_secs(30), "no node after {:?}", begun.elapsed());
    }
    kill(Pid::from_raw(i32::try_from(node.id()).unwrap()), Signal::SIGTERM).unwrap();
    Ran::of(node.wait_with_output().unwrap()).expect(0, &["ended after 0 attempts"]);
    place.ratchet(&["nodes"]).expect(0, &["No node runs"]);
}
