use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use ratchet_core::{LogLevel, LogLine};
use tokio::sync::Notify;
use tokio::time::Instant;

use super::config::JobLogs;
use crate::observe::metrics::Meter;
use crate::observe::stats::Counters;

/// Lines that are written in one call.
const LINES_TOGETHER: usize = 500;
const BYTES_TOGETHER: usize = 1024 * 1024;
/// Most bytes that wait to be written.
const BYTES_MAX: usize = 16 * 1024 * 1024;
/// How soon lines are written when an attempt has ended: whoever waits for a job looks at its log next.
const SOON: Duration = Duration::from_millis(25);

/// Lines that wait to be written. Handlers put them in and wait for nothing; one task takes them out.
#[derive(Debug)]
pub(crate) struct LogQueue {
    config: JobLogs,
    counters: Arc<Counters>,
    waiting: Mutex<WaitingLines>,
    /// Told when the writer has a reason to look.
    stirred: Notify,
}

#[derive(Debug, Default)]
struct WaitingLines {
    lines: VecDeque<LogLine>,
    bytes: usize,
    /// When those that wait are to be written at the latest.
    due: Option<Instant>,
    /// Whether an attempt has ended since the last were taken.
    hurried: bool,
    closed: bool,
}

/// What a line is, to the queue.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum LineKind {
    /// What a handler wrote.
    Written,
    /// The last word of an attempt on what is missing: taken when the queue is full, too, as long as it is not twice as full.
    LastWord,
}

impl LogQueue {
    pub(crate) fn new(config: JobLogs, counters: Arc<Counters>) -> Arc<Self> {
        Arc::new(Self { config, counters, waiting: Mutex::default(), stirred: Notify::new() })
    }

    pub(super) fn config(&self) -> &JobLogs {
        &self.config
    }

    pub(super) fn meter(&self) -> &Meter {
        &self.counters.meter
    }

    /// Whether lines of this level are kept.
    pub(crate) fn keeps(&self, level: LogLevel) -> bool {
        self.config.level_min.is_some_and(|least| level >= least)
    }

    /// Puts a line in; `false` if there is no room for it.
    pub(super) fn push(&self, line: LogLine, sort: LineKind) -> bool {
        let bytes = line.bytes();
        let mut waiting = self.lock();
        let times = if sort == LineKind::LastWord { 2 } else { 1 };
        let full = waiting.lines.len() >= self.config.waiting_max * times || waiting.bytes + bytes > BYTES_MAX * times;
        if full || waiting.closed {
            return false;
        }
        waiting.lines.push_back(line);
        waiting.bytes += bytes;
        let first = waiting.due.is_none();
        if first {
            waiting.due = Some(Instant::now() + self.config.gather);
        }
        let enough = waiting.is_enough();
        drop(waiting);
        if first || enough {
            self.stirred.notify_one();
        }
        true
    }

    /// An attempt that has written lines has ended.
    pub(super) fn attempt_ended(&self) {
        let mut waiting = self.lock();
        if waiting.hurried || waiting.lines.is_empty() {
            return;
        }
        waiting.hurried = true;
        let soon = Instant::now() + SOON;
        waiting.due = waiting.due.map(|due| due.min(soon));
        drop(waiting);
        self.stirred.notify_one();
    }

    /// So many lines were not kept.
    pub(crate) fn lost(&self, lines: usize) {
        self.counters.log_lines_lost.add(lines);
    }

    /// So many lines were written.
    pub(super) fn written(&self, lines: usize) {
        self.counters.log_lines.add(lines);
    }

    /// Waits until there are lines to be written, and takes some; `None` when there are none and none will come.
    pub(super) async fn take(&self) -> Option<Arc<[LogLine]>> {
        loop {
            let until = {
                let mut waiting = self.lock();
                match waiting.due {
                    None if waiting.closed => return None,
                    None => None,
                    Some(due) if waiting.closed || waiting.is_enough() || due <= Instant::now() => {
                        return Some(waiting.take_some().into());
                    }
                    due => due,
                }
            };
            match until {
                None => self.stirred.notified().await,
                Some(due) => {
                    let _ = tokio::time::timeout_at(due, self.stirred.notified()).await;
                }
            }
        }
    }

