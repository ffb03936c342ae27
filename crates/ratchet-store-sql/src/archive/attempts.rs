//! How attempts are kept with an archived job: short, because there is one of these texts for each job that ever ran.

use std::time::Duration;

use jiff::Timestamp;
use ratchet_core::record::AttemptTiming;
use ratchet_core::{AttemptRecord, AttemptStatus, JobId, NodeId, StoreError};
use serde::{Deserialize, Serialize};

use crate::job_row::json_of;
use crate::waist::value::Value;

/// An attempt as a list of values: their names would take twice as much room as they do. On PostgreSQL the archive's table has 460
/// bytes for a job with one attempt, and had 780 with names.
///
/// Version, attempt, node, status; when it began, in microseconds since 1970, and how many later it ended; its duration and the wait
/// before it, in microseconds; class and text of the error.
#[derive(Debug, Serialize, Deserialize)]
struct Short(u64, u32, NodeId, AttemptStatus, i64, i64, u64, u64, Option<String>, Option<String>);

/// What may stand in the archive. Earlier versions wrote attempts with the names of everything.
#[derive(Deserialize)]
#[serde(untagged)]
enum Stored {
    Short(Short),
    Named(AttemptRecord),
}

/// The text for these attempts of one job.
pub(crate) fn write(attempts: &[AttemptRecord]) -> Result<Value, StoreError> {
    json_of(&attempts.iter().map(Short::of).collect::<Vec<_>>())
}

/// Reads such a text.
pub(crate) fn read(job_id: JobId, text: &str) -> Result<Vec<AttemptRecord>, serde_json::Error> {
    let stored: Vec<Stored> = serde_json::from_str(text)?;
    let records = stored.into_iter().map(|one| match one {
        Stored::Short(short) => short.into_record(job_id),
        Stored::Named(record) => Ok(record),
    });
    records.collect()
}

impl Short {
    fn of(record: &AttemptRecord) -> Self {
        let AttemptRecord { job_id: _, version, attempt, node, status, timing, error_class, error } = record;
        let AttemptTiming { started_at, ended_at, duration, queue_wait } = timing;
        let [began, ended] = [started_at, ended_at].map(|at| at.as_microsecond());
        let (duration, wait) = (micros(*duration), micros(*queue_wait));
        let (class, text) = (error_class.clone(), error.clone());
        Self(*version, *attempt, *node, *status, began, ended.saturating_sub(began), duration, wait, class, text)
    }

    fn into_record(self, job_id: JobId) -> Result<AttemptRecord, serde_json::Error> {
        let Self(version, attempt, node, status, began, lasted, duration, wait, error_class, error) = self;
        let time = |us| Timestamp::from_microsecond(us).map_err(<serde_json::Error as serde::de::Error>::custom);
        let timing = AttemptTiming {
            started_at: time(began)?,
            ended_at: time(began.saturating_add(lasted))?,
            duration: Duration::from_micros(duration),
            queue_wait: Duration::from_micros(wait),
        };
        Ok(AttemptRecord { job_id, version, attempt, node, status, timing, error_class, error })
    }
}

fn micros(duration: Duration) -> u64 {
    u64::try_from(duration.as_micros()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use uuid::Uuid;

    use super::*;

    fn record() -> AttemptRecord {
        AttemptRecord {
            job_id: JobId(Uuid::from_u128(1)),
            version: 3,
            attempt: 2,
            node: NodeId(Uuid::from_u128(2)),
            status: AttemptStatus::TimedOut,
            timing: AttemptTiming {
                started_at: Timestamp::from_microsecond(1_700_000_000_000_001).unwrap(),
                ended_at: Timestamp::from_microsecond(1_700_000_000_250_001).unwrap(),
                duration: Duration::from_micros(250_123),
                queue_wait: Duration::from_micros(7),
            },
            error_class: Some("Timeout".into()),
            error: Some("took \"long\"".into()),
        }
    }

    #[test]
    fn what_is_written_is_read() {
        let plain = AttemptRecord { error_class: None, error: None, status: AttemptStatus::Succeeded, ..record() };
        for attempts in [vec![], vec![plain.clone()], vec![record(), plain]] {
            let Value::Json(Some(text)) = write(&attempts).unwrap() else { panic!("no text") };
            assert_eq!(read(record().job_id, &text).unwrap(), attempts, "of {text}");
        }
    }

    #[test]
    fn what_earlier_versions_wrote_is_read() {
        let text = serde_json::to_string(&[record()]).unwrap();
        assert_eq!(read(record().job_id, &text).unwrap(), [record()]);
    }

    #[test]
    fn what_cannot_be_read_is_refused() {
        for text in ["[[1]]", "[{}]", "7", r#"[[1,1,"x","SUCCEEDED",0,0,0,0,null,null]]"#] {
            assert!(read(record().job_id, text).is_err(), "{text}");
        }
    }
}
