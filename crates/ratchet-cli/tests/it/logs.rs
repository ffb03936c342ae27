use ratchet::prelude::*;
use ratchet::{JobLogs, LogLevel, TraceContext};

use crate::support::{Place, no_id};

/// Writes a few lines, and fails the first time.
#[job(kind = "test.scribe", backoff = "none")]
async fn scribe(ctx: &JobContext) -> Result<(), String> {
    ctx.log().debug("step by step");
    ctx.log().field("invoice", 17).field("who", "ann").info("charging");
    if ctx.attempt() == 1 {
        ctx.log().error("no gateway\nat all");
        return Err("no gateway".to_owned());
    }
    Ok(())
}

/// Runs one job to its end; its id.
async fn written(place: &Place) -> String {
    let store = SqliteStore::open(place.database()).await.unwrap();
    let logs = JobLogs { level_min: Some(LogLevel::Debug), ..JobLogs::default() };
    let builder = Ratchet::builder().store(store).jobs(jobs![scribe]).job_logs(logs).node_name("desk");
    let ratchet = builder.start().await.unwrap();
    let trace = TraceContext::parse("00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01", None).unwrap();
    let handle = ratchet.enqueue(scribe()).trace_context(trace).submit().await.unwrap();
    handle.result().await.unwrap();
    let id = handle.id().to_string();
    // While the node is there, its name is known.
    place.ratchet(&["jobs", "show", &id]).expect(0, &["WAITED", "NODE", "desk", "4bf92f3577b34da6a3ce929d0e0e4736"]);
    let shown = place.json(&["jobs", "show", &id]);
    assert_eq!(shown["attempt_records"][1]["node_name"], "desk");
    assert_eq!(shown["trace"]["traceparent"], "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01");
    ratchet.shutdown().await;
    id
}

