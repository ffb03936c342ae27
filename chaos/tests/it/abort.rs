use ratchet::JobState;
use ratchet_chaos::deal::Work;

use crate::site::Site;
use crate::until::until;

#[tokio::test]
async fn a_job_that_aborts_its_process_is_dead_after_the_third_time_and_its_neighbors_live() {
    let site = Site::new().await;
    let poison = site.submit(Work::Abort(40), 1).await[0];
    let neighbors = site.submit(Work::Sleep(80), 50).await;
    let mut node = site.node_with(&["--slots", "60"]);
    let mut starts = 1;
    until("the end of all", async || {
        if node.has_ended() {
            starts += 1;
            node = site.node_with(&["--slots", "60"]);
        }
        site.count(JobState::Succeeded).await == 50 && site.count(JobState::Failed).await == 1
    })
    .await;
    let dead = site.client.find(poison).await.unwrap().unwrap();
    assert_eq!((dead.state, dead.crash_count, dead.attempts), (JobState::Failed, 3, 0));
    assert_eq!(dead.last_error.as_deref(), Some("the node that ran this job died 3 times in a row"));
    assert_eq!(site.runs()[&poison], 3);
    assert_eq!(starts, 4, "three processes died of it");
    for id in neighbors {
        assert_eq!(site.client.find(id).await.unwrap().unwrap().state, JobState::Succeeded);
    }
    node.quit().unwrap();
}
