//! Lines of jobs' logs as they are kept: those of an attempt that are written together share a row, since most of what a
//! line costs is its row.

use jiff::Timestamp;
use ratchet_core::{ErrorKind, JobId, JsonText, LogLevel, LogLine, NodeId, StoreError};
use serde::{Deserialize, Serialize};

use crate::waist::row::Row;
use crate::waist::value::Value;

/// Most lines of a row.
const LINES_MAX: usize = 100;
/// A row that has come to so many bytes is full.
const BYTES_FULL: usize = 32 * 1024;

/// Lines of one attempt whose numbers follow each other.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct LogGroup {
    job_id: JobId,
    version: u64,
    /// The number of its first line, and that of its last.
    seq: u32,
    seq_last: u32,
    attempt: u32,
    node: NodeId,
    /// The highest of them: whoever looks for warnings passes over what has none.
    level: LogLevel,
    /// The latest of them: it is old when all of them are.
    at: Timestamp,
    lines: String,
}

/// A line in its row's JSON; what it has in common with its neighbours is in the row.
#[derive(Serialize)]
struct StoredLine<'a> {
    /// Microseconds since 1970.
    at: i64,
    level: u8,
    message: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    fields: Option<&'a JsonText>,
}

#[derive(Deserialize)]
struct Read {
    at: i64,
    level: u8,
    message: String,
    fields: Option<JsonText>,
}

/// Puts lines into groups; of lines with the same place the first counts.
pub(crate) fn groups<'a>(lines: impl IntoIterator<Item = &'a LogLine>) -> Result<Vec<LogGroup>, StoreError> {
    let mut lines: Vec<&LogLine> = lines.into_iter().collect();
    lines.sort_by_key(|line| (line.job_id, line.version, line.seq));
    lines.dedup_by_key(|line| (line.job_id, line.version, line.seq));
    let mut groups: Vec<LogGroup> = Vec::new();
    for line in lines {
        match groups.last_mut().filter(|group| group.is_continued_by(line)) {
            Some(group) => group.push(line)?,
            None => groups.push(LogGroup::begin(line)?),
        }
    }
    for group in &mut groups {
        group.lines.push(']');
    }
    Ok(groups)
}

impl LogGroup {
    fn begin(line: &LogLine) -> Result<Self, StoreError> {
        let mut group = Self {
            job_id: line.job_id,
            version: line.version,
            seq: line.seq,
            seq_last: line.seq,
            attempt: line.attempt,
            node: line.node,
            level: line.level,
            at: line.at,
            lines: String::with_capacity(256),
        };
        group.push(line)?;
        Ok(group)
    }

    fn is_continued_by(&self, line: &LogLine) -> bool {
        let attempt = (self.job_id, self.version, self.attempt, self.node);
        let full = self.len() >= LINES_MAX || self.lines.len() >= BYTES_FULL;
        !full
            && attempt == (line.job_id, line.version, line.attempt, line.node)
            && self.seq_last.checked_add(1) == Some(line.seq)
    }

    fn push(&mut self, line: &LogLine) -> Result<(), StoreError> {
        self.lines.push(if self.lines.is_empty() { '[' } else { ',' });
        self.seq_last = line.seq;
        self.level = self.level.max(line.level);
        self.at = self.at.max(line.at);
        let kept = StoredLine {
            at: line.at.as_microsecond(),
            level: line.level.number(),
            message: &line.message,
            fields: line.fields.as_ref(),
        };
        let text = serde_json::to_string(&kept).map_err(|error| {
            let doing = format!("writing line {} of job {}'s log", line.place(), line.job_id);
            StoreError::new(ErrorKind::Invalid, doing, "its fields are not JSON").with_source(error)
        })?;
        self.lines.push_str(&text);
        Ok(())
    }

    /// How many lines it has.
    fn len(&self) -> usize {
        lines_from_to(self.seq, self.seq_last)
    }

    /// Its columns: job_id, version, seq, seq_last, attempt, level, node_id, logged_at, content.
    pub(crate) fn bind(&self, values: &mut Vec<Value>) {
        values.extend([
            self.job_id.into(),
            Value::count(self.version),
            Value::count(self.seq),
            Value::count(self.seq_last),
            Value::count(self.attempt),
            Value::count(self.level.number()),
            self.node.into(),
            self.at.into(),
            self.lines.as_str().into(),
        ]);
    }
}

/// How many lines a row with these numbers has.
pub(crate) fn lines_from_to(seq: u32, seq_last: u32) -> usize {
    usize::try_from(seq_last.saturating_sub(seq)).map_or(usize::MAX, |more| more.saturating_add(1))
}

