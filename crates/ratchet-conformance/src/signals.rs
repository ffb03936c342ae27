//! Jobs that wait for a signal: delivering it, and what happens if it does not come.

use std::time::Duration;

use ratchet_core::error::ErrorKind;
use ratchet_core::flow::Condition;
use ratchet_core::signal::{Delivery, SignalTarget};
use ratchet_core::store::{Delivered, Expired};
use ratchet_core::{
    DeadLetterFilter, DeliveryId, Due, Followed, FollowedBy, JobFlags, JobId, JobState, NewJob, Principal, Signal,
    SignalDecision, SignalKey, SignalRecord, SignalWait, StartState,
};
use serde_json::json as value;
use uuid::Uuid;

use crate::harness::{
    Harness, assert_about, assert_refused, business_key, json, mins, new_id, pool, request, spec, success, work,
    work_with_key,
};
use crate::races::duel;
use crate::workflows::{Plan, claims, states};

use JobState::{Canceled, Failed, Pending, Succeeded, Waiting};

fn key(key: &str) -> SignalKey {
    SignalKey::new(key).unwrap()
}

pub(crate) fn wait(name: &str, timeout: Option<Duration>) -> SignalWait {
    SignalWait { key: key(name), timeout }
}

pub(crate) fn awaiting(name: &str, timeout: Option<Duration>) -> NewJob {
    work().awaiting(wait(name, timeout))
}

fn delivery(target: SignalTarget) -> Delivery {
    let id = DeliveryId(Uuid::new_v4());
    Delivery { id, target, payload: json(&value!("go")), decision: None, by: None, keep_for: None }
}

pub(crate) fn to_job(id: JobId) -> Delivery {
    delivery(SignalTarget::Job(id))
}

pub(crate) fn to_key(name: &str) -> Delivery {
    delivery(SignalTarget::Key(key(name)))
}

pub(crate) fn kept_for(name: &str, keep_for: Duration) -> Delivery {
    Delivery { keep_for: Some(keep_for), ..to_key(name) }
}

pub(crate) fn saying(text: &str, delivery: Delivery) -> Delivery {
    Delivery { payload: json(&value!(text)), ..delivery }
}

pub(crate) fn text_of(signal: Option<&Signal>) -> Option<String> {
    signal.map(|signal| signal.payload().unwrap())
}

impl Harness {
    pub(crate) async fn deliver(&self, delivery: &Delivery) -> Delivered {
        self.store.deliver(delivery).await.unwrap()
    }

    /// Releases a job that waits for nothing but a signal.
    pub(crate) async fn release(&self, id: JobId) {
        assert_eq!(self.deliver(&to_job(id)).await.released().count(), 1, "a waiting job can be released");
    }

    /// Delivers and says how many jobs got it.
    pub(crate) async fn count(&self, delivery: &Delivery) -> usize {
        self.deliver(delivery).await.jobs.len()
    }

    pub(crate) async fn expire(&self) -> Expired {
        self.store.expire(500).await.unwrap()
    }

    /// The signal that a job waits or waited for.
    pub(crate) async fn awaited(&self, id: JobId) -> SignalRecord {
        self.store.signals(&[id]).await.unwrap().pop().expect("it waits or waited for a signal")
    }

    /// What the signal of a job says, if it has come.
    pub(crate) async fn said(&self, id: JobId) -> Option<String> {
        text_of(self.awaited(id).await.signal.as_ref())
    }
}

fn ids(followed: &[Followed]) -> Vec<JobId> {
    followed.iter().map(|followed| followed.id).collect()
}

