use std::time::Instant;

use ratchet::JobState;
use ratchet_chaos::deal::Work;

use crate::site::Site;
use crate::until::until;

#[tokio::test]
async fn a_node_whose_every_worker_is_blocked_for_twenty_seconds_stays_alive() {
    let site = Site::new().await;
    let timers = ["--heartbeat-ms", "300", "--grace-ms", "3000"];
    let node = site.node_with(&timers);
    // The node runs on two workers, and both will block.
    let jobs = site.submit(Work::Block(20_000), 2).await;
    until("both jobs' begin", async || site.runs().len() == 2).await;
    let begun = Instant::now();
    // Another node is there to declare it dead and take its jobs, if it could.
    let watcher = site.node_with(&timers);
    until("both jobs' end", async || site.count(JobState::Succeeded).await == 2).await;
    assert!(begun.elapsed().as_secs() >= 18);
    for id in jobs {
        assert_eq!(site.runs()[&id], 1, "nobody took it");
    }
    let mut node = node;
    assert_eq!(node.stats().unwrap()["reincarnations"], 0);
    node.quit().unwrap();
    watcher.quit().unwrap();
}
