use std::collections::BTreeSet;

use crate::support::{Place, broken, idle, no_id};

#[tokio::test(flavor = "multi_thread")]
async fn pages_follow_each_other_to_the_last() {
    let place = Place::migrated().await;
    let submitted: BTreeSet<String> = place.idle_jobs(5).await.into_iter().collect();
    let mut seen = Vec::new();
    let mut page = place.json(&["jobs", "list", "--limit", "2"]);
    loop {
        seen.extend(page["items"].as_array().unwrap().iter().map(|job| job["id"].as_str().unwrap().to_owned()));
        let Some(next) = page["next"].as_str() else { break };
        page = place.json(&["jobs", "list", "--limit", "2", "--after", next]);
    }
    assert_eq!(seen.len(), 5);
    assert_eq!(seen.iter().cloned().collect::<BTreeSet<_>>(), submitted);
    let ran = place.ratchet(&["jobs", "list", "--limit", "2"]);
    ran.expect(0, &["ID", "STATE", "KIND", &format!("More: --after {}", seen[1])]);
}

#[tokio::test(flavor = "multi_thread")]
async fn filters_narrow_and_combine() {
    let place = Place::migrated().await;
    let client = place.client().await;
    client.enqueue(idle(1)).queue("reports").tags(["Monthly"]).submit().await.unwrap();
    client.enqueue(idle(2)).business_key("order-7").submit().await.unwrap();
    let check = |args: &[&str], expected: usize| {
        let page = place.json(&[&["jobs", "list"], args].concat());
        assert_eq!(page["items"].as_array().unwrap().len(), expected, "{args:?}");
    };
    check(&[], 2);
    check(&["--kind", "test.idle"], 2);
    check(&["--kind", "test.other"], 0);
    check(&["--queue", "reports"], 1);
    check(&["--tag", "monthly"], 1);
    check(&["--business-key", "order-7"], 1);
    check(&["--state", "pending,running"], 2);
    check(&["--state", "failed"], 0);
    check(&["--state", "pending", "--queue", "reports", "--tag", "monthly"], 1);
    check(&["--queue", "reports", "--business-key", "order-7"], 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_job_is_shown_with_its_attempts() {
    let place = Place::migrated().await;
    let id = place.failed_job("order-1").await;
    place.ratchet(&["jobs", "show", &id]).expect(0, &[&id, "FAILED", "test.broken", "it is broken", "TRY", "1 of 1"]);
    let job = place.json(&["jobs", "show", &id]);
    for (field, expected) in [
        ("kind", serde_json::json!("test.broken")),
        ("queue", "default".into()),
        ("state", "FAILED".into()),
        ("priority", "NORMAL".into()),
        ("type", "SINGLE".into()),
        ("attempts", 1.into()),
        ("max_retries", 0.into()),
        ("business_key", "order-1".into()),
        ("result", serde_json::Value::Null),
    ] {
        assert_eq!(job[field], expected, "{field}");
    }
    assert_eq!(job["attempt_records"].as_array().unwrap().len(), 1);
    assert!(job["attempt_records"][0]["error"].as_str().unwrap().contains("it is broken"));
    place.ratchet(&["jobs", "show", &no_id()]).expect(3, &["error: there is no job"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_job_says_for_whom_it_was_submitted() {
    let place = Place::migrated().await;
    let client = place.client().await;
    let alice = client.as_principal("alice@example.org").unwrap();
    let own = alice.enqueue(broken()).submit().await.unwrap().id().to_string();
    let nobodys = client.enqueue(broken()).submit().await.unwrap().id().to_string();
    place.ratchet(&["jobs", "show", &own]).expect(0, &["principal", "alice@example.org"]);
    assert_eq!(place.json(&["jobs", "show", &own])["principal"], "alice@example.org");
    assert_eq!(place.json(&["jobs", "show", &nobodys])["principal"], serde_json::Value::Null);
    let page = place.json(&["jobs", "list", "--principal", "alice@example.org"]);
    assert_eq!(page["items"].as_array().unwrap().len(), 1);
}
