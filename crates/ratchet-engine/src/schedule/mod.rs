//! Schedules: asking for them, declaring them in code, and firing them.

mod builder;
mod handle;
mod steer;
mod declared;
mod declarations;
mod firer;
mod retire;

pub use builder::ScheduleBuilder;
pub use declared::Scheduled;
pub use handle::ScheduleHandle;

pub(crate) use declarations::Declarations;
pub(crate) use firer::Firer;
pub(crate) use steer::Notice;
