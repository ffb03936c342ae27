use crate::support::{Place, idle, no_id};

#[tokio::test(flavor = "multi_thread")]
async fn a_batch_is_listed_shown_sealed_and_canceled() {
    let place = Place::migrated().await;
    place.ratchet(&["batches", "list"]).expect(0, &["There are no batches."]);
    let client = place.client().await;
    let batch = client.batch().children((0..4).map(idle)).submit().await.unwrap();
    let id = batch.id().to_string();
    place.ratchet(&["batches", "list"]).expect(0, &[&id, "WAITING", "[....................]   0.0 %", "0/4"]);
    place.ratchet(&["batches", "show", &id]).expect(0, &[&id, "WAITING", "0 of 4", "ratchet jobs list --parent"]);
    let json = place.json(&["batches", "show", &id]);
    assert_eq!((json["counts"]["total"].as_u64(), json["progress"]["done"].as_u64()), (Some(4), Some(0)));
    client.cancel(batch.children(None, 1).await.unwrap().items[0].id).await.unwrap();
    place.ratchet(&["batches", "show", &id]).expect(0, &["[##########..............................]", "1 of 4"]);
    place.ratchet(&["batches", "cancel", &id]).expect(0, &["canceled 3 children"]);
    place.ratchet(&["batches", "list"]).expect(0, &["CANCELED", "100.0 %", "4/4"]);
    place.ratchet(&["batches", "seal", &id]).expect(0, &["sealed"]);

    let open = client.batch().open().await.unwrap().handle().id().to_string();
    place.ratchet(&["batches", "list"]).expect(0, &["open, 0 children so far"]);
    place.ratchet(&["batches", "seal", &open]).expect(0, &["sealed"]);
    place.ratchet(&["batches", "show", &open]).expect(0, &["PENDING"]);
    let canceled = client.batch().open().await.unwrap();
    canceled.cancel().await.unwrap();
    place.ratchet(&["batches", "seal", &canceled.handle().id().to_string()]).expect(4, &["was canceled"]);
    for verb in ["show", "cancel", "seal"] {
        place.ratchet(&["batches", verb, &no_id()]).expect(3, &["there is no batch"]);
    }
}
