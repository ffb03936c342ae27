use std::sync::Arc;
use std::time::Duration;

use ratchet_core::LogLine;
use tracing::Instrument as _;

use super::queue::LogQueue;
use super::sink::{JobLogSink, LogSinkError};
use crate::guard;
use crate::observe::stats::Loop;

/// How soon lines are tried again; twice as long after each further failure.
const PAUSE_MIN: Duration = Duration::from_millis(50);
const PAUSE_MAX: Duration = Duration::from_secs(5);
/// How often a group may be refused, as a whole and in parts, before the rest of it is given up: one bad line is found among
/// five hundred, and a sink that takes nothing is not asked five hundred times.
const REFUSALS_MAX: u32 = 16;

/// The one task of a node that writes jobs' logs.
pub(crate) struct LogWriter {
    pub(crate) queue: Arc<LogQueue>,
    pub(crate) sink: Arc<dyn JobLogSink>,
    /// How long one call of the sink may take.
    pub(crate) deadline: Duration,
}

impl LogWriter {
    /// Writes until the queue is closed and empty.
    pub(crate) async fn run(self) {
        let mut refused = 0;
        while let Some(lines) = self.queue.take().await {
            let (count, span) = (lines.len(), tracing::debug_span!("job.log", lines = lines.len()));
            let write = self.write(lines, &mut refused).instrument(span);
            if guard::run(self.queue.meter(), Loop::LogWriter.guarded(), write).await.is_err() {
                self.queue.lost(count);
            }
        }
    }

    /// Writes lines in their order. What is refused is halved until the lines at fault stand alone.
    ///
    /// `refused` counts what was given up since the start.
    async fn write(&self, lines: Arc<[LogLine]>, refused: &mut u64) {
        let mut refusals = 0;
        let mut groups = vec![lines];
        while let Some(group) = groups.pop() {
            match self.write_patiently(&group).await {
                Ok(()) => self.queue.written(group.len()),
                Err(error) => {
                    refusals += 1;
                    if group.len() > 1 && refusals < REFUSALS_MAX {
                        let (first, second) = group.split_at(group.len() / 2);
                        groups.extend([second.into(), first.into()]);
                    } else {
                        self.queue.lost(group.len());
                        *refused += 1;
                        tell_refused(*refused, group.len(), &error);
                    }
                }
            }
        }
    }

    /// Tries until the lines are written or refused.
    async fn write_patiently(&self, lines: &Arc<[LogLine]>) -> Result<(), LogSinkError> {
        let mut failures: u32 = 0;
        loop {
            let write = async { self.sink.write(lines.clone()).await };
            let call = guard::run(self.queue.meter(), guard::JOB_LOG_SINK, write);
            let error = match tokio::time::timeout(self.deadline, call).await {
                Ok(Ok(Ok(()))) => return Ok(()),
                Ok(Ok(Err(LogSinkError::Again(error)))) => error,
                Ok(Ok(Err(error))) => return Err(error),
                Ok(Err(_)) => return Err(LogSinkError::refused("the sink panicked")),
                Err(_) => format!("the sink took longer than {:?}", self.deadline).into(),
            };
            failures = failures.saturating_add(1);
            tell_failed(failures, self.queue.len(), &*error);
            let pause = PAUSE_MIN.saturating_mul(1 << failures.saturating_sub(1).min(10)).min(PAUSE_MAX);
            tokio::time::sleep(pause).await;
        }
    }
}

/// Seldom enough not to fill another log.
fn tell_failed(failures: u32, waiting: usize, error: &(dyn std::error::Error + 'static)) {
    if failures.is_power_of_two() {
        tracing::warn!(failures, waiting, error, "jobs' logs could not be written; trying again");
    }
}

fn tell_refused(refusals: u64, lines: usize, error: &LogSinkError) {
    if refusals.is_power_of_two() {
        let error = error as &dyn std::error::Error;
        tracing::error!(lines, refusals, error, "lines of jobs' logs were refused and are lost");
    }
}
