use std::collections::BTreeSet;

use ratchet::Priority;

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
async fn a_list_has_the_order_that_is_asked_for() {
    let place = Place::migrated().await;
    let client = place.client().await;
    let mut ids = Vec::new();
    for priority in [Priority::Low, Priority::High, Priority::Low] {
        let handle = client.enqueue(idle(1)).priority(priority).submit().await.unwrap();
        ids.push(handle.id().to_string());
    }
    let [first, second, third] = &ids[..] else { panic!("three") };
    for (order, expected) in
        [("newest", [third, second, first]), ("oldest", [first, second, third]), ("priority", [second, third, first])]
    {
        let (mut seen, mut after) = (Vec::new(), None::<String>);
        loop {
            let mut args = vec!["jobs", "list", "--limit", "1", "--order", order];
            args.extend(after.as_deref().map(|after| ["--after", after]).into_iter().flatten());
            let page = place.json(&args);
            seen.extend(page["items"].as_array().unwrap().iter().map(|job| job["id"].as_str().unwrap().to_owned()));
            match page["next"].as_str() {
                Some(next) => after = Some(next.to_owned()),
                None => break,
            }
        }
        assert_eq!(seen.iter().collect::<Vec<_>>(), expected, "{order}");
    }
    let mixed = ["jobs", "list", "--order", "oldest", "--after", first];
    place.ratchet(&mixed).expect(2, &["`after` is of a list in the order \"newest\"", "begin with the first page"]);
    place.ratchet(&["jobs", "list", "--order", "size"]).expect(2, &["use newest, oldest or priority"]);
    place.ratchet(&["jobs", "list", "--after", "x"]).expect(2, &["the last line of a page"]);
    for (filter, expected) in [
        (["--priority", "high"], 1),
        (["--type", "single"], 3),
        (["--type", "callback"], 0),
        (["--made-until", "2020-01-01T00:00:00Z"], 0),
        (["--made-from", "2020-01-01T00:00:00Z"], 3),
        (["--ended-from", "2020-01-01T00:00:00Z"], 0),
    ] {
        let found = place.json(&[&["jobs", "count"], &filter[..]].concat());
        assert_eq!(found["jobs"], expected, "{filter:?}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn jobs_are_counted_by_what_is_asked_for() {
    let place = Place::migrated().await;
    place.ratchet(&["jobs", "count"]).expect(0, &["No jobs."]);
    let client = place.client().await;
    for tenant in ["acme", "acme", "zenith"] {
        client.enqueue(idle(1)).param("tenant.id", tenant).submit().await.unwrap();
    }
    place.failed_job("order-1").await;
    place.ratchet(&["jobs", "count"]).expect(0, &["JOBS", "3", "PENDING", "1", "FAILED", "4 jobs"]);
    let by = |by: &str| place.json(&["jobs", "count", "--by", by])["groups"].clone();
    assert_eq!(by("kind"), serde_json::json!({"test.idle": 3, "test.broken": 1}));
    assert_eq!(by("param:tenant.id"), serde_json::json!({"acme": 2, "zenith": 1}));
    assert_eq!(by("node").as_object().unwrap().len(), 1, "those that never ran are in no group");
    place.ratchet(&["jobs", "count", "--by", "color"]).expect(2, &["use state, kind, queue"]);
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
