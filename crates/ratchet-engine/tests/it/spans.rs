//! The spans of a node: their names, levels and fields are what people search for.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::{Arc, Mutex, OnceLock};
use std::time::Duration;

use ratchet_core::TraceContext;
use tracing::field::{Field, Visit};
use tracing::span::{Attributes, Id, Record};
use tracing::{Event, Level, Subscriber};
use tracing_subscriber::layer::{Context, Layer, SubscriberExt as _};
use tracing_subscriber::registry::LookupSpan;

use crate::job_logs::Scribe;
use crate::support::{Stage, eventually, memory, quick};

/// Listens to all tests of this binary, and remembers spans.
///
/// For the whole process, because `tracing` remembers of each place in the code whether anybody listens there, and a thread that
/// comes by first with nobody listening may decide that for the others.
pub(crate) fn listen() -> &'static Spans {
    static SPANS: OnceLock<Spans> = OnceLock::new();
    SPANS.get_or_init(|| {
        let spans = Spans::default();
        let listening = tracing_subscriber::registry().with(spans.clone());
        #[cfg(feature = "log-layer")]
        let listening = {
            let layer = ratchet_engine::JobLogLayer::new();
            listening.with(layer.with_filter(tracing_subscriber::filter::LevelFilter::INFO))
        };
        tracing::subscriber::set_global_default(listening).expect("nobody else listens");
        spans
    })
}

/// A span that was made, or a warning, which has no id.
#[derive(Debug, Clone)]
pub(crate) struct Made {
    id: u64,
    name: &'static str,
    level: Level,
    fields: BTreeMap<&'static str, String>,
    closed: bool,
}

impl Made {
    pub(crate) fn field(&self, name: &str) -> &str {
        &self.fields[name]
    }
}

/// Spans, in the order in which they were made, and warnings under that name.
#[derive(Debug, Clone, Default)]
pub(crate) struct Spans(Arc<Mutex<Vec<Made>>>);

impl Spans {
    fn named(&self, name: &str) -> Vec<Made> {
        self.0.lock().unwrap().iter().filter(|span| span.name == name).cloned().collect()
    }

    /// Those with this value in this field.
    pub(crate) fn with(&self, name: &str, field: &str, value: &str) -> Vec<Made> {
        let fits = |span: &Made| span.fields.get(field).is_some_and(|found| found == value);
        self.named(name).into_iter().filter(fits).collect()
    }
}

struct Fields<'a>(&'a mut BTreeMap<&'static str, String>);

impl Visit for Fields<'_> {
    fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
        self.0.insert(field.name(), format!("{value:?}"));
    }
}

impl<S: Subscriber + for<'l> LookupSpan<'l>> Layer<S> for Spans {
    fn on_new_span(&self, attributes: &Attributes<'_>, id: &Id, _: Context<'_, S>) {
        let metadata = attributes.metadata();
        let mut fields = BTreeMap::new();
        attributes.record(&mut Fields(&mut fields));
        if !metadata.target().starts_with("ratchet_engine") {
            return;
        }
        let made = Made { id: id.into_u64(), name: metadata.name(), level: *metadata.level(), fields, closed: false };
        self.0.lock().unwrap().push(made);
    }

    fn on_event(&self, event: &Event<'_>, _: Context<'_, S>) {
        let metadata = event.metadata();
        if *metadata.level() != Level::WARN || !metadata.target().starts_with("ratchet_engine") {
            return;
        }
        let mut fields = BTreeMap::new();
        event.record(&mut Fields(&mut fields));
        self.0.lock().unwrap().push(Made { id: 0, name: "warning", level: Level::WARN, fields, closed: false });
    }

    fn on_record(&self, id: &Id, values: &Record<'_>, _: Context<'_, S>) {
        let mut spans = self.0.lock().unwrap();
        if let Some(made) = spans.iter_mut().rev().find(|made| made.id == id.into_u64()) {
            values.record(&mut Fields(&mut made.fields));
        }
    }

    fn on_close(&self, id: Id, _: Context<'_, S>) {
        let ours = |made: &&mut Made| made.id == id.into_u64() && !made.closed;
        let is_slow = |made: &mut Made| made.fields.get("trace_id").is_some_and(|found| found == SLOW_TRACE);
        // Others may make spans while this one takes its time.
        if self.0.lock().unwrap().iter_mut().rev().find(ours).is_some_and(is_slow) {
            std::thread::sleep(Duration::from_millis(300));
        }
        if let Some(made) = self.0.lock().unwrap().iter_mut().rev().find(ours) {
            made.closed = true;
        }
    }
}

/// A span of this trace takes long to close, as where it is sent somewhere.
const SLOW_TRACE: &str = "5109510951095109510951095109510a";

#[tokio::test]
async fn every_room_has_a_span() {
    let spans = listen();
    let ratchet = quick(&Stage::default()).job::<Scribe>().store(memory()).start().await.unwrap();
    let trace = TraceContext::parse("00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01", None).unwrap();
    let handle = ratchet.enqueue(Scribe::of(1)).trace_context(trace).submit().await.unwrap();
    handle.result().await.unwrap();
    for name in ["job.submit", "job.turn", "job.run", "job.log", "node.reconcile", "node.upkeep", "node.heartbeat"] {
        eventually(name, async || !spans.named(name).is_empty()).await;
        let level = if name == "job.run" { Level::INFO } else { Level::DEBUG };
        assert!(spans.named(name).iter().all(|span| span.level == level), "{name}");
    }
    let run = spans.with("job.run", "job.id", &handle.id().to_string()).remove(0).fields;
    let node = ratchet.node_id().to_string();
    let expected = [
        ("attempt", "1".to_owned()),
        ("job.id", handle.id().to_string()),
        ("job.kind", "scribe".to_owned()),
        ("node", node.clone()),
        ("parent_span_id", "00f067aa0ba902b7".to_owned()),
        ("queue", "default".to_owned()),
        ("trace_id", "4bf92f3577b34da6a3ce929d0e0e4736".to_owned()),
    ];
    assert_eq!(run, BTreeMap::from(expected));
    for upkeep in ["rescue", "schedules", "signals", "batches", "retention"] {
        let of_loop = |span: &Made| span.fields["upkeep"].trim_matches('"') == upkeep;
        eventually(upkeep, async || spans.with("node.upkeep", "node", &node).iter().any(of_loop)).await;
    }
    for name in ["node.heartbeat", "node.reconcile"] {
        eventually(name, async || !spans.with(name, "node", &node).is_empty()).await;
    }
    ratchet.shutdown().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_stopped_node_has_closed_the_spans_of_its_runs() {
    let spans = listen();
    let ratchet = quick(&Stage::default()).job::<Scribe>().store(memory()).start().await.unwrap();
    let trace = TraceContext::parse(&format!("00-{SLOW_TRACE}-00f067aa0ba902b7-01"), None).unwrap();
    let handle = ratchet.enqueue(Scribe::of(1)).trace_context(trace).submit().await.unwrap();
    handle.result().await.unwrap();
    let run = || spans.with("job.run", "job.id", &handle.id().to_string()).remove(0);
    assert!(!run().closed, "the result is there before");
    ratchet.shutdown().await;
    assert!(run().closed);
}
