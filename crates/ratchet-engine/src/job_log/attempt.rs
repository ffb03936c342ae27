use std::sync::{Mutex, PoisonError};

use ratchet_core::{JsonText, LogLevel, LogLine};

use super::queue::{LineKind, LogQueue};

/// The log of one attempt: numbers its lines and counts those that are missing. A job that logs nothing pays for a lock
/// that nobody takes.
#[derive(Debug, Default)]
pub(crate) struct AttemptLog {
    cell: Mutex<Cell>,
}

#[derive(Debug, Default)]
struct Cell {
    /// How many lines there are, and the number of the last.
    lines: u32,
    /// How many are missing since the last one because the queue was full.
    crowded_out: u32,
    /// How many are missing because the attempt had written its share.
    over: u32,
}

/// A line that is about to be written; what all lines of the attempt have in common is in `like`.
pub(crate) struct Writing {
    pub(crate) like: LogLine,
    pub(crate) level: LogLevel,
    pub(crate) message: String,
    pub(crate) fields: Option<JsonText>,
}

impl AttemptLog {
    /// Writes a line, or counts it as missing.
    pub(crate) fn write(&self, queue: &LogQueue, writing: Writing) {
        if !self.try_write(queue, writing) {
            // After the lock is given back: whoever counts may log.
            queue.lost(1);
        }
    }

    fn try_write(&self, queue: &LogQueue, writing: Writing) -> bool {
        let Writing { like, level, message, fields } = writing;
        let mut cell = self.cell.lock().unwrap_or_else(PoisonError::into_inner);
        if cell.lines >= queue.config().room_for(level) {
            cell.over += 1;
            return false;
        }
        let told = cell.crowded_out == 0 || cell.tell_crowded_out(queue, &like, LineKind::Written);
        let kept = told && cell.push(queue, LogLine { level, message, fields, ..like }, LineKind::Written);
        if !kept {
            cell.crowded_out += 1;
        }
        kept
    }

    /// The attempt has ended: says what is missing, and has its lines written soon.
    ///
    /// `like` is asked for only if there is something to say.
    pub(crate) fn end(&self, queue: &LogQueue, like: impl Fn() -> LogLine) {
        let mut cell = self.cell.lock().unwrap_or_else(PoisonError::into_inner);
        if cell.crowded_out > 0 {
            cell.tell_crowded_out(queue, &like(), LineKind::LastWord);
        }
        if cell.over > 0 {
            let most = queue.config().lines_max;
            let message = format!("{} lines were left out: an attempt may write {most}", cell.over);
            let line = LogLine { level: LogLevel::Warn, message, fields: Some(missing(cell.over)), ..like() };
            if cell.push(queue, line, LineKind::LastWord) {
                cell.over = 0;
            }
        }
        let wrote = cell.lines > 0;
        drop(cell);
        if wrote {
            queue.attempt_ended();
        }
    }
}

impl Cell {
    fn push(&mut self, queue: &LogQueue, line: LogLine, sort: LineKind) -> bool {
        let seq = self.lines + 1;
        let pushed = queue.push(LogLine { seq, ..line }, sort);
        self.lines += u32::from(pushed);
        pushed
    }

    /// Says in the log how many lines are missing at this place.
    fn tell_crowded_out(&mut self, queue: &LogQueue, like: &LogLine, sort: LineKind) -> bool {
        let count = self.crowded_out;
        let message = format!("{count} lines are missing here: they came faster than they could be written");
        let line = LogLine { level: LogLevel::Warn, message, fields: Some(missing(count)), ..like.clone() };
        let told = self.push(queue, line, sort);
        if told {
            self.crowded_out = 0;
        }
        told
    }
}

fn missing(count: u32) -> JsonText {
    JsonText::from_store(format!("{{\"missing\":{count}}}"))
}

#[cfg(test)]
pub(super) mod tests {
    use std::sync::Arc;

    use jiff::Timestamp;
    use ratchet_core::{JobId, NodeId};
    use uuid::Uuid;

    use super::*;
    use crate::job_log::JobLogs;
    use crate::observe::metrics::Meter;
    use crate::observe::stats::Counters;

    /// A line of this number.
    pub(in crate::job_log) fn line(seq: u32) -> LogLine {
        LogLine {
            job_id: JobId(Uuid::nil()),
            version: 1,
            seq,
            attempt: 1,
            node: NodeId(Uuid::nil()),
            at: Timestamp::UNIX_EPOCH,
            level: LogLevel::Info,
            message: format!("line {seq}"),
            fields: None,
        }
    }

    fn queue(lines_max: u32, waiting_max: usize) -> (Arc<LogQueue>, Arc<Counters>) {
        let counters = Arc::new(Counters::new(Meter::default()));
        let config = JobLogs { lines_max, waiting_max, ..JobLogs::default() };
        (LogQueue::new(config, counters.clone()), counters)
    }

    fn write(log: &AttemptLog, queue: &LogQueue, level: LogLevel, message: &str) {
        log.write(queue, Writing { like: line(0), level, message: message.to_owned(), fields: None });
    }

    async fn taken(queue: &LogQueue) -> Vec<(u32, String)> {
        queue.attempt_ended();
        queue.take().await.unwrap().iter().map(|line| (line.seq, line.message.clone())).collect()
    }

    #[tokio::test]
    async fn the_log_says_how_many_lines_a_full_queue_left_out() {
        let (queue, counters) = queue(100, 2);
        let log = AttemptLog::default();
        for message in ["a", "b", "c", "d"] {
            write(&log, &queue, LogLevel::Info, message);
        }
        let numbered =
            |texts: &[(u32, &str)]| texts.iter().map(|(seq, text)| (*seq, (*text).to_owned())).collect::<Vec<_>>();
        assert_eq!(taken(&queue).await, numbered(&[(1, "a"), (2, "b")]));
        write(&log, &queue, LogLevel::Info, "e");
        let missing = "2 lines are missing here: they came faster than they could be written";
        assert_eq!(taken(&queue).await, numbered(&[(3, missing), (4, "e")]));
        for message in ["f", "g", "h"] {
            write(&log, &queue, LogLevel::Info, message);
        }
        log.end(&queue, || line(0));
        let missing = "1 lines are missing here: they came faster than they could be written";
        assert_eq!(taken(&queue).await, numbered(&[(5, "f"), (6, "g"), (7, missing)]), "at the end at the latest");
        assert_eq!(counters.read().log_lines_lost, 3);
    }

    #[tokio::test]
    async fn an_attempt_has_its_share_of_lines_and_room_for_what_matters() {
        let (queue, counters) = queue(10, 100);
        let log = AttemptLog::default();
        for at in 0..20 {
            write(&log, &queue, LogLevel::Info, &format!("info {at}"));
        }
        for at in 0..3 {
            write(&log, &queue, LogLevel::Error, &format!("error {at}"));
        }
        log.end(&queue, || line(0));
        let lines = taken(&queue).await;
        assert_eq!(lines.len(), 11);
        assert_eq!((lines[8].1.as_str(), lines[9].1.as_str()), ("info 8", "error 0"));
        assert_eq!(lines[10].1, "13 lines were left out: an attempt may write 10");
        assert_eq!(counters.read().log_lines_lost, 13);
        log.end(&queue, || panic!("there is nothing more to say"));
    }

    #[test]
    fn an_attempt_that_logs_nothing_stirs_nobody() {
        let (queue, _) = queue(10, 10);
        AttemptLog::default().end(&queue, || panic!("there is nothing to say"));
        assert_eq!(queue.len(), 0);
    }
}
