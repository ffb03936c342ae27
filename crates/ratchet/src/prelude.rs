//! Everything that an ordinary program needs: `use ratchet::prelude::*;`.

pub use crate::Backoff;
pub use crate::Client;
pub use crate::Failure;
pub use crate::Job;
pub use crate::JobContext;
pub use crate::JobDefaults;
pub use crate::JobError;
pub use crate::JobEventKind;
pub use crate::JobExt;
pub use crate::JobHandle;
pub use crate::JobId;
pub use crate::JobState;
pub use crate::Priority;
pub use crate::Ratchet;
pub use crate::State;
#[cfg(feature = "macros")]
pub use crate::job;
pub use crate::jobs;
#[cfg(feature = "mysql")]
pub use crate::mysql::MysqlStore;
#[cfg(feature = "postgres")]
pub use crate::postgres::PostgresStore;
#[cfg(feature = "sqlite")]
pub use crate::sqlite::SqliteStore;
