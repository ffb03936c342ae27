//! Schedules: fired once for each instant, whoever fires.

use std::time::Duration;

use jiff::Timestamp;
use ratchet_core::JobState::{Canceled, Pending, Waiting};
use ratchet_core::error::ErrorKind;
use ratchet_core::page::JobFilter;
use ratchet_core::recurring::{ArchiveReason, NewRecurring, RecurringFilter, RecurringRecord};
use ratchet_core::schedule::{Cron, CronExpression, Every, MisfirePolicy, OverlapPolicy, Schedule, Zone};
use ratchet_core::store::{Declared, Fired};
use ratchet_core::{JobId, JobType, Store, StoreError, Tag, clock};

use crate::bench::{Bench, assert_about, assert_refused, business_key, ids, mins, new_id, spec, work_with_key};

/// A schedule that fires every ten minutes, the first time in ten.
/// Declares one schedule.
pub(crate) async fn declare(store: &dyn Store, new: &NewRecurring) -> Result<Declared, StoreError> {
    Ok(store.declare_recurring(std::slice::from_ref(new)).await?.remove(0))
}

pub(crate) async fn every_ten(bench: &Bench) -> NewRecurring {
    let now = bench.now().await;
    let schedule = Schedule::Every(Every::new(mins(10), now).unwrap());
    NewRecurring {
        id: new_id(),
        spec: spec(crate::bench::KIND),
        on_success: None,
        on_failure: None,
        next_fire: schedule.next_after(now),
        schedule,
        misfire: MisfirePolicy::default(),
        overlap: OverlapPolicy::Allow,
        business_key: None,
        declared: false,
    }
}

pub(crate) async fn created(bench: &Bench, new: NewRecurring) -> RecurringRecord {
    bench.store.create_recurring(&new).await.unwrap();
    found(bench, new.id).await
}

pub(crate) async fn found(bench: &Bench, id: JobId) -> RecurringRecord {
    bench.store.find_recurring(&[id]).await.unwrap().pop().expect("the schedule is there")
}

/// Fires what is due; says what came of it.
pub(crate) async fn fire(bench: &Bench) -> Vec<Fired> {
    let (now, due) = bench.store.due_recurring(100).await.unwrap();
    let firings: Vec<_> = due.iter().filter_map(|one| one.firing(now)).collect();
    bench.store.fire_recurring(&firings).await.unwrap()
}

pub(crate) async fn children(bench: &Bench, id: JobId) -> Vec<ratchet_core::JobRecord> {
    let filter = JobFilter { parent: Some(id), ..JobFilter::default() };
    let mut jobs = bench.store.list(&filter, None, 100).await.unwrap().items;
    jobs.reverse();
    jobs
}

pub(crate) const fn done(jobs: u64, skipped: u64) -> Fired {
    Fired::Done { jobs, skipped }
}

pub(crate) async fn a_schedule_comes_back_as_it_was_given(bench: Bench) {
    let mut new = every_ten(&bench).await;
    let cron = Cron::new(CronExpression::new("0 0 2 ? * MON-FRI").unwrap());
    new.schedule = Schedule::Cron(cron.in_zone(Zone::new("Europe/Berlin").unwrap()));
    new.spec.tags = vec![Tag::new("nightly").unwrap(), Tag::new("übung").unwrap()];
    new.spec.timeout = Some(mins(3));
    new.on_success = Some(spec("cheer"));
    new.on_failure = Some(spec("mourn"));
    new.misfire = MisfirePolicy::CatchUp { max: 3 };
    new.overlap = OverlapPolicy::Queue;
    new.business_key = Some(business_key("nightly"));
    let stored = created(&bench, new.clone()).await;
    assert_eq!(
        stored,
        RecurringRecord {
            created_at: stored.created_at,
            updated_at: stored.updated_at,
            ..RecurringRecord::stored(&new, bench.now().await)
        }
    );
    assert_about(stored.created_at, bench.now().await);
    assert_eq!(bench.holder("nightly").await, Some(new.id), "it holds its key");
    bench.store.create_recurring(&new).await.unwrap();
    assert_eq!(found(&bench, new.id).await, stored, "storing it again changes nothing");
    assert_eq!(bench.store.find_recurring(&[new_id()]).await.unwrap(), []);
}

