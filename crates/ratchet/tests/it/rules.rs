//! Policy, caller and codec hold in a caller's own transaction too.
#![expect(clippy::unwrap_used, reason = "helpers of tests")]

use ratchet::prelude::*;
use ratchet::sqlite::sqlx::SqlitePool;
use ratchet::sqlite::{CompleteIn, SubmitIn};
use ratchet::{AllowList, AllowRule, BoxError, Client, OwnJobs, PayloadCodec, SubmitError};

struct Backwards;

impl PayloadCodec for Backwards {
    fn name(&self) -> &'static str {
        "backwards"
    }
    fn encode(&self, json: &str) -> Result<String, BoxError> {
        Ok(json.chars().rev().collect())
    }
    fn decode(&self, _name: &str, data: &str) -> Result<String, BoxError> {
        Ok(data.chars().rev().collect())
    }
}

/// Completes in a transaction of its own.
#[job(kind = "book.flight")]
async fn book(ctx: &JobContext, pool: State<SqlitePool>, seat: String) -> Result<String, BoxError> {
    let mut tx = pool.begin_with("BEGIN IMMEDIATE").await?;
    ctx.complete_in(&mut tx, &format!("seat {seat}")).await?;
    tx.commit().await?;
    Ok(String::new())
}

#[job(kind = "follow")]
async fn follow(before: Prev<String>) -> String {
    format!("after {}", *before)
}

#[job(kind = "other")]
async fn other() {}

async fn open(folder: &tempfile::TempDir) -> (SqliteStore, SqlitePool) {
    let path = folder.path().join("jobs.db");
    let store = SqliteStore::open(&path).await.unwrap();
    (store, SqlitePool::connect(&format!("sqlite://{}", path.display())).await.unwrap())
}

#[tokio::test]
async fn a_submit_in_a_transaction_passes_the_same_door() {
    let folder = tempfile::tempdir().unwrap();
    let (store, pool) = open(&folder).await;
    let policy = AllowList::new([AllowRule::new("bookings").kinds(["book", "follow"])]).unwrap();
    let client = Client::new(store).with_job_policy(policy).with_authorizer(OwnJobs::new());
    let client = client.with_payload_codec(Backwards);
    let alice = client.as_principal("alice").unwrap();
    let mut tx = pool.begin_with("BEGIN IMMEDIATE").await.unwrap();
    let refused = alice.enqueue(other()).submit_in(&mut tx).await.unwrap_err();
    assert!(matches!(refused, SubmitError::Refused(_)), "{refused:?}");
    let denied = alice.enqueue(follow()).principal("bob").submit_in(&mut tx).await.unwrap_err();
    assert!(matches!(denied, SubmitError::Denied(_)), "{denied:?}");
    let job = alice.enqueue(book("7A".into())).submit_in(&mut tx).await.unwrap();
    tx.commit().await.unwrap();
    let record = job.record().await.unwrap();
    assert_eq!(record.spec.principal.unwrap().as_str(), "alice");
    assert_eq!(record.spec.payload.as_str(), r#"{"$codec":"backwards","data":"}\"A7\":\"taes\"{"}"#);
    assert_eq!(client.count_by_state().await.unwrap().values().sum::<u64>(), 1);
}

#[tokio::test]
async fn a_result_that_is_completed_in_a_transaction_is_written_by_the_codec() {
    let folder = tempfile::tempdir().unwrap();
    let (store, pool) = open(&folder).await;
    let node = Ratchet::builder().store(store).jobs(jobs![book, follow]).state(pool);
    let ratchet = node.payload_codec(Backwards).start().await.unwrap();
    let job = ratchet.enqueue(book("7A".into())).then(follow()).submit().await.unwrap();
    assert_eq!(job.result().await.unwrap(), "seat 7A");
    assert!(job.record().await.unwrap().result.unwrap().as_str().contains("A7 taes"));
    let next = ratchet.dependants(job.id()).await.unwrap()[0].child;
    assert_eq!(ratchet.handle::<String>(next).result().await.unwrap(), "after seat 7A");
    ratchet.shutdown().await;
}
