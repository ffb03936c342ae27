use std::sync::Arc;
use std::time::Duration;

use ratchet_core::{InvalidInput, LogLevel};

use super::sink::JobLogSink;

/// What is kept of jobs' logs, how much may wait to be written, and where it is written.
///
/// ```
/// use ratchet_core::LogLevel;
/// use ratchet_engine::JobLogs;
///
/// let logs = JobLogs { level_min: Some(LogLevel::Debug), ..JobLogs::default() };
/// assert_eq!(logs.lines_max, 2_000);
/// assert_eq!(JobLogs::off().level_min, None);
/// ```
#[derive(Debug, Clone)]
pub struct JobLogs {
    /// Lines of this level, or one that matters more, are kept; `None` keeps nothing.
    pub level_min: Option<LogLevel>,
    /// Most lines of one attempt. The last tenth is reserved for warnings and errors; what is left out is counted, and
    /// the attempt's last line says how many those were.
    pub lines_max: u32,
    /// Most lines that wait to be written, on this node. When so many do, further ones are left out, and the log says how
    /// many are missing.
    pub waiting_max: usize,
    /// How long a line waits for others that are written with it. When its attempt ends it waits no longer than 25 ms.
    pub gather: Duration,
    /// What takes the lines instead of the store's own table.
    pub sink: Option<Arc<dyn JobLogSink>>,
}

impl Default for JobLogs {
    /// From info on, 2,000 lines an attempt, 10,000 waiting, written after a quarter of a second.
    fn default() -> Self {
        Self {
            level_min: Some(LogLevel::Info),
            lines_max: 2_000,
            waiting_max: 10_000,
            gather: Duration::from_millis(250),
            sink: None,
        }
    }
}

impl JobLogs {
    /// Keeps nothing. What handlers log still goes to `tracing`.
    pub fn off() -> Self {
        Self { level_min: None, ..Self::default() }
    }

    /// The default limits, with lines that go to this sink instead of the store's own table.
    pub fn to(sink: impl JobLogSink) -> Self {
        Self { sink: Some(Arc::new(sink)), ..Self::default() }
    }

    pub(crate) fn check(&self) -> Result<(), InvalidInput> {
        let check_range = |field: &str, value: usize, most: usize| {
            if (1..=most).contains(&value) {
                return Ok(());
            }
            Err(InvalidInput::new(format!("job_logs.{field}"), format!("is {value}; use 1 to {most}")))
        };
        check_range("lines_max", usize::try_from(self.lines_max).unwrap_or(usize::MAX), 1_000_000)?;
        check_range("waiting_max", self.waiting_max, 1_000_000)?;
        if self.gather > Duration::from_mins(1) {
            let problem = format!("is {:?}; use at most a minute", self.gather);
            return Err(InvalidInput::new("job_logs.gather", problem));
        }
        Ok(())
    }

    /// Most lines that an attempt may have before one of this level is left out.
    pub(crate) fn room_for(&self, level: LogLevel) -> u32 {
        if level >= LogLevel::Warn { self.lines_max } else { self.lines_max - self.lines_max / 10 }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bounds_are_named_and_the_last_tenth_is_for_what_matters() {
        let check = |logs: JobLogs, field: Option<&str>| {
            let refused = logs.check().err();
            assert_eq!(refused.as_ref().map(InvalidInput::field), field, "{refused:?}");
        };
        let good = JobLogs::default;
        check(good(), None);
        check(JobLogs::off(), None);
        check(JobLogs { lines_max: 0, ..good() }, Some("job_logs.lines_max"));
        check(JobLogs { waiting_max: 0, ..good() }, Some("job_logs.waiting_max"));
        check(JobLogs { waiting_max: 1_000_001, ..good() }, Some("job_logs.waiting_max"));
        check(JobLogs { gather: Duration::from_secs(61), ..good() }, Some("job_logs.gather"));
        assert_eq!((good().room_for(LogLevel::Info), good().room_for(LogLevel::Warn)), (1_800, 2_000));
        let one = JobLogs { lines_max: 1, ..good() };
        assert_eq!((one.room_for(LogLevel::Info), one.room_for(LogLevel::Error)), (1, 1));
    }
}
