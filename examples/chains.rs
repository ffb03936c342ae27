//! Steps that follow each other: each gets the result of the one before, a failure cancels the rest, a retry goes on.

use std::error::Error;
use std::sync::atomic::{AtomicBool, Ordering};

use ratchet::prelude::*;

#[job(kind = "photos.download")]
async fn download(url: String) -> Vec<u8> {
    url.into_bytes()
}

/// The shop next door is closed at first.
#[derive(Default)]
struct Printer {
    open: AtomicBool,
}

#[job(kind = "photos.print", max_retries = 0)]
async fn print(printer: State<Printer>, photo: Prev<Vec<u8>>) -> Result<usize, String> {
    if printer.open.load(Ordering::SeqCst) { Ok(photo.len()) } else { Err("the printer is closed".to_owned()) }
}

#[job(kind = "photos.post")]
async fn post(to: String, pages: Prev<usize>) -> String {
    format!("{} bytes of photo are on their way to {to}", *pages)
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let store = SqliteStore::open("jobs.db").await?;
    let jobs = jobs![download, print, post];
    let ratchet = Ratchet::builder().store(store).jobs(jobs).state(Printer::default()).start().await?;

    // All three are stored now; the second and the third wait.
    let first = ratchet
        .enqueue(download("https://example.org/cat.jpg".to_owned()))
        .then(print().with(|step| step.tags(["paper"])))
        .then(post("Anna".to_owned()))
        .submit()
        .await?;
    let handle = ratchet.workflow_handle(first.id()).await?.ok_or("it is there")?;
    let graph = handle.wait().await?;
    println!("the first time: {:?}", graph.state());
    for step in &graph.steps {
        println!("  {:<16} {:<10} {}", step.kind.as_str(), step.state, step.error.as_deref().unwrap_or(""));
    }

    // The same printer, now open: the retry of the step that failed brings back what it had canceled.
    ratchet.shutdown().await;
    let store = SqliteStore::open("jobs.db").await?;
    let printer = Printer { open: AtomicBool::new(true) };
    let ratchet = Ratchet::builder().store(store).jobs(jobs![download, print, post]).state(printer).start().await?;
    assert!(ratchet.retry(graph.steps[1].id).await?);
    println!("the second time: {}", ratchet.handle::<String>(graph.steps[2].id).result().await?);
    ratchet.shutdown().await;
    Ok(())
}
