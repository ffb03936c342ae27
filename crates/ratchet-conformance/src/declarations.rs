//! Schedules that code declares: renewed by it, changed by it, retired without it.

use ratchet_core::schedule::{ArchiveReason, NewSchedule};
use ratchet_core::schedule::{Every, OverlapPolicy, Schedule};
use ratchet_core::store::Declared;
use ratchet_core::{JsonText, clock};

use crate::harness::{Harness, assert_about, mins};
use crate::schedules::{children, declare, done, every_ten, fire, found};

async fn declared(harness: &Harness) -> NewSchedule {
    let new = NewSchedule { declared: true, ..every_ten(harness).await };
    assert_eq!(declare(&*harness.store, &new).await.unwrap(), Declared::Created);
    new
}

async fn retire(harness: &Harness, new: &NewSchedule, idle: u64) -> bool {
    harness.store.cancel_schedule(new.id, ArchiveReason::Retired, Some(mins(idle))).await.unwrap()
}

pub(crate) async fn firing_does_not_keep_a_schedule_that_nobody_declares(harness: Harness) {
    let new = declared(&harness).await;
    for _ in 0..3 {
        harness.advance(mins(10));
        assert_eq!(fire(&harness).await, [done(1, 0)]);
        harness.claim_all().await;
    }
    assert_about(found(&harness, new.id).await.updated_at, found(&harness, new.id).await.created_at);
    assert!(!retire(&harness, &new, 31).await);
    assert!(retire(&harness, &new, 29).await, "it has fired a moment ago, and nobody has declared it for half an hour");
}

pub(crate) async fn many_schedules_are_declared_at_once(harness: Harness) {
    let mut all = Vec::new();
    for _ in 0..5 {
        all.push(NewSchedule { declared: true, ..every_ten(&harness).await });
    }
    let first = harness.store.declare_schedules(&all[..3]).await.unwrap();
    assert_eq!(first, [Declared::Created; 3]);
    harness.advance(mins(5));
    all[1].overlap = OverlapPolicy::Skip;
    all.reverse();
    let again = harness.store.declare_schedules(&all).await.unwrap();
    assert_eq!(
        again,
        [Declared::Created, Declared::Created, Declared::Unchanged, Declared::Changed, Declared::Unchanged]
    );
    let now = harness.now().await;
    for new in &all {
        let one = found(&harness, new.id).await;
        assert_eq!(one.overlap, new.overlap);
        assert_about(one.updated_at, now);
    }
    assert_eq!(harness.store.declare_schedules(&[]).await.unwrap(), []);
}

pub(crate) async fn a_changed_declaration_keeps_a_fire_that_is_due(harness: Harness) {
    let new = declared(&harness).await;
    let first = found(&harness, new.id).await.next_fire;
    harness.advance(mins(11));
    let now = harness.now().await;
    let later = new.schedule.next_after(now);
    let skipping = NewSchedule { overlap: OverlapPolicy::Skip, next_fire: later, ..new.clone() };
    assert_eq!(declare(&*harness.store, &skipping).await.unwrap(), Declared::Changed);
    assert_eq!(found(&harness, new.id).await.next_fire, first, "when it fires has not changed");
    let schedule = Schedule::Every(Every::new(mins(30), clock::later(now, mins(5))).unwrap());
    let rarer = NewSchedule { next_fire: schedule.next_after(now), schedule, ..skipping };
    assert_eq!(declare(&*harness.store, &rarer).await.unwrap(), Declared::Changed);
    assert_eq!(found(&harness, new.id).await.next_fire, first, "what is due is due");
    assert_eq!(fire(&harness).await, [done(1, 0)]);
    let after = found(&harness, new.id).await;
    assert_eq!((after.last_fire, after.next_fire), (first, rarer.next_fire), "it goes on as is declared now");
}

pub(crate) async fn a_payload_that_is_written_otherwise_is_no_change(harness: Harness) {
    let text = |text: &str| JsonText::parse("payload", text, 1_000).unwrap();
    let mut new = NewSchedule { declared: true, ..every_ten(&harness).await };
    new.spec.payload = text(r#"{ "zeta": [1.50, 1e2], "a": "\u00fc" }"#);
    new.on_success = Some(new.spec.clone());
    assert_eq!(declare(&*harness.store, &new).await.unwrap(), Declared::Created);
    assert_eq!(declare(&*harness.store, &new).await.unwrap(), Declared::Unchanged);
    new.spec.payload = text(r#"{"a":"ü","zeta":[1.5,100]}"#);
    assert_eq!(declare(&*harness.store, &new).await.unwrap(), Declared::Unchanged);
    new.spec.payload = text(r#"{"a":"ü","zeta":[1.5,101]}"#);
    assert_eq!(declare(&*harness.store, &new).await.unwrap(), Declared::Changed);
}

pub(crate) async fn a_schedule_that_was_retired_comes_back_as_it_was(harness: Harness) {
    let new = declared(&harness).await;
    harness.advance(mins(21));
    assert_eq!(fire(&harness).await, [done(2, 0)]);
    harness.store.pause_schedule(new.id).await.unwrap();
    let before = found(&harness, new.id).await;
    harness.advance(mins(5));
    assert!(retire(&harness, &new, 1).await);
    let again = NewSchedule { next_fire: new.schedule.next_after(harness.now().await), ..new.clone() };
    assert_eq!(declare(&*harness.store, &again).await.unwrap(), Declared::Created);
    let after = found(&harness, new.id).await;
    assert!(after.paused, "a person has paused it");
    assert_eq!((after.fired, after.skipped), (before.fired, before.skipped));
    assert_eq!((after.last_fire, after.last_job), (before.last_fire, before.last_job));
    assert_eq!(after.next_fire, again.next_fire);
    harness.store.cancel_schedule(new.id, ArchiveReason::Canceled, None).await.unwrap();
    declare(&*harness.store, &again).await.unwrap();
    let anew = found(&harness, new.id).await;
    assert_eq!((anew.paused, anew.fired), (false, 0), "what a person has ended begins anew");
    assert_eq!(children(&harness, new.id).await.len(), 2);
}
