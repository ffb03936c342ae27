//! Circuit breakers that are opened and reset for the whole cluster.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use ratchet_core::breaker::{Admission, CallEnd, Ticket};
use ratchet_core::explain::Reason;
use ratchet_core::service::ServiceStand;
use ratchet_core::store::BreakerStore as _;
use ratchet_core::{JobState, ServiceName};
use ratchet_engine::{AlwaysAdmit, Client, Ratchet, ResilienceStrategy, StartError};

use crate::breakers::{Charge, Payments, node};
use crate::faulty::Faulty;
use crate::support::{Play, Stage, eventually, memory};

fn payments() -> ServiceName {
    ServiceName::new("payments").unwrap()
}

/// On how many nodes the breaker of `payments` is open by hand, as they tell.
async fn forced_open(client: &Client) -> usize {
    let breakers = client.breakers().await.unwrap();
    let told = breakers.iter().filter(|one| one.service == payments()).flat_map(|one| &one.not_closed);
    told.filter(|node| node.stand == ServiceStand::ForcedOpen).count()
}

async fn play(client: &Client) {
    let play = client.enqueue(Play::Return("others".into())).submit().await.unwrap();
    assert_eq!(play.result().await.unwrap(), "others", "other services run on");
}

#[tokio::test]
async fn a_breaker_that_is_opened_for_all_is_open_on_every_node_until_it_is_reset() {
    let (service, stage, store) = (Payments::up(), Stage::default(), memory());
    let client = Ratchet::client(store.clone());
    let one = node(&service, &stage).store(store.clone()).start().await.unwrap();
    let other = node(&service, &stage).store(store).resilience_strategy(AlwaysAdmit).start().await.unwrap();
    let opened = client.open_breaker(&payments()).await.unwrap();
    assert_eq!((opened.changed, opened.calling), (true, 2));
    eventually("both tell of it", async || forced_open(&client).await == 2).await;
    let charges = client.submit_all((0..20).map(|_| client.enqueue(Charge))).await.unwrap();
    let plays = (0..20).map(|_| client.enqueue(Play::Return("others".into())));
    for play in client.submit_all(plays).await.unwrap() {
        play.result().await.unwrap();
    }
    assert_eq!(service.calls(), 0);
    assert_eq!(one.stats().claimed + other.stats().claimed, 20, "what waits is not claimed");
    let record = charges[0].record().await.unwrap();
    assert_eq!((record.state, record.attempts, record.deferred_until), (JobState::Pending, 0, None));
    let breaker = [Reason::Breaker { service: "payments".to_owned(), nodes: 2, until: None }];
    let reasons = client.explain(charges[0].id()).await.unwrap().unwrap().reasons;
    assert_eq!(reasons[..1], breaker);
    let reset = client.reset_breaker(&payments()).await.unwrap();
    assert_eq!((reset.changed, reset.calling), (true, 2));
    for charge in &charges {
        charge.result().await.unwrap();
        assert_eq!(charge.record().await.unwrap().attempts, 1);
    }
    eventually("both tell of it", async || client.breakers().await.unwrap().is_empty()).await;
}

#[tokio::test]
async fn a_node_that_starts_heeds_what_is_held_open_before_its_first_claim() {
    let (service, stage, store) = (Payments::up(), Stage::default(), Faulty::new(memory()));
    let client = Ratchet::client(store.clone());
    let opened = client.open_breaker(&payments()).await.unwrap();
    assert_eq!((opened.changed, opened.calling), (true, 0), "no node lives that calls it");
    assert!(!client.open_breaker(&payments()).await.unwrap().changed);
    let charge = client.enqueue(Charge).submit().await.unwrap();
    // By this one reading: it does not get to another.
    store.order_reads.store(1, Ordering::SeqCst);
    let ratchet = node(&service, &stage).store(store.clone()).start().await.unwrap();
    play(&client).await;
    assert_eq!((service.calls(), ratchet.stats().claimed), (0, 1));
    ratchet.reset_breaker_here("payments");
    play(&client).await;
    assert_eq!(charge.status().await.unwrap(), JobState::Pending, "one node cannot let go what is held for all");
    store.order_reads.store(usize::MAX, Ordering::SeqCst);
    ratchet.reset_breaker(&payments()).await.unwrap();
    charge.result().await.unwrap();
}

