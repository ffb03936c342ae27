//! What handlers wrote down: kept, read in order and in pages, purged by age, gone with its job.

use std::time::Duration;

use jiff::Timestamp;
use ratchet_core::store::{ArchiveRequest, PurgeLog, PurgedLog, Removal};
use ratchet_core::{
    Claim, ErrorKind, JobId, JobState, LogFilter, LogLevel, LogLine, LogPage, LogPlace, NodeId, clock, limits,
};
use serde_json::{Value, json};

use crate::harness::{Harness, assert_refused, json as text, mins, work};

const ALL: LogFilter = LogFilter { level_min: LogLevel::Trace, attempt: None };

/// How long lines are kept in these cases.
const AGE: Duration = mins(10);

fn line(claim: &Claim, seq: u32, at: Timestamp, message: &str) -> LogLine {
    LogLine {
        job_id: claim.job.id,
        version: claim.fence.version,
        seq,
        attempt: claim.job.attempts + 1,
        node: claim.fence.node,
        at,
        level: LogLevel::Info,
        message: message.to_owned(),
        fields: None,
    }
}

impl Harness {
    async fn append(&self, lines: &[LogLine]) {
        self.store.append_log(lines.into()).await.expect("lines are appended");
    }

    async fn page(&self, id: JobId, filter: LogFilter, after: Option<LogPlace>, limit: usize) -> LogPage {
        self.store.read_log(id, &filter, after, limit).await.expect("a log can be read")
    }

    pub(crate) async fn log(&self, id: JobId) -> Vec<LogLine> {
        self.page(id, ALL, None, 1_000).await.lines
    }

    async fn messages(&self, id: JobId) -> Vec<String> {
        self.log(id).await.into_iter().map(|line| line.message).collect()
    }

    /// A job that runs, with lines of these numbers.
    async fn logged(&self, count: u32) -> Claim {
        let claim = self.running(work()).await;
        self.log_lines(&claim, count).await;
        claim
    }

    /// Lines of these numbers for a job that runs.
    pub(crate) async fn log_lines(&self, claim: &Claim, count: u32) {
        let now = self.now().await;
        let lines: Vec<_> = (1..=count).map(|seq| line(claim, seq, now, &format!("line {seq}"))).collect();
        self.append(&lines).await;
    }
}

/// Turns the pages of a log, and checks that none is longer than it should be.
async fn all_pages(harness: &Harness, id: JobId, filter: LogFilter, limit: usize) -> Vec<LogPlace> {
    let (mut seen, mut after) = (Vec::new(), None);
    for _ in 0..100 {
        let page = harness.page(id, filter, after, limit).await;
        assert!(page.lines.len() <= limit && page.lines.iter().all(|line| line.job_id == id));
        assert!(after.is_none() || !page.lines.is_empty(), "a page that was told of has lines");
        seen.extend(page.lines.iter().map(LogLine::place));
        let Some(next) = page.next else { return seen };
        assert_eq!(Some(next), page.lines.last().map(LogLine::place), "the next page begins after the last line");
        after = Some(next);
    }
    panic!("the pages have no end");
}

pub(crate) async fn lines_come_back_as_they_were_given(harness: Harness) {
    let claim = harness.running(work()).await;
    let now = harness.now().await;
    let mut given: Vec<LogLine> = LogLevel::ALL
        .into_iter()
        .zip(1..)
        .map(|(level, seq)| LogLine { level, ..line(&claim, seq, now, &format!("{level} ünï 日本 🦀")) })
        .collect();
    given[1].fields = Some(text(&json!({"invoice": 7, "name": "žluť", "list": [1, 2.5, null], "deep": {"a": true}})));
    given[2].message = String::from("two\nlines, \"quoted\" and \\ escaped");
    given[3].message = String::new();
    given[4].node = NodeId(uuid::Uuid::from_u128(7));
    given[4].at = clock::earlier(now, mins(3));
    harness.append(&given).await;
    let value = |line: &LogLine| line.fields.as_ref().map(|fields| fields.decode::<Value>().expect("fields are JSON"));
    let read = harness.log(claim.job.id).await;
    assert_eq!(read.len(), given.len());
    for (read, given) in read.into_iter().zip(given) {
        assert_eq!(value(&read), value(&given));
        assert_eq!(LogLine { fields: None, ..read }, LogLine { fields: None, ..given });
    }
}

