//! What a node does, as metrics: for Prometheus, or for a collector of one's own.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use ratchet::MetricsCollector;
use ratchet::metrics::{Labels, names};
use ratchet::prelude::*;

#[job]
async fn greet(name: String) -> Result<usize, Failure> {
    if name.is_empty() {
        Err(Failure::do_not_retry("nobody to greet", "a name does not appear by itself"))
    } else {
        Ok(name.len())
    }
}

/// A collector of one's own: adds up how many jobs of each kind began. It is called from the middle of things, so it is quick.
#[derive(Clone, Default)]
struct Started(Arc<Mutex<BTreeMap<String, u64>>>);

impl MetricsCollector for Started {
    fn count(&self, name: &'static str, labels: Labels<'_>, times: u64) {
        let kind = labels.iter().find(|(label, _)| *label == "kind").filter(|_| name == names::STARTED);
        if let (Some((_, kind)), Ok(mut started)) = (kind, self.0.lock()) {
            *started.entry((*kind).to_owned()).or_default() += times;
        }
    }

    fn time(&self, _name: &'static str, _labels: Labels<'_>, _seconds: f64) {}

    fn gauge(&self, _name: &'static str, _labels: Labels<'_>, _value: f64) {}
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let exporter = ratchet::prometheus::install()?;
    let dir = tempfile::tempdir()?;
    let store = SqliteStore::open(dir.path().join("jobs.db")).await?;
    let ratchet = Ratchet::builder().store(store).jobs(jobs![greet]).start().await?;
    for name in ["Ada", "Grace", ""] {
        ratchet.enqueue(greet(name.into())).submit().await?.wait().await?;
    }
    ratchet.shutdown().await;
    // An application would answer GET /metrics with this.
    for line in exporter.render().lines().filter(|line| line.starts_with("ratchet_jobs")) {
        if !line.contains("_bucket") {
            println!("{line}");
        }
    }

    let started = Started::default();
    let store = SqliteStore::open(dir.path().join("others.db")).await?;
    let ratchet = Ratchet::builder().store(store).jobs(jobs![greet]).metrics_collector(started.clone()).start().await?;
    ratchet.enqueue(greet("Edsger".into())).submit().await?.wait().await?;
    ratchet.shutdown().await;
    println!("began: {:?}", started.0.lock().map(|started| started.clone()).unwrap_or_default());
    Ok(())
}