    /// Takes no further lines. Those that wait are written at once.
    pub(crate) fn close(&self) {
        self.lock().closed = true;
        self.stirred.notify_one();
    }

    /// How many wait.
    pub(crate) fn len(&self) -> usize {
        self.lock().lines.len()
    }

    fn lock(&self) -> MutexGuard<'_, WaitingLines> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl WaitingLines {
    fn is_enough(&self) -> bool {
        self.lines.len() >= LINES_TOGETHER || self.bytes >= BYTES_TOGETHER
    }

    /// As many as are written in one call, and at least one.
    fn take_some(&mut self) -> Vec<LogLine> {
        let mut taken = Vec::with_capacity(self.lines.len().min(LINES_TOGETHER));
        let mut bytes = 0;
        while let Some(line) = self.lines.front() {
            bytes += line.bytes();
            if !taken.is_empty() && (taken.len() == LINES_TOGETHER || bytes > BYTES_TOGETHER) {
                break;
            }
            self.bytes -= line.bytes();
            taken.extend(self.lines.pop_front());
        }
        if self.lines.is_empty() {
            // A burst is no reason to hold on to its memory.
            self.lines.shrink_to(LINES_TOGETHER);
            self.due = None;
            self.hurried = false;
        } else {
            // They have waited while the ones before were written.
            self.due = Some(Instant::now());
        }
        taken
    }
}

#[cfg(test)]
mod tests {
    use super::super::attempt::tests::line;
    use super::*;

    fn queue(config: JobLogs) -> Arc<LogQueue> {
        LogQueue::new(config, Arc::new(Counters::new(Meter::default())))
    }

    fn push(queue: &LogQueue, count: u32) -> usize {
        (1..=count).filter(|seq| queue.push(line(*seq), LineKind::Written)).count()
    }

    #[tokio::test(start_paused = true)]
    async fn lines_are_taken_when_they_have_gathered() {
        let queue = queue(JobLogs::default());
        push(&queue, 3);
        let begun = Instant::now();
        assert_eq!(queue.take().await.unwrap().len(), 3);
        assert_eq!(begun.elapsed(), JobLogs::default().gather, "after the time for gathering");
        push(&queue, 1);
        queue.attempt_ended();
        let begun = Instant::now();
        assert_eq!(queue.take().await.unwrap().len(), 1);
        assert!(begun.elapsed() <= SOON + Duration::from_millis(1), "soon after the end of an attempt");
        push(&queue, 1_200);
        let begun = Instant::now();
        let mut sizes = Vec::new();
        for _ in 0..3 {
            sizes.push(queue.take().await.unwrap().len());
        }
        assert_eq!((sizes, begun.elapsed()), (vec![500, 500, 200], Duration::ZERO), "at once when there are enough");
        push(&queue, 1);
        queue.close();
        let begun = Instant::now();
        assert_eq!(queue.take().await.unwrap().len(), 1, "at once when the node stops");
        assert_eq!((queue.take().await, begun.elapsed()), (None, Duration::ZERO));
        assert!(!queue.push(line(1), LineKind::Written), "and no more are taken");
    }

    #[test]
    fn a_full_queue_takes_last_words_and_nothing_else() {
        let queue = queue(JobLogs { waiting_max: 10, ..JobLogs::default() });
        assert_eq!(push(&queue, 15), 10);
        let last_words = (0..15).filter(|_| queue.push(line(1), LineKind::LastWord)).count();
        assert_eq!((last_words, queue.len()), (10, 20));
        let large = LogLine { message: "x".repeat(BYTES_MAX), ..line(1) };
        assert!(!super::tests::queue(JobLogs::default()).push(large, LineKind::Written), "bytes are counted too");
    }

    #[test]
    fn only_levels_that_matter_enough_are_kept() {
        let queue = queue(JobLogs::default());
        let kept: Vec<_> = LogLevel::ALL.into_iter().filter(|level| queue.keeps(*level)).collect();
        assert_eq!(kept, [LogLevel::Info, LogLevel::Warn, LogLevel::Error]);
        assert!(!super::tests::queue(JobLogs::off()).keeps(LogLevel::Error));
    }
}
