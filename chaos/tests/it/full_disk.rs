use std::process::Command;
use std::time::Duration;

use ratchet::JobState;
use ratchet_chaos::deal::Work;

use crate::site::Site;
use crate::until::until;

/// The node may not write files beyond a limit, as on a full disk; then there is room again.
#[tokio::test]
async fn a_node_whose_disk_was_full_goes_on_when_there_is_room_and_loses_nothing() {
    let site = Site::new().await;
    let ids = site.submit(Work::Sleep(1), 400).await;
    let size = std::fs::metadata(site.database.with_extension("db-wal")).unwrap().len();
    // Room for a few transactions.
    let mut node = site.limited_node(size + 256 * 1_024);
    until("some jobs' begin", async || site.runs().len() >= 20).await;
    // Nothing gets better by itself: what has run cannot be written.
    let stuck = loop {
        let before = site.count(JobState::Succeeded).await;
        tokio::time::sleep(Duration::from_millis(500)).await;
        if site.count(JobState::Succeeded).await == before {
            break before;
        }
    };
    assert!(stuck < 400, "the limit was reached in the middle");
    let limit = Command::new("prlimit").args(["--pid", &node.pid().to_string(), "--fsize=unlimited"]).status().unwrap();
    assert!(limit.success());
    until("every job's end", async || site.count(JobState::Succeeded).await == 400).await;
    let runs = site.runs();
    assert!(ids.iter().all(|id| runs[id] == 1), "no outcome was lost, so nothing had to run again");
    assert_eq!(node.stats().unwrap()["conflicts"], 0);
    node.quit().unwrap();
}
