//! Every place × every event: what the table allows lands where it says, everything else changes nothing.

use std::time::Duration;

use ratchet_core::claim::{ClaimRequest, Fence};
use ratchet_core::transition::{Event, Place, next};
use ratchet_core::{Claim, JobId, NewJob, Settled, Settlement};

use crate::harness::{
    Harness, another_try, business_key, deferral, failure, fenced, new_job, pool, request, rescue, success,
};
use crate::signals::{to_job, wait};

/// A job that was brought to a place, and the fence of its last claim.
struct Walker<'a> {
    harness: &'a Harness,
    id: JobId,
    kind: String,
    claim: Option<Claim>,
}

impl<'a> Walker<'a> {
    /// Brings a job to a place by playing through the verbs.
    async fn at(harness: &'a Harness, place: Place, event: Event) -> Self {
        let kind = format!("walk.{place:?}.{event}").to_ascii_lowercase();
        let job = NewJob { business_key: Some(business_key(&kind)), ..new_job(&kind) };
        let job = if place == Place::Waiting { job.awaiting(wait("go", None)) } else { job };
        let mut walker = Self { harness, id: harness.submit(job).await, kind, claim: None };
        let happened = "the walk only takes legal steps";
        match place {
            Place::Pending | Place::Waiting => {}
            Place::Running => walker.take().await,
            Place::PausedPending => drop(harness.store.pause(walker.id).await.unwrap().expect(happened)),
            Place::Canceled => {
                walker.take().await;
                harness.store.cancel(walker.id).await.unwrap().expect(happened);
            }
            Place::Succeeded => {
                walker.take().await;
                harness.succeed(walker.claim.as_ref().unwrap()).await;
            }
            Place::Failed | Place::PausedFailed => {
                walker.take().await;
                harness.fail(walker.claim.as_ref().unwrap(), "boom").await;
                if place == Place::PausedFailed {
                    harness.store.pause(walker.id).await.unwrap().expect(happened);
                }
            }
        }
        assert_eq!(harness.job(walker.id).await.place(), place, "the walk arrived");
        walker
    }

    fn request(&self) -> ClaimRequest {
        request(self.harness.node, vec![pool("default", &[&self.kind])])
    }

    async fn take(&mut self) {
        self.claim = self.harness.claim(&self.request()).await.pop();
        assert!(self.claim.is_some(), "there is a job to claim");
    }

    /// Lets the event happen, with every right that there could be; says whether the store says that it did.
    async fn try_event(&self, event: Event) -> bool {
        let store = &self.harness.store;
        let transitioned = match event {
            Event::Claim => return !self.harness.claim(&self.request()).await.is_empty(),
            Event::Cancel => store.cancel(self.id).await,
            Event::Pause => store.pause(self.id).await,
            Event::Resume => store.resume(self.id).await,
            Event::Retry => store.retry(self.id).await,
            Event::Release => return self.harness.deliver(&to_job(self.id)).await.released().count() > 0,
            Event::Succeed => return self.try_settle(success).await,
            Event::Fail => return self.try_settle(|claim| failure(claim, "walked")).await,
            Event::Reschedule => return self.try_settle(|claim| another_try(claim, Duration::ZERO)).await,
            Event::Defer => return self.try_settle(|claim| deferral(claim, Duration::ZERO)).await,
            Event::Rescue => return self.try_settle(rescue).await,
            Event::Expire | Event::Revive => {
                unreachable!("these follow from others: `workflows` and `signals` have their cases")
            }
        };
        transitioned.unwrap().is_some()
    }

    /// Settles by the fence of the last claim, and by one that has the present version.
    async fn try_settle(&self, settlement: impl Fn(&Claim) -> Settlement) -> bool {
        let job = self.harness.job(self.id).await;
        let present = Fence { job_id: self.id, version: job.version, node: self.harness.node };
        let held = self.claim.as_ref().map_or(present, |claim| claim.fence);
        let mut job = job;
        job.picked_at = Some(job.created_at);
        let settlement = settlement(&Claim { fence: held, job, inputs: Vec::new(), signal: None });
        let by_held = self.harness.settle(settlement.clone()).await;
        let by_present = self.harness.settle(fenced(settlement, present)).await;
        by_held == Settled::Applied || by_present == Settled::Applied
    }
}

pub(crate) async fn every_legal_event_lands_where_the_table_says(harness: Harness) {
    for place in Place::ALL {
        for event in Event::ALL.into_iter().filter(|event| !event.follows_from_others()) {
            let Some(expected) = next(place, event) else { continue };
            let walker = Walker::at(&harness, place, event).await;
            let before = harness.job(walker.id).await;
            assert!(walker.try_event(event).await, "{event} may happen to a {place} job");
            let after = harness.job(walker.id).await;
            assert_eq!(after.place(), expected, "{event} of a {place} job");
            assert_eq!(after.version, before.version + 1, "{event} of a {place} job is one step");
            let holder = harness.holder(&walker.kind).await;
            let expected = expected.holds_business_key().then_some(walker.id);
            assert_eq!(holder, expected, "the business key after {event} of a {place} job");
        }
    }
}

pub(crate) async fn every_illegal_event_changes_nothing(harness: Harness) {
    for place in Place::ALL {
        for event in Event::ALL.into_iter().filter(|event| !event.follows_from_others()) {
            if next(place, event).is_some() {
                continue;
            }
            let walker = Walker::at(&harness, place, event).await;
            let before =
                (harness.job(walker.id).await, harness.attempts(walker.id).await, harness.alerts(walker.id).await);
            assert!(!walker.try_event(event).await, "{event} may not happen to a {place} job");
            let after =
                (harness.job(walker.id).await, harness.attempts(walker.id).await, harness.alerts(walker.id).await);
            assert_eq!(after, before, "{event} of a {place} job");
            let holder = harness.holder(&walker.kind).await;
            assert_eq!(holder, place.holds_business_key().then_some(walker.id), "{event} of a {place} job");
        }
    }
}