pub(crate) async fn a_job_that_awaits_a_signal_comes_back_as_it_was_given(harness: Harness) {
    let given = harness.submit(awaiting("größe 7 ", Some(Duration::from_micros(90_000_001)))).await;
    let job = harness.job(given).await;
    assert_eq!((job.state, job.waits_for, job.flow, job.version), (Waiting, 1, JobFlags::SIGNAL, 0));
    let record = harness.awaited(given).await;
    assert_eq!((record.job_id, record.key, record.signal), (given, key("größe 7 "), None));
    assert_eq!(record.timeout, Some(Duration::from_micros(90_000_001)));
    let expected = ratchet_core::clock::later(harness.now().await, Duration::from_secs(90));
    assert_about(record.expires_at.expect("it waits for nothing else"), expected);
    let patient = harness.submit(awaiting("x", None)).await;
    let record = harness.awaited(patient).await;
    assert_eq!((record.timeout, record.expires_at), (None, None));
    let plain = harness.submit(work()).await;
    let found = harness.store.signals(&[patient, plain, new_id(), given]).await.unwrap();
    assert_eq!(found.iter().map(|record| record.job_id).collect::<Vec<_>>(), [patient, given]);
}

pub(crate) async fn a_signal_to_a_job_releases_it(harness: Harness) {
    let job = harness.submit(awaiting("approve", None)).await;
    let other = harness.submit(awaiting("approve", None)).await;
    assert_eq!(harness.claim_all().await, [], "nobody runs without the signal");
    let done = harness.deliver(&to_job(job)).await;
    let told: Vec<_> = done.jobs.iter().map(|got| (got.id, got.what.clone())).collect();
    assert_eq!((told, done.kept), (vec![(job, FollowedBy::Released)], false));
    let released = harness.job(job).await;
    assert_eq!((released.state, released.waits_for, released.version), (Pending, 0, 1));
    assert_eq!(released.flow, JobFlags::SIGNALED);
    assert_about(released.scheduled_time, harness.now().await);
    assert_eq!(harness.state(other).await, Waiting);
    claims(&harness, &[job]).await;
}

pub(crate) async fn a_claim_brings_the_signal_along(harness: Harness) {
    let job = harness.submit(awaiting("approve", Some(mins(5)))).await;
    let sent = Delivery {
        payload: json(&value!({ "amount": 7, "who": "müller" })),
        decision: Some(SignalDecision::rejected("zu teuer").unwrap()),
        by: Some(Principal::new("jürgen").unwrap()),
        ..to_job(job)
    };
    harness.deliver(&sent).await;
    let plain = harness.submit(work()).await;
    let claimed = claims(&harness, &[job, plain]).await;
    let signal = claimed.iter().find(|claim| claim.job.id == job).unwrap().signal.clone().expect("it has come");
    assert_eq!(signal.payload::<serde_json::Value>().unwrap(), value!({ "amount": 7, "who": "müller" }));
    assert_eq!((signal.rejection(), signal.is_approved()), (Some("zu teuer"), false));
    assert_eq!((signal.by.as_ref().map(Principal::as_str), signal.delivery_id), (Some("jürgen"), sent.id));
    assert_eq!(signal.key, key("approve"));
    assert_about(signal.at, harness.now().await);
    assert_eq!(claimed.iter().find(|claim| claim.job.id == plain).unwrap().signal, None);
    // Every attempt sees it, and so does a job that is retried.
    let claim = claimed.into_iter().find(|claim| claim.job.id == job).unwrap();
    harness.fail(&claim, "boom").await;
    harness.store.retry(job).await.unwrap().unwrap();
    assert_eq!(harness.state(job).await, Pending, "its signal has come");
    let again = claims(&harness, &[job]).await;
    assert_eq!(again[0].signal.as_ref().map(|again| again.delivery_id), Some(sent.id));
    let record = harness.awaited(job).await;
    assert_eq!((record.expires_at, record.signal), (None, again[0].signal.clone()));
}

pub(crate) async fn an_approval_without_more_comes_back(harness: Harness) {
    let job = harness.submit(awaiting("approve", None)).await;
    harness
        .deliver(&Delivery { decision: Some(SignalDecision::Approved), payload: json(&value!(null)), ..to_job(job) })
        .await;
    let claimed = claims(&harness, &[job]).await;
    let signal = claimed[0].signal.clone().expect("it has come");
    assert!(signal.is_approved() && signal.by.is_none(), "{signal:?}");
    assert_eq!(signal.payload::<Option<u32>>().unwrap(), None);
}

