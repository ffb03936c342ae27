//! Schedules: fired once for each instant, whoever fires.

use std::time::Duration;

use jiff::Timestamp;
use ratchet_core::JobState::{Canceled, Pending, Waiting};
use ratchet_core::error::ErrorKind;
use ratchet_core::page::JobFilter;
use ratchet_core::schedule::{ArchiveReason, NewSchedule, ScheduleFilter, ScheduleRecord};
use ratchet_core::schedule::{Cron, CronExpression, Every, MisfirePolicy, OverlapPolicy, Schedule, Zone};
use ratchet_core::store::{Declared, Fired};
use ratchet_core::{JobId, JobType, Store, StoreError, Tag, clock};

use crate::harness::{Harness, assert_about, assert_refused, business_key, ids, mins, new_id, spec, work_with_key};

/// A schedule that fires every ten minutes, the first time in ten.
/// Declares one schedule.
pub(crate) async fn declare(store: &dyn Store, new: &NewSchedule) -> Result<Declared, StoreError> {
    Ok(store.declare_schedules(std::slice::from_ref(new)).await?.remove(0))
}

pub(crate) async fn every_ten(harness: &Harness) -> NewSchedule {
    let now = harness.now().await;
    let schedule = Schedule::Every(Every::new(mins(10), now).unwrap());
    NewSchedule {
        id: new_id(),
        spec: spec(crate::harness::KIND),
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

pub(crate) async fn created(harness: &Harness, new: NewSchedule) -> ScheduleRecord {
    harness.store.create_schedule(&new).await.unwrap();
    found(harness, new.id).await
}

pub(crate) async fn found(harness: &Harness, id: JobId) -> ScheduleRecord {
    harness.store.find_schedules(&[id]).await.unwrap().pop().expect("the schedule is there")
}

/// Fires what is due; says what came of it.
pub(crate) async fn fire(harness: &Harness) -> Vec<Fired> {
    let (now, due) = harness.store.due_schedules(100).await.unwrap();
    let firings: Vec<_> = due.iter().filter_map(|one| one.firing(now)).collect();
    harness.store.fire_schedules(&firings).await.unwrap()
}

pub(crate) async fn children(harness: &Harness, id: JobId) -> Vec<ratchet_core::JobRecord> {
    let filter = JobFilter { parent: Some(id), ..JobFilter::default() };
    let mut jobs = harness.store.list(&filter, None, 100).await.unwrap().items;
    jobs.reverse();
    jobs
}

pub(crate) const fn done(jobs: u64, skipped: u64) -> Fired {
    Fired::Done { jobs, skipped }
}

pub(crate) async fn a_schedule_comes_back_as_it_was_given(harness: Harness) {
    let mut new = every_ten(&harness).await;
    let cron = Cron::new(CronExpression::new("0 0 2 ? * MON-FRI").unwrap());
    new.schedule = Schedule::Cron(cron.in_zone(Zone::new("Europe/Berlin").unwrap()));
    new.spec.tags = vec![Tag::new("nightly").unwrap(), Tag::new("übung").unwrap()];
    new.spec.timeout = Some(mins(3));
    new.on_success = Some(spec("cheer"));
    new.on_failure = Some(spec("mourn"));
    new.misfire = MisfirePolicy::CatchUp { max: 3 };
    new.overlap = OverlapPolicy::Queue;
    new.business_key = Some(business_key("nightly"));
    let stored = created(&harness, new.clone()).await;
    assert_eq!(
        stored,
        ScheduleRecord {
            created_at: stored.created_at,
            updated_at: stored.updated_at,
            ..ScheduleRecord::stored(&new, harness.now().await)
        }
    );
    assert_about(stored.created_at, harness.now().await);
    assert_eq!(harness.holder("nightly").await, Some(new.id), "it holds its key");
    harness.store.create_schedule(&new).await.unwrap();
    assert_eq!(found(&harness, new.id).await, stored, "storing it again changes nothing");
    assert_eq!(harness.store.find_schedules(&[new_id()]).await.unwrap(), []);
}

pub(crate) async fn a_business_key_is_held_by_one_schedule_or_job(harness: Harness) {
    let mut first = every_ten(&harness).await;
    first.business_key = Some(business_key("report"));
    harness.store.create_schedule(&first).await.unwrap();
    let second = NewSchedule { id: new_id(), ..first.clone() };
    let taken = ErrorKind::Duplicate { business_key: business_key("report"), holder: first.id };
    assert_refused(harness.store.create_schedule(&second).await, &taken);
    assert_eq!(harness.store.find_schedules(&[second.id]).await.unwrap(), []);
    assert_refused(harness.try_submit(work_with_key("report")).await, &taken);
    assert!(harness.store.cancel_schedule(first.id, ArchiveReason::Canceled, None).await.unwrap());
    assert_eq!(harness.holder("report").await, None);
    harness.submit(work_with_key("report")).await;
    assert!(harness.store.create_schedule(&second).await.is_err(), "now the job holds it");
}

pub(crate) async fn a_due_schedule_fires_a_job_and_goes_on(harness: Harness) {
    let one = created(&harness, every_ten(&harness).await).await;
    let first = one.next_fire.unwrap();
    assert_eq!(fire(&harness).await, [], "nothing is due");
    harness.advance(mins(11));
    assert_eq!(fire(&harness).await, [done(1, 0)]);
    assert_eq!(fire(&harness).await, [], "once");
    let after = found(&harness, one.id).await;
    let next = clock::later(first, mins(10));
    assert_eq!((after.next_fire, after.last_fire, after.fired), (Some(next), Some(first), 1));
    let jobs = children(&harness, one.id).await;
    assert_eq!(jobs.len(), 1);
    let job = &jobs[0];
    assert_eq!((job.job_type, job.parent, job.state), (JobType::Recurring, Some(one.id), Pending));
    assert_eq!((job.scheduled_time, Some(job.id)), (first, after.last_job), "its time is the instant");
    assert_eq!(ids(&harness.claim_all().await), [job.id]);
}

pub(crate) async fn of_several_who_fire_one_wins(harness: Harness) {
    for _ in 0..10 {
        let one = created(&harness, every_ten(&harness).await).await;
        harness.advance(mins(11));
        let (now, due) = harness.store.due_schedules(10).await.unwrap();
        let firings: Vec<_> = due.iter().filter_map(|one| one.firing(now)).collect();
        let fires = (0..4).map(|_| {
            let (store, firings) = (harness.store.clone(), firings.clone());
            tokio::spawn(async move { store.fire_schedules(&firings).await })
        });
        let fires: Vec<_> = fires.collect();
        let mut won = 0;
        for fired in fires {
            let fired = fired.await.unwrap().unwrap();
            won += fired.iter().filter(|fired| **fired == done(1, 0)).count();
        }
        assert_eq!(won, firings.len(), "each schedule is fired by one");
        assert_eq!(children(&harness, one.id).await.len(), 1);
        harness.store.cancel_schedule(one.id, ArchiveReason::Canceled, None).await.unwrap();
        harness.claim_all().await;
    }
}

pub(crate) async fn a_fire_for_another_instant_than_expected_changes_nothing(harness: Harness) {
    let one = created(&harness, every_ten(&harness).await).await;
    harness.advance(mins(11));
    let (now, due) = harness.store.due_schedules(10).await.unwrap();
    let stale = due[0].firing(now).unwrap();
    assert_eq!(fire(&harness).await, [done(1, 0)]);
    assert_eq!(harness.store.fire_schedules(std::slice::from_ref(&stale)).await.unwrap(), [Fired::Conflict]);
    let unknown = ratchet_core::schedule::Firing { id: new_id(), ..stale };
    assert_eq!(harness.store.fire_schedules(&[unknown]).await.unwrap(), [Fired::Conflict]);
    assert_eq!(found(&harness, one.id).await.fired, 1);
}

pub(crate) async fn overdue_fires_are_caught_up_with_once_fired_or_skipped(harness: Harness) {
    let cases = [
        (MisfirePolicy::CatchUp { max: 2 }, done(2, 3)),
        (MisfirePolicy::FireOnce, done(1, 4)),
        (MisfirePolicy::Skip, done(0, 5)),
    ];
    for (misfire, expected) in cases {
        let one = created(&harness, NewSchedule { misfire, ..every_ten(&harness).await }).await;
        harness.advance(mins(55));
        assert_eq!(fire(&harness).await, [expected], "{misfire}");
        let after = found(&harness, one.id).await;
        let sixth = clock::later(one.next_fire.unwrap(), mins(50));
        assert_eq!(after.next_fire, Some(sixth), "it goes on with the next future one");
        let Fired::Done { jobs, skipped } = expected else { unreachable!() };
        assert_eq!((after.fired, after.skipped), (jobs, skipped));
        harness.store.cancel_schedule(one.id, ArchiveReason::Canceled, None).await.unwrap();
        harness.claim_all().await;
    }
}

pub(crate) async fn a_paused_schedule_does_not_fire_and_a_resumed_one_goes_on(harness: Harness) {
    let one = created(&harness, every_ten(&harness).await).await;
    assert!(harness.store.pause_schedule(one.id).await.unwrap());
    assert!(!harness.store.pause_schedule(one.id).await.unwrap(), "it is paused already");
    harness.advance(mins(11));
    assert_eq!(harness.store.next_fire().await.unwrap(), None);
    assert_eq!(fire(&harness).await, []);
    let (now, _) = harness.store.due_schedules(1).await.unwrap();
    let unpaused = ScheduleRecord { paused: false, ..found(&harness, one.id).await };
    let firing = unpaused.firing(now).unwrap();
    assert_eq!(harness.store.fire_schedules(&[firing]).await.unwrap(), [Fired::Conflict]);
    let next = one.schedule.next_after(now);
    assert!(harness.store.resume_schedule(one.id, next).await.unwrap());
    assert!(!harness.store.resume_schedule(one.id, next).await.unwrap());
    assert_eq!(found(&harness, one.id).await.next_fire, next);
    assert!(!harness.store.pause_schedule(new_id()).await.unwrap());
    harness.advance(mins(10));
    assert_eq!(fire(&harness).await, [done(1, 0)]);
}

pub(crate) async fn the_next_fire_is_that_of_the_first_schedule_that_is_not_paused(harness: Harness) {
    assert_eq!(harness.store.next_fire().await.unwrap(), None);
    let soon = created(&harness, every_ten(&harness).await).await;
    let now = harness.now().await;
    let later = NewSchedule { next_fire: Some(clock::later(now, mins(30))), ..every_ten(&harness).await };
    harness.store.create_schedule(&later).await.unwrap();
    let near = |wait: Option<Duration>, minutes: u64| wait.is_some_and(|wait| wait.abs_diff(mins(minutes)) < mins(1));
    assert!(near(harness.store.next_fire().await.unwrap(), 10));
    harness.store.pause_schedule(soon.id).await.unwrap();
    assert!(near(harness.store.next_fire().await.unwrap(), 30));
    harness.advance(mins(40));
    assert_eq!(harness.store.next_fire().await.unwrap(), Some(Duration::ZERO));
    let never = NewSchedule { id: new_id(), next_fire: None, ..every_ten(&harness).await };
    harness.store.create_schedule(&never).await.unwrap();
    let due: Vec<JobId> = harness.store.due_schedules(10).await.unwrap().1.iter().map(|one| one.id).collect();
    assert_eq!(due, [later.id]);
}

pub(crate) async fn the_longest_due_are_found_first_and_no_more_than_asked_for(harness: Harness) {
    let now = harness.now().await;
    let mut all: Vec<(Timestamp, JobId)> = Vec::new();
    for minutes in [7, 3, 9, 5] {
        let next = clock::later(now, mins(minutes));
        let new = NewSchedule { next_fire: Some(next), ..every_ten(&harness).await };
        harness.store.create_schedule(&new).await.unwrap();
        all.push((next, new.id));
    }
    all.sort_unstable();
    harness.advance(mins(20));
    let (_, due) = harness.store.due_schedules(3).await.unwrap();
    let found: Vec<_> = due.iter().map(|one| (one.next_fire.unwrap(), one.id)).collect();
    assert_eq!(found, all[..3]);
}

pub(crate) async fn an_overlapping_fire_is_skipped_while_the_last_job_lives(harness: Harness) {
    let one = created(&harness, NewSchedule { overlap: OverlapPolicy::Skip, ..every_ten(&harness).await }).await;
    harness.advance(mins(11));
    assert_eq!(fire(&harness).await, [done(1, 0)]);
    harness.advance(mins(10));
    assert_eq!(fire(&harness).await, [done(0, 1)]);
    let running = harness.claim_one().await;
    harness.advance(mins(10));
    assert_eq!(fire(&harness).await, [done(0, 1)], "also while it runs");
    harness.succeed(&running).await;
    harness.advance(mins(10));
    assert_eq!(fire(&harness).await, [done(1, 0)]);
    assert_eq!((found(&harness, one.id).await.fired, found(&harness, one.id).await.skipped), (2, 2));
}

pub(crate) async fn an_overlapping_fire_waits_until_the_last_job_has_ended_in_any_way(harness: Harness) {
    let one = created(&harness, NewSchedule { overlap: OverlapPolicy::Queue, ..every_ten(&harness).await }).await;
    harness.advance(mins(11));
    fire(&harness).await;
    let first = harness.claim_one().await;
    harness.advance(mins(20));
    assert_eq!(fire(&harness).await, [done(2, 0)]);
    let jobs = children(&harness, one.id).await;
    let states: Vec<_> = jobs.iter().map(|job| job.state).collect();
    assert_eq!(states[1..], [Waiting, Waiting]);
    harness.fail(&first, "boom").await;
    let second = harness.claim_one().await;
    assert_eq!(second.job.id, jobs[1].id);
    harness.store.cancel(second.job.id).await.unwrap().unwrap();
    assert_eq!(harness.state(jobs[1].id).await, Canceled);
    assert_eq!(harness.claim_one().await.job.id, jobs[2].id, "a canceled one lets the next go too");
    harness.advance(mins(10));
    assert_eq!(fire(&harness).await, [done(1, 0)]);
}

pub(crate) async fn a_declared_schedule_is_created_kept_and_changed(harness: Harness) {
    let new = NewSchedule { declared: true, ..every_ten(&harness).await };
    assert_eq!(declare(&*harness.store, &new).await.unwrap(), Declared::Created);
    let first = found(&harness, new.id).await;
    harness.advance(mins(5));
    let again = NewSchedule { next_fire: new.schedule.next_after(harness.now().await), ..new.clone() };
    assert_eq!(declare(&*harness.store, &again).await.unwrap(), Declared::Unchanged);
    let kept = found(&harness, new.id).await;
    assert_eq!((kept.next_fire, kept.created_at), (first.next_fire, first.created_at));
    assert_about(kept.updated_at, harness.now().await);
    harness.advance(mins(6));
    fire(&harness).await;
    harness.store.pause_schedule(new.id).await.unwrap();
    let now = harness.now().await;
    let schedule = Schedule::Every(Every::new(mins(30), now).unwrap());
    let mut changed = NewSchedule { next_fire: schedule.next_after(now), schedule, ..new.clone() };
    changed.spec.tags = vec![Tag::new("new").unwrap()];
    assert_eq!(declare(&*harness.store, &changed).await.unwrap(), Declared::Changed);
    let after = found(&harness, new.id).await;
    assert_eq!((after.next_fire, after.fired, after.paused), (changed.next_fire, 1, true));
    assert_eq!(after.schedule, changed.schedule);
    let filter = ScheduleFilter { tag: Some(Tag::new("new").unwrap()), ..ScheduleFilter::default() };
    assert_eq!(harness.store.list_schedules(&filter, None, 10).await.unwrap().items, [after]);
}

pub(crate) async fn nodes_that_declare_the_same_at_once_make_one_schedule(harness: Harness) {
    for _ in 0..10 {
        let new = NewSchedule { declared: true, ..every_ten(&harness).await };
        let declaring = (0..4).map(|_| {
            let (store, new) = (harness.store.clone(), new.clone());
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

pub(crate) async fn a_canceled_schedule_is_gone_with_its_key_and_tags_and_its_jobs_stay(harness: Harness) {
    let mut new = every_ten(&harness).await;
    new.spec.tags = vec![Tag::new("nightly").unwrap()];
    new.business_key = Some(business_key("nightly"));
    let one = created(&harness, new.clone()).await;
    harness.advance(mins(11));
    fire(&harness).await;
    assert!(harness.store.cancel_schedule(one.id, ArchiveReason::Canceled, None).await.unwrap());
    assert!(!harness.store.cancel_schedule(one.id, ArchiveReason::Canceled, None).await.unwrap());
    assert_eq!(harness.store.find_schedules(&[one.id]).await.unwrap(), []);
    assert_eq!(harness.holder("nightly").await, None);
    let filter = ScheduleFilter { tag: Some(Tag::new("nightly").unwrap()), ..ScheduleFilter::default() };
    assert_eq!(harness.store.list_schedules(&filter, None, 10).await.unwrap().items, []);
    assert_eq!(children(&harness, one.id).await.len(), 1);
    harness.advance(mins(20));
    assert_eq!(fire(&harness).await, []);
    harness.store.create_schedule(&new).await.unwrap();
    assert!(harness.store.cancel_schedule(one.id, ArchiveReason::Canceled, None).await.unwrap(), "and once more");
}

pub(crate) async fn a_schedule_that_was_declared_lately_is_not_retired(harness: Harness) {
    let new = NewSchedule { declared: true, ..every_ten(&harness).await };
    declare(&*harness.store, &new).await.unwrap();
    harness.advance(mins(5));
    let retire =
        async |idle| harness.store.cancel_schedule(new.id, ArchiveReason::Retired, Some(mins(idle))).await.unwrap();
    assert!(!retire(6).await);
    declare(&*harness.store, &new).await.unwrap();
    harness.advance(mins(3));
    assert!(!retire(4).await, "declared again three minutes ago");
    assert!(retire(2).await);
}

pub(crate) async fn schedules_are_listed_newest_first_by_tag_and_key(harness: Harness) {
    let mut all = Vec::new();
    for number in 0..5 {
        let mut new = NewSchedule { declared: number % 2 == 0, ..every_ten(&harness).await };
        new.spec.tags = if number < 2 { vec![Tag::new("some").unwrap()] } else { Vec::new() };
        new.business_key = (number == 3).then(|| business_key("third"));
        all.push(created(&harness, new).await);
    }
    all.reverse();
    let none = ScheduleFilter::default();
    let first = harness.store.list_schedules(&none, None, 3).await.unwrap();
    let second = harness.store.list_schedules(&none, first.next, 3).await.unwrap();
    assert_eq!((first.items.as_slice(), second.items.as_slice()), (&all[..3], &all[3..]));
    assert_eq!(second.next, None);
    let by = async |filter: ScheduleFilter| harness.store.list_schedules(&filter, None, 10).await.unwrap().items;
    assert_eq!(by(ScheduleFilter { tag: Some(Tag::new("some").unwrap()), ..none.clone() }).await, all[3..]);
    assert_eq!(by(ScheduleFilter { business_key: Some(business_key("third")), ..none.clone() }).await, all[1..2]);
    assert_eq!(by(ScheduleFilter { declared: Some(false), ..none.clone() }).await, [all[1].clone(), all[3].clone()]);
    assert_refused(harness.store.list_schedules(&none, None, 0).await, &ErrorKind::Invalid);
}