pub(crate) async fn a_business_key_is_held_by_one_schedule_or_job(bench: Bench) {
    let mut first = every_ten(&bench).await;
    first.business_key = Some(business_key("report"));
    bench.store.create_recurring(&first).await.unwrap();
    let second = NewRecurring { id: new_id(), ..first.clone() };
    let taken = ErrorKind::Duplicate { business_key: business_key("report"), holder: first.id };
    assert_refused(bench.store.create_recurring(&second).await, &taken);
    assert_eq!(bench.store.find_recurring(&[second.id]).await.unwrap(), []);
    assert_refused(bench.try_submit(work_with_key("report")).await, &taken);
    assert!(bench.store.cancel_recurring(first.id, ArchiveReason::Canceled, None).await.unwrap());
    assert_eq!(bench.holder("report").await, None);
    bench.submit(work_with_key("report")).await;
    assert!(bench.store.create_recurring(&second).await.is_err(), "now the job holds it");
}

pub(crate) async fn a_due_schedule_fires_a_job_and_goes_on(bench: Bench) {
    let one = created(&bench, every_ten(&bench).await).await;
    let first = one.next_fire.unwrap();
    assert_eq!(fire(&bench).await, [], "nothing is due");
    bench.advance(mins(11));
    assert_eq!(fire(&bench).await, [done(1, 0)]);
    assert_eq!(fire(&bench).await, [], "once");
    let after = found(&bench, one.id).await;
    let next = clock::later(first, mins(10));
    assert_eq!((after.next_fire, after.last_fire, after.fired), (Some(next), Some(first), 1));
    let jobs = children(&bench, one.id).await;
    assert_eq!(jobs.len(), 1);
    let job = &jobs[0];
    assert_eq!((job.job_type, job.parent, job.state), (JobType::Recurring, Some(one.id), Pending));
    assert_eq!((job.scheduled_time, Some(job.id)), (first, after.last_job), "its time is the instant");
    assert_eq!(ids(&bench.claim_all().await), [job.id]);
}

pub(crate) async fn of_several_who_fire_one_wins(bench: Bench) {
    for _ in 0..10 {
        let one = created(&bench, every_ten(&bench).await).await;
        bench.advance(mins(11));
        let (now, due) = bench.store.due_recurring(10).await.unwrap();
        let firings: Vec<_> = due.iter().filter_map(|one| one.firing(now)).collect();
        let fires = (0..4).map(|_| {
            let (store, firings) = (bench.store.clone(), firings.clone());
            tokio::spawn(async move { store.fire_recurring(&firings).await })
        });
        let fires: Vec<_> = fires.collect();
        let mut won = 0;
        for fired in fires {
            let fired = fired.await.unwrap().unwrap();
            won += fired.iter().filter(|fired| **fired == done(1, 0)).count();
        }
        assert_eq!(won, firings.len(), "each schedule is fired by one");
        assert_eq!(children(&bench, one.id).await.len(), 1);
        bench.store.cancel_recurring(one.id, ArchiveReason::Canceled, None).await.unwrap();
        bench.claim_all().await;
    }
}

pub(crate) async fn a_fire_for_another_instant_than_expected_changes_nothing(bench: Bench) {
    let one = created(&bench, every_ten(&bench).await).await;
    bench.advance(mins(11));
    let (now, due) = bench.store.due_recurring(10).await.unwrap();
    let stale = due[0].firing(now).unwrap();
    assert_eq!(fire(&bench).await, [done(1, 0)]);
    assert_eq!(bench.store.fire_recurring(std::slice::from_ref(&stale)).await.unwrap(), [Fired::Conflict]);
    let unknown = ratchet_core::recurring::Firing { id: new_id(), ..stale };
    assert_eq!(bench.store.fire_recurring(&[unknown]).await.unwrap(), [Fired::Conflict]);
    assert_eq!(found(&bench, one.id).await.fired, 1);
}

