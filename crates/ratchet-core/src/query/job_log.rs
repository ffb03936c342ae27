//! What a job's handler wrote down while it ran.

use std::fmt;
use std::str::FromStr;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use crate::id::{JobId, NodeId};
use crate::invalid::InvalidInput;
use crate::json::{JsonText, without_nul};
use crate::limits;

/// How much a line matters; the later ones matter more.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Serialize, Deserialize)]
#[serde(rename_all = "UPPERCASE")]
#[repr(u8)]
pub enum LogLevel {
    /// For following every step.
    #[default]
    Trace = 1,
    /// For finding a fault.
    Debug = 2,
    /// Worth knowing.
    Info = 3,
    /// Odd, but handled.
    Warn = 4,
    /// A person should look.
    Error = 5,
}

impl LogLevel {
    /// Every level, the least first.
    pub const ALL: [Self; 5] = [Self::Trace, Self::Debug, Self::Info, Self::Warn, Self::Error];

    /// The number that is stored: 1 to 5.
    pub const fn number(self) -> u8 {
        self as u8
    }

    /// The level of a stored number.
    pub const fn from_number(number: u8) -> Option<Self> {
        match number {
            1 => Some(Self::Trace),
            2 => Some(Self::Debug),
            3 => Some(Self::Info),
            4 => Some(Self::Warn),
            5 => Some(Self::Error),
            _ => None,
        }
    }

    /// Its name, in capitals.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Trace => "TRACE",
            Self::Debug => "DEBUG",
            Self::Info => "INFO",
            Self::Warn => "WARN",
            Self::Error => "ERROR",
        }
    }
}

impl fmt::Display for LogLevel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

impl FromStr for LogLevel {
    type Err = InvalidInput;
    fn from_str(text: &str) -> Result<Self, InvalidInput> {
        Self::ALL.into_iter().find(|level| level.as_str().eq_ignore_ascii_case(text)).ok_or_else(|| {
            InvalidInput::new("level", format!("is {text:?}; use one of trace, debug, info, warn, error"))
        })
    }
}

/// One line of a job's log.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct LogLine {
    /// The job.
    pub job_id: JobId,
    /// The version of the claim: with the job's id, it names the attempt.
    pub version: u64,
    /// The line's number within the attempt, from 1.
    pub seq: u32,
    /// Which attempt it was, counting from 1; a crashed or deferred one shares its number with the next.
    pub attempt: u32,
    /// Who ran it.
    pub node: NodeId,
    /// When it was written, by the database's clock as far as the node knows it.
    pub at: Timestamp,
    /// How much it matters.
    pub level: LogLevel,
    /// What it says, at most [`LOG_MESSAGE_CHARS_MAX`](limits::LOG_MESSAGE_CHARS_MAX) characters.
    pub message: String,
    /// More about it: an object, at most [`LOG_FIELDS_BYTES_MAX`](limits::LOG_FIELDS_BYTES_MAX) bytes.
    pub fields: Option<JsonText>,
}

impl LogLine {
    /// Where it stands in the job's log.
    pub const fn place(&self) -> LogPlace {
        LogPlace { version: self.version, seq: self.seq }
    }

    /// About how many bytes it takes, in memory and on its way to the database.
    pub fn bytes(&self) -> usize {
        size_of::<Self>() + self.message.len() + self.fields.as_ref().map_or(0, |fields| fields.as_str().len())
    }
}

/// A message as it is kept: too long a one is cut, NUL characters are replaced.
pub fn log_message(text: &str) -> String {
    limits::storable(text, limits::LOG_MESSAGE_CHARS_MAX)
}

/// Fields as they are kept: NUL characters are replaced. Too large ones are left out, and `{"left_out_bytes": …}` stands
/// for them, because half an object is none.
pub fn log_fields(fields: &serde_json::Map<String, serde_json::Value>) -> Option<JsonText> {
    if fields.is_empty() {
        return None;
    }
    let text = without_nul(serde_json::to_string(fields).ok()?);
    let bytes = text.len();
    let text = if bytes > limits::LOG_FIELDS_BYTES_MAX { format!("{{\"left_out_bytes\":{bytes}}}") } else { text };
    Some(JsonText::from_store(text))
}

