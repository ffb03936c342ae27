//! Jobs that are fired again and again: declared on the job, or created at run time.

use std::error::Error;
use std::time::Duration;

use ratchet::prelude::*;
use ratchet::{OverlapPolicy, ScheduleFilter};

/// Declared here: every node makes sure that the schedule is there, and it fires once for each second, however many there are.
#[job(kind = "clock.tick", every = "1s", overlap = "skip")]
async fn tick(ctx: &JobContext) {
    println!("tick of {}", ctx.job().scheduled_time.strftime("%H:%M:%S"));
}

/// Every night in Berlin, also when its clock is put forward or back.
#[job(kind = "reports.nightly", cron = "0 30 2 * * ?", zone = "Europe/Berlin", misfire = "fire_once")]
async fn nightly_report() {
    println!("a report");
}

#[job(kind = "mail.digest")]
async fn digest(to: String) {
    println!("a digest for {to}");
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let store = SqliteStore::open("jobs.db").await?;
    let jobs = jobs![tick, nightly_report, digest];
    let ratchet = Ratchet::builder().store(store).jobs(jobs).start().await?;

    // Created at run time, with arguments; the key keeps it from being there twice.
    let mondays = ratchet
        .schedule(digest("anna@example.org".to_owned()))
        .cron("0 0 9 ? * MON")
        .zone("Europe/Berlin")
        .overlap(OverlapPolicy::Queue)
        .business_key("digest-anna")
        .create()
        .await?;

    for schedule in ratchet.schedules(&ScheduleFilter::default(), None, 10).await?.items {
        let next: Vec<String> = schedule.next_fires(2).iter().map(ToString::to_string).collect();
        println!("{:<16} next {}", schedule.spec.kind.as_str(), next.join(", "));
    }

    mondays.run_now::<()>().await?.wait().await?;
    tokio::time::sleep(Duration::from_millis(2_500)).await;
    assert!(mondays.pause().await? && mondays.resume().await? && mondays.cancel().await?);
    ratchet.shutdown().await;
    Ok(())
}