pub(crate) async fn overdue_fires_are_caught_up_with_once_fired_or_skipped(bench: Bench) {
    let cases = [
        (MisfirePolicy::CatchUp { max: 2 }, done(2, 3)),
        (MisfirePolicy::FireOnce, done(1, 4)),
        (MisfirePolicy::Skip, done(0, 5)),
    ];
    for (misfire, expected) in cases {
        let one = created(&bench, NewRecurring { misfire, ..every_ten(&bench).await }).await;
        bench.advance(mins(55));
        assert_eq!(fire(&bench).await, [expected], "{misfire}");
        let after = found(&bench, one.id).await;
        let sixth = clock::later(one.next_fire.unwrap(), mins(50));
        assert_eq!(after.next_fire, Some(sixth), "it goes on with the next future one");
        let Fired::Done { jobs, skipped } = expected else { unreachable!() };
        assert_eq!((after.fired, after.skipped), (jobs, skipped));
        bench.store.cancel_recurring(one.id, ArchiveReason::Canceled, None).await.unwrap();
        bench.claim_all().await;
    }
}

pub(crate) async fn a_paused_schedule_does_not_fire_and_a_resumed_one_goes_on(bench: Bench) {
    let one = created(&bench, every_ten(&bench).await).await;
    assert!(bench.store.pause_recurring(one.id).await.unwrap());
    assert!(!bench.store.pause_recurring(one.id).await.unwrap(), "it is paused already");
    bench.advance(mins(11));
    assert_eq!(bench.store.next_fire().await.unwrap(), None);
    assert_eq!(fire(&bench).await, []);
    let (now, _) = bench.store.due_recurring(1).await.unwrap();
    let unpaused = RecurringRecord { paused: false, ..found(&bench, one.id).await };
    let firing = unpaused.firing(now).unwrap();
    assert_eq!(bench.store.fire_recurring(&[firing]).await.unwrap(), [Fired::Conflict]);
    let next = one.schedule.next_after(now);
    assert!(bench.store.resume_recurring(one.id, next).await.unwrap());
    assert!(!bench.store.resume_recurring(one.id, next).await.unwrap());
    assert_eq!(found(&bench, one.id).await.next_fire, next);
    assert!(!bench.store.pause_recurring(new_id()).await.unwrap());
    bench.advance(mins(10));
    assert_eq!(fire(&bench).await, [done(1, 0)]);
}

pub(crate) async fn the_next_fire_is_that_of_the_first_schedule_that_is_not_paused(bench: Bench) {
    assert_eq!(bench.store.next_fire().await.unwrap(), None);
    let soon = created(&bench, every_ten(&bench).await).await;
    let now = bench.now().await;
    let later = NewRecurring { next_fire: Some(clock::later(now, mins(30))), ..every_ten(&bench).await };
    bench.store.create_recurring(&later).await.unwrap();
    let near = |wait: Option<Duration>, minutes: u64| wait.is_some_and(|wait| wait.abs_diff(mins(minutes)) < mins(1));
    assert!(near(bench.store.next_fire().await.unwrap(), 10));
    bench.store.pause_recurring(soon.id).await.unwrap();
    assert!(near(bench.store.next_fire().await.unwrap(), 30));
    bench.advance(mins(40));
    assert_eq!(bench.store.next_fire().await.unwrap(), Some(Duration::ZERO));
    let never = NewRecurring { id: new_id(), next_fire: None, ..every_ten(&bench).await };
    bench.store.create_recurring(&never).await.unwrap();
    let due: Vec<JobId> = bench.store.due_recurring(10).await.unwrap().1.iter().map(|one| one.id).collect();
    assert_eq!(due, [later.id]);
}

pub(crate) async fn the_longest_due_are_found_first_and_no_more_than_asked_for(bench: Bench) {
    let now = bench.now().await;
    let mut all: Vec<(Timestamp, JobId)> = Vec::new();
    for minutes in [7, 3, 9, 5] {
        let next = clock::later(now, mins(minutes));
        let new = NewRecurring { next_fire: Some(next), ..every_ten(&bench).await };
        bench.store.create_recurring(&new).await.unwrap();
        all.push((next, new.id));
    }
    all.sort_unstable();
    bench.advance(mins(20));
    let (_, due) = bench.store.due_recurring(3).await.unwrap();
    let found: Vec<_> = due.iter().map(|one| (one.next_fire.unwrap(), one.id)).collect();
    assert_eq!(found, all[..3]);
}

