//! A row that this version cannot read stops nobody.

use ratchet_core::claim::{Boost, Pool};
use ratchet_core::node::{NodeInfo, NodeRegistration};
use ratchet_core::schedule::{ArchiveReason, NewSchedule, ScheduleFilter};
use ratchet_core::schedule::{Every, MisfirePolicy, OverlapPolicy, Schedule};
use ratchet_core::store::{ClusterStore as _, Declared, JobStore as _, ScheduleStore as _, SubmitUnit, TurnStore as _};
use ratchet_core::{ClaimRequest, JobId, JobSpec, JsonText, Kind, NewJob, NodeId, NodeName, QueueName};
use ratchet_store_sqlite::SqliteStore;
use sqlx::Connection as _;

#[tokio::test]
async fn a_job_of_a_newer_version_is_put_off_and_the_others_are_claimed() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("jobs.db");
    let store = SqliteStore::open(&path).await.unwrap();
    let kind = Kind::new("work").unwrap();
    let jobs: Vec<NewJob> = (1..=3)
        .map(|n| NewJob::new(JobId(uuid::Uuid::from_u128(n)), JobSpec::new(kind.clone(), JsonText::null())))
        .collect();
    store.submit(&[SubmitUnit::of(jobs.clone())]).await.unwrap();
    let mut conn = sqlx::SqliteConnection::connect(&format!("sqlite://{}", path.display())).await.unwrap();
    sqlx::query("UPDATE scheduler_job SET job_type = 'OF_TOMORROW' WHERE job_id = ?")
        .bind(jobs[0].id.as_bytes().as_slice())
        .execute(&mut conn)
        .await
        .unwrap();
    let node = NodeId(uuid::Uuid::from_u128(9));
    let name = NodeName::new("node").unwrap();
    store.register(&NodeRegistration { id: node, name, info: NodeInfo::default() }).await.unwrap();
    let pool = Pool { queue: QueueName::default(), kinds: [kind].into(), free: 10 };
    let request = ClaimRequest { node, pools: vec![pool], limit: 10, probation: true, boost: Boost::OFF };
    let claimed = store.settle_and_claim(&[], Some(&request)).await.unwrap().claimed;
    assert_eq!(claimed.iter().map(|claim| claim.fence.job_id).collect::<Vec<_>>(), [jobs[1].id, jobs[2].id]);
    assert!(store.settle_and_claim(&[], Some(&request)).await.unwrap().claimed.is_empty(), "it is put off");
    assert_eq!(store.reconcile(node, &[]).await.unwrap().len(), 2, "and nobody runs it");
}

#[tokio::test]
async fn a_schedule_of_a_newer_version_is_passed_over_and_can_be_canceled_or_declared_anew() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("jobs.db");
    let store = SqliteStore::open(&path).await.unwrap();
    let (now, _) = store.due_schedules(1).await.unwrap();
    let schedule = Schedule::Every(Every::new(std::time::Duration::from_hours(1), now).unwrap());
    let mut all = Vec::new();
    for number in 1..=4 {
        let mut new = NewSchedule {
            id: JobId(uuid::Uuid::from_u128(number)),
            spec: JobSpec::new(Kind::new("work").unwrap(), JsonText::null()),
            on_success: None,
            on_failure: None,
            schedule: schedule.clone(),
            misfire: MisfirePolicy::default(),
            overlap: OverlapPolicy::Skip,
            business_key: None,
            declared: true,
            next_fire: Some(now),
        };
        new.spec.tags = vec![ratchet_core::Tag::new("some").unwrap()];
        store.create_schedule(&new).await.unwrap();
        all.push(new);
    }
    let mut conn = sqlx::SqliteConnection::connect(&format!("sqlite://{}", path.display())).await.unwrap();
    let spoil = [
        "UPDATE scheduler_recurring_job SET overlap_policy = 'OF_TOMORROW' WHERE recurring_id = ?",
        "UPDATE scheduler_recurring_job SET misfire_policy = 'OF_TOMORROW' WHERE recurring_id = ?",
        r#"UPDATE scheduler_recurring_job SET schedule = '{"of":"tomorrow"}' WHERE recurring_id = ?"#,
    ];
    for (one, text) in all.iter().zip(spoil) {
        sqlx::query(text).bind(one.id.as_bytes().as_slice()).execute(&mut conn).await.unwrap();
    }
    let ids = |found: Vec<ratchet_core::schedule::ScheduleRecord>| found.iter().map(|one| one.id).collect::<Vec<_>>();
    assert_eq!(ids(store.due_schedules(1).await.unwrap().1), [all[3].id], "they take no place");
    let page = store.list_schedules(&ScheduleFilter::default(), None, 10).await.unwrap();
    assert_eq!(ids(page.items), [all[3].id]);
    let page = store.list_schedules(&ScheduleFilter::default(), None, 2).await.unwrap();
    assert_eq!(page.next.map(|cursor| cursor.0), Some(all[2].id), "the list goes on after one of them");
    let (now, due) = store.due_schedules(10).await.unwrap();
    store.fire_schedules(&[due[0].firing(now).unwrap()]).await.unwrap();
    let next = store.next_fire().await.unwrap().unwrap();
    assert!(!next.is_zero(), "nobody is in a hurry for what cannot be fired");
    assert!(store.cancel_schedule(all[0].id, ArchiveReason::Canceled, None).await.unwrap());
    assert!(store.cancel_schedule(all[1].id, ArchiveReason::Retired, None).await.unwrap());
    let declared = store.declare_schedules(&all[1..3]).await.unwrap();
    assert_eq!(
        declared,
        [Declared::Created, Declared::Changed],
        "an archive can be read, and code knows what is to be"
    );
    let page = store.list_schedules(&ScheduleFilter::default(), None, 10).await.unwrap();
    assert_eq!(ids(page.items), [all[3].id, all[2].id, all[1].id]);
    let tagged = ScheduleFilter { tag: all[0].spec.tags.first().cloned(), ..ScheduleFilter::default() };
    assert_eq!(store.list_schedules(&tagged, None, 10).await.unwrap().items.len(), 3);
}
