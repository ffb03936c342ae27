use crate::support::{Place, broken, idle, no_id};

#[tokio::test(flavor = "multi_thread")]
async fn a_workflow_is_listed_shown_and_canceled() {
    let place = Place::migrated().await;
    place.ratchet(&["workflows", "list"]).expect(0, &["There are no workflows."]);
    let client = place.client().await;
    let flow = client.workflow().step("fetch", idle(1)).step("read", idle(2)).step("mourn", broken());
    let flow = flow.edge("fetch", "read").edge_on_failure("fetch", "mourn").submit().await.unwrap();
    let (id, read) = (flow.id().to_string(), flow.step::<u32>("read").unwrap().id().to_string());
    place.ratchet(&["workflows", "list"]).expect(0, &[&id, "RUNNING", "test.idle", "0/3"]);
    place
        .ratchet(&["workflows", "show", &read])
        .expect(0, &[&id, "1 PENDING, 2 WAITING", "fetch (success)", "fetch (failure)", "mourn"]);
    let json = place.json(&["workflows", "show", &id]);
    assert_eq!((json["state"].as_str(), json["edges"][0]["state"].as_str()), (Some("RUNNING"), Some("OPEN")));
    place.ratchet(&["workflows", "cancel", &id]).expect(0, &["canceled 3 steps"]);
    place.ratchet(&["workflows", "show", &id]).expect(0, &["CANCELED, 3 CANCELED", "✗"]);
    place.ratchet(&["workflows", "show", &no_id()]).expect(3, &["there is no workflow"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_chain_is_a_workflow_too() {
    let place = Place::migrated().await;
    let client = place.client().await;
    let first = client.enqueue(idle(1)).then(idle(2)).submit().await.unwrap();
    place.ratchet(&["workflows", "list", "--limit", "1"]).expect(0, &[&first.id().to_string(), "0/2"]);
}
