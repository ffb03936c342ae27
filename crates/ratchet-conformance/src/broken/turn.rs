use std::time::Duration;

use ratchet_core::claim::{Boost, Pool};
use ratchet_core::error::ErrorKind;
use ratchet_core::page::JobFilter;
use ratchet_core::settlement::DeadLetterReason;
use ratchet_core::store::{StoreDecorator, SubmitUnit, Turn};
use ratchet_core::{
    Change, ClaimRequest, ErrorReport, Fence, JobState, JsonText, Settled, Settlement, Store, StoreError,
};

use super::{Broken, Flaw, Layer};
use crate::harness::{deferral, mins};

#[derive(Debug)]
pub(super) enum Turns {}

impl StoreDecorator for Layer<Turns> {
    fn inner(&self) -> &dyn Store {
        self.below()
    }

    async fn settle_and_claim(
        &self,
        settlements: &[Settlement],
        claim: Option<&ClaimRequest>,
    ) -> Result<Turn, StoreError> {
        let mut settlements = settlements.to_vec();
        for settlement in &mut settlements {
            self.spoil_settlement(settlement).await;
        }
        let mut claim = claim.cloned();
        if let Some(request) = &mut claim {
            self.spoil_request(request).await?;
        }
        let claim = claim.as_ref();
        let mut turn = match self.flaw {
            Flaw::TurnsInTwo => {
                let settled = self.good.settle_and_claim(&settlements, None).await?.settled;
                Turn { settled, ..self.good.settle_and_claim(&[], claim).await? }
            }
            Flaw::ClaimsFirst => {
                let claimed = self.good.settle_and_claim(&[], claim).await?.claimed;
                Turn { claimed, ..self.good.settle_and_claim(&settlements, None).await? }
            }
            Flaw::SwallowsConflicts => match self.good.settle_and_claim(&settlements, claim).await {
                Err(error) if *error.kind() == ErrorKind::Conflict => Turn::default(),
                other => other?,
            },
            Flaw::PoisonsNeighbors if self.any_stale(&settlements).await => {
                let mut turn = self.good.settle_and_claim(&[], claim).await?;
                turn.settled = vec![Settled::Conflict; settlements.len()];
                turn
            }
            _ => self.good.settle_and_claim(&settlements, claim).await?,
        };
        self.spoil_settled(&settlements, &mut turn).await?;
        if self.has(Flaw::HidesWhatFollows) {
            turn.followed.clear();
        }
        if self.has(Flaw::ForgetsInputs) {
            for claim in &mut turn.claimed {
                claim.inputs.clear();
            }
        }
        self.spoil_signals(&mut turn.claimed);
        if let Some(request) = claim {
            self.spoil_claimed(request, &mut turn).await?;
        }
        Ok(turn)
    }

    async fn next_due(&self, request: &ClaimRequest) -> Result<Option<Duration>, StoreError> {
        match self.flaw {
            Flaw::NeverDue => Ok(None),
            Flaw::AnythingIsDue => {
                let all = self.good.list(&JobFilter::default(), None, 1_000).await?.items;
                let now = self.good.database_time().await?;
                Ok(all.iter().map(|job| ratchet_core::clock::elapsed(now, job.due())).min())
            }
            _ => self.good.next_due(request).await,
        }
    }
}

impl Broken {
    async fn spoil_settlement(&self, settlement: &mut Settlement) {
        let Settlement { fence, change, attempt, new_jobs, ends_permit, .. } = settlement;
        if self.has(Flaw::ForgetsVersion) {
            let shift = self.seen().versions.get(&fence.job_id).copied().unwrap_or(0);
            fence.version += shift;
            if let Some(attempt) = attempt {
                attempt.version += shift;
            }
        }
        if let (Some(job), Flaw::NoFence | Flaw::IgnoresOwner) = (self.inner_job(fence.job_id).await, self.flaw)
            && let Some(node) = job.picked_by
        {
            let version = if self.has(Flaw::NoFence) { job.version } else { fence.version };
            *fence = Fence { node, version, ..*fence };
            if let Some(attempt) = attempt {
                attempt.version = version;
            }
        }
        match (self.flaw, &mut *change) {
            (
                Flaw::CountsTwice,
                Change::Succeed { attempts: count, .. }
                | Change::Reschedule { attempts: count, .. }
                | Change::Fail { reason: DeadLetterReason::CrashLimit { crash_count: count }, .. }
                | Change::Fail { attempts: count, .. }
                | Change::Rescue { crash_count: count },
            ) => *count += 1,
            (Flaw::LosesDelay, Change::Reschedule { delay, .. } | Change::Defer { delay }) => *delay = mins(0),
            (Flaw::SnoozesAnyway, Change::Defer { delay }) if delay.is_zero() => *delay = mins(1),
            (Flaw::LosesResult, Change::Succeed { result, .. }) => *result = None,
            (Flaw::InventsResult, Change::Succeed { result, .. }) => *result = result.take().or(Some(JsonText::null())),
            (Flaw::RoundsNumbers, Change::Succeed { result, .. }) => {
                *result = result.as_ref().map(super::jobs::rounded);
            }
            (Flaw::RescheduleKeepsTime, Change::Reschedule { delay, .. }) => *change = Change::Defer { delay: *delay },
            (Flaw::DeferConsumesAttempt, Change::Defer { delay }) => {
                let (delay, attempts) = (*delay, attempt.as_ref().map_or(1, |attempt| attempt.attempt));
                *change = Change::Reschedule { delay, attempts, error: ErrorReport::new("Deferred", "deferred") };
            }
            (Flaw::NeverForgivesCrashes, Change::Rescue { crash_count }) => {
                self.seen().crashes.insert(fence.job_id, *crash_count);
            }
            _ => {}
        }
        match self.flaw {
            Flaw::LosesCallbacks => new_jobs.clear(),
            Flaw::LosesAttempts => *attempt = None,
            Flaw::KeepsPermits => *ends_permit = false,
            Flaw::EndsPermitsEarly => *ends_permit = true,
            _ => {}
        }
    }