pub(crate) async fn the_first_signal_counts(harness: Harness) {
    let job = harness.submit(awaiting("approve", None)).await;
    assert_eq!(harness.count(&saying("first", to_job(job))).await, 1);
    let before = harness.job(job).await;
    assert_eq!(harness.count(&saying("second", to_job(job))).await, 0);
    assert_eq!(harness.count(&saying("third", to_key("approve"))).await, 0);
    assert_eq!(harness.job(job).await, before);
    assert_eq!(harness.said(job).await.as_deref(), Some("first"));
    let claimed = claims(&harness, &[job]).await;
    assert_eq!(text_of(claimed[0].signal.as_ref()).as_deref(), Some("first"));
}

pub(crate) async fn a_signal_for_nobody_reaches_nobody(harness: Harness) {
    assert_eq!(harness.count(&to_job(new_id())).await, 0);
    assert_eq!(harness.count(&to_key("nobody")).await, 0);
    let plain = harness.submit(work()).await;
    assert_eq!(harness.count(&to_job(plain)).await, 0, "it waits for nothing");
    let stuck = harness.submit(NewJob { start: StartState::Waiting, ..work() }).await;
    assert_eq!(harness.count(&to_job(stuck)).await, 0, "it waits for something else");
    let canceled = harness.submit(awaiting("approve", None)).await;
    harness.store.cancel(canceled).await.unwrap().expect("a waiting job can be canceled");
    assert_eq!(harness.count(&to_job(canceled)).await, 0);
    assert_eq!(harness.count(&to_key("approve")).await, 0);
    assert_eq!(states(&harness, &[plain, stuck, canceled]).await, [Pending, Waiting, Canceled]);
}

pub(crate) async fn a_signal_to_a_key_releases_all_that_wait_for_it(harness: Harness) {
    let waiting: Vec<JobId> = harness.submit_each((0..5).map(|_| awaiting("approve", None)).collect()).await;
    let others = harness.submit_each(["Approve", "approve ", "approv"].map(|name| awaiting(name, None)).into()).await;
    let done = harness.deliver(&to_key("approve")).await;
    let mut got = ids(&done.jobs);
    got.sort_unstable();
    assert_eq!(got, waiting);
    assert_eq!(states(&harness, &others).await, [Waiting; 3], "keys are compared exactly");
    let claimed = claims(&harness, &waiting).await;
    let deliveries: Vec<_> =
        claimed.iter().map(|claim| claim.signal.as_ref().map(|signal| signal.delivery_id)).collect();
    assert!(deliveries.windows(2).all(|two| two[0].is_some() && two[0] == two[1]), "one delivery: {deliveries:?}");
}

pub(crate) async fn a_thousand_jobs_are_signaled_at_once(harness: Harness) {
    let waiting = harness.submit_each((0..1_000).map(|_| awaiting("all", Some(mins(5)))).collect()).await;
    assert_eq!(harness.count(&to_key("all")).await, 1_000);
    let counts = harness.store.count_by_state().await.unwrap();
    assert_eq!(counts.into_iter().collect::<Vec<_>>(), [(Pending, 1_000)]);
    assert_eq!(
        harness.store.signals(&waiting).await.unwrap().iter().filter(|wait| wait.signal.is_some()).count(),
        1_000
    );
}

