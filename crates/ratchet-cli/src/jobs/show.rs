//! `ratchet jobs show`

use anyhow::Result;
use clap::Args;
use ratchet::{JobId, SignalDecision, SignalRecord, Timestamp};
use serde::Serialize;

use super::view::{AttemptView, JobView};
use crate::exit::Exit;
use crate::output::{details, table};
use crate::session::Session;
use crate::times;

#[derive(Args)]
pub(crate) struct Which {
    /// The job
    pub(super) id: JobId,
}

#[derive(Serialize)]
struct Shown {
    #[serde(flatten)]
    job: JobView,
    /// The signal that it waits or waited for.
    signal: Option<SignalRecord>,
    attempt_records: Vec<AttemptView>,
}

pub(super) async fn run(session: &Session, which: Which) -> Result<Exit> {
    let client = session.client().await?;
    let Some(job) = client.find(which.id).await? else {
        eprintln!("error: there is no job {}", which.id);
        return Ok(Exit::NotFound);
    };
    let attempts = client.attempts(which.id).await?;
    let nodes = if attempts.is_empty() { Vec::new() } else { client.nodes().await? };
    let now = client.store().database_time().await?;
    let signal = client.awaited_signal(which.id).await?;
    let attempt_records = attempts.into_iter().map(|attempt| AttemptView::of(attempt, &nodes)).collect();
    let shown = Shown { job: job.into(), signal, attempt_records };
    session.output.show(&shown, |shown| page(shown, now))?;
    Ok(Exit::Done)
}

fn page(shown: &Shown, now: Timestamp) -> String {
    let mut rows = rows(&shown.job, now);
    if let Some(record) = &shown.signal {
        rows.extend(signal_rows(record, now));
    }
    let mut text = details(rows);
    text.push_str("\n\n");
    if shown.attempt_records.is_empty() {
        text.push_str("No attempts yet.");
        return text;
    }
    let rows = shown.attempt_records.iter().map(|attempt| {
        [
            attempt.attempt.to_string(),
            attempt.status.to_owned(),
            times::ago(attempt.started_at, now),
            milliseconds(attempt.queue_wait_ms),
            attempt.duration_ms.map(milliseconds).unwrap_or_default(),
            node(attempt),
            attempt.error.clone().unwrap_or_default(),
        ]
    });
    text.push_str(&table(&["TRY", "STATUS", "STARTED", "WAITED", "TOOK", "NODE", "ERROR"], 6, rows));
    text
}

/// Its name, or the end of the id of one that is gone: ids made at about the same time begin alike.
fn node(attempt: &AttemptView) -> String {
    let gone = || format!("…{}", &attempt.node.to_string()[24..]);
    attempt.node_name.as_ref().map_or_else(gone, ToString::to_string)
}

fn rows(job: &JobView, now: Timestamp) -> Vec<(&'static str, String)> {
    let at = |time: Timestamp| format!("{time:.3} ({})", times::relative(time, now));
    let mut rows = vec![
        ("id", job.id.to_string()),
        ("kind", job.kind.to_string()),
        (
            "state",
            match job.paused_from {
                Some(from) => format!("{} (from {from})", job.state),
                None => job.state.to_string(),
            },
        ),
        ("queue", job.queue.to_string()),
        ("priority", job.priority.to_string()),
        ("attempts", format!("{} of {}", job.attempts, job.max_retries.saturating_add(1))),
        ("backoff", format!("{}, {}", job.backoff.policy, milliseconds(job.backoff.base_ms))),
        ("created", at(job.created_at)),
        ("due", at(job.due_at)),
    ];
    let mut add = |name: &'static str, value: Option<String>| rows.extend(value.map(|value| (name, value)));
    add("timeout", job.timeout_ms.map(milliseconds));
    add("crashes", (job.crash_count > 0).then(|| job.crash_count.to_string()));
    add("running on", job.running_on.map(|node| node.to_string()));
    add("running since", job.running_since.filter(|_| job.running_on.is_some()).map(at));
    add("progress", job.progress.map(|progress| format!("{:.0}%", progress * 100.0)));
    add("ended", job.ended_at.map(at));
    add("archived", job.archived_at.map(at));
    add("took", job.duration_ms.map(milliseconds));
    add("waited", job.queue_wait_ms.map(milliseconds));
    add("tags", joined(job.tags.iter().map(ToString::to_string)));
    add("params", joined(job.params.iter().map(|(key, value)| format!("{key}={value}"))));
    add("business key", job.business_key.as_ref().map(ToString::to_string));
    add("idempotency", job.idempotency_key.as_ref().map(ToString::to_string));
    add("principal", job.principal.as_ref().map(ToString::to_string));
    add("resource", job.resource.as_ref().map(ToString::to_string));
    add("trace", job.trace.as_ref().map(|trace| trace.trace_id().to_string()));
    add("callback of", job.callback_of.map(|id| id.to_string()));
    add("child of", job.parent.map(|id| id.to_string()));
    add("workflow", job.workflow.map(|id| id.to_string()));
    add("step", job.step.as_ref().map(ToString::to_string));
    add("waits for", (job.waits_for > 0).then(|| format!("{} to come", job.waits_for)));
    add("canceled by", job.canceled_because.map(|id| format!("the end of {id}")));
    add("superseded by", job.superseded_by.map(|id| id.to_string()));
    add("error", job.error.clone());
    add("payload", Some(job.payload.as_str().to_owned()));
    add("result", job.result.as_ref().map(|result| result.as_str().to_owned()));
    rows
}

fn signal_rows(record: &SignalRecord, now: Timestamp) -> Vec<(&'static str, String)> {
    let Some(signal) = &record.signal else {
        let until = match (record.expires_at, record.timeout) {
            (Some(at), _) => format!(", until {at:.3} ({})", times::relative(at, now)),
            (None, Some(timeout)) => format!(", for {} from when it is all that is left", times::duration(timeout)),
            (None, None) => String::new(),
        };
        return vec![("signal", format!("{:?} has not come{until}", record.key))];
    };
    let by = signal.by.as_ref().map_or_else(String::new, |who| format!(", by {who}"));
    let decision = match &signal.decision {
        None => String::new(),
        Some(SignalDecision::Approved) => ", approved".to_owned(),
        Some(SignalDecision::Rejected { reason }) => format!(", rejected: {reason}"),
    };
    let came = format!("{:?} came {:.3} ({}){by}{decision}", record.key, signal.at, times::ago(signal.at, now));
    vec![("signal", came), ("it said", signal.payload.as_str().to_owned())]
}

fn joined(words: impl Iterator<Item = String>) -> Option<String> {
    let words: Vec<String> = words.collect();
    (!words.is_empty()).then(|| words.join(", "))
}

fn milliseconds(millis: f64) -> String {
    times::duration(std::time::Duration::from_secs_f64(millis / 1_000.0))
}
