//! What handlers write down: where it goes, what is left out, and that it is in nobody's way.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use async_trait::async_trait;
use ratchet_core::{JobId, LogFilter, LogLevel, LogLine, MemoryStore, Retention};
use ratchet_engine::{
    BulkEventKind, Client, Failure, Job, JobContext, JobDefaults, JobLogSink, JobLogs, LogSinkError, OwnJobs, Ratchet,
    RatchetBuilder, Timing,
};
use serde::{Deserialize, Serialize};
use tokio::sync::Semaphore;

use crate::support::{Stage, busy_archiver, eventually, memory, quick, quick_timing};

/// Writes so many lines, fails so many times, and returns.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct Scribe {
    pub(crate) lines: u32,
    pub(crate) failures: u32,
}

impl Scribe {
    pub(crate) const fn of(lines: u32) -> Self {
        Self { lines, failures: 0 }
    }

    fn write(&self, ctx: &JobContext) -> Result<(), Failure> {
        for at in 1..=self.lines {
            ctx.log().field("at", at).info(format_args!("line {at}"));
        }
        if ctx.attempt() <= self.failures {
            ctx.log().error("it breaks");
            return Err(Failure::new("broken"));
        }
        Ok(())
    }
}

impl Job for Scribe {
    const KIND: &'static str = "scribe";
    type Output = ();

    fn defaults() -> JobDefaults {
        JobDefaults::default().backoff(ratchet_core::Backoff::None)
    }

    async fn run(self, ctx: JobContext) -> Result<(), Failure> {
        self.write(&ctx)
    }
}

/// The same on a thread.
#[derive(Debug, Clone, Serialize, Deserialize)]
struct ScribeOnAThread(Scribe);

impl Job for ScribeOnAThread {
    const KIND: &'static str = "scribe.blocking";
    type Output = ();

    fn defaults() -> JobDefaults {
        JobDefaults::default().blocking()
    }

    async fn run(self, ctx: JobContext) -> Result<(), Failure> {
        self.0.write(&ctx)
    }
}

fn builder(store: &MemoryStore) -> RatchetBuilder {
    quick(&Stage::default()).job::<Scribe>().job::<ScribeOnAThread>().store(store.clone())
}

async fn log(client: &Client, id: JobId) -> Vec<LogLine> {
    client.job_log(id, &LogFilter::default(), None, 1_000).await.unwrap().lines
}

/// Waits until a job's log has so many lines.
async fn lines(client: &Client, id: JobId, count: usize) -> Vec<LogLine> {
    let mut read = Vec::new();
    eventually("the log", async || {
        read = log(client, id).await;
        read.len() >= count
    })
    .await;
    read
}

/// A sink that does as it is told.
#[derive(Clone, Default)]
struct Told {
    taken: Arc<Mutex<Vec<LogLine>>>,
    calls: Arc<AtomicUsize>,
    /// Calls that fail before one succeeds.
    failures: Arc<AtomicUsize>,
    /// Lines with this text are refused.
    bad: Option<&'static str>,
    panics: bool,
    /// How long a call takes.
    slow: Duration,
    /// Every call needs a permit.
    gate: Option<Arc<Semaphore>>,
}

impl Told {
    fn messages(&self) -> Vec<String> {
        self.taken.lock().unwrap().iter().map(|line| line.message.clone()).collect()
    }

    fn calls(&self) -> usize {
        self.calls.load(Ordering::SeqCst)
    }
}

#[async_trait]
impl JobLogSink for Told {
    async fn write(&self, lines: Arc<[LogLine]>) -> Result<(), LogSinkError> {
        self.calls.fetch_add(1, Ordering::SeqCst);
        assert!(!self.panics, "the sink panics");
        tokio::time::sleep(self.slow).await;
        if let Some(gate) = &self.gate {
            gate.acquire().await.unwrap().forget();
        }
        let fails = |left: usize| left.checked_sub(1);
        if self.failures.fetch_update(Ordering::SeqCst, Ordering::SeqCst, fails).is_ok() {
            return Err(LogSinkError::again("not now"));
        }
        if self.bad.is_some_and(|bad| lines.iter().any(|line| line.message == bad)) {
            return Err(LogSinkError::refused("a bad line"));
        }
        self.taken.lock().unwrap().extend_from_slice(&lines);
        Ok(())
    }
}