pub(crate) async fn lines_come_attempt_by_attempt_in_their_order(harness: Harness) {
    let first = harness.running(work()).await;
    harness.reschedule(&first, Duration::ZERO).await;
    let second = harness.claim_one().await;
    let now = harness.now().await;
    // The times say otherwise: the numbers count.
    let later = clock::later(now, mins(1));
    harness.append(&[line(&second, 2, now, "2b"), line(&first, 10, now, "1c"), line(&second, 1, later, "2a")]).await;
    harness.append(&[line(&first, 2, later, "1b"), line(&first, 1, now, "1a")]).await;
    assert_eq!(harness.messages(first.job.id).await, ["1a", "1b", "1c", "2a", "2b"]);
}

pub(crate) async fn lines_given_again_are_kept_once_as_they_were(harness: Harness) {
    let claim = harness.running(work()).await;
    let now = harness.now().await;
    let lines: Vec<_> = (1..=3).map(|seq| line(&claim, seq, now, &format!("line {seq}"))).collect();
    harness.append(&lines[..2]).await;
    let again = LogLine { message: "something else".to_owned(), ..lines[1].clone() };
    harness.append(&[lines[0].clone(), again, lines[2].clone()]).await;
    assert_eq!(harness.log(claim.job.id).await, lines);
}

pub(crate) async fn lines_given_again_among_others_are_kept_once(harness: Harness) {
    let claim = harness.running(work()).await;
    let now = harness.now().await;
    let lines: Vec<_> = (1..=6).map(|seq| line(&claim, seq, now, &format!("line {seq}"))).collect();
    for given in [1..3, 2..4, 0..2, 4..5, 1..5, 0..6, 3..4] {
        harness.append(&lines[given]).await;
    }
    assert_eq!(harness.log(claim.job.id).await, lines);
    for limit in [1, 2, 5] {
        let places: Vec<_> = lines.iter().map(LogLine::place).collect();
        assert_eq!(all_pages(&harness, claim.job.id, ALL, limit).await, places, "pages of {limit}");
    }
    harness.append(&[lines[5].clone(), lines[5].clone()]).await;
    assert_eq!(harness.log(claim.job.id).await, lines, "also within one call");
}

pub(crate) async fn pages_of_a_log_show_every_line_once(harness: Harness) {
    let claim = harness.logged(7).await;
    harness.reschedule(&claim, Duration::ZERO).await;
    let second = harness.claim_one().await;
    let now = harness.now().await;
    let further: Vec<_> = (1..=5).map(|seq| line(&second, seq, now, "again")).collect();
    harness.append(&further).await;
    let all: Vec<_> = harness.log(claim.job.id).await.iter().map(LogLine::place).collect();
    assert_eq!(all.len(), 12);
    for limit in [1, 3, 6, 7, 11, 12, 13] {
        assert_eq!(all_pages(&harness, claim.job.id, ALL, limit).await, all, "pages of {limit}");
    }
    let last = harness.page(claim.job.id, ALL, all.last().copied(), 10).await;
    assert_eq!(last, LogPage::default(), "nothing comes after the last");
    harness.append(&[line(&second, 6, now, "more")]).await;
    let more = harness.page(claim.job.id, ALL, all.last().copied(), 10).await;
    assert_eq!(more.lines.len(), 1, "who follows a log goes on after the last line");
}

pub(crate) async fn a_page_of_a_log_has_one_to_a_thousand_lines(harness: Harness) {
    let id = harness.logged(1).await.job.id;
    for limit in [0, 1_001] {
        assert_refused(harness.store.read_log(id, &ALL, None, limit).await, &ErrorKind::Invalid);
    }
    for limit in [1, 1_000] {
        assert_eq!(harness.page(id, ALL, None, limit).await.lines.len(), 1);
    }
}

