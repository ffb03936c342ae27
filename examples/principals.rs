//! Who may submit what, and who sees it: a policy for all, an authorizer for each, and a client that acts for somebody.

use ratchet::prelude::*;
use ratchet::{AllowList, AllowRule, JobFilter, OwnJobs, SubmitError};

#[job(kind = "report.monthly", queue = "reports")]
async fn monthly(month: u8) -> String {
    format!("report of month {month}")
}

#[job(kind = "billing.charge")]
async fn charge(invoice: u64) {
    println!("  charging {invoice}");
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let dir = tempfile::tempdir()?;
    let ratchet = Ratchet::builder()
        .store(SqliteStore::open(dir.path().join("jobs.db")).await?)
        .jobs(jobs![monthly, charge])
        // What may be submitted at all.
        .job_policy(AllowList::new([
            AllowRule::new("reports").kinds(["report"]).queues(["reports"]),
            AllowRule::new("billing").kinds(["billing"]).principals(["bob"]),
        ])?)
        // Everybody sees and steers his own jobs, root all of them.
        .authorizer(OwnJobs::new().operator("root")?)
        .start()
        .await?;

    // In a web application this is who has signed in.
    let alice = ratchet.as_principal("alice")?;
    let bob = ratchet.as_principal("bob")?;
    let root = ratchet.as_principal("root")?;

    println!("the policy:");
    let refused = alice.enqueue(charge(7)).submit().await.expect_err("only bob charges");
    println!("  {refused}");
    let refused = alice.enqueue(monthly(1)).queue("default").submit().await.expect_err("reports have their queue");
    println!("  {refused}");

    println!("the authorizer:");
    let report = alice.enqueue(monthly(1)).submit().await?;
    println!("  alice reads: {}", report.result().await?);
    println!("  bob reads: {:?}", bob.find(report.id()).await?.map(|job| job.state));
    println!("  bob deletes: {}", bob.delete(report.id()).await?);
    match bob.enqueue(monthly(2)).principal("alice").submit().await {
        Err(SubmitError::Denied(denied)) => println!("  {denied}"),
        other => panic!("bob does not act for alice: {other:?}"),
    }

    bob.enqueue(charge(7)).submit().await?.wait().await?;
    for (name, client) in [("alice", &alice), ("bob", &bob), ("root", &root)] {
        let seen = client.list(&JobFilter::default(), None, 10).await?.items.len();
        println!("  {name} sees {seen}");
    }
    ratchet.shutdown().await;
    Ok(())
}
