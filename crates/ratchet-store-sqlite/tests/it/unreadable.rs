//! A row that this version cannot read stops nobody.

use ratchet_core::claim::{Boost, Pool};
use ratchet_core::node::NodeRegistration;
use ratchet_core::store::{ClusterStore as _, SubmitUnit};
use ratchet_core::store::{JobStore as _, TurnStore as _};
use ratchet_core::{ClaimRequest, JobId, JobSpec, JsonText, Kind, NewJob, NodeId, NodeName, QueueName};
use ratchet_store_sqlite::SqliteStore;
use sqlx::Connection as _;

#[tokio::test]
async fn a_job_of_a_newer_version_is_put_off_and_the_others_are_claimed() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("jobs.db");
    let store = SqliteStore::open(&path).await.unwrap();
    let kind = Kind::new("work").unwrap();
    let jobs: Vec<NewJob> = (1..=3)
        .map(|n| NewJob::new(JobId(uuid::Uuid::from_u128(n)), JobSpec::new(kind.clone(), JsonText::null())))
        .collect();
    store.submit(&[SubmitUnit::of(jobs.clone())]).await.unwrap();
    let mut conn = sqlx::SqliteConnection::connect(&format!("sqlite://{}", path.display())).await.unwrap();
    sqlx::query("UPDATE scheduler_job SET job_type = 'OF_TOMORROW' WHERE job_id = ?")
        .bind(jobs[0].id.as_bytes().as_slice())
        .execute(&mut conn)
        .await
        .unwrap();
    let node = NodeId(uuid::Uuid::from_u128(9));
    let name = NodeName::new("node").unwrap();
    store.register(&NodeRegistration { id: node, name, info: JsonText::null() }).await.unwrap();
    let pool = Pool { queue: QueueName::default(), kinds: [kind].into(), free: 10 };
    let request = ClaimRequest { node, pools: vec![pool], limit: 10, probation: true, boost: Boost::OFF };
    let claimed = store.turn(&[], Some(&request)).await.unwrap().claimed;
    assert_eq!(claimed.iter().map(|claim| claim.fence.job_id).collect::<Vec<_>>(), [jobs[1].id, jobs[2].id]);
    assert!(store.turn(&[], Some(&request)).await.unwrap().claimed.is_empty(), "it is put off");
    assert_eq!(store.reconcile(node, &[]).await.unwrap().len(), 2, "and nobody runs it");
}
