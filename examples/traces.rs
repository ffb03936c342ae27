//! A job goes on with the trace of the request that submitted it, and so do the jobs that follow from it.

use ratchet::prelude::*;
use ratchet::{TraceCapture, TraceContext};

tokio::task_local! {
    /// What a web framework would set for each request.
    static REQUEST: TraceContext;
}

/// Knows which trace is current. With OpenTelemetry it would ask the current span, and `attach` would make it the parent
/// of the run's span.
struct OfTheRequest;

impl TraceCapture for OfTheRequest {
    fn current(&self) -> Option<TraceContext> {
        REQUEST.try_with(Clone::clone).ok()
    }
}

#[job]
async fn charge(ctx: &JobContext) {
    println!("charge:  {}", header(ctx));
}

#[job]
async fn receipt(ctx: &JobContext) {
    println!("receipt: {}", header(ctx));
}

fn header(ctx: &JobContext) -> String {
    ctx.trace_context().map_or_else(|| "no trace".to_owned(), TraceContext::traceparent)
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let dir = tempfile::tempdir()?;
    let store = SqliteStore::open(dir.path().join("jobs.db")).await?;
    let builder = Ratchet::builder().store(store).jobs(jobs![charge, receipt]);
    let ratchet = builder.trace_capture(OfTheRequest).start().await?;

    let header = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";
    let request = TraceContext::from_headers(header, None).ok_or("a bad header")?;
    let mut events = ratchet.events();
    let submitted = async { ratchet.enqueue(charge()).then(receipt()).submit().await };
    REQUEST.scope(request, submitted).await?;
    for _ in 0..2 {
        while !matches!(events.next().await.ok_or("the node runs")?.what, JobEventKind::Completed { .. }) {}
    }

    // Or by hand.
    let own = TraceContext::parse("00-11112222333344445555666677778888-aaaabbbbccccdddd-00", None)?;
    ratchet.enqueue(charge()).trace_context(own).submit().await?.result().await?;

    ratchet.shutdown().await;
    Ok(())
}
