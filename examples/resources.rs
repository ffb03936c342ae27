//! Of jobs that need the same thing only a few run at once, in the whole cluster; others run on.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use ratchet::ResourceLimit;
use ratchet::prelude::*;

/// How many print at this moment, and how many at most.
#[derive(Default)]
struct Printing {
    now: AtomicUsize,
    most: AtomicUsize,
}

#[job(resource = "printer")]
async fn print(printing: State<Arc<Printing>>, page: u64) -> u64 {
    printing.most.fetch_max(printing.now.fetch_add(1, Ordering::SeqCst) + 1, Ordering::SeqCst);
    tokio::time::sleep(Duration::from_millis(20)).await;
    printing.now.fetch_sub(1, Ordering::SeqCst);
    page
}

#[job]
async fn greet(name: String) {
    println!("  hello, {name}");
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let dir = tempfile::tempdir()?;
    let store = SqliteStore::open(dir.path().join("jobs.db")).await?;
    let printing = Arc::new(Printing::default());
    let ratchet = Ratchet::builder()
        .store(store)
        .jobs(jobs![print, greet])
        .state(printing.clone())
        .resource_limit(ResourceLimit::new("printer", 2)?)
        .start()
        .await?;

    println!("forty pages, two printers:");
    let pages = ratchet.submit_all((0..40).map(|page| ratchet.enqueue(print(page)))).await?;
    ratchet.enqueue(greet("Ada".into())).submit().await?.result().await?;

    println!("three more printers come:");
    ratchet.set_resource_limit(&ResourceLimit::new("printer", 5)?).await?;
    for page in &pages {
        page.result().await?;
    }
    println!("  at most {} pages at once", printing.most.load(Ordering::SeqCst));

    ratchet.shutdown().await;
    Ok(())
}
