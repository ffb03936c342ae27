use std::fmt;

use ratchet_core::LogLevel;
use ratchet_core::job_log::{log_fields, log_message};
use serde::Serialize;
use serde_json::{Map, Value};

use crate::run::context::JobContext;

/// Events of this target were written through a [`JobLog`], and are in the job's log already.
pub(super) const TARGET: &str = "ratchet_engine::job_log";

/// Writes into a job's log. Every line also goes to `tracing`, with the job's id, kind and attempt.
///
/// Writing waits for nothing and cannot fail: lines go to the store in the background, and what is too much is left out,
/// counted, and told in the log. See [`JobLogs`](crate::JobLogs) for what is kept.
///
/// ```
/// # use ratchet_engine::JobContext;
/// # fn example(ctx: &JobContext) {
/// ctx.log().info("charging");
/// ctx.log().field("invoice", 17).field("cents", 4_200).warn("the card expires this month");
/// # }
/// # example(&JobContext::for_test().build().unwrap());
/// ```
#[derive(Debug, Clone)]
#[must_use = "nothing is written before a level is called, such as .info(…)"]
pub struct JobLog<'a> {
    ctx: &'a JobContext,
    fields: Map<String, Value>,
}

impl<'a> JobLog<'a> {
    pub(crate) fn new(ctx: &'a JobContext) -> Self {
        // An empty map takes no memory.
        Self { ctx, fields: Map::new() }
    }

    /// Says more about the next line: a name, and a value that is kept as JSON.
    ///
    /// A value that cannot be written as JSON is kept as the error's text.
    pub fn field(mut self, name: impl Into<String>, value: impl Serialize) -> Self {
        let value = serde_json::to_value(value).unwrap_or_else(|error| Value::String(error.to_string()));
        self.fields.insert(name.into(), value);
        self
    }

    /// Writes a line of this level.
    pub fn write(&self, level: LogLevel, message: impl fmt::Display) {
        match level {
            LogLevel::Trace => self.trace(message),
            LogLevel::Debug => self.debug(message),
            LogLevel::Info => self.info(message),
            LogLevel::Warn => self.warn(message),
            LogLevel::Error => self.error(message),
        }
    }

    fn keep(&self, level: LogLevel, message: &impl fmt::Display) {
        if self.ctx.keeps(level) {
            self.ctx.keep(level, log_message(&message.to_string()), log_fields(&self.fields));
        }
    }
}

macro_rules! log_levels {
    ($($(#[$doc:meta])* $level:ident $name:ident)*) => {
        impl JobLog<'_> {
            $($(#[$doc])*
            pub fn $level(&self, message: impl fmt::Display) {
                self.keep(LogLevel::$name, &message);
                let ctx = self.ctx;
                tracing::$level!(
                    target: TARGET,
                    { job.id = %ctx.id(), job.kind = %ctx.kind(), attempt = ctx.attempt(), fields = Shown::of(&self.fields) },
                    "{message}"
                );
            })*
        }
    };
}

log_levels! {
    /// For following every step.
    trace Trace
    /// For finding a fault.
    debug Debug
    /// Worth knowing.
    info Info
    /// Odd, but handled.
    warn Warn
    /// A person should look.
    error Error
}

/// Fields as `tracing` shows them: as JSON, if there are any.
struct Shown<'a>(&'a Map<String, Value>);

impl<'a> Shown<'a> {
    fn of(fields: &'a Map<String, Value>) -> Option<tracing::field::DisplayValue<Self>> {
        (!fields.is_empty()).then(|| tracing::field::display(Self(fields)))
    }
}

impl fmt::Display for Shown<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&serde_json::to_string(self.0).map_err(|_| fmt::Error)?)
    }
}