pub(crate) async fn a_wait_ends_when_its_time_is_over_and_not_before(harness: Harness) {
    let short = harness.submit(awaiting("a", Some(mins(5)))).await;
    let long = harness.submit(awaiting("b", Some(mins(60)))).await;
    let patient = harness.submit(awaiting("c", None)).await;
    harness.advance(mins(4));
    assert!(harness.expire().await.jobs.is_empty(), "it has a minute left");
    harness.advance(mins(2));
    let expired = harness.expire().await;
    assert_eq!(expired.jobs.iter().map(|job| job.id).collect::<Vec<_>>(), [short]);
    assert_eq!(states(&harness, &[short, long, patient]).await, [Failed, Waiting, Waiting]);
    let job = harness.job(short).await;
    assert_eq!(expired.jobs.first(), Some(&job));
    assert_eq!(job.last_error.as_deref(), Some("no signal \"a\" came within 5m"));
    assert_eq!((job.version, job.attempts, job.timing), (1, 0, None));
    assert!(job.terminated_at.is_some() && harness.attempts(short).await.is_empty());
    assert!(harness.expire().await.jobs.is_empty(), "it ends once");
    assert_eq!(harness.count(&to_job(short)).await, 0, "it is too late");
}

pub(crate) async fn only_jobs_that_still_wait_expire(harness: Harness) {
    let signaled = harness.submit(awaiting("a", Some(mins(5)))).await;
    let canceled = harness.submit(awaiting("b", Some(mins(5)))).await;
    harness.deliver(&to_job(signaled)).await;
    harness.store.cancel(canceled).await.unwrap().unwrap();
    harness.advance(mins(6));
    for _ in 0..2 {
        let expired = harness.expire().await;
        assert!(expired.jobs.is_empty() && expired.followed.is_empty(), "{expired:?}");
    }
    assert_eq!(states(&harness, &[signaled, canceled]).await, [Pending, Canceled]);
    let late = harness.submit(awaiting("c", Some(mins(5)))).await;
    harness.advance(mins(6));
    assert_eq!(harness.expire().await.jobs.len(), 1, "the others are not in its way");
    assert_eq!(harness.state(late).await, Failed);
}

pub(crate) async fn waits_end_in_portions(harness: Harness) {
    harness.submit_each((0..5).map(|_| awaiting("a", Some(mins(5)))).collect()).await;
    harness.advance(mins(6));
    for (ended, more) in [(2, true), (2, true), (1, false)] {
        let expired = harness.store.expire(2).await.unwrap();
        assert_eq!((expired.jobs.len(), expired.more), (ended, more));
    }
    for refused in [0, ratchet_core::page::PAGE_LIMIT_MAX + 1] {
        assert_refused(harness.store.expire(refused).await, &ErrorKind::Invalid);
    }
}

pub(crate) async fn a_job_that_awaits_a_signal_can_be_canceled(harness: Harness) {
    let job = NewJob { business_key: Some(business_key("order")), ..awaiting("a", Some(mins(5))) };
    let job = harness.submit(job).await;
    assert_eq!(harness.holder("order").await, Some(job), "it holds its key while it waits");
    let done = harness.store.cancel(job).await.unwrap().expect("it waits");
    assert_eq!(done.job.state, Canceled);
    assert_eq!(harness.holder("order").await, None);
    assert_eq!(harness.count(&to_key("a")).await, 0);
}

pub(crate) async fn a_wait_that_ends_frees_the_key_alerts_and_calls_back(harness: Harness) {
    let late = NewJob {
        business_key: Some(business_key("order")),
        on_failure: Some(spec("mourn")),
        on_success: Some(spec("cheer")),
        ..awaiting("a", Some(mins(5)))
    };
    let late = harness.submit(late).await;
    harness.advance(mins(6));
    harness.expire().await;
    assert_eq!(harness.holder("order").await, None);
    assert_eq!(harness.alerts(late).await, 1, "a person should look");
    let callbacks = harness.claim(&request(harness.node, vec![pool("default", &["mourn", "cheer"])])).await;
    let origin = callbacks[0].job.origin.clone().expect("it knows what it is about");
    assert_eq!((callbacks.len(), callbacks[0].job.spec.kind.as_str()), (1, "mourn"));
    assert_eq!(origin.job_id, late);
    assert_eq!(origin.error.as_deref(), Some("no signal \"a\" came within 5m"));
    harness.submit(work_with_key("order")).await;
}

