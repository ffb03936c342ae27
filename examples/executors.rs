//! Handlers of one queue on a runtime of their own, so that they take no thread from the rest of the application.

use ratchet::prelude::*;
use ratchet::{Attempt, ExecutorProvider, JobRecord};
use tokio::runtime::{Builder, Handle};

/// Runs the queue `reports` apart, and everything else where the node runs.
struct ReportsApart {
    reports: Handle,
}

impl ExecutorProvider for ReportsApart {
    fn spawn(&self, job: &JobRecord, attempt: Attempt) {
        match job.spec.queue.as_str() {
            "reports" => self.reports.spawn(attempt),
            _ => tokio::spawn(attempt),
        };
    }
}

fn thread() -> String {
    std::thread::current().name().unwrap_or("unnamed").to_owned()
}

#[job(queue = "reports")]
async fn report(month: u8) -> String {
    // Long computations hold up their thread, and here nobody else needs it.
    let sum: u64 = (0..10_000_000).map(|n| n * u64::from(month)).sum();
    format!("report {sum} on thread {:?}", thread())
}

#[job]
async fn greet() -> String {
    format!("greeting on thread {:?}", thread())
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let dir = tempfile::tempdir()?;
    let runtime = Builder::new_multi_thread().worker_threads(1).thread_name("reports").enable_all().build()?;
    let ratchet = Ratchet::builder()
        .store(SqliteStore::open(dir.path().join("jobs.db")).await?)
        .jobs(jobs![report, greet])
        .executor_provider(ReportsApart { reports: runtime.handle().clone() })
        .start()
        .await?;
    let reported = ratchet.enqueue(report(3)).submit().await?;
    println!("{}", ratchet.enqueue(greet()).submit().await?.result().await?);
    println!("{}", reported.result().await?);
    // First the node, then what its handlers run on; in the background, because this is an async function.
    ratchet.shutdown().await;
    runtime.shutdown_background();
    Ok(())
}
