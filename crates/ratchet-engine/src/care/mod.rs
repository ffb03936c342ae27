//! Care for what has ended: the dead letter queue, the archive, and how long things are kept.

mod events;
mod keeper;
mod letters;
mod portion;
mod shelve;
mod walk;

pub(crate) use events::CAPACITY;
pub use events::{BulkEvent, BulkEventKind, BulkEventStream};
pub(crate) use keeper::Keeper;
pub use letters::DeadLetterGroups;
pub(crate) use portion::Pace;
pub(crate) use shelve::LINES_TOGETHER;