pub(crate) async fn branches_follow_a_wait_that_ends(harness: Harness) {
    let plan = Plan::from(vec![awaiting("a", Some(mins(5))), work(), work(), work()]);
    let plan = plan.edge(0, 1, Condition::Success).edge(0, 2, Condition::Failure).edge(1, 3, Condition::Success);
    let steps = plan.submit(&harness).await;
    harness.advance(mins(6));
    let expired = harness.expire().await;
    assert_eq!(states(&harness, &steps).await, [Failed, Canceled, Pending, Canceled]);
    let mut told: Vec<_> = expired.followed.iter().map(|followed| (followed.id, followed.what.clone())).collect();
    told.sort_unstable_by_key(|(id, _)| *id);
    let canceled = |id| (id, FollowedBy::Canceled { because: steps[0] });
    assert_eq!(told, [canceled(steps[1]), (steps[2], FollowedBy::Released), canceled(steps[3])]);
    let branch = claims(&harness, &steps[2..3]).await;
    assert_eq!(branch[0].inputs[0].error.as_deref(), Some("no signal \"a\" came within 5m"));
}

pub(crate) async fn a_retried_job_waits_for_its_signal_again(harness: Harness) {
    let plan = Plan::from(vec![awaiting("a", Some(mins(5))), work()]);
    let steps = plan.edge(0, 1, Condition::Success).submit(&harness).await;
    harness.advance(mins(6));
    harness.expire().await;
    let retried = harness.store.retry(steps[0]).await.unwrap().expect("it has failed");
    assert_eq!((retried.job.state, retried.job.waits_for, retried.job.version), (Waiting, 1, 2));
    assert_eq!((retried.job.last_error, retried.job.terminated_at), (None, None));
    assert_eq!(ids(&retried.followed), steps[1..], "what its failure had canceled is back");
    assert_eq!(harness.claim_all().await, [], "it does not run without");
    let expected = ratchet_core::clock::later(harness.now().await, mins(5));
    assert_about(harness.awaited(steps[0]).await.expires_at.expect("the limit runs anew"), expected);
    harness.advance(mins(4));
    assert!(harness.expire().await.jobs.is_empty());
    harness.advance(mins(2));
    assert_eq!(harness.expire().await.jobs.len(), 1);
    harness.store.retry(steps[0]).await.unwrap().unwrap();
    assert_eq!(harness.count(&to_key("a")).await, 1);
    let first = claims(&harness, &steps[..1]).await;
    assert!(first[0].signal.is_some());
    harness.succeed(&first[0]).await;
    assert_eq!(states(&harness, &steps).await, [Succeeded, Pending]);
}

pub(crate) async fn jobs_that_are_retried_together_wait_for_their_signals_again(harness: Harness) {
    let jobs = [harness.submit(awaiting("a", Some(mins(5)))).await, harness.submit(awaiting("b", Some(mins(5)))).await];
    harness.advance(mins(6));
    assert_eq!(harness.expire().await.jobs.len(), 2);
    assert_eq!(harness.store.retry_all(&DeadLetterFilter::default(), 10).await.unwrap().count, 2);
    for id in jobs {
        let job = harness.job(id).await;
        assert_eq!((job.state, job.waits_for, job.last_error), (Waiting, 1, None));
    }
    assert_eq!(harness.claim_all().await, [], "they do not run without");
    assert_eq!(harness.count(&to_key("b")).await, 1);
    assert_eq!(claims(&harness, &jobs[1..]).await.len(), 1);
}

pub(crate) async fn a_delay_begins_with_the_signal(harness: Harness) {
    let delayed = |name| NewJob { due: Due::After(mins(10)), ..awaiting(name, None) };
    let waited = harness.submit(delayed("a")).await;
    harness.advance(mins(60));
    harness.deliver(&to_key("a")).await;
    harness.deliver(&kept_for("b", mins(60))).await;
    let came_late = harness.submit(delayed("b")).await;
    for job in [waited, came_late] {
        let job = harness.job(job).await;
        assert_eq!(job.state, Pending);
        assert_about(job.scheduled_time, ratchet_core::clock::later(harness.now().await, mins(10)));
    }
}

