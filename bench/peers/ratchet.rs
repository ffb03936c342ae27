//! ratchet. The profile is `SLOTS` or `SLOTS-CLAIM_MAX`; 20-200 are the defaults on two cores. Submits come from a store of their own, as they
//! would from another process; the profile `SLOTS-CLAIM_MAX-same` submits through the node that runs the jobs.
use std::time::Instant;

use ratchet::prelude::*;

#[job(kind = "peer.noop")]
async fn noop(n: u64) {
    common::ran(n);
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let bench = common::bench("ratchet");
    let mut profile = bench.profile.split('-');
    let slots: usize = profile.next().unwrap_or("20").parse()?;
    let claim_max: usize = profile.next().map_or(Ok(200), str::parse)?;
    let same = profile.next() == Some("same");
    let store = ratchet::open_store(&bench.url, true).await?;
    let caller = if same { store.clone() } else { ratchet::open_store(&bench.url, true).await? };
    let client = ratchet::Client::new(caller);
    let start = || Ratchet::builder().store(store.clone()).jobs(jobs![noop]).queue("default", slots).claim_max(claim_max).start();
    match bench.mode.as_str() {
        "drain" => {
            bench.bulk(async |range| drop(client.submit_all(range.map(|n| client.enqueue(noop(n)))).await.unwrap())).await;
            let (sql, connection) = tokio_postgres::connect(&bench.url, tokio_postgres::NoTls).await?;
            tokio::spawn(connection);
            let began = Instant::now();
            let _node = start().await?;
            let left = async || sql.query_one("select count(*) from scheduler_job where terminal_status is null", &[]).await.unwrap().get(0);
            bench.drained(began, left).await;
        }
        "idle" => {
            let node = start().await?;
            let caller: &ratchet::Client = if same { &node } else { &client };
            bench.idle(async |n| drop(caller.enqueue(noop(n)).submit().await.unwrap())).await;
        }
        _ => bench.single(async |n| drop(client.enqueue(noop(n)).submit().await.unwrap())).await,
    }
    std::process::exit(0);
}
