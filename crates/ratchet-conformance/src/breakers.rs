//! Orders about circuit breakers: each is kept, and known by its number.

use std::collections::BTreeSet;

use ratchet_core::{BreakerOrder, ServiceName, Store, limits};

use crate::harness::{Harness, assert_about, mins};
use crate::races::race;

fn service(name: &str) -> ServiceName {
    ServiceName::new(name).unwrap()
}

async fn order(store: &dyn Store, service: &ServiceName, opens: bool) -> bool {
    let changed = if opens { store.open_breaker(service).await } else { store.reset_breaker(service).await };
    changed.unwrap()
}

impl Harness {
    /// The orders, each with whether it holds open, and its number.
    async fn orders(&self) -> Vec<(String, bool, u64)> {
        let told = |order: BreakerOrder| (order.service.to_string(), order.held_open, order.number);
        self.store.breaker_orders().await.unwrap().into_iter().map(told).collect()
    }
}

pub(crate) async fn opening_and_resetting_a_breaker_say_whether_they_did(harness: Harness) {
    let service = service("payments");
    assert!(!harness.store.reset_breaker(&service).await.unwrap());
    assert!(harness.store.open_breaker(&service).await.unwrap());
    assert!(!harness.store.open_breaker(&service).await.unwrap());
    assert!(harness.store.reset_breaker(&service).await.unwrap());
    assert!(!harness.store.reset_breaker(&service).await.unwrap());
    assert!(harness.store.open_breaker(&service).await.unwrap());
}

pub(crate) async fn every_order_about_a_breaker_is_known_by_its_number(harness: Harness) {
    let service = service("payments");
    assert_eq!(harness.orders().await, []);
    for (number, held_open) in (1..).zip([true, false, false, true]) {
        harness.advance(mins(1));
        let now = harness.now().await;
        order(&*harness.store, &service, held_open).await;
        assert_eq!(harness.orders().await, [("payments".to_owned(), held_open, number)]);
        assert_about(harness.store.breaker_orders().await.unwrap()[0].ordered_at, now);
    }
}

pub(crate) async fn an_order_that_changes_nothing_is_no_order(harness: Harness) {
    harness.store.open_breaker(&service("payments")).await.unwrap();
    let before = harness.store.breaker_orders().await.unwrap();
    harness.advance(mins(1));
    harness.store.open_breaker(&service("payments")).await.unwrap();
    assert_eq!(harness.store.breaker_orders().await.unwrap(), before, "also since when it is held open");
}

pub(crate) async fn orders_are_by_service_and_told_by_name(harness: Harness) {
    for name in ["payments", "mail", "sms"] {
        harness.store.open_breaker(&service(name)).await.unwrap();
    }
    harness.store.reset_breaker(&service("mail")).await.unwrap();
    harness.store.open_breaker(&service("fax")).await.unwrap();
    let order = |name: &str, held_open, number| (name.to_owned(), held_open, number);
    let expected = [order("fax", true, 1), order("mail", false, 2), order("payments", true, 1), order("sms", true, 1)];
    assert_eq!(harness.orders().await, expected);
}

pub(crate) async fn the_names_of_services_come_back_and_are_compared_exactly(harness: Harness) {
    // Databases that fold case or unite accents would mix some of these up.
    let longest = "🦀".repeat(limits::SERVICE_CHARS_MAX);
    let names = ["pay", "Pay", "pa y", "pa\u{301}y", "p\u{e1}y", "%", "ß", "ss", longest.as_str()];
    for name in names {
        assert!(!harness.store.reset_breaker(&service(name)).await.unwrap(), "{name:?}");
        assert!(harness.store.open_breaker(&service(name)).await.unwrap(), "{name:?}");
    }
    let names: BTreeSet<_> = names.into_iter().collect();
    let expected: Vec<_> = names.into_iter().map(|name| (name.to_owned(), true, 2)).collect();
    assert_eq!(harness.orders().await, expected, "in the order of their characters");
}

pub(crate) async fn of_orders_at_the_same_time_none_is_lost(harness: Harness) {
    for round in 0..10 {
        let name = format!("service-{round}");
        let racers = (0..6).map(|racer| {
            let (store, service, opens) = (harness.store.clone(), service(&name), racer % 2 == 0);
            async move { (opens, order(&*store, &service, opens).await) }
        });
        let answers = race(racers.collect()).await;
        let opened = answers.iter().filter(|answer| **answer == (true, true)).count();
        let let_go = answers.iter().filter(|answer| **answer == (false, true)).count();
        let orders = harness.store.breaker_orders().await.unwrap();
        let last = orders.iter().find(|order| order.service.as_str() == name).expect("it was ordered about");
        assert_eq!(opened, let_go + usize::from(last.held_open), "{answers:?}");
        // Every reset is an order, and every opening that changed something.
        assert_eq!(last.number, 3 + opened as u64, "{answers:?}");
    }
}