pub(crate) async fn the_time_of_a_step_begins_when_it_is_reached(harness: Harness) {
    let plan = Plan::from(vec![work(), awaiting("a", Some(mins(5)))]);
    let steps = plan.edge(0, 1, Condition::Success).submit(&harness).await;
    let job = harness.job(steps[1]).await;
    assert_eq!((job.waits_for, job.state), (2, Waiting));
    assert_eq!(harness.awaited(steps[1]).await.expires_at, None);
    harness.advance(mins(60));
    assert!(harness.expire().await.jobs.is_empty(), "it has not been reached");
    let first = harness.claim_one().await;
    let turn = harness.turn(&[success(&first)], None).await;
    let told: Vec<_> = turn.followed.iter().map(|followed| (followed.id, followed.what.clone())).collect();
    assert_eq!(told, [(steps[1], FollowedBy::Awaiting)]);
    assert_eq!((harness.state(steps[1]).await, harness.job(steps[1]).await.waits_for), (Waiting, 1));
    let expected = ratchet_core::clock::later(harness.now().await, mins(5));
    assert_about(harness.awaited(steps[1]).await.expires_at.expect("it runs now"), expected);
    harness.advance(mins(6));
    assert_eq!(harness.expire().await.jobs.len(), 1);
    assert_eq!(states(&harness, &steps).await, [Succeeded, Failed]);
}

pub(crate) async fn a_signal_may_come_before_its_step_is_reached(harness: Harness) {
    let plan = Plan::from(vec![work(), awaiting("a", Some(mins(5)))]);
    let steps = plan.edge(0, 1, Condition::Success).submit(&harness).await;
    let done = harness.deliver(&saying("early", to_key("a"))).await;
    let told: Vec<_> = done.jobs.iter().map(|got| (got.id, got.what.clone())).collect();
    assert_eq!(told, [(steps[1], FollowedBy::Signaled)]);
    assert_eq!(harness.count(&to_job(steps[1])).await, 0, "it has got it");
    let job = harness.job(steps[1]).await;
    assert_eq!((job.state, job.waits_for, job.version), (Waiting, 1, 0));
    assert!(job.flow.has(JobFlags::SIGNALED) && !job.flow.has(JobFlags::SIGNAL));
    let first = harness.claim_one().await;
    harness.succeed(&first).await;
    harness.advance(mins(60));
    assert!(harness.expire().await.jobs.is_empty());
    let second = claims(&harness, &steps[1..]).await;
    assert_eq!(text_of(second[0].signal.as_ref()).as_deref(), Some("early"));
    assert_eq!(second[0].inputs.len(), 1);
}

pub(crate) async fn a_step_that_failed_and_was_revived_waits_for_its_signal_anew(harness: Harness) {
    let plan = Plan::from(vec![work(), awaiting("a", Some(mins(5))), awaiting("b", None)]);
    let steps = plan.edge(0, 1, Condition::Success).edge(0, 2, Condition::Success).submit(&harness).await;
    harness.deliver(&to_key("b")).await;
    let first = harness.claim_one().await;
    harness.fail(&first, "boom").await;
    assert_eq!(states(&harness, &steps).await, [Failed, Canceled, Canceled]);
    assert!(harness.deliver(&saying("kept", kept_for("b", mins(600)))).await.kept);
    harness.store.retry(steps[0]).await.unwrap().unwrap();
    let waits = |job: ratchet_core::JobRecord| (job.state, job.waits_for);
    assert_eq!(waits(harness.job(steps[1]).await), (Waiting, 2));
    assert_eq!(waits(harness.job(steps[2]).await), (Waiting, 1), "its signal has come before");
    let again = harness.claim_one().await;
    harness.succeed(&again).await;
    assert_eq!(states(&harness, &steps).await, [Succeeded, Waiting, Pending]);
    harness.advance(mins(6));
    assert_eq!(harness.expire().await.jobs.len(), 1);
    assert_eq!(harness.state(steps[1]).await, Failed);
    assert_eq!(harness.said(steps[2]).await.as_deref(), Some("go"), "what was kept is for others");
}

