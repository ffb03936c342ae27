use crate::support::{Place, broken, no_id};

#[tokio::test(flavor = "multi_thread")]
async fn a_job_goes_where_it_is_steered() {
    let place = Place::migrated().await;
    let id = place.idle_jobs(1).await.remove(0);
    let state = || place.json(&["jobs", "show", &id])["state"].as_str().unwrap().to_owned();
    place.ratchet(&["jobs", "pause", &id]).expect(0, &["paused", &id]);
    assert_eq!(state(), "PAUSED");
    place.ratchet(&["jobs", "pause", &id]).expect(0, &["paused"]);
    place.ratchet(&["jobs", "show", &id]).expect(0, &["PAUSED (from PENDING)"]);
    place.ratchet(&["jobs", "resume", &id]).expect(0, &["resumed"]);
    assert_eq!(state(), "PENDING");
    place.ratchet(&["jobs", "delete", &id]).expect(4, &["is PENDING; it can be deleted only from SUCCEEDED"]);
    place.ratchet(&["jobs", "cancel", &id]).expect(0, &["canceled"]);
    assert_eq!(state(), "CANCELED");
    place.ratchet(&["jobs", "delete", &id]).expect(0, &["deleted"]);
    place.ratchet(&["jobs", "delete", &id]).expect(3, &["there is no job"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn refusals_say_where_the_job_stands_and_where_it_should() {
    let place = Place::migrated().await;
    let id = place.failed_job("order-1").await;
    place
        .ratchet(&["jobs", "cancel", &id])
        .expect(4, &["is FAILED; it can be canceled only from PENDING, RUNNING, WAITING"]);
    place.ratchet(&["jobs", "resume", &id]).expect(4, &["it can be resumed only from PAUSED"]);
    place.ratchet(&["jobs", "retry", &id]).expect(0, &["will be tried again", &id]);
    place.ratchet(&["jobs", "retry", &id]).expect(4, &["is PENDING; it can be retried only from FAILED"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_retry_whose_business_key_is_taken_is_refused_and_names_the_holder() {
    let place = Place::migrated().await;
    let id = place.failed_job("order-1").await;
    let client = place.client().await;
    let holder = client.enqueue(broken()).business_key("order-1").submit().await.unwrap();
    place.ratchet(&["jobs", "retry", &id]).expect(4, &["order-1", &holder.id().to_string()]);
}

#[tokio::test(flavor = "multi_thread")]
async fn what_stands_in_the_way_of_a_job_that_stands_where_it_should_is_said() {
    let place = Place::migrated().await;
    let id = place.failed_child().await;
    let ran = place.ratchet(&["jobs", "retry", &id]);
    ran.expect(4, &["batch"]);
    assert!(!ran.err.contains("only from"), "{ran:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn of_several_jobs_each_gets_its_answer_and_the_highest_code_counts() {
    let place = Place::migrated().await;
    let ids = place.idle_jobs(2).await;
    place.ratchet(&["jobs", "cancel", &ids[0], &no_id()]).expect(3, &["canceled", "there is no job"]);
    let ran = place.ratchet(&["jobs", "cancel", &ids[0], &ids[1], &no_id(), "--json"]);
    ran.expect(4, &[]);
    let items: serde_json::Value = serde_json::from_str(&ran.out).unwrap();
    let done: Vec<bool> = items.as_array().unwrap().iter().map(|item| item["done"].as_bool().unwrap()).collect();
    assert_eq!(done, [false, true, false]);
    assert_eq!(items[1]["state"], "CANCELED");
    assert!(items[2]["problem"].as_str().unwrap().contains("no job"));
}
