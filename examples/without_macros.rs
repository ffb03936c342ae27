//! Everything that Ratchet's macros write can be written by hand: the payload, the job, and an error's advice.

use std::borrow::Cow;
use std::error::Error;
use std::time::Duration;

use ratchet::Requirement;
use ratchet::prelude::*;
use serde::{Deserialize, Serialize};

#[derive(Debug, thiserror::Error)]
#[error("the water is too deep")]
struct TooDeep;

impl JobError for TooDeep {
    fn do_not_retry(&self) -> Option<Cow<'static, str>> {
        Some("the sea will not sink".into())
    }
}

#[derive(Serialize, Deserialize)]
struct Dive {
    metres: u32,
}

impl Job for Dive {
    const KIND: &'static str = "sea.dive";
    type Output = String;

    fn defaults() -> JobDefaults {
        JobDefaults::default().max_retries(5).backoff(Backoff::Fixed(Duration::from_millis(100)))
    }

    fn requires() -> Vec<Requirement> {
        vec![Requirement::state::<u32>()]
    }

    async fn run(self, ctx: JobContext) -> Result<String, Failure> {
        let limit = ctx.state::<u32>();
        if self.metres > *limit {
            return Err(Failure::of_job_error(TooDeep));
        }
        Ok(format!("saw a fish at {} m", self.metres))
    }
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let dir = tempfile::tempdir()?;
    let store = SqliteStore::open(dir.path().join("jobs.db")).await?;
    let ratchet = Ratchet::builder().store(store).job::<Dive>().state(40_u32).start().await?;
    println!("{}", ratchet.enqueue(Dive { metres: 30 }).submit().await?.result().await?);
    let job = ratchet.enqueue(Dive { metres: 90 }).submit().await?.wait().await?;
    println!("{} after {} attempt: {}", job.state, job.attempts, job.last_error.unwrap_or_default());
    ratchet.shutdown().await;
    Ok(())
}