pub(crate) async fn a_deleted_job_leaves_no_wait_behind(harness: Harness) {
    let job = harness.submit(awaiting("a", Some(mins(5)))).await;
    harness.store.cancel(job).await.unwrap().unwrap();
    assert!(harness.store.delete(job).await.unwrap());
    assert_eq!(harness.store.signals(&[job]).await.unwrap(), []);
}

pub(crate) async fn of_two_deliveries_one_counts(harness: Harness) {
    const ROUNDS: usize = 40;
    for round in 0..ROUNDS {
        let name = format!("round-{round}");
        let id = harness.submit(awaiting(&name, None)).await;
        let (one, other) = (saying("one", to_job(id)), saying("other", to_key(&name)));
        let (first, second) = (harness.store.clone(), harness.store.clone());
        let deliver = |store: std::sync::Arc<dyn ratchet_core::Store>, delivery: Delivery| async move {
            (delivery.id, store.deliver(&delivery).await.unwrap().jobs.len())
        };
        let done = duel(round, deliver(first, one), deliver(second, other)).await;
        let winners: Vec<_> = done.iter().filter(|(_, count)| *count == 1).collect();
        assert_eq!(winners.len(), 1, "{done:?}");
        let claimed = claims(&harness, &[id]).await;
        assert_eq!((claimed[0].job.version, claimed[0].signal.as_ref().unwrap().delivery_id), (2, winners[0].0));
        harness.succeed(&claimed[0]).await;
    }
}

pub(crate) async fn a_delivery_and_the_end_of_the_wait_have_one_winner(harness: Harness) {
    const ROUNDS: usize = 40;
    for round in 0..ROUNDS {
        let name = format!("round-{round}");
        let id = harness.submit(awaiting(&name, Some(mins(5)))).await;
        harness.advance(mins(6));
        let (delivering, ending) = (harness.store.clone(), harness.store.clone());
        let deliver = async move { delivering.deliver(&to_key(&name)).await.unwrap().jobs.len() };
        let end = async move { ending.expire(500).await.unwrap().jobs.len() };
        let done = duel(round, deliver, end).await;
        assert_eq!(done[0] + done[1], 1, "{done:?}");
        assert!(done[1] == 1 || round % 4 != 1, "the wait ended before the signal came");
        let job = harness.job(id).await;
        let expected = if done[0] == 1 { Pending } else { Failed };
        assert_eq!((job.state, job.version), (expected, 1));
        let signal = harness.awaited(id).await.signal;
        assert_eq!(signal.is_some(), done[0] == 1);
        harness.store.cancel(id).await.unwrap();
    }
}

pub(crate) async fn a_delivery_and_the_end_of_a_parent_release_a_step_once(harness: Harness) {
    const ROUNDS: usize = 40;
    for round in 0..ROUNDS {
        let name = format!("round-{round}");
        let plan = Plan::from(vec![work(), awaiting(&name, Some(mins(5)))]);
        let steps = plan.edge(0, 1, Condition::Success).submit(&harness).await;
        let first = claims(&harness, &steps[..1]).await.remove(0);
        let (delivering, settling) = (harness.store.clone(), harness.store.clone());
        let deliver = async move { delivering.deliver(&to_key(&name)).await.unwrap().jobs.len() };
        let settle = async move { settling.settle_and_claim(&[success(&first)], None).await.unwrap().settled.len() };
        assert_eq!(duel(round, deliver, settle).await, [1, 1]);
        let job = harness.job(steps[1]).await;
        assert_eq!((job.state, job.waits_for, job.version), (Pending, 0, 1));
        assert_eq!(harness.awaited(steps[1]).await.expires_at, None);
        let last = claims(&harness, &steps[1..]).await;
        harness.succeed(&last[0]).await;
    }
}