pub(crate) async fn lines_are_filtered_by_level_and_attempt(harness: Harness) {
    let first = harness.running(work()).await;
    harness.reschedule(&first, Duration::ZERO).await;
    let second = harness.claim_one().await;
    let now = harness.now().await;
    let of = |claim: &Claim| -> Vec<LogLine> {
        let levels = LogLevel::ALL.into_iter().cycle().take(10).zip(1..);
        levels.map(|(level, seq)| LogLine { level, ..line(claim, seq, now, level.as_str()) }).collect()
    };
    let (mut all, of_second) = (of(&first), of(&second));
    harness.append(&all).await;
    harness.append(&of_second).await;
    all.extend(of_second);
    for level_min in LogLevel::ALL {
        for attempt in [None, Some(1), Some(2), Some(3)] {
            let filter = LogFilter { level_min, attempt };
            let expected: Vec<_> = all.iter().filter(|line| filter.passes(line)).map(LogLine::place).collect();
            for limit in [3, 1_000] {
                assert_eq!(all_pages(&harness, first.job.id, filter, limit).await, expected, "{filter:?}");
            }
        }
    }
}

pub(crate) async fn lines_of_two_jobs_do_not_mix(harness: Harness) {
    let one = harness.logged(2).await;
    let other = harness.logged(3).await;
    assert_eq!((harness.log(one.job.id).await.len(), harness.log(other.job.id).await.len()), (2, 3));
    assert_eq!(harness.log(crate::harness::new_id()).await, []);
}

pub(crate) async fn thousands_of_lines_are_appended_in_one_call(harness: Harness) {
    let claim = harness.logged(2_000).await;
    assert_eq!(all_pages(&harness, claim.job.id, ALL, 1_000).await.len(), 2_000);
}

pub(crate) async fn lines_at_their_limits_come_back(harness: Harness) {
    let claim = harness.running(work()).await;
    let now = harness.now().await;
    let fields = text(&json!({"a": "x".repeat(limits::LOG_FIELDS_BYTES_MAX - 8)}));
    assert_eq!(fields.as_str().len(), limits::LOG_FIELDS_BYTES_MAX);
    let large = line(&claim, 1, now, &"🦀".repeat(limits::LOG_MESSAGE_CHARS_MAX));
    let lines: Vec<_> = (1..=150).map(|seq| LogLine { seq, fields: Some(fields.clone()), ..large.clone() }).collect();
    harness.append(&lines).await;
    let read = harness.log(claim.job.id).await;
    assert_eq!(read.len(), 150);
    assert!(read.iter().all(|read| read.message == large.message), "messages come back whole");
    let size =
        |line: &LogLine| line.fields.as_ref().and_then(|all| all.decode::<Value>().ok()?["a"].as_str().map(str::len));
    assert!(read.iter().all(|read| size(read) == Some(limits::LOG_FIELDS_BYTES_MAX - 8)), "so do fields");
}

pub(crate) async fn appending_nothing_is_no_error(harness: Harness) {
    harness.append(&[]).await;
}

pub(crate) async fn writing_a_log_changes_no_job(harness: Harness) {
    let pending = harness.submit(crate::harness::new_job("other")).await;
    let claim = harness.running(work()).await;
    let before = harness.store.find(&[pending, claim.job.id]).await.unwrap();
    let now = harness.now().await;
    let unclaimed = LogLine { job_id: pending, ..line(&claim, 1, now, "from elsewhere") };
    harness.append(&[line(&claim, 1, now, "here"), unclaimed]).await;
    assert_eq!(harness.store.find(&[pending, claim.job.id]).await.unwrap(), before);
    harness.succeed(&claim).await;
}

pub(crate) async fn the_last_words_of_an_attempt_that_lost_its_job_are_kept(harness: Harness) {
    let lost = harness.running(work()).await;
    harness.rescue(&lost).await;
    let claim = harness.claim_one().await;
    let now = harness.now().await;
    harness.append(&[line(&claim, 1, now, "mine")]).await;
    harness.append(&[line(&lost, 1, now, "too late")]).await;
    assert_eq!(harness.messages(claim.job.id).await, ["too late", "mine"]);
}

async fn purge(harness: &Harness, after: Option<(JobId, LogPlace)>, limit: usize) -> PurgedLog {
    harness.store.purge_log(&PurgeLog { age: AGE, after, limit }).await.unwrap()
}