/// The lines of a row with the columns version, seq, attempt, node_id, content.
pub(crate) fn lines_of(job_id: JobId, row: &Row) -> Result<Vec<LogLine>, StoreError> {
    let mut fields = row.fields();
    let (version, seq, attempt) = (fields.number("version")?, fields.number::<u32>("seq")?, fields.number("attempt")?);
    let node = fields.node_id("node_id")?;
    let doing = || format!("reading line {version}-{seq} of job {job_id}'s log, and those kept with it");
    let invalid = |problem: &str| StoreError::new(ErrorKind::Invalid, doing(), problem);
    let read: Vec<Read> = serde_json::from_str(fields.text("content")?)
        .map_err(|error| invalid("they are not what this version writes").with_source(error))?;
    let line = |(seq, line): (u32, Read)| {
        Ok(LogLine {
            job_id,
            version,
            seq,
            attempt,
            node,
            at: Timestamp::from_microsecond(line.at)
                .map_err(|error| invalid("their time is out of range").with_source(error))?,
            level: LogLevel::from_number(line.level)
                .ok_or_else(|| invalid("their level is unknown to this version"))?,
            message: line.message,
            fields: line.fields,
        })
    };
    (seq..).zip(read).map(line).collect()
}

#[cfg(test)]
mod tests {
    use uuid::Uuid;

    use super::*;

    fn line(job: u128, version: u64, seq: u32) -> LogLine {
        LogLine {
            job_id: JobId(Uuid::from_u128(job)),
            version,
            seq,
            attempt: 1,
            node: NodeId(Uuid::nil()),
            at: Timestamp::UNIX_EPOCH,
            level: LogLevel::Info,
            message: String::from("a"),
            fields: None,
        }
    }

    fn ranges(lines: &[LogLine]) -> Vec<(u128, u64, u32, u32)> {
        let groups = groups(lines).unwrap();
        groups.iter().map(|group| (group.job_id.0.as_u128(), group.version, group.seq, group.seq_last)).collect()
    }

    #[test]
    fn lines_of_an_attempt_that_follow_each_other_share_a_row() {
        let given = [line(2, 1, 1), line(1, 3, 2), line(1, 3, 1), line(1, 4, 3), line(1, 3, 4), line(2, 1, 2)];
        assert_eq!(ranges(&given), [(1, 3, 1, 2), (1, 3, 4, 4), (1, 4, 3, 3), (2, 1, 1, 2)]);
        let elsewhere = LogLine { node: NodeId(Uuid::from_u128(9)), ..line(1, 1, 2) };
        assert_eq!(ranges(&[line(1, 1, 1), elsewhere]), [(1, 1, 1, 1), (1, 1, 2, 2)]);
        assert_eq!(ranges(&[]), []);
    }

    #[test]
    fn a_row_has_the_highest_level_the_latest_time_and_the_first_of_twins() {
        let at = Timestamp::from_microsecond(1_500_000).unwrap();
        let loud =
            LogLine { level: LogLevel::Error, at, fields: Some(JsonText::from_store(r#"{"n":1}"#)), ..line(1, 1, 2) };
        let twin = LogLine { message: String::from("other"), ..line(1, 1, 1) };
        let groups = groups(&[line(1, 1, 1), loud, line(1, 1, 3), twin]).unwrap();
        let [group] = &groups[..] else { panic!("{groups:?}") };
        assert_eq!((group.level, group.at, group.len()), (LogLevel::Error, at, 3));
        let quiet = r#"{"at":0,"level":3,"message":"a"}"#;
        let loud = r#"{"at":1500000,"level":5,"message":"a","fields":{"n":1}}"#;
        assert_eq!(group.lines, format!("[{quiet},{loud},{quiet}]"));
    }

    #[test]
    fn rows_have_an_end() {
        let many: Vec<_> = (1..=250).map(|seq| line(1, 1, seq)).collect();
        assert_eq!(ranges(&many), [(1, 1, 1, 100), (1, 1, 101, 200), (1, 1, 201, 250)]);
        let long: Vec<_> =
            (1..=4).map(|seq| LogLine { message: "x".repeat(BYTES_FULL / 2), ..line(1, 1, seq) }).collect();
        assert_eq!(ranges(&long), [(1, 1, 1, 2), (1, 1, 3, 4)]);
        assert_eq!(ranges(&[line(1, 1, u32::MAX)]), [(1, 1, u32::MAX, u32::MAX)]);
    }

    #[test]
    fn fields_that_are_not_json_are_refused() {
        let broken = LogLine { fields: Some(JsonText::from_store("{")), ..line(1, 2, 3) };
        let error = groups(&[broken]).unwrap_err();
        assert_eq!(*error.kind(), ErrorKind::Invalid);
        assert!(error.to_string().contains("line 2-3"), "{error}");
    }
}
