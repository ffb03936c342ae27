use std::time::Duration;

use ratchet::JobExt;

use crate::support::{Place, idle, no_id};

#[tokio::test(flavor = "multi_thread")]
async fn a_schedule_is_listed_shown_steered_and_canceled() {
    let place = Place::migrated().await;
    place.ratchet(&["schedules", "list"]).expect(0, &["There are no schedules."]);
    let client = place.client().await;
    let nightly = client.schedule(idle(7)).cron("0 30 2 * * ?").zone("Europe/Berlin");
    let id = nightly.business_key("nightly").create().await.unwrap().id().to_string();
    place.ratchet(&["schedules", "list"]).expect(0, &[&id, "test.idle", "0 30 2 * * ? (Europe/Berlin)", "in "]);
    place.ratchet(&["schedules", "show", &id, "--next", "3"]).expect(0, &["CATCH_UP:11", "nightly", ":30:00"]);
    assert_eq!(place.json(&["schedules", "show", &id])["next_fires"].as_array().unwrap().len(), 5);
    let listed = |key: &str, next: &str| {
        let list = place.json(&["schedules", "list", "--business-key", key, "--next", next]);
        let items = list["items"].as_array().unwrap();
        items.iter().map(|one| one["next_fires"].as_array().unwrap().len()).collect::<Vec<_>>()
    };
    assert_eq!((listed("nightly", "3"), listed("weekly", "3")), (vec![3], vec![]));
    place.ratchet(&["schedules", "pause", &id]).expect(0, &["paused"]);
    assert_eq!(listed("nightly", "3"), [0], "a paused one fires never");
    place.ratchet(&["schedules", "pause", &id]).expect(4, &["is paused already"]);
    place.ratchet(&["schedules", "list"]).expect(0, &["paused"]);
    place.ratchet(&["schedules", "resume", &id]).expect(0, &["resumed"]);
    place.ratchet(&["schedules", "resume", &id]).expect(4, &["is not paused"]);
    place.ratchet(&["schedules", "run", &id]).expect(0, &["fired job"]);
    let jobs = place.json(&["jobs", "list", "--parent", &id]);
    assert_eq!((jobs["items"][0]["type"].as_str(), jobs["items"].as_array().unwrap().len()), (Some("RECURRING"), 1));
    place.ratchet(&["schedules", "cancel", &id]).expect(0, &["canceled"]);
    place.ratchet(&["schedules", "cancel", &id]).expect(3, &["there is no schedule"]);
    place.ratchet(&["schedules", "run", &no_id()]).expect(3, &["there is no schedule"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn schedules_are_canceled_by_tag_or_key() {
    let place = Place::migrated().await;
    let client = place.client().await;
    for number in 0..3 {
        let tagged = idle(number).with(|step| step.tags(["old"]));
        client.schedule(tagged).every(Duration::from_mins(5)).create().await.unwrap();
    }
    client.schedule(idle(9)).every(Duration::from_mins(5)).business_key("kept").create().await.unwrap();
    place.ratchet(&["schedules", "cancel", "--tag", "old"]).expect(0, &["canceled 3 schedules"]);
    place.ratchet(&["schedules", "list"]).expect(0, &["every 5 min"]);
    place.ratchet(&["schedules", "cancel", "--business-key", "kept"]).expect(0, &["canceled 1 schedule\n"]);
    place.ratchet(&["schedules", "cancel"]).expect(2, &["required"]);
}