#[tokio::test]
async fn a_reset_for_all_closes_what_a_node_had_opened() {
    let (service, stage, store) = (Payments::up(), Stage::default(), memory());
    let client = Ratchet::client(store.clone());
    let ratchet = node(&service, &stage).store(store).start().await.unwrap();
    ratchet.open_breaker_here("payments");
    let charge = client.enqueue(Charge).submit().await.unwrap();
    eventually("it tells of it", async || forced_open(&client).await == 1).await;
    assert!(!client.reset_breaker(&payments()).await.unwrap().changed, "it was not held open for all");
    charge.result().await.unwrap();
}

/// Admits everything, and counts how often it was reset.
struct CountsResets(Arc<AtomicUsize>);

impl ResilienceStrategy for CountsResets {
    fn admits(&self, _service: &str) -> Admission {
        Admission::All
    }

    fn enter(&self, _service: &str) -> Result<Ticket, Duration> {
        Ok(Ticket(0))
    }

    fn leave(&self, _service: &str, _ticket: Ticket, _end: CallEnd) {}

    fn reset(&self, _service: &str) {
        self.0.fetch_add(1, Ordering::SeqCst);
    }
}

#[tokio::test]
async fn an_order_is_heeded_once_by_those_who_run_then_and_call_the_service() {
    let (service, stage, store) = (Payments::up(), Stage::default(), memory());
    let (client, resets) = (Ratchet::client(store.clone()), Arc::new(AtomicUsize::new(0)));
    client.reset_breaker(&payments()).await.unwrap();
    let strategy = CountsResets(resets.clone());
    let ratchet = node(&service, &stage).store(store).resilience_strategy(strategy).start().await.unwrap();
    let looked = async || {
        let before = ratchet.stats().last_success.breakers;
        eventually("another look", async || ratchet.stats().last_success.breakers > before).await;
    };
    looked().await;
    assert_eq!(resets.load(Ordering::SeqCst), 0, "it was ordered before the start");
    client.reset_breaker(&ServiceName::new("fax").unwrap()).await.unwrap();
    client.reset_breaker(&payments()).await.unwrap();
    eventually("the reset", async || resets.load(Ordering::SeqCst) == 1).await;
    looked().await;
    looked().await;
    assert_eq!(resets.load(Ordering::SeqCst), 1);
}

#[tokio::test]
async fn a_node_that_cannot_read_orders_goes_on_with_what_it_knew() {
    let (service, stage, store) = (Payments::up(), Stage::default(), Faulty::new(memory()));
    let ratchet = node(&service, &stage).store(store.clone()).start().await.unwrap();
    ratchet.open_breaker(&payments()).await.unwrap();
    let charge = ratchet.enqueue(Charge).submit().await.unwrap();
    eventually("it tells of it", async || {
        ratchet.nodes().await.unwrap()[0].vitals.services.stand("payments") == Some(ServiceStand::ForcedOpen)
    })
    .await;
    let calls = service.calls();
    store.order_reads.store(0, Ordering::SeqCst);
    store.reset_breaker(&payments()).await.unwrap();
    let late = ratchet.enqueue(Charge).submit().await.unwrap();
    play(&ratchet).await;
    assert_eq!((late.status().await.unwrap(), service.calls()), (JobState::Pending, calls));
    let refused = node(&service, &stage).store(store.clone()).start().await;
    assert!(matches!(refused, Err(StartError::Store(_))), "a node that knows nothing does not start");
    assert_eq!(ratchet.nodes().await.unwrap().len(), 1, "and leaves nothing behind");
    store.order_reads.store(usize::MAX, Ordering::SeqCst);
    charge.result().await.unwrap();
    late.result().await.unwrap();
}
