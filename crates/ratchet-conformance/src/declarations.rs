//! Schedules that code declares: renewed by it, changed by it, retired without it.

use ratchet_core::recurring::{ArchiveReason, NewRecurring};
use ratchet_core::schedule::{Every, OverlapPolicy, Schedule};
use ratchet_core::store::Declared;
use ratchet_core::{JsonText, clock};

use crate::bench::{Bench, assert_about, mins};
use crate::recurring::{children, declare, done, every_ten, fire, found};

async fn declared(bench: &Bench) -> NewRecurring {
    let new = NewRecurring { declared: true, ..every_ten(bench).await };
    assert_eq!(declare(&*bench.store, &new).await.unwrap(), Declared::Created);
    new
}

async fn retire(bench: &Bench, new: &NewRecurring, idle: u64) -> bool {
    bench.store.cancel_recurring(new.id, ArchiveReason::Retired, Some(mins(idle))).await.unwrap()
}

pub(crate) async fn firing_does_not_keep_a_schedule_that_nobody_declares(bench: Bench) {
    let new = declared(&bench).await;
    for _ in 0..3 {
        bench.advance(mins(10));
        assert_eq!(fire(&bench).await, [done(1, 0)]);
        bench.claim_all().await;
    }
    assert_about(found(&bench, new.id).await.updated_at, found(&bench, new.id).await.created_at);
    assert!(!retire(&bench, &new, 31).await);
    assert!(retire(&bench, &new, 29).await, "it has fired a moment ago, and nobody has declared it for half an hour");
}

pub(crate) async fn many_schedules_are_declared_at_once(bench: Bench) {
    let mut all = Vec::new();
    for _ in 0..5 {
        all.push(NewRecurring { declared: true, ..every_ten(&bench).await });
    }
    let first = bench.store.declare_recurring(&all[..3]).await.unwrap();
    assert_eq!(first, [Declared::Created; 3]);
    bench.advance(mins(5));
    all[1].overlap = OverlapPolicy::Skip;
    all.reverse();
    let again = bench.store.declare_recurring(&all).await.unwrap();
    assert_eq!(
        again,
        [Declared::Created, Declared::Created, Declared::Unchanged, Declared::Changed, Declared::Unchanged]
    );
    let now = bench.now().await;
    for new in &all {
        let one = found(&bench, new.id).await;
        assert_eq!(one.overlap, new.overlap);
        assert_about(one.updated_at, now);
    }
    assert_eq!(bench.store.declare_recurring(&[]).await.unwrap(), []);
}

pub(crate) async fn a_changed_declaration_keeps_a_fire_that_is_due(bench: Bench) {
    let new = declared(&bench).await;
    let first = found(&bench, new.id).await.next_fire;
    bench.advance(mins(11));
    let now = bench.now().await;
    let later = new.schedule.next_after(now);
    let skipping = NewRecurring { overlap: OverlapPolicy::Skip, next_fire: later, ..new.clone() };
    assert_eq!(declare(&*bench.store, &skipping).await.unwrap(), Declared::Changed);
    assert_eq!(found(&bench, new.id).await.next_fire, first, "when it fires has not changed");
    let schedule = Schedule::Every(Every::new(mins(30), clock::later(now, mins(5))).unwrap());
    let rarer = NewRecurring { next_fire: schedule.next_after(now), schedule, ..skipping };
    assert_eq!(declare(&*bench.store, &rarer).await.unwrap(), Declared::Changed);
    assert_eq!(found(&bench, new.id).await.next_fire, first, "what is due is due");
    assert_eq!(fire(&bench).await, [done(1, 0)]);
    let after = found(&bench, new.id).await;
    assert_eq!((after.last_fire, after.next_fire), (first, rarer.next_fire), "it goes on as is declared now");
}

pub(crate) async fn a_payload_that_is_written_otherwise_is_no_change(bench: Bench) {
    let text = |text: &str| JsonText::parse("payload", text, 1_000).unwrap();
    let mut new = NewRecurring { declared: true, ..every_ten(&bench).await };
    new.spec.payload = text(r#"{ "zeta": [1.50, 1e2], "a": "\u00fc" }"#);
    new.on_success = Some(new.spec.clone());
    assert_eq!(declare(&*bench.store, &new).await.unwrap(), Declared::Created);
    assert_eq!(declare(&*bench.store, &new).await.unwrap(), Declared::Unchanged);
    new.spec.payload = text(r#"{"a":"ü","zeta":[1.5,100]}"#);
    assert_eq!(declare(&*bench.store, &new).await.unwrap(), Declared::Unchanged);
    new.spec.payload = text(r#"{"a":"ü","zeta":[1.5,101]}"#);
    assert_eq!(declare(&*bench.store, &new).await.unwrap(), Declared::Changed);
}

pub(crate) async fn a_schedule_that_was_retired_comes_back_as_it_was(bench: Bench) {
    let new = declared(&bench).await;
    bench.advance(mins(21));
    assert_eq!(fire(&bench).await, [done(2, 0)]);
    bench.store.pause_recurring(new.id).await.unwrap();
    let before = found(&bench, new.id).await;
    bench.advance(mins(5));
    assert!(retire(&bench, &new, 1).await);
    let again = NewRecurring { next_fire: new.schedule.next_after(bench.now().await), ..new.clone() };
    assert_eq!(declare(&*bench.store, &again).await.unwrap(), Declared::Created);
    let after = found(&bench, new.id).await;
    assert!(after.paused, "a person has paused it");
    assert_eq!((after.fired, after.skipped), (before.fired, before.skipped));
    assert_eq!((after.last_fire, after.last_job), (before.last_fire, before.last_job));
    assert_eq!(after.next_fire, again.next_fire);
    bench.store.cancel_recurring(new.id, ArchiveReason::Canceled, None).await.unwrap();
    declare(&*bench.store, &again).await.unwrap();
    let anew = found(&bench, new.id).await;
    assert_eq!((anew.paused, anew.fired), (false, 0), "what a person has ended begins anew");
    assert_eq!(children(&bench, new.id).await.len(), 2);
}