/// A place in a job's log: attempt by attempt, line by line. The page that follows it begins after it.
///
/// ```
/// use ratchet_core::job_log::LogPlace;
///
/// let place: LogPlace = "7-12".parse().unwrap();
/// assert_eq!(place, LogPlace { version: 7, seq: 12 });
/// assert_eq!(place.to_string(), "7-12");
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct LogPlace {
    /// The version of the attempt's claim.
    pub version: u64,
    /// The line's number within the attempt.
    pub seq: u32,
}

impl fmt::Display for LogPlace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}-{}", self.version, self.seq)
    }
}

impl FromStr for LogPlace {
    type Err = InvalidInput;
    fn from_str(text: &str) -> Result<Self, InvalidInput> {
        let parts = text.split_once('-');
        let parsed = parts.and_then(|(version, seq)| Some((version.parse().ok()?, seq.parse().ok()?)));
        parsed.map(|(version, seq)| Self { version, seq }).ok_or_else(|| {
            InvalidInput::new(
                "after",
                format!("is {text:?}, not a place in a log such as 7-12, as a page names the next"),
            )
        })
    }
}

/// Which lines to read; every field that is set narrows.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct LogFilter {
    /// Of this level or one that matters more.
    pub level_min: LogLevel,
    /// Of this attempt, counting from 1.
    pub attempt: Option<u32>,
}

impl LogFilter {
    /// Whether it lets a line through.
    pub fn passes(&self, line: &LogLine) -> bool {
        line.level >= self.level_min && self.attempt.is_none_or(|attempt| attempt == line.attempt)
    }
}

/// Some lines of a job's log, in the order in which they were written.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct LogPage {
    /// The lines.
    pub lines: Vec<LogLine>,
    /// Where the next page begins; `None` after the last. Of a job that runs, there may be more after the last later.
    pub next: Option<LogPlace>,
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn levels_are_ordered_and_come_back_from_their_numbers_and_names() {
        assert!(LogLevel::ALL.is_sorted());
        for level in LogLevel::ALL {
            assert_eq!(LogLevel::from_number(level.number()), Some(level));
            assert_eq!(level.as_str().to_lowercase().parse::<LogLevel>(), Ok(level));
        }
        assert_eq!((LogLevel::from_number(0), LogLevel::from_number(6)), (None, None));
        assert!("loud".parse::<LogLevel>().unwrap_err().to_string().contains("trace, debug, info, warn, error"));
    }

    #[test]
    fn places_are_read_as_they_are_written() {
        let check = |text: &str, place: Option<(u64, u32)>| {
            let parsed = text.parse::<LogPlace>().ok();
            assert_eq!(parsed, place.map(|(version, seq)| LogPlace { version, seq }), "{text}");
        };
        check("3-1", Some((3, 1)));
        check("18446744073709551615-4294967295", Some((u64::MAX, u32::MAX)));
        for wrong in ["", "3", "3-", "-1", "3-x", "3-1-1", "3-4294967296"] {
            check(wrong, None);
        }
        assert!(LogPlace { version: 1, seq: 9 } < LogPlace { version: 2, seq: 1 });
    }

    #[test]
    fn what_is_too_large_is_cut_or_left_out() {
        assert_eq!(log_message(&"é".repeat(8_000)).chars().count(), 8_000);
        assert_eq!(log_message(&"é".repeat(8_001)).chars().count(), 8_000);
        assert_eq!(log_message("a\0b"), "a\u{fffd}b");
        let fields = |value: serde_json::Value| log_fields(value.as_object().unwrap());
        assert_eq!(fields(json!({})), None);
        assert_eq!(fields(json!({"a": "x\0"})).unwrap().as_str(), r#"{"a":"x\ufffd"}"#);
        let limit = limits::LOG_FIELDS_BYTES_MAX;
        let largest = json!({"a": "x".repeat(limit - 8)});
        assert_eq!(fields(largest).unwrap().as_str().len(), limit);
        let left_out = format!(r#"{{"left_out_bytes":{}}}"#, limit + 1);
        assert_eq!(fields(json!({"a": "x".repeat(limit - 7)})).unwrap().as_str(), left_out);
    }
}