    async fn any_stale(&self, settlements: &[Settlement]) -> bool {
        for settlement in settlements {
            let job = self.inner_job(settlement.fence.job_id).await;
            if job.is_none_or(|job| job.version != settlement.fence.version) {
                return true;
            }
        }
        false
    }

    async fn spoil_settled(&self, settlements: &[Settlement], turn: &mut Turn) -> Result<(), StoreError> {
        for (settlement, settled) in settlements.iter().zip(&mut turn.settled) {
            let job_id = settlement.fence.job_id;
            *self.seen().settled.entry(job_id).or_default() += 1;
            match (self.flaw, *settled) {
                (Flaw::SaysApplied, _) => *settled = Settled::Applied,
                (Flaw::ForgetsItsOwn, Settled::AlreadyApplied) => *settled = Settled::Conflict,
                (Flaw::MaybeMeansYes, _) if settlement.maybe_applied => *settled = Settled::AlreadyApplied,
                (Flaw::EffectsFromTheList, Settled::Conflict | Settled::AlreadyApplied) => {
                    self.good.submit(&[SubmitUnit::of(settlement.new_jobs.clone())]).await?;
                }
                (Flaw::FreesFromTheList, Settled::Conflict) => {
                    if let Some(key) = self.inner_job(job_id).await.and_then(|job| job.business_key)
                        && let Some(holder) = self.good.find_by_business_key(&key).await?
                    {
                        self.good.cancel(holder).await?;
                    }
                }
                _ => {}
            }
        }
        Ok(())
    }

    async fn spoil_request(&self, request: &mut ClaimRequest) -> Result<(), StoreError> {
        match self.flaw {
            Flaw::IgnoresLimit => {
                request.limit *= 10;
                for pool in &mut request.pools {
                    pool.free = 10 * pool.free + 10;
                }
            }
            Flaw::IgnoresKinds => {
                let kinds: Vec<_> = self.seen().kinds.iter().cloned().collect();
                for pool in &mut request.pools {
                    pool.kinds = kinds.clone().into();
                }
            }
            Flaw::IgnoresQueues => {
                let queues = self.seen().queues.clone();
                if let Some(first) = request.pools.first().cloned() {
                    request.pools = queues.into_iter().map(|queue| Pool { queue, ..first.clone() }).collect();
                }
            }
            Flaw::TakesTheLast => request.limit = 1_000,
            Flaw::IgnoresAgeing => request.boost = Boost::OFF,
            Flaw::AlwaysAges => request.boost = Boost::every(mins(1)),
            Flaw::IgnoresProbation => request.probation = true,
            Flaw::ClaimsPaused => self.resume_all().await?,
            _ => {}
        }
        Ok(())
    }

    async fn spoil_claimed(&self, request: &ClaimRequest, turn: &mut Turn) -> Result<(), StoreError> {
        let claimed = &mut turn.claimed;
        match self.flaw {
            Flaw::ErrsWhenEmpty if claimed.is_empty() => {
                return Err(StoreError::new(ErrorKind::NotFound, "claim jobs", "there are none"));
            }
            Flaw::ReversesClaims => claimed.reverse(),
            Flaw::TakesTheLast => {
                // Everything was taken; all but the last goes back.
                let last = claimed.pop();
                let back: Vec<_> = claimed.iter().map(|claim| deferral(claim, mins(0))).collect();
                self.good.settle_and_claim(&back, None).await?;
                *claimed = last.into_iter().collect();
            }
            Flaw::IgnoresProbation => loop {
                let more = self.good.settle_and_claim(&[], Some(request)).await?.claimed;
                if more.is_empty() {
                    break;
                }
                claimed.extend(more);
            },
            Flaw::ClaimsTwice => {
                let again = self.seen().claims.clone();
                self.seen().claims.extend(claimed.iter().cloned());
                claimed.extend(again);
            }
            Flaw::ClaimsShowThePast => {
                for claim in claimed.iter_mut() {
                    claim.job.state = JobState::Pending;
                    claim.job.picked_by = None;
                }
            }
            _ => {}
        }
        for claim in claimed.iter_mut() {
            self.seen().owners.insert(claim.job.id, claim.job.picked_by);
            claim.job = self.shown(claim.job.clone());
            claim.fence.version = claim.job.version;
        }
        Ok(())
    }
}