#[tokio::test]
async fn what_a_handler_writes_is_in_the_log_of_its_job() {
    let store = memory();
    let ratchet = builder(&store).start().await.unwrap();
    let handle = ratchet.enqueue(Scribe { lines: 2, failures: 1 }).submit().await.unwrap();
    handle.result().await.unwrap();
    let lines = lines(&ratchet, handle.id(), 5).await;
    let told: Vec<_> = lines.iter().map(|line| (line.attempt, line.seq, line.level, line.message.as_str())).collect();
    let (info, error) = (LogLevel::Info, LogLevel::Error);
    let first = [(1, 1, info, "line 1"), (1, 2, info, "line 2"), (1, 3, error, "it breaks")];
    let second = [(2, 1, info, "line 1"), (2, 2, info, "line 2")];
    assert_eq!(told, [&first[..], &second].concat());
    assert_eq!(lines[1].fields.as_ref().unwrap().as_str(), r#"{"at":2}"#);
    let attempts = ratchet.attempts(handle.id()).await.unwrap();
    for line in &lines {
        let attempt = attempts.iter().find(|attempt| attempt.version == line.version).expect("it names its attempt");
        assert_eq!((line.node, line.attempt), (ratchet.node_id(), attempt.attempt));
        assert!(line.at >= attempt.timing.started_at && line.at <= attempt.timing.ended_at, "by the database's clock");
    }
    assert_eq!((ratchet.stats().log_lines, ratchet.stats().log_lines_lost), (5, 0));
    ratchet.shutdown().await;
}

#[tokio::test]
async fn a_handler_on_a_thread_writes_too() {
    let ratchet = builder(&memory()).start().await.unwrap();
    let handle = ratchet.enqueue(ScribeOnAThread(Scribe::of(3))).submit().await.unwrap();
    handle.result().await.unwrap();
    assert_eq!(lines(&ratchet, handle.id(), 3).await.len(), 3);
}

#[tokio::test]
async fn lines_are_written_soon_after_the_end_of_an_attempt() {
    let patient = JobLogs { gather: Duration::from_mins(1), ..JobLogs::default() };
    let ratchet = builder(&memory()).job_logs(patient).start().await.unwrap();
    let handle = ratchet.enqueue(Scribe::of(1)).submit().await.unwrap();
    handle.result().await.unwrap();
    assert_eq!(lines(&ratchet, handle.id(), 1).await.len(), 1);
}

#[tokio::test]
async fn a_node_that_stops_writes_what_is_left() {
    // Three calls, so long that a node that does not wait for them has stopped before.
    let sink = Told { slow: Duration::from_millis(200), ..Told::default() };
    let ratchet = builder(&memory()).job_logs(JobLogs::to(sink.clone())).start().await.unwrap();
    let handle = ratchet.enqueue(Scribe::of(1_200)).submit().await.unwrap();
    handle.result().await.unwrap();
    ratchet.shutdown().await;
    assert_eq!(sink.messages().len(), 1_200, "nothing waits any more when the node has stopped");
}

#[tokio::test]
async fn a_sink_that_hangs_is_in_nobodys_way() {
    let sink = Told { gate: Some(Arc::new(Semaphore::new(0))), ..Told::default() };
    let timing = Timing { store_deadline: Duration::from_millis(300), ..quick_timing() };
    let ratchet = builder(&memory()).timing(timing).job_logs(JobLogs::to(sink.clone())).start().await.unwrap();
    let begun = Instant::now();
    for _ in 0..20 {
        ratchet.enqueue(Scribe::of(10)).submit().await.unwrap().result().await.unwrap();
    }
    eventually("a call of the sink", async || sink.calls() > 0).await;
    ratchet.shutdown().await;
    assert!(begun.elapsed() < Duration::from_secs(8), "it took {:?}", begun.elapsed());
    assert!(sink.messages().is_empty());
}

#[tokio::test]
async fn a_sink_that_fails_gets_the_same_lines_again() {
    let sink = Told { failures: Arc::new(AtomicUsize::new(3)), ..Told::default() };
    let ratchet = builder(&memory()).job_logs(JobLogs::to(sink.clone())).start().await.unwrap();
    let handle = ratchet.enqueue(Scribe::of(5)).submit().await.unwrap();
    handle.result().await.unwrap();
    eventually("the lines", async || sink.messages().len() == 5).await;
    ratchet.shutdown().await;
    let expected: Vec<_> = (1..=5).map(|at| format!("line {at}")).collect();
    assert_eq!(sink.messages(), expected, "each once, in order");
    assert!(sink.calls() >= 4);
}

#[tokio::test]
async fn a_line_that_is_refused_takes_no_others_along() {
    let sink = Told { bad: Some("line 70"), ..Told::default() };
    let ratchet = builder(&memory()).job_logs(JobLogs::to(sink.clone())).start().await.unwrap();
    ratchet.enqueue(Scribe::of(100)).submit().await.unwrap().result().await.unwrap();
    eventually("the lines", async || sink.messages().len() == 99).await;
    assert_eq!((ratchet.stats().log_lines, ratchet.stats().log_lines_lost), (99, 1));
    let mut sorted = sink.taken.lock().unwrap().clone();
    sorted.sort_by_key(|line| line.seq);
    assert_eq!(*sink.taken.lock().unwrap(), sorted, "the others come in their order");
    ratchet.shutdown().await;
}

#[tokio::test]
async fn a_sink_that_panics_or_refuses_everything_loses_lines_and_nothing_else() {
    for sink in [Told { panics: true, ..Told::default() }, Told { bad: Some("line 1"), ..Told::default() }] {
        let ratchet = builder(&memory()).job_logs(JobLogs::to(sink.clone())).start().await.unwrap();
        ratchet.enqueue(Scribe::of(1)).submit().await.unwrap().result().await.unwrap();
        eventually("the count", async || ratchet.stats().log_lines_lost == 1).await;
        ratchet.enqueue(Scribe::of(0)).submit().await.unwrap().result().await.unwrap();
        assert_eq!(sink.calls(), 1, "a lone line is not tried again");
        ratchet.shutdown().await;
    }
    let sink = Told { panics: true, ..Told::default() };
    let ratchet = builder(&memory()).job_logs(JobLogs::to(sink.clone())).start().await.unwrap();
    ratchet.enqueue(Scribe::of(400)).submit().await.unwrap().result().await.unwrap();
    eventually("the count", async || ratchet.stats().log_lines_lost == 400).await;
    assert!(sink.calls() <= 40, "{} calls for nothing", sink.calls());
}

#[tokio::test]
async fn when_too_many_wait_lines_are_left_out_and_the_log_says_how_many() {
    let sink = Told { gate: Some(Arc::new(Semaphore::new(0))), ..Told::default() };
    let logs = JobLogs { waiting_max: 5, gather: Duration::ZERO, ..JobLogs::to(sink.clone()) };
    let ratchet = builder(&memory()).job_logs(logs).start().await.unwrap();
    ratchet.enqueue(Scribe::of(50)).submit().await.unwrap().result().await.unwrap();
    sink.gate.as_ref().unwrap().add_permits(100);
    ratchet.shutdown().await;
    let messages = sink.messages();
    let missing =
        |message: &String| message.split_once(" lines are missing").and_then(|(count, _)| count.parse::<usize>().ok());
    let left_out: usize = messages.iter().filter_map(missing).sum::<usize>();
    let written = messages.iter().filter(|message| message.starts_with("line ")).count();
    assert!(left_out > 0 && written >= 5, "{messages:?}");
    assert_eq!(written + left_out, 50, "every line is there or told of: {messages:?}");
}

#[tokio::test]
async fn an_attempt_that_writes_too_much_is_cut_and_its_last_line_says_so() {
    let store = memory();
    let ratchet = builder(&store).job_logs(JobLogs { lines_max: 10, ..JobLogs::default() }).start().await.unwrap();
    let handle = ratchet.enqueue(Scribe { lines: 30, failures: 1 }).submit().await.unwrap();
    handle.result().await.unwrap();
    let lines = lines(&ratchet, handle.id(), 21).await;
    assert_eq!((lines[8].message.as_str(), lines[9].message.as_str()), ("line 9", "it breaks"), "errors have room");
    assert_eq!(lines[10].message, "21 lines were left out: an attempt may write 10");
    assert_eq!(lines[20].message, "21 lines were left out: an attempt may write 10", "every attempt has its share");
    ratchet.shutdown().await;
}

#[tokio::test]
async fn what_is_below_the_level_is_not_kept_and_off_keeps_nothing() {
    let store = memory();
    for (logs, expected) in [
        (JobLogs { level_min: Some(LogLevel::Error), ..JobLogs::default() }, 1),
        (JobLogs { level_min: Some(LogLevel::Info), ..JobLogs::default() }, 3),
        (JobLogs::off(), 0),
    ] {
        let sink = Told::default();
        let logs = JobLogs { sink: Some(Arc::new(sink.clone())), ..logs };
        let ratchet = builder(&store).job_logs(logs).start().await.unwrap();
        let handle = ratchet.enqueue(Scribe { lines: 1, failures: 1 }).submit().await.unwrap();
        handle.result().await.unwrap();
        ratchet.shutdown().await;
        assert_eq!(
            (sink.messages().len(), log(&Ratchet::client(store.clone()), handle.id()).await.len()),
            (expected, 0)
        );
    }
}

#[tokio::test]
async fn jobs_that_log_nothing_cost_no_call() {
    let sink = Told::default();
    let ratchet = builder(&memory()).job_logs(JobLogs::to(sink.clone())).start().await.unwrap();
    for _ in 0..5 {
        ratchet.enqueue(Scribe::of(0)).submit().await.unwrap().result().await.unwrap();
    }
    ratchet.shutdown().await;
    assert_eq!(sink.calls(), 0);
}

#[tokio::test]
async fn a_node_deletes_lines_that_were_kept_long_enough() {
    let retention = Retention { logs: Some(Duration::from_secs(1)), ..Retention::keep_everything() };
    let ratchet = builder(&memory()).retention(retention).timing(busy_archiver()).start().await.unwrap();
    let mut events = ratchet.bulk_events();
    let handle = ratchet.enqueue(Scribe::of(3)).submit().await.unwrap();
    handle.result().await.unwrap();
    assert_eq!(lines(&ratchet, handle.id(), 3).await.len(), 3, "they are kept for a while");
    let mut purged = 0;
    while purged < 3 {
        let event =
            tokio::time::timeout(Duration::from_secs(10), events.next()).await.expect("an event comes").unwrap();
        let BulkEventKind::LogsPurged { lines } = event.what else { panic!("{:?}", event.what) };
        purged += lines;
    }
    assert_eq!(log(&ratchet, handle.id()).await, []);
    let again = ratchet.enqueue(Scribe::of(2)).submit().await.unwrap();
    again.result().await.unwrap();
    lines(&ratchet, again.id(), 2).await;
    ratchet.shutdown().await;
}

#[tokio::test]
async fn lines_can_be_purged_by_hand() {
    let store = memory();
    let ratchet = builder(&store).start().await.unwrap();
    let handle = ratchet.enqueue(Scribe::of(7)).submit().await.unwrap();
    handle.result().await.unwrap();
    lines(&ratchet, handle.id(), 7).await;
    assert_eq!(ratchet.purge_job_logs(Duration::from_hours(1)).await.unwrap(), 0);
    eventually("their time", async || ratchet.purge_job_logs(Duration::ZERO).await.unwrap() == 7).await;
    assert_eq!(log(&ratchet, handle.id()).await, []);
    ratchet.shutdown().await;
}

#[tokio::test]
async fn options_out_of_bounds_are_refused_by_name() {
    let bad = JobLogs { lines_max: 0, ..JobLogs::default() };
    let refused = builder(&memory()).job_logs(bad).start().await.unwrap_err();
    assert!(refused.to_string().contains("job_logs.lines_max"), "{refused}");
}

#[tokio::test]
async fn a_log_is_read_by_who_may_read_the_job() {
    let store = memory();
    let ratchet = builder(&store).authorizer(OwnJobs::new()).start().await.unwrap();
    let (alice, bob) = (ratchet.as_principal("alice").unwrap(), ratchet.as_principal("bob").unwrap());
    let id = alice.enqueue(Scribe::of(1)).submit().await.unwrap().id();
    let lines = async |client: &Client| client.job_log(id, &LogFilter::default(), None, 10).await.unwrap().lines.len();
    eventually("the line", async || lines(&alice).await == 1).await;
    assert_eq!(lines(&ratchet).await, 1);
    assert_eq!(lines(&bob).await, 0, "what he may not read is not there");
}
