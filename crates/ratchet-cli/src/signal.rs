//! `ratchet signal`

use std::time::Duration;

use anyhow::Result;
use clap::Args;
use ratchet::{DeliveryId, JobId, SignalOutcome};
use serde::Serialize;

use crate::counts::counted;
use crate::exit::Exit;
use crate::session::Session;
use crate::times;

#[derive(Args)]
#[command(group(clap::ArgGroup::new("target").required(true).args(["key", "job"])))]
pub(crate) struct Sending {
    /// The key of the signal: every job that waits for it gets it
    key: Option<String>,
    /// The one job that gets it, whatever the key of its signal
    #[arg(long, value_name = "ID")]
    job: Option<JobId>,
    /// What it says, as JSON
    #[arg(long, value_name = "JSON", value_parser = json)]
    payload: Option<serde_json::Value>,
    /// It approves
    #[arg(long, conflicts_with = "reject")]
    approve: bool,
    /// It rejects, and says why
    #[arg(long, value_name = "REASON")]
    reject: Option<String>,
    /// Who sends it
    #[arg(long, value_name = "WHO")]
    by: Option<String>,
    /// How long it is kept for a job to come, if none waits: 90s, 15m, 24h, 7d [default: 24h]
    #[arg(long, value_name = "DURATION", value_parser = times::parse, conflicts_with_all = ["job", "no_keep"])]
    keep: Option<Duration>,
    /// Do not keep it: if no job waits now, it is lost
    #[arg(long, conflicts_with = "job")]
    no_keep: bool,
}

fn json(text: &str) -> Result<serde_json::Value, String> {
    serde_json::from_str(text).map_err(|error| format!("it is not JSON: {error}"))
}

#[derive(Serialize)]
struct Sent {
    delivery_id: DeliveryId,
    delivered: usize,
    released: usize,
    kept: bool,
}

pub(crate) async fn run(session: &Session, sending: Sending) -> Result<Exit> {
    let client = session.client().await?;
    let Sending { key, job, payload, approve, reject, by, keep, no_keep } = sending;
    let mut signal = match job {
        Some(id) => client.signal_job(id),
        None => client.signal(key.unwrap_or_default()),
    };
    if let Some(payload) = &payload {
        signal = signal.payload(payload);
    }
    if approve {
        signal = signal.approve();
    }
    if let Some(reason) = reject {
        signal = signal.reject(reason);
    }
    if let Some(who) = by {
        signal = signal.by(who);
    }
    if let Some(keep) = keep {
        signal = signal.keep_for(keep);
    }
    if no_keep {
        signal = signal.no_keep();
    }
    let SignalOutcome { delivery_id, delivered, released, kept, .. } = signal.send().await?;
    if delivered > 0 || kept {
        let sent = Sent { delivery_id, delivered, released, kept };
        session.output.show(&sent, said)?;
        return Ok(Exit::Done);
    }
    let Some(id) = job else {
        let why = if no_keep { "it was not to be kept" } else { "one is kept already" };
        eprintln!("error: no job waits for it, and {why}");
        return Ok(Exit::Refused);
    };
    match client.find(id).await? {
        None => {
            eprintln!("error: there is no job {id}");
            Ok(Exit::NotFound)
        }
        Some(job) => {
            eprintln!("error: job {id} is {} and waits for no signal", job.state);
            Ok(Exit::Refused)
        }
    }
}

fn said(sent: &Sent) -> String {
    match sent {
        Sent { kept: true, .. } => "no job waits for it; it is kept for the first that does".to_owned(),
        Sent { delivered: 1, released: 1, .. } => "delivered to 1 job, which can run now".to_owned(),
        Sent { delivered, released, .. } => {
            let jobs = counted(*delivered as u64, "job", "jobs");
            let others = counted((delivered - released) as u64, "waits for others", "wait for others");
            format!("delivered to {jobs}; {released} can run now, {others}")
        }
    }
}
