use std::fmt;

use ratchet_core::LogLevel;
use ratchet_core::job_log::{log_fields, log_message};
use serde_json::{Map, Value};
use tracing::field::{Field, Visit};
use tracing::span::{Attributes, Id};
use tracing::{Event, Level, Subscriber};
use tracing_subscriber::layer::{Context, Layer};
use tracing_subscriber::registry::LookupSpan;

use crate::run::RUN_SPAN;
use crate::run::context::JobContext;

/// Brings events that code under a handler gives to `tracing` into the job's log, wherever that code is: what happens inside
/// the span of a run belongs to its job. Spawned tasks are part of it if they carry the span along (`.in_current_span()`).
///
/// ```
/// use ratchet_engine::JobLogLayer;
/// use tracing_subscriber::filter::LevelFilter;
/// use tracing_subscriber::layer::{Layer as _, SubscriberExt as _};
///
/// // Info and above, of everything; which of it is kept is then said by the builder's `job_logs(…)`.
/// let subscriber = tracing_subscriber::registry().with(JobLogLayer::new().with_filter(LevelFilter::INFO));
/// # drop(subscriber);
/// ```
///
/// A filter on the layer has to let the span `job.run` through, which is of the level info. What `ctx.log()` writes is in the log
/// already and is not taken twice, and what Ratchet itself says about a run is left out.
#[derive(Debug, Clone, Copy, Default)]
pub struct JobLogLayer {
    _private: (),
}

impl JobLogLayer {
    /// The layer.
    pub fn new() -> Self {
        Self::default()
    }
}

/// Whose run a span is.
struct RunOf(JobContext);

impl<S: Subscriber + for<'l> LookupSpan<'l>> Layer<S> for JobLogLayer {
    fn on_new_span(&self, attributes: &Attributes<'_>, id: &Id, ctx: Context<'_, S>) {
        let metadata = attributes.metadata();
        if metadata.name() != RUN_SPAN || !is_ours(metadata.target()) {
            return;
        }
        if let (Some(span), Some(job)) = (ctx.span(id), JobContext::current()) {
            span.extensions_mut().insert(RunOf(job));
        }
    }

    fn on_event(&self, event: &Event<'_>, ctx: Context<'_, S>) {
        let metadata = event.metadata();
        if is_ours(metadata.target()) {
            return;
        }
        let Some(scope) = ctx.event_scope(event) else { return };
        let job = scope.into_iter().find_map(|span| span.extensions().get::<RunOf>().map(|run| run.0.clone()));
        let level = level_of(*metadata.level());
        let Some(job) = job.filter(|job| job.keeps(level)) else { return };
        let mut seen = Seen::default();
        event.record(&mut seen);
        seen.fields.insert("target".to_owned(), metadata.target().into());
        job.keep(level, log_message(&seen.message), log_fields(&seen.fields));
    }
}

/// Whether something was said by Ratchet itself.
fn is_ours(target: &str) -> bool {
    target.starts_with("ratchet_engine")
}

fn level_of(level: Level) -> LogLevel {
    match level {
        Level::ERROR => LogLevel::Error,
        Level::WARN => LogLevel::Warn,
        Level::INFO => LogLevel::Info,
        Level::DEBUG => LogLevel::Debug,
        _ => LogLevel::Trace,
    }
}

/// What an event says: its message, and the rest as JSON.
#[derive(Default)]
struct Seen {
    message: String,
    fields: Map<String, Value>,
}

impl Seen {
    fn insert(&mut self, field: &Field, value: Value) {
        if field.name() != "message" {
            self.fields.insert(field.name().to_owned(), value);
        } else if let Value::String(text) = value {
            self.message = text;
        }
    }
}

impl Visit for Seen {
    fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
        self.insert(field, format!("{value:?}").into());
    }

    fn record_str(&mut self, field: &Field, value: &str) {
        self.insert(field, value.into());
    }

    fn record_i64(&mut self, field: &Field, value: i64) {
        self.insert(field, value.into());
    }

    fn record_u64(&mut self, field: &Field, value: u64) {
        self.insert(field, value.into());
    }

    fn record_f64(&mut self, field: &Field, value: f64) {
        self.insert(field, value.into());
    }

    fn record_bool(&mut self, field: &Field, value: bool) {
        self.insert(field, value.into());
    }

    fn record_error(&mut self, field: &Field, value: &(dyn std::error::Error + 'static)) {
        self.insert(field, value.to_string().into());
    }
}