pub(crate) async fn an_overlapping_fire_is_skipped_while_the_last_job_lives(bench: Bench) {
    let one = created(&bench, NewRecurring { overlap: OverlapPolicy::Skip, ..every_ten(&bench).await }).await;
    bench.advance(mins(11));
    assert_eq!(fire(&bench).await, [done(1, 0)]);
    bench.advance(mins(10));
    assert_eq!(fire(&bench).await, [done(0, 1)]);
    let running = bench.claim_one().await;
    bench.advance(mins(10));
    assert_eq!(fire(&bench).await, [done(0, 1)], "also while it runs");
    bench.succeed(&running).await;
    bench.advance(mins(10));
    assert_eq!(fire(&bench).await, [done(1, 0)]);
    assert_eq!((found(&bench, one.id).await.fired, found(&bench, one.id).await.skipped), (2, 2));
}

pub(crate) async fn an_overlapping_fire_waits_until_the_last_job_has_ended_in_any_way(bench: Bench) {
    let one = created(&bench, NewRecurring { overlap: OverlapPolicy::Queue, ..every_ten(&bench).await }).await;
    bench.advance(mins(11));
    fire(&bench).await;
    let first = bench.claim_one().await;
    bench.advance(mins(20));
    assert_eq!(fire(&bench).await, [done(2, 0)]);
    let jobs = children(&bench, one.id).await;
    let states: Vec<_> = jobs.iter().map(|job| job.state).collect();
    assert_eq!(states[1..], [Waiting, Waiting]);
    bench.fail(&first, "boom").await;
    let second = bench.claim_one().await;
    assert_eq!(second.job.id, jobs[1].id);
    bench.store.cancel(second.job.id).await.unwrap().unwrap();
    assert_eq!(bench.state(jobs[1].id).await, Canceled);
    assert_eq!(bench.claim_one().await.job.id, jobs[2].id, "a cancelled one lets the next go too");
    bench.advance(mins(10));
    assert_eq!(fire(&bench).await, [done(1, 0)]);
}

pub(crate) async fn a_declared_schedule_is_created_kept_and_changed(bench: Bench) {
    let new = NewRecurring { declared: true, ..every_ten(&bench).await };
    assert_eq!(declare(&*bench.store, &new).await.unwrap(), Declared::Created);
    let first = found(&bench, new.id).await;
    bench.advance(mins(5));
    let again = NewRecurring { next_fire: new.schedule.next_after(bench.now().await), ..new.clone() };
    assert_eq!(declare(&*bench.store, &again).await.unwrap(), Declared::Unchanged);
    let kept = found(&bench, new.id).await;
    assert_eq!((kept.next_fire, kept.created_at), (first.next_fire, first.created_at));
    assert_about(kept.updated_at, bench.now().await);
    bench.advance(mins(6));
    fire(&bench).await;
    bench.store.pause_recurring(new.id).await.unwrap();
    let now = bench.now().await;
    let schedule = Schedule::Every(Every::new(mins(30), now).unwrap());
    let mut changed = NewRecurring { next_fire: schedule.next_after(now), schedule, ..new.clone() };
    changed.spec.tags = vec![Tag::new("new").unwrap()];
    assert_eq!(declare(&*bench.store, &changed).await.unwrap(), Declared::Changed);
    let after = found(&bench, new.id).await;
    assert_eq!((after.next_fire, after.fired, after.paused), (changed.next_fire, 1, true));
    assert_eq!(after.schedule, changed.schedule);
    let filter = RecurringFilter { tag: Some(Tag::new("new").unwrap()), ..RecurringFilter::default() };
    assert_eq!(bench.store.list_recurring(&filter, None, 10).await.unwrap().items, [after]);
}

