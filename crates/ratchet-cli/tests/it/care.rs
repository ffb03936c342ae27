use crate::support::Place;

#[tokio::test(flavor = "multi_thread")]
async fn dead_letters_are_grouped_retried_and_purged() {
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
    place.ratchet(&one).expect(0, &["1 dead letters will be tried again"]);
    assert_eq!(place.json(&["jobs", "show", &second])["state"], "PENDING");
    place.ratchet(&["dead-letters", "purge", "--older-than", "1h"]).expect(0, &["archived 0 dead letters"]);
    place.ratchet(&["dead-letters", "purge", "--older-than", "0s"]).expect(0, &["archived 1 dead letters"]);
    place.ratchet(&["dead-letters", "list"]).expect(0, &["No dead letters."]);
}

#[tokio::test(flavor = "multi_thread")]
async fn archived_jobs_are_listed_and_shown_and_purged() {
    let place = Place::migrated().await;
    let id = place.failed_job("order-1").await;
    place.ratchet(&["archive", "run", "--older-than", "0s", "--state", "pending"]).expect(2, &["are live"]);
    place.ratchet(&["archive", "run", "--older-than", "0s", "--state", "succeeded"]).expect(0, &["archived 0 jobs"]);
    place.ratchet(&["archive", "run", "--older-than", "0s"]).expect(0, &["archived 1 jobs"]);
    place.ratchet(&["jobs", "list"]).expect(0, &["No jobs."]);
    for scope in ["--archived", "--with-archived"] {
        place.ratchet(&["jobs", "list", scope]).expect(0, &[&id, "FAILED (archived)"]);
    }
    place.ratchet(&["jobs", "show", &id]).expect(0, &["archived", "it is broken"]);
    assert!(place.json(&["jobs", "show", &id])["archived_at"].is_string());
    place.ratchet(&["jobs", "retry", &id]).expect(4, &["archived; nothing can be asked of it"]);
    place.ratchet(&["archive", "purge", "--older-than", "1d"]).expect(0, &["deleted 0 archived jobs"]);
    place.ratchet(&["archive", "purge", "--older-than", "0s"]).expect(0, &["deleted 1 archived jobs"]);
    place.ratchet(&["jobs", "show", &id]).expect(3, &["there is no job"]);
}
