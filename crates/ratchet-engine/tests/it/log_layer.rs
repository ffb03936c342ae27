//! Events of code that knows nothing of jobs.

use ratchet_core::{LogFilter, LogLevel, LogLine};
use ratchet_engine::{Client, Failure, Job, JobContext, JobDefaults};
use serde::{Deserialize, Serialize};
use tracing::Instrument as _;

use crate::spans::listen;
use crate::support::{Stage, eventually, memory, quick};

#[derive(Serialize, Deserialize)]
struct Chatty;

impl Job for Chatty {
    const KIND: &'static str = "chatty";
    type Output = ();

    async fn run(self, ctx: JobContext) -> Result<(), Failure> {
        ctx.log().info("by hand");
        below();
        let deeper = async { tracing::warn!(count = 2_u64, ok = true, "in a span of its own") };
        deeper.instrument(tracing::info_span!("deeper")).await;
        let spawned = async { tracing::info!("from a task") }.in_current_span();
        tokio::spawn(spawned).await.map_err(Failure::new)?;
        Ok(())
    }
}

fn below() {
    let error = std::io::Error::other("disk full");
    tracing::error!(error = &error as &dyn std::error::Error, path = ?"/tmp", share = 0.5, "below");
    tracing::debug!("not of interest");
}

async fn lines(client: &Client, id: ratchet_core::JobId, count: usize) -> Vec<LogLine> {
    let read = async || client.job_log(id, &LogFilter::default(), None, 100).await.unwrap().lines;
    eventually("the log", async || read().await.len() >= count).await;
    read().await
}

#[tokio::test]
async fn events_inside_a_run_are_in_the_log_of_its_job() {
    listen();
    let ratchet = quick(&Stage::default()).job::<Chatty>().store(memory()).start().await.unwrap();
    tracing::info!("outside of every job");
    let handles = [ratchet.enqueue(Chatty).submit().await.unwrap(), ratchet.enqueue(Chatty).submit().await.unwrap()];
    for handle in handles {
        handle.result().await.unwrap();
        let lines = lines(&ratchet, handle.id(), 4).await;
        let told: Vec<_> = lines.iter().map(|line| (line.level, line.message.as_str())).collect();
        let expected = [
            (LogLevel::Info, "by hand"),
            (LogLevel::Error, "below"),
            (LogLevel::Warn, "in a span of its own"),
            (LogLevel::Info, "from a task"),
        ];
        assert_eq!(told, expected, "each once, and nothing of the node's own");
        let fields: serde_json::Value = lines[1].fields.as_ref().unwrap().decode().unwrap();
        let expected =
            serde_json::json!({"error": "disk full", "path": "\"/tmp\"", "share": 0.5, "target": module_path!()});
        assert_eq!(fields, expected);
    }
    ratchet.shutdown().await;
}

/// The same on a thread.
#[derive(Serialize, Deserialize)]
struct OnAThread;

impl Job for OnAThread {
    const KIND: &'static str = "chatty.blocking";
    type Output = ();

    fn defaults() -> JobDefaults {
        JobDefaults::default().blocking()
    }

    async fn run(self, _: JobContext) -> Result<(), Failure> {
        below();
        Ok(())
    }
}

#[tokio::test]
async fn a_run_on_a_thread_is_inside_its_span_too() {
    listen();
    let ratchet = quick(&Stage::default()).job::<OnAThread>().store(memory()).start().await.unwrap();
    let handle = ratchet.enqueue(OnAThread).submit().await.unwrap();
    handle.result().await.unwrap();
    assert_eq!(lines(&ratchet, handle.id(), 1).await[0].message, "below");
    ratchet.shutdown().await;
}