pub(crate) async fn nodes_that_declare_the_same_at_once_make_one_schedule(bench: Bench) {
    for _ in 0..10 {
        let new = NewRecurring { declared: true, ..every_ten(&bench).await };
        let declaring = (0..4).map(|_| {
            let (store, new) = (bench.store.clone(), new.clone());
            tokio::spawn(async move {
                // A busy database may say so once; the engine asks again.
                for _ in 0..10 {
                    match declare(&*store, &new).await {
                        Err(error) if *error.kind() == ErrorKind::Transient => {}
                        other => return other,
                    }
                }
                declare(&*store, &new).await
            })
        });
        let declaring: Vec<_> = declaring.collect();
        let mut made = 0;
        for declared in declaring {
            made += usize::from(declared.await.unwrap().unwrap() == Declared::Created);
        }
        assert_eq!(made, 1);
    }
}

pub(crate) async fn a_cancelled_schedule_is_gone_with_its_key_and_tags_and_its_jobs_stay(bench: Bench) {
    let mut new = every_ten(&bench).await;
    new.spec.tags = vec![Tag::new("nightly").unwrap()];
    new.business_key = Some(business_key("nightly"));
    let one = created(&bench, new.clone()).await;
    bench.advance(mins(11));
    fire(&bench).await;
    assert!(bench.store.cancel_recurring(one.id, ArchiveReason::Canceled, None).await.unwrap());
    assert!(!bench.store.cancel_recurring(one.id, ArchiveReason::Canceled, None).await.unwrap());
    assert_eq!(bench.store.find_recurring(&[one.id]).await.unwrap(), []);
    assert_eq!(bench.holder("nightly").await, None);
    let filter = RecurringFilter { tag: Some(Tag::new("nightly").unwrap()), ..RecurringFilter::default() };
    assert_eq!(bench.store.list_recurring(&filter, None, 10).await.unwrap().items, []);
    assert_eq!(children(&bench, one.id).await.len(), 1);
    bench.advance(mins(20));
    assert_eq!(fire(&bench).await, []);
    bench.store.create_recurring(&new).await.unwrap();
    assert!(bench.store.cancel_recurring(one.id, ArchiveReason::Canceled, None).await.unwrap(), "and once more");
}

pub(crate) async fn a_schedule_that_was_declared_lately_is_not_retired(bench: Bench) {
    let new = NewRecurring { declared: true, ..every_ten(&bench).await };
    declare(&*bench.store, &new).await.unwrap();
    bench.advance(mins(5));
    let retire =
        async |idle| bench.store.cancel_recurring(new.id, ArchiveReason::Retired, Some(mins(idle))).await.unwrap();
    assert!(!retire(6).await);
    declare(&*bench.store, &new).await.unwrap();
    bench.advance(mins(3));
    assert!(!retire(4).await, "declared again three minutes ago");
    assert!(retire(2).await);
}

pub(crate) async fn schedules_are_listed_newest_first_by_tag_and_key(bench: Bench) {
    let mut all = Vec::new();
    for number in 0..5 {
        let mut new = NewRecurring { declared: number % 2 == 0, ..every_ten(&bench).await };
        new.spec.tags = if number < 2 { vec![Tag::new("some").unwrap()] } else { Vec::new() };
        new.business_key = (number == 3).then(|| business_key("third"));
        all.push(created(&bench, new).await);
    }
    all.reverse();
    let none = RecurringFilter::default();
    let first = bench.store.list_recurring(&none, None, 3).await.unwrap();
    let second = bench.store.list_recurring(&none, first.next, 3).await.unwrap();
    assert_eq!((first.items.as_slice(), second.items.as_slice()), (&all[..3], &all[3..]));
    assert_eq!(second.next, None);
    let by = async |filter: RecurringFilter| bench.store.list_recurring(&filter, None, 10).await.unwrap().items;
    assert_eq!(by(RecurringFilter { tag: Some(Tag::new("some").unwrap()), ..none.clone() }).await, all[3..]);
    assert_eq!(by(RecurringFilter { business_key: Some(business_key("third")), ..none.clone() }).await, all[1..2]);
    assert_eq!(by(RecurringFilter { declared: Some(false), ..none.clone() }).await, [all[1].clone(), all[3].clone()]);
    assert_refused(bench.store.list_recurring(&none, None, 0).await, &ErrorKind::Invalid);
}
