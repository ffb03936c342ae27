use crate::support::{Place, idle};

#[tokio::test(flavor = "multi_thread")]
async fn dead_letters_are_grouped_retried_and_archived() {
    let place = Place::migrated().await;
    place.ratchet(&["dead-letters", "list"]).expect(0, &["No dead letters."]);
    let first = place.failed_job("order-1").await;
    let second = place.failed_job("order-2").await;
    place.ratchet(&["dlq", "list"]).expect(0, &[&first, &second, "test.broken", "it is broken"]);
    let groups = place.json(&["dead-letters", "groups"]);
    assert_eq!((&groups["groups"][0]["count"], &groups["complete"]), (&2.into(), &true.into()));
    let fingerprint = groups["groups"][0]["fingerprint"].as_str().unwrap();
    place.ratchet(&["dead-letters", "groups"]).expect(0, &[fingerprint, "it is broken"]);
    let none = ["dead-letters", "retry", "--kind", "other", "--fingerprint", fingerprint];
    place.ratchet(&none).expect(0, &["0 dead letters will be tried again"]);
    let one = ["dead-letters", "retry", "--limit", "1", "--fingerprint", fingerprint];
    place.ratchet(&one).expect(0, &["1 dead letter will be tried again"]);
    assert_eq!(place.json(&["jobs", "show", &second])["state"], "PENDING");
    place.ratchet(&["dead-letters", "archive", "--older-than", "1h"]).expect(0, &["archived 0 dead letters"]);
    place.ratchet(&["dead-letters", "archive", "--older-than", "0s"]).expect(0, &["archived 1 dead letter\n"]);
    place.ratchet(&["dead-letters", "list"]).expect(0, &["No dead letters."]);
}