pub(crate) async fn old_lines_are_purged_by_age_and_in_portions(harness: Harness) {
    let claim = harness.running(work()).await;
    let begun = harness.now().await;
    for seq in 1..=5 {
        // One by one, so that no store keeps them together.
        harness.append(&[line(&claim, seq, begun, "old")]).await;
    }
    harness.advance(mins(7));
    let now = harness.now().await;
    let newer: Vec<_> = (6..=8).map(|seq| line(&claim, seq, now, "newer")).collect();
    harness.append(&newer).await;
    assert_eq!(purge(&harness, None, 100).await.purged, 0, "none is old enough");
    harness.advance(mins(4));
    assert_eq!(purge(&harness, None, 0).await.purged, 0, "none was asked for");
    let first = purge(&harness, None, 3).await;
    assert_eq!((first.purged, first.more), (3, true));
    assert_eq!(harness.log(claim.job.id).await.len(), 5);
    let rest = purge(&harness, first.last, 100).await;
    assert_eq!((rest.purged, rest.more), (2, false));
    assert_eq!(harness.log(claim.job.id).await, newer, "the newer ones stay");
    assert_eq!(purge(&harness, None, 100).await.purged, 0);
    harness.advance(mins(11));
    assert_eq!(purge(&harness, None, 100).await.purged, 3);
    assert_eq!(harness.log(claim.job.id).await, []);
}

pub(crate) async fn a_purge_goes_on_where_it_was(harness: Harness) {
    let stays = harness.logged(1).await;
    let old = harness.logged(3).await;
    harness.advance(mins(4));
    let now = harness.now().await;
    // A job that is old and still writes.
    let lines: Vec<_> = (2..=4).map(|seq| line(&stays, seq, now, "newer")).collect();
    harness.append(&lines).await;
    harness.advance(mins(7));
    let (mut after, mut purged, mut rounds) = (None, 0, 0);
    loop {
        let done = purge(&harness, after, 2).await;
        assert!(done.last >= after, "it never goes back");
        (after, purged, rounds) = (done.last, purged + done.purged, rounds + 1);
        assert!(rounds < 10, "it comes to an end");
        if !done.more {
            break;
        }
    }
    assert_eq!(purged, 4, "one line of the first job, and all of the second");
    assert_eq!(harness.log(stays.job.id).await, lines);
    assert_eq!(harness.log(old.job.id).await, []);
    let last = after.expect("it has looked at something");
    assert_eq!(purge(&harness, after, 10).await, PurgedLog { purged: 0, last: Some(last), more: false });
}

pub(crate) async fn a_log_goes_when_its_job_is_deleted(harness: Harness) {
    let kept = harness.logged(2).await;
    let deleted = harness.logged(2).await;
    harness.succeed(&deleted).await;
    assert!(harness.store.delete(deleted.job.id).await.unwrap());
    assert_eq!(harness.log(deleted.job.id).await, []);
    assert_eq!(harness.log(kept.job.id).await.len(), 2);
}

pub(crate) async fn an_archived_jobs_log_is_read_and_goes_with_it(harness: Harness) {
    let kept = harness.logged(1).await;
    let (one, other) = (harness.logged(2).await, harness.logged(3).await);
    harness.succeed(&one).await;
    harness.succeed(&other).await;
    harness.advance(mins(11));
    let request = ArchiveRequest {
        removal: Removal::Archive,
        state: JobState::Succeeded,
        age: AGE,
        after: None,
        limit: 100,
        only: None,
    };
    assert_eq!(harness.store.archive(&request).await.unwrap().moved, 2);
    assert_eq!((harness.log(one.job.id).await.len(), harness.log(other.job.id).await.len()), (2, 3));
    assert!(harness.store.delete(one.job.id).await.unwrap());
    assert_eq!((harness.log(one.job.id).await.len(), harness.log(other.job.id).await.len()), (0, 3));
    harness.advance(mins(11));
    assert_eq!(harness.store.purge_archive(AGE, 100).await.unwrap(), 1);
    assert_eq!(harness.log(other.job.id).await, []);
    assert_eq!(harness.log(kept.job.id).await.len(), 1);
}