#[tokio::test(flavor = "multi_thread")]
async fn a_jobs_log_is_shown_whole_and_in_parts() {
    let place = Place::migrated().await;
    let id = written(&place).await;
    let shown = place.ratchet(&["jobs", "logs", &id]);
    shown.expect(0, &["DEBUG try 1  step by step\n", "INFO  try 2  charging  invoice=17 who=\"ann\"\n"]);
    shown.expect(0, &["ERROR try 1  no gateway\n    at all\n"]);
    assert_eq!(shown.out.matches(" try ").count(), 5, "{shown:?}");
    let lines = |args: &[&str]| place.json(&[&["jobs", "logs", &id], args].concat())["lines"].as_array().unwrap().len();
    assert_eq!((lines(&[]), lines(&["--level", "info"]), lines(&["--level", "error"])), (5, 3, 1));
    assert_eq!((lines(&["--attempt", "1"]), lines(&["--attempt", "2"]), lines(&["--attempt", "3"])), (3, 2, 0));
    place.ratchet(&["jobs", "logs", &id, "--attempt", "3"]).expect(0, &["No lines."]);
    place.ratchet(&["jobs", "logs", &id, "--level", "loud"]).expect(2, &["trace, debug, info, warn, error"]);
    place.ratchet(&["jobs", "logs", &no_id()]).expect(3, &["there is no job"]);
    place.ratchet(&["jobs", "show", &id]).expect(0, &["…"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn pages_of_a_log_name_the_next() {
    let place = Place::migrated().await;
    let id = written(&place).await;
    let first = place.json(&["jobs", "logs", &id, "--limit", "3"]);
    let next = first["next"].as_str().unwrap();
    place.ratchet(&["jobs", "logs", &id, "--limit", "3"]).expect(0, &[&format!("More: --after {next}")]);
    let second = place.json(&["jobs", "logs", &id, "--limit", "3", "--after", next]);
    assert_eq!((second["lines"].as_array().unwrap().len(), &second["next"]), (2, &serde_json::Value::Null));
    place.ratchet(&["jobs", "logs", &id, "--after", "x"]).expect(2, &["7-12"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_log_is_shown_to_its_end_or_from_there() {
    let place = Place::migrated().await;
    let id = written(&place).await;
    let logs = |args: &[&str]| place.ratchet(&[&["jobs", "logs", &id], args].concat());
    let whole = logs(&[]);
    let lines: Vec<&str> = whole.out.split_inclusive('\n').collect();
    assert_eq!(logs(&["--all"]).out, whole.out);
    assert_eq!(logs(&["--all", "--json"]).out.lines().count(), 5, "an object a line");
    assert_eq!(logs(&["--tail", "2"]).out, lines[lines.len() - 2..].concat());
    assert_eq!(logs(&["--tail", "99"]).out, whole.out);
    let last = place.json(&["jobs", "logs", &id, "--tail", "1", "--level", "error"]);
    assert_eq!((&last["lines"][0]["message"], &last["next"]), (&"no gateway\nat all".into(), &serde_json::Value::Null));
    assert_eq!(logs(&["--tail", "1", "--follow"]).out, lines[lines.len() - 1]);
    for wrong in [["--tail", "0"], ["--all", "--follow"], ["--all", "--limit=3"], ["--tail=3", "--limit=3"]] {
        logs(&wrong).expect(2, &["--"]);
    }
    logs(&["--follow", "--limit=3"]).expect(2, &["--follow"]);
}

/// More lines than a page has.
#[job(kind = "test.chronicler")]
async fn chronicler(ctx: &JobContext) {
    for year in 0..450 {
        ctx.log().info(format_args!("year {year}"));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_log_of_several_pages_is_shown_to_its_end() {
    let place = Place::migrated().await;
    let store = SqliteStore::open(place.database()).await.unwrap();
    let ratchet = Ratchet::builder().store(store).jobs(jobs![chronicler]).start().await.unwrap();
    let handle = ratchet.enqueue(chronicler()).submit().await.unwrap();
    handle.result().await.unwrap();
    ratchet.shutdown().await;
    let id = handle.id().to_string();
    for (how, count) in [("--all", 450), ("--follow", 450), ("--tail=300", 300)] {
        let shown = place.ratchet(&["jobs", "logs", &id, how]);
        assert_eq!(shown.out.lines().count(), count, "{how}");
        assert!(shown.out.ends_with("year 449\n"), "{how}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_log_without_lines_says_so_in_every_form() {
    let place = Place::migrated().await;
    let id = written(&place).await;
    for how in [&[][..], &["--all"], &["--tail=5"], &["--follow"], &["--tail=5", "--follow"]] {
        let none = [&["jobs", "logs", &id, "--attempt", "9"], how].concat();
        assert_eq!(place.ratchet(&none).out, "No lines.\n", "{how:?}");
    }
    assert_eq!(place.ratchet(&["jobs", "logs", &id, "--attempt", "9", "--all", "--json"]).out, "");
}

#[tokio::test(flavor = "multi_thread")]
async fn old_lines_are_purged_by_hand() {
    let place = Place::migrated().await;
    let id = written(&place).await;
    place.ratchet(&["archive", "purge-logs", "--older-than", "1h"]).expect(0, &["deleted 0 lines"]);
    place.ratchet(&["archive", "purge-logs", "--older-than", "0s"]).expect(0, &["deleted 5 lines"]);
    assert_eq!(place.json(&["jobs", "logs", &id])["lines"], serde_json::json!([]));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_log_is_followed_until_the_job_has_ended() {
    let place = Place::migrated().await;
    let id = written(&place).await;
    let followed = place.ratchet(&["jobs", "logs", &id, "--follow"]);
    followed.expect(0, &["step by step", "no gateway"]);
    assert_eq!(followed.out.matches(" try ").count(), 5, "{followed:?}");
    let followed = place.ratchet(&["jobs", "logs", &id, "--follow", "--level", "info", "--json"]);
    let lines: Vec<serde_json::Value> =
        followed.out.lines().map(|line| serde_json::from_str(line).expect("an object a line")).collect();
    assert_eq!(lines.len(), 3);
    assert_eq!((&lines[0]["level"], &lines[0]["fields"]["invoice"]), (&"INFO".into(), &17.into()));
}
