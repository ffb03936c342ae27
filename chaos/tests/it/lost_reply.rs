//! Between a COMMIT and its reply.

use std::time::Duration;

use ratchet::{Client, JobState};
use ratchet_chaos::database::Database;
use ratchet_chaos::deal::Work;

use crate::cluster::{Cluster, my_turn, on_both_servers};
use crate::until::until;

on_both_servers! {
    a_settlement_whose_reply_is_lost_stands_and_the_job_runs_once
    a_claim_whose_reply_is_lost_is_handed_back_and_the_job_runs_once
    a_submit_whose_reply_is_lost_has_stored_its_job_once
}

/// A grace that a busy machine does not exceed: this is not about dead nodes.
const TIMERS: [&str; 4] = ["--heartbeat-ms", "500", "--grace-ms", "20000"];

async fn a_settlement_whose_reply_is_lost_stands_and_the_job_runs_once(database: Database) {
    let _turn = my_turn().await;
    let cluster = Cluster::on(database).await;
    let way = cluster.server.proxy().await.unwrap();
    let mut node = cluster.node_at(&cluster.server.url_through(&way), &TIMERS);
    // Leases and polls commit too, so it may take more than one job to hit a settlement.
    let mut ids = Vec::new();
    let mut hit = false;
    while !hit {
        assert!(ids.len() < 20, "no settlement was hit");
        // It ends before the next poll, half a second after the claim.
        ids.push(cluster.client.enqueue(Work::Sleep(250).unnumbered()).submit().await.unwrap().id());
        until("its begin", async || cluster.begun().len() == ids.len()).await;
        way.lose_commit_replies(1);
        until("the loss", async || way.lost() as usize == ids.len()).await;
        // The server has committed before the reply was lost, and the node does not know of it.
        let ended = cluster.client.find(ids[ids.len() - 1]).await.unwrap().unwrap().state == JobState::Succeeded;
        hit = ended && node.stats().unwrap()["settled"] < ids.len() as u64;
        until("its end, at the first or the second try", async || node.stats().unwrap()["settled"] == ids.len() as u64)
            .await;
    }
    println!("{database:?}: a settlement's reply was lost with job {}", ids.len());
    let stats = node.stats().unwrap();
    assert_eq!(stats["conflicts"], 0, "{stats:?}");
    assert!(stats["turn_errors"] >= 1, "{stats:?}");
    assert_eq!(cluster.begun().len(), ids.len(), "each job ran once");
    for id in ids {
        assert_eq!(cluster.client.find(id).await.unwrap().unwrap().state, JobState::Succeeded);
        assert_eq!(cluster.client.attempts(id).await.unwrap().len(), 1);
    }
    node.quit().unwrap();
}

async fn a_claim_whose_reply_is_lost_is_handed_back_and_the_job_runs_once(database: Database) {
    let _turn = my_turn().await;
    let cluster = Cluster::on(database).await;
    let way = cluster.server.proxy().await.unwrap();
    let mut node = cluster.node_at(&cluster.server.url_through(&way), &TIMERS);
    // Polls that find nothing commit too, so it may take more than one job to hit a claim.
    let mut jobs = 0;
    while node.stats().unwrap()["lost_claims"] == 0 {
        assert!(jobs < 20, "no claim was hit");
        way.lose_commit_replies(1);
        cluster.client.enqueue(Work::Sleep(1).unnumbered()).submit().await.unwrap();
        jobs += 1;
        until("its end", async || cluster.count(JobState::Succeeded).await == jobs).await;
        way.lose_no_more();
    }
    println!("{database:?}: a claim's reply was lost with job {jobs}");
    assert_eq!(cluster.begun().len() as u64, jobs, "each job ran once");
    assert_eq!(node.stats().unwrap()["conflicts"], 0);
    node.quit().unwrap();
}

async fn a_submit_whose_reply_is_lost_has_stored_its_job_once(database: Database) {
    let _turn = my_turn().await;
    let cluster = Cluster::on(database).await;
    let way = cluster.server.proxy().await.unwrap();
    let store = ratchet::open_store(&cluster.server.url_through(&way), false).await.unwrap();
    let client = Client::new(store);
    let job = || client.enqueue(Work::Sleep(1).unnumbered()).idempotency_key("once:1");
    way.lose_commit_replies(1);
    let unanswered = tokio::time::timeout(Duration::from_secs(10), job().submit()).await.unwrap();
    let error = unanswered.unwrap_err();
    assert_eq!(way.lost(), 1, "{error}");
    let again = job().submit().await.unwrap();
    assert!(again.is_duplicate(), "the first was stored");
    assert_eq!(cluster.count(JobState::Pending).await, 1);
}