#[tokio::test(flavor = "multi_thread")]
async fn archived_jobs_are_listed_and_shown_and_purged() {
    let place = Place::migrated().await;
    let id = place.failed_job("order-1").await;
    place.ratchet(&["archive", "run", "--older-than", "0s", "--state", "pending"]).expect(2, &["are live"]);
    let unknown = place.ratchet(&["archive", "run", "--older-than", "0s", "--state", "bogus"]);
    unknown.expect(2, &["give succeeded, failed or canceled"]);
    place.ratchet(&["archive", "run", "--older-than", "0s", "--state", "succeeded"]).expect(0, &["archived 0 jobs"]);
    for (age, count) in [("0s", "would archive 1 job\n"), ("1h", "would archive 0 jobs")] {
        place.ratchet(&["archive", "run", "--dry-run", "--older-than", age]).expect(0, &[count]);
    }
    place.ratchet(&["archive", "run", "--older-than", "0s"]).expect(0, &["archived 1 job\n"]);
    place.ratchet(&["jobs", "list"]).expect(0, &["No jobs."]);
    for scope in ["--archived", "--with-archived"] {
        place.ratchet(&["jobs", "list", scope]).expect(0, &[&id, "FAILED (archived)"]);
    }
    place.ratchet(&["jobs", "show", &id]).expect(0, &["archived", "it is broken"]);
    place.ratchet(&["jobs", "explain", &id]).expect(0, &["it has ended: FAILED, and is archived\n"]);
    assert!(place.json(&["jobs", "show", &id])["archived_at"].is_string());
    place.ratchet(&["jobs", "retry", &id]).expect(4, &["archived; nothing can be asked of it"]);
    place.ratchet(&["archive", "purge", "--older-than", "1d"]).expect(0, &["deleted 0 archived jobs"]);
    place.ratchet(&["archive", "purge", "--older-than", "0s"]).expect(0, &["deleted 1 archived job\n"]);
    place.ratchet(&["jobs", "show", &id]).expect(3, &["there is no job"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn dead_letters_are_archived_by_filter_and_counted_before() {
    let place = Place::migrated().await;
    let (first, second) = (place.failed_job("order-1").await, place.failed_job("order-2").await);
    let archive = |args: &[&str]| place.ratchet(&[&["dead-letters", "archive", "--older-than", "0s"], args].concat());
    archive(&["--dry-run"]).expect(0, &["would archive 2 dead letters"]);
    place.ratchet(&["resources", "set", "printer", "10001"]).expect(2, &["the limit is 10000"]);
    let twice = ["archive", "run", "--older-than", "0s", "--state", "failed,failed", "--dry-run"];
    place.ratchet(&twice).expect(0, &["would archive 2 jobs"]);
    archive(&["--dry-run", "--business-key", "order-1"]).expect(0, &["would archive 1 dead letter\n"]);
    archive(&["--kind", "other"]).expect(0, &["archived 0 dead letters"]);
    archive(&["--except", &format!("{first},{second}")]).expect(0, &["archived 0 dead letters"]);
    archive(&["--except", &second, "--kind", "test.broken"]).expect(0, &["archived 1 dead letter\n"]);
    assert!(place.json(&["jobs", "show", &first])["archived_at"].is_string());
    assert!(place.json(&["jobs", "show", &second])["archived_at"].is_null());
    place.ratchet(&["dead-letters", "archive", "--older-than", "1h", "--dry-run"]).expect(0, &["would archive 0"]);
    place.ratchet(&["dead-letters", "archive"]).expect(2, &["--older-than"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn dead_letters_whose_keys_are_held_are_named_and_can_be_left_out() {
    let place = Place::migrated().await;
    let (held, free) = (place.failed_job("order-1").await, place.failed_job("order-2").await);
    let client = place.client().await;
    let holder = client.enqueue(idle(1)).business_key("order-1").submit().await.unwrap().id().to_string();
    let why = format!("job {held} needs the business key \"order-1\", which job {holder} holds");
    place.ratchet(&["dead-letters", "retry"]).expect(4, &["none was retried", &why, "--skip-held"]);
    let refused = place.ratchet(&["dead-letters", "retry", "--json"]);
    refused.expect(4, &[&why]);
    let told: serde_json::Value = serde_json::from_str(&refused.out).unwrap();
    assert_eq!((&told["retried"], &told["held"][0]["holder"]), (&0.into(), &holder.as_str().into()));
    assert_eq!(place.json(&["jobs", "show", &free])["state"], "FAILED", "all or none");
    let done = place.json(&["dead-letters", "retry", "--skip-held", "--limit", "1"]);
    assert_eq!((&done["retried"], &done["held"]), (&1.into(), &serde_json::json!([])), "the newest is free");
    assert_eq!(done["more"], true, "as many as were asked for");
    let left_out = format!("left out: {why}");
    let skipped = place.ratchet(&["dead-letters", "retry", "--skip-held"]);
    skipped.expect(4, &["0 dead letters will be tried again", &left_out]);
    place.ratchet(&["dead-letters", "retry", "--except", &held]).expect(0, &["0 dead letters will be tried again\n"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn dead_letters_that_share_a_key_are_told_so() {
    let place = Place::migrated().await;
    let (older, newer) = (place.failed_job("order-1").await, place.failed_job("order-1").await);
    let why =
        format!("job {older} needs the business key \"order-1\", which job {newer}, retried by the same call, would");
    place.ratchet(&["dead-letters", "retry"]).expect(4, &["none was retried", &why]);
    assert_eq!(place.json(&["dead-letters", "retry", "--skip-held"])["retried"], 1);
    assert_eq!(place.json(&["jobs", "show", &newer])["state"], "PENDING");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_retry_that_could_retry_none_is_refused() {
    let place = Place::migrated().await;
    place.failed_child().await;
    place
        .ratchet(&["dead-letters", "retry"])
        .expect(4, &["0 dead letters", "1 was passed over", "batches that are over"]);
    place.failed_job("order-1").await;
    place.ratchet(&["dead-letters", "retry"]).expect(0, &["1 dead letter will", "1 was passed over"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn the_health_of_queues_is_told_in_milliseconds() {
    let place = Place::migrated().await;
    place.failed_job("order-1").await;
    place.idle_jobs(2).await;
    let health = &place.json(&["queues", "health"])[0];
    assert_eq!((&health["queue"], &health["waiting"]["count"]), (&"default".into(), &2.into()), "{health}");
    assert!(health["oldest_wait_ms"].as_f64().unwrap() > 0.0, "{health}");
    let recent = &health["recent"];
    assert_eq!(recent["failed"], 1, "{health}");
    assert!(recent["wait_ms"]["p50"].as_f64().unwrap() > 0.0 && recent["run_ms"]["p99"].as_f64().is_some(), "{health}");
    place.ratchet(&["queues", "health"]).expect(0, &["WAIT P50/P99", "1 of 1"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_paused_dead_letter_is_explained_with_what_comes_after() {
    let place = Place::migrated().await;
    let id = place.failed_job("order-1").await;
    place.ratchet(&["jobs", "explain", &id]).expect(0, &["it has ended: FAILED; only a retry"]);
    place.ratchet(&["jobs", "pause", &id]).expect(0, &[]);
    place
        .ratchet(&["jobs", "explain", &id])
        .expect(0, &["it is paused; resume it", "it has ended: FAILED; only a retry"]);
}
