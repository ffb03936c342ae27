use std::time::Duration;

use crate::support::{Place, idle, no_id};

#[tokio::test(flavor = "multi_thread")]
async fn a_signal_is_sent_and_shown() {
    let place = Place::migrated().await;
    let client = place.client().await;
    let job = client.enqueue(idle(1)).await_signal("paid:7", Duration::from_hours(48)).submit().await.unwrap();
    let id = job.id().to_string();
    place.ratchet(&["jobs", "show", &id]).expect(0, &["WAITING", "\"paid:7\" has not come, until", "in 47 h"]);
    let payload = "{\"cents\": 4200}";
    place
        .ratchet(&["signal", "paid:7", "--payload", payload, "--approve", "--by", "anna"])
        .expect(0, &["delivered to 1 job, which can run now"]);
    place.ratchet(&["jobs", "show", &id]).expect(0, &["PENDING", "came", "by anna, approved", "4200"]);
    let json = place.json(&["jobs", "show", &id]);
    assert_eq!(json["signal"]["signal"]["payload"]["cents"], 4200);
    place.ratchet(&["signal", "--job", &id, "--reject", "late"]).expect(4, &["waits for no signal"]);
    place.ratchet(&["signal", "--job", &no_id()]).expect(3, &["there is no job"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_signal_that_nobody_waits_for_is_kept_or_refused() {
    let place = Place::migrated().await;
    place.ratchet(&["signal", "early", "--keep", "15m"]).expect(0, &["it is kept"]);
    place.ratchet(&["signal", "early"]).expect(4, &["one is kept already"]);
    place.ratchet(&["signal", "other", "--no-keep"]).expect(4, &["it was not to be kept"]);
    place.ratchet(&["signal", ""]).expect(2, &["`signal key` is empty"]);
    place.ratchet(&["signal"]).expect(2, &["<KEY|--job <ID>>"]);
    place.ratchet(&["signal", "a", "--payload", "{"]).expect(2, &["it is not JSON"]);
    place.ratchet(&["signal", "a", "--keep", "5y"]).expect(2, &["is no duration"]);
    let client = place.client().await;
    let job = client.enqueue(idle(1)).await_signal("early", None).submit().await.unwrap();
    place.ratchet(&["jobs", "show", &job.id().to_string()]).expect(0, &["PENDING"]);
}
