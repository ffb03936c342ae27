//! What a node says of itself goes into the record: that it fenced itself, was declared dead, or came too late.

use std::fmt::Debug;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use tracing::field::{Field, Visit};
use tracing::{Event, Level, Subscriber};
use tracing_subscriber::layer::{Context, Layer, SubscriberExt};
use tracing_subscriber::util::SubscriberInitExt;
use tracing_subscriber::{EnvFilter, fmt};

use crate::record::{Deed, Record};

/// A node that was not heard for two thirds of its grace stops its jobs.
pub const FENCED: &str = "no heartbeat for two thirds of the grace: running work is canceled";
/// Others declared it dead.
pub const DECLARED_DEAD: &str = "this node was declared dead; it goes on as a new incarnation";
/// Its result changed no row.
pub const TOO_LATE: &str = "a result came too late: the job was canceled or given to another node";
/// It claimed jobs of which it never heard.
pub const LOST_CLAIM: &str = "the reply to a claim was lost; its jobs were handed back";
/// The database rolled a transaction back to resolve a deadlock, and it was tried again.
const TRIED_AGAIN: &str = "a transaction is tried again";

/// How many transactions of this process were tried again.
#[derive(Debug, Clone, Default)]
pub struct TriedAgain(Arc<AtomicU64>);

impl TriedAgain {
    /// So many so far.
    pub fn count(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }
}

/// Logs to standard error as `RUST_LOG` says, errors if it says nothing, and warnings and errors to the record.
pub fn listen(record: Record) -> TriedAgain {
    let tried_again = TriedAgain::default();
    let to_record = ToRecord { record, tried_again: tried_again.clone() };
    let wanted = EnvFilter::new("warn,ratchet_store_pool=debug");
    let shown = EnvFilter::new(std::env::var("RUST_LOG").unwrap_or_else(|_| "error".to_owned()));
    tracing_subscriber::registry()
        .with(to_record.with_filter(wanted))
        .with(fmt::layer().with_writer(std::io::stderr).with_filter(shown))
        .init();
    tried_again
}

struct ToRecord {
    record: Record,
    tried_again: TriedAgain,
}

impl<S: Subscriber> Layer<S> for ToRecord {
    fn on_event(&self, event: &Event<'_>, _: Context<'_, S>) {
        let mut message = Message(String::new());
        event.record(&mut message);
        if *event.metadata().level() <= Level::WARN {
            self.record.add(Deed::Said(message.0));
        } else if message.0 == TRIED_AGAIN {
            self.tried_again.0.fetch_add(1, Ordering::Relaxed);
        }
    }
}

struct Message(String);

impl Visit for Message {
    fn record_debug(&mut self, field: &Field, value: &dyn Debug) {
        if field.name() == "message" {
            self.0 = format!("{value:?}");
        }
    }
}
