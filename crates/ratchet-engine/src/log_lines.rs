//! The lines that a unit test logs.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::{Arc, Mutex};

use tracing::field::{Field, Visit};
use tracing::subscriber::DefaultGuard;
use tracing_subscriber::layer::{Context, Layer, SubscriberExt as _};

/// The lines that this thread logs, in their order.
#[derive(Clone, Default)]
pub(crate) struct LogLines(Arc<Mutex<Vec<BTreeMap<&'static str, String>>>>);

impl LogLines {
    /// Begins to listen; the guard ends it.
    pub(crate) fn listen() -> (Self, DefaultGuard) {
        let lines = Self::default();
        let listening = tracing_subscriber::registry().with(lines.clone());
        (lines, tracing::subscriber::set_default(listening))
    }

    /// The value of a field in each line; `message` is one.
    pub(crate) fn field(&self, name: &str) -> Vec<String> {
        self.0.lock().unwrap().iter().map(|line| line[name].clone()).collect()
    }
}

impl<S: tracing::Subscriber> Layer<S> for LogLines {
    fn on_event(&self, event: &tracing::Event<'_>, _: Context<'_, S>) {
        struct Fields(BTreeMap<&'static str, String>);
        impl Visit for Fields {
            fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
                self.0.insert(field.name(), format!("{value:?}"));
            }
        }
        let mut fields = Fields(BTreeMap::new());
        event.record(&mut fields);
        self.0.lock().unwrap().push(fields.0);
    }
}
