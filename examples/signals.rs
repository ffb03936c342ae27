//! A job that waits for a person: approved, rejected, or forgotten until its time is over.

use std::error::Error;
use std::time::Duration;

use ratchet::prelude::*;
use serde::{Deserialize, Serialize};

/// What the person may add to the decision.
#[derive(Debug, Serialize, Deserialize)]
struct Note {
    discount: u8,
}

#[job(kind = "offers.write")]
async fn write_offer(customer: String) -> String {
    format!("an offer for {customer}")
}

#[job(kind = "offers.send")]
async fn send_offer(ctx: &JobContext, offer: Prev<String>) -> Result<String, Failure> {
    let signal = ctx.signal().ok_or_else(|| Failure::do_not_retry("nobody was asked", "it must wait for a signal"))?;
    let who = signal.by.as_ref().map_or("somebody", |who| who.as_str());
    if let Some(reason) = signal.rejection() {
        return Ok(format!("{who} kept back {}: {reason}", *offer));
    }
    let note: Note =
        signal.payload().map_err(|error| Failure::do_not_retry(error.to_string(), "it will not change"))?;
    Ok(format!("{who} sent {} with {} % off", *offer, note.discount))
}

#[job(kind = "offers.remind")]
async fn remind(ctx: &JobContext) -> String {
    ctx.origin().and_then(|origin| origin.error.clone()).unwrap_or_default()
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let store = SqliteStore::open("jobs.db").await?;
    let jobs = jobs![write_offer, send_offer, remind];
    let ratchet = Ratchet::builder().store(store).jobs(jobs).start().await?;

    // The second step waits for the first, and for a signal of its own.
    let mut offers = Vec::new();
    for (customer, key) in [("Anna", "offer:anna"), ("Ben", "offer:ben")] {
        let send = send_offer().with(|step| step.await_signal(key, Duration::from_hours(48)));
        let first = ratchet.enqueue(write_offer(customer.to_owned())).then(send).submit().await?;
        offers.push(ratchet.dependants(first.id()).await?[0].child);
    }

    // It does not matter whether the signal or the step comes first.
    let sent = ratchet.signal("offer:anna").approve().payload(&Note { discount: 5 }).by("carla").send().await?;
    assert_eq!(sent.delivered, 1);
    let again = ratchet.signal("offer:anna").reject("too late").no_keep().send().await?;
    assert_eq!(again.delivered, 0, "the first counts");
    ratchet.signal_job(offers[1]).reject("we do not know Ben").by("carla").send().await?;
    for offer in offers {
        println!("{}", ratchet.handle::<String>(offer).result().await?);
    }

    // Nobody waits yet: the signal is kept for the first job that does.
    let early = ratchet.signal("offer:dora").approve().payload(&Note { discount: 0 }).send().await?;
    assert!(early.kept);
    let send = send_offer().with(|step| step.await_signal("offer:dora", None));
    let first = ratchet.enqueue(write_offer("Dora".to_owned())).then(send).submit().await?;
    let dora = ratchet.dependants(first.id()).await?[0].child;
    println!("{}", ratchet.handle::<String>(dora).result().await?);

    // Nobody ever answers: the job fails without running, and what was meant for that follows.
    let mut events = ratchet.events();
    let forgotten = ratchet.enqueue(write_offer("Emil".to_owned()));
    forgotten.await_signal("offer:emil", Duration::from_millis(50)).on_failure(remind()).submit().await?;
    while let Some(event) = events.next().await {
        if event.kind.as_str() == "offers.remind" && matches!(event.what, JobEventKind::Completed { .. }) {
            println!("{}", ratchet.handle::<String>(event.job_id).result().await?);
            break;
        }
    }
    ratchet.shutdown().await;
    Ok(())
}
