//! Signals that come before the job that waits for them: kept, taken once, forgotten.

use ratchet_core::flow::Condition;
use ratchet_core::store::{Delivered, SubmitUnit};
use ratchet_core::{JobFlags, JobId, JobState};

use crate::harness::{Harness, mins, work, work_with_key};
use crate::races::duel;
use crate::signals::{awaiting, kept_for, saying, text_of, to_key};
use crate::workflows::{Plan, claims, states};

use JobState::{Canceled, Pending, Waiting};

pub(crate) async fn a_signal_that_nobody_waits_for_is_kept_for_the_first_who_comes(harness: Harness) {
    let kept = harness.deliver(&saying("early", kept_for("a", mins(60)))).await;
    assert_eq!(kept, Delivered { jobs: Vec::new(), kept: true });
    let second = harness.deliver(&saying("later", kept_for("a", mins(60)))).await;
    assert_eq!(second, Delivered::default(), "the first counts");
    let other = harness.submit(awaiting("b", None)).await;
    let first = harness.submit(awaiting("a", Some(mins(5)))).await;
    let next = harness.submit(awaiting("a", None)).await;
    assert_eq!(states(&harness, &[other, first, next]).await, [Waiting, Pending, Waiting]);
    let job = harness.job(first).await;
    assert_eq!((job.flow, job.waits_for, job.version), (JobFlags::SIGNALED, 0, 0));
    assert_eq!(harness.awaited(first).await.expires_at, None);
    let claimed = claims(&harness, &[first]).await;
    assert_eq!(text_of(claimed[0].signal.as_ref()).as_deref(), Some("early"));
    harness.advance(mins(10));
    assert!(harness.expire().await.jobs.is_empty());
    assert_eq!(harness.count(&to_key("a")).await, 1, "the next one waits for another");
}

pub(crate) async fn a_kept_signal_is_taken_once_within_one_submit(harness: Harness) {
    harness.deliver(&kept_for("a", mins(60))).await;
    let both = harness.submit_units(vec![vec![awaiting("a", None), awaiting("a", None)]]).await.remove(0).unwrap();
    let both: Vec<JobId> = both.iter().map(|one| one.id()).collect();
    assert_eq!(states(&harness, &both).await, [Pending, Waiting]);
}

pub(crate) async fn a_signal_is_kept_for_its_time_only(harness: Harness) {
    assert!(!harness.deliver(&to_key("a")).await.kept, "only if it is asked for");
    let first = harness.submit(awaiting("a", None)).await;
    assert_eq!(harness.state(first).await, Waiting);
    harness.deliver(&saying("old", kept_for("b", mins(5)))).await;
    harness.advance(mins(6));
    let second = harness.submit(awaiting("b", None)).await;
    assert_eq!(harness.state(second).await, Waiting);
    harness.deliver(&saying("old", kept_for("c", mins(5)))).await;
    harness.advance(mins(6));
    assert!(harness.deliver(&saying("new", kept_for("c", mins(5)))).await.kept, "what is over makes room");
    let third = harness.submit(awaiting("c", None)).await;
    assert_eq!(harness.said(third).await.as_deref(), Some("new"));
}

pub(crate) async fn a_refused_submit_takes_no_kept_signal(harness: Harness) {
    harness.submit(work_with_key("taken")).await;
    harness.deliver(&kept_for("a", mins(60))).await;
    harness.submit_units(vec![vec![awaiting("a", None), work_with_key("taken")]]).await.remove(0).unwrap_err();
    let next = harness.submit(awaiting("a", None)).await;
    assert_eq!(harness.state(next).await, Pending, "it is still there");
}

pub(crate) async fn a_retried_job_takes_what_was_kept_since(harness: Harness) {
    let job = harness.submit(awaiting("a", Some(mins(5)))).await;
    harness.advance(mins(6));
    harness.expire().await;
    assert!(harness.deliver(&saying("late", kept_for("a", mins(60)))).await.kept, "nobody waits any more");
    let retried = harness.store.retry(job).await.unwrap().unwrap();
    assert_eq!((retried.job.state, retried.job.flow), (Pending, JobFlags::SIGNALED));
    let claimed = claims(&harness, &[job]).await;
    assert_eq!(text_of(claimed[0].signal.as_ref()).as_deref(), Some("late"));
    let next = harness.submit(awaiting("a", None)).await;
    assert_eq!(harness.state(next).await, Waiting, "it is taken");
}

pub(crate) async fn keys_that_nothing_is_kept_for_are_swept(harness: Harness) {
    for (name, keep_for) in [("a", 5), ("b", 60), ("c", 5), ("d", 60)] {
        harness.deliver(&kept_for(name, mins(keep_for))).await;
    }
    harness.advance(mins(10));
    let (mut removed, mut after) = (0, None);
    for _ in 0..10 {
        let swept = harness.store.sweep_signals(after.as_ref(), 1).await.unwrap();
        removed += swept.removed;
        after = swept.next;
        if after.is_none() {
            break;
        }
    }
    assert_eq!((removed, after), (2, None));
    let jobs = harness.submit_each(["a", "b", "c", "d"].map(|name| awaiting(name, None)).into()).await;
    assert_eq!(states(&harness, &jobs).await, [Waiting, Pending, Waiting, Pending]);
}

pub(crate) async fn a_step_takes_a_kept_signal_and_waits_for_its_parents(harness: Harness) {
    harness.deliver(&kept_for("a", mins(60))).await;
    let plan = Plan::from(vec![work(), awaiting("a", None)]);
    let steps = plan.edge(0, 1, Condition::Success).submit(&harness).await;
    assert_eq!((harness.state(steps[1]).await, harness.job(steps[1]).await.waits_for), (Waiting, 1));
    let first = claims(&harness, &steps[..1]).await;
    harness.succeed(&first[0]).await;
    assert!(claims(&harness, &steps[1..]).await[0].signal.is_some());
}

pub(crate) async fn no_signal_falls_between_a_submit_and_a_delivery(harness: Harness) {
    const ROUNDS: usize = 200;
    for round in 0..ROUNDS {
        let name = format!("round-{round}");
        let job = awaiting(&name, None);
        let id = job.id;
        let (submitting, delivering) = (harness.store.clone(), harness.store.clone());
        let submit = async move {
            submitting.submit(&[SubmitUnit::of(vec![job])]).await.unwrap().remove(0).unwrap();
            None
        };
        let deliver = async move { Some(delivering.deliver(&kept_for(&name, mins(60))).await.unwrap()) };
        let done = duel(round, submit, deliver).await.into_iter().flatten().next().expect("it was delivered");
        assert!(done.kept != (done.jobs.len() == 1), "kept or delivered, and not both: {done:?}");
        let job = harness.job(id).await;
        assert_eq!((job.state, job.waits_for), (Pending, 0), "round {round}: {done:?}");
        assert_eq!(job.version, u64::from(!done.kept), "it is released once");
        let claimed = claims(&harness, &[id]).await;
        assert!(claimed[0].signal.is_some());
        harness.succeed(&claimed[0]).await;
    }
}

pub(crate) async fn a_job_that_awaits_may_replace_another(harness: Harness) {
    harness.deliver(&kept_for("b", mins(60))).await;
    let old = harness.submit(awaiting("a", None)).await;
    let new = awaiting("b", None);
    harness.store.replace(old, &new).await.unwrap();
    assert_eq!(states(&harness, &[old, new.id]).await, [Canceled, Pending]);
    let other = awaiting("b", None);
    harness.store.replace(new.id, &other).await.unwrap();
    assert_eq!(harness.state(other.id).await, Waiting);
}
