//! What migrations have to carry over: a store's own test writes it into the older schema, migrates and has it looked at.

use jiff::Timestamp;
use ratchet_core::store::JobLogStore;
use ratchet_core::{JobId, LogFilter, LogLevel, LogLine, NodeId};
use serde_json::json;
use uuid::Uuid;

use crate::bench::json as text;

/// A job with a log of two lines, of a node that has the same id.
pub const JOB: JobId = JobId(Uuid::from_u128(0x0190_0000_0000_7000_8000_0000_0000_0001));

/// Its lines.
pub fn lines() -> [LogLine; 2] {
    let first = LogLine {
        job_id: JOB,
        version: 3,
        seq: 1,
        attempt: 2,
        node: NodeId(JOB.0),
        // 2023-11-14 22:13:20.123456 UTC
        at: Timestamp::from_microsecond(1_700_000_000_123_456).unwrap(),
        level: LogLevel::Info,
        message: String::from("two\nlines"),
        fields: None,
    };
    let fields = Some(text(&json!({"a": "b"})));
    let second = LogLine { seq: 2, level: LogLevel::Error, message: String::from("rich"), fields, ..first.clone() };
    [first, second]
}

/// Checks that the store has the lines.
pub async fn assert_lines_are_there(store: &dyn JobLogStore) {
    let read = store.read_log(JOB, &LogFilter::default(), None, 10).await.unwrap().lines;
    assert_eq!(read.len(), 2, "{read:?}");
    for (read, given) in read.into_iter().zip(lines()) {
        let (is, was) = (read.fields.clone(), given.fields.clone());
        assert!(is == was || is.zip(was).is_some_and(|(is, was)| is.means_the_same(&was)), "{:?}", read.fields);
        assert_eq!(LogLine { fields: None, ..read }, LogLine { fields: None, ..given });
    }
}
