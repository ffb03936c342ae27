//! The time until the jobs of a dead node run elsewhere, with the default times.

use std::time::Duration;

use ratchet_chaos::database::Database;

use crate::timed::time_to_run_elsewhere;

// It waits for most of its time, so it needs no turn.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_dead_node_s_jobs_run_elsewhere_within_a_minute_by_default() {
    let defaults = ["--heartbeat-ms", "5000", "--grace-ms", "30000", "--scan-ms", "10000"];
    let took = time_to_run_elsewhere(Database::Postgres, &defaults).await;
    println!("a dead node's jobs ran elsewhere after {took:?} by default");
    assert!(took < Duration::from_mins(1), "{took:?}");
}
