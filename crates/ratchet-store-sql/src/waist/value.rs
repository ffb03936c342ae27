use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use ratchet_core::{JobId, JobState, JsonText, NodeId};
use uuid::Uuid;

/// A value that is bound to a statement.
///
/// Each kind holds an `Option`, because some databases need to know the type of a NULL.
#[derive(Debug, Clone, PartialEq)]
pub enum Value {
    /// A whole number.
    Int(Option<i64>),
    /// A fraction.
    Real(Option<f64>),
    /// Yes or no.
    Bool(Option<bool>),
    /// Text.
    Text(Option<Arc<str>>),
    /// The id of a job or a node.
    Id(Option<Uuid>),
    /// A point in time, with microsecond precision.
    Time(Option<Timestamp>),
    /// JSON text.
    Json(Option<Arc<str>>),
    /// A list of values of one kind, for a database that has arrays.
    List(Vec<Value>),
}

impl Value {
    /// A count, an index or a version.
    pub fn count(number: impl TryInto<i64>) -> Self {
        Self::Int(Some(number.try_into().unwrap_or(i64::MAX)))
    }

    /// A count that may be missing.
    pub fn opt_count(number: Option<impl TryInto<i64>>) -> Self {
        number.map_or(Self::Int(None), Self::count)
    }

    /// Whether it is NULL.
    pub const fn is_null(&self) -> bool {
        match self {
            Self::Int(value) => value.is_none(),
            Self::Real(value) => value.is_none(),
            Self::Bool(value) => value.is_none(),
            Self::Text(value) | Self::Json(value) => value.is_none(),
            Self::Id(value) => value.is_none(),
            Self::Time(value) => value.is_none(),
            Self::List(_) => false,
        }
    }

    /// About how many bytes it takes on its way to the database.
    pub(crate) fn bytes(&self) -> usize {
        match self {
            Self::Text(Some(text)) | Self::Json(Some(text)) => text.len(),
            Self::List(list) => list.iter().map(Self::bytes).sum(),
            _ => 16,
        }
    }

    /// Text, or NULL.
    pub fn opt_text(text: Option<&str>) -> Self {
        Self::Text(text.map(Into::into))
    }

    /// JSON, or NULL.
    pub fn opt_json(text: Option<&str>) -> Self {
        Self::Json(text.map(Into::into))
    }

    /// Time, or NULL.
    pub fn opt_time(time: Option<Timestamp>) -> Self {
        Self::Time(time)
    }

    /// A duration in microseconds, cut to a thousand years so that adding it to a time cannot overflow.
    pub fn micros(duration: Duration) -> Self {
        Self::Int(Some(micros(duration)))
    }
}

/// Microseconds of a duration, cut to a thousand years.
pub(crate) fn micros(duration: Duration) -> i64 {
    const MICROS_MAX: i64 = 1_000 * 365 * 24 * 60 * 60 * 1_000_000;
    i64::try_from(duration.as_micros()).unwrap_or(MICROS_MAX).min(MICROS_MAX)
}

impl From<&str> for Value {
    fn from(text: &str) -> Self {
        Self::Text(Some(text.into()))
    }
}

impl From<JobState> for Value {
    fn from(state: JobState) -> Self {
        Self::from(state.as_str())
    }
}

impl From<JobId> for Value {
    fn from(id: JobId) -> Self {
        Self::Id(Some(id.0))
    }
}

impl From<NodeId> for Value {
    fn from(id: NodeId) -> Self {
        Self::Id(Some(id.0))
    }
}

impl From<&JsonText> for Value {
    fn from(json: &JsonText) -> Self {
        Self::Json(Some(json.as_str().into()))
    }
}

impl From<bool> for Value {
    fn from(yes: bool) -> Self {
        Self::Bool(Some(yes))
    }
}

impl From<Timestamp> for Value {
    fn from(time: Timestamp) -> Self {
        Self::Time(Some(time))
    }
}
