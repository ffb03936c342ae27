use std::borrow::Cow;
use std::collections::BTreeMap;
use std::time::Duration;

use async_trait::async_trait;
use jiff::Timestamp;

use super::batches::Tallies;
use super::{Alert, MemoryStore, Tables, to_micros};
use crate::claim::{Claim, ClaimRequest, Fence, Lane, LaneMerge, LanePlace, Pick, Pool};
use crate::clock::{elapsed, later};
use crate::error::{ErrorKind, StoreError};
use crate::id::JobId;
use crate::outcome::ErrorReport;
use crate::record::JobRecord;
use crate::settle::{LiveRow, Recorded, RowChange, check};
use crate::settlement::{ALERT_QUIET, Settled, Settlement, error_hash};
use crate::state::JobState;
use crate::store::{Turn, TurnStore};
use crate::transition::Event;

#[async_trait]
impl TurnStore for MemoryStore {
    async fn settle_and_claim(
        &self,
        settlements: &[Settlement],
        claim: Option<&ClaimRequest>,
    ) -> Result<Turn, StoreError> {
        let (mut tables, now) = self.open();
        // What can fail is asked first: an error must leave nothing behind.
        if let Some(request) = claim
            && !tables.is_alive(request.node)
        {
            let problem = format!("node {} is not registered or was declared dead", request.node);
            return Err(StoreError::new(ErrorKind::Conflict, "claim jobs", problem));
        }
        check(settlements)?;
        let mut settled = Vec::with_capacity(settlements.len());
        let mut followed = Vec::new();
        let mut tallies = Tallies::new();
        for settlement in settlements {
            let one = tables.settle(settlement, now)?;
            if settlement.ends_permit {
                tables.permits.remove(&settlement.fence);
            }
            settled.push(one);
            if one == Settled::Applied {
                tables.note_end(settlement.fence.job_id, &mut tallies, now);
                followed.append(&mut tables.follow(settlement.fence.job_id, now)?);
            }
        }
        followed.append(&mut tables.count(&tallies, now)?);
        let claimed = match claim {
            None => Vec::new(),
            Some(request) => tables.claim(request, now)?,
        };
        Ok(Turn { settled, claimed, followed })
    }

    async fn next_due(&self, request: &ClaimRequest) -> Result<Option<Duration>, StoreError> {
        let (tables, now) = self.open();
        let claimable = |job: &&JobRecord| {
            (job.crash_count == 0 || request.probation)
                && request.pools.iter().any(|pool| pool.free > 0 && tables.waits_for(pool, job))
        };
        let wait = |job: &JobRecord| elapsed(now, job.due()).max(tables.wait_for_permit(job).unwrap_or_default());
        Ok(tables.jobs.values().filter(claimable).map(wait).min())
    }
}

impl Tables {
    fn settle(&mut self, settlement: &Settlement, now: Timestamp) -> Result<Settled, StoreError> {
        let id = settlement.fence.job_id;
        let row = self.jobs.get(&id).map(LiveRow::from);
        let Some(applied) = row.and_then(|row| settlement.apply(&row)) else {
            let already = match row {
                None => settlement.is_told_by_absence() || self.has_recorded(settlement),
                Some(_) => self.has_recorded(settlement),
            };
            return Ok(if already { Settled::AlreadyApplied } else { Settled::Conflict });
        };
        let Some((_, job)) = self.transition(id, settlement.change.event())? else { return Ok(Settled::Conflict) };
        job.crash_count = applied.crash_count;
        job.attempts = applied.attempts.unwrap_or(job.attempts);
        if let Some(error) = applied.error {
            job.last_error = Some(error.to_owned());
        }
        match applied.change {
            RowChange::End { result, timing, alert } => {
                job.result = result.cloned();
                job.timing = timing;
                job.ended_by = settlement.success_in_row();
                job.terminated_at = Some(now);
                if let Some(error) = alert {
                    self.alert(id, error, now);
                }
            }
            RowChange::Requeue { due_in, deferred_for } => {
                let from_now = |delay| to_micros(later(now, delay));
                job.scheduled_time = due_in.map_or(job.scheduled_time, from_now);
                job.deferred_until = deferred_for.map(from_now);
            }
        }
        if let Some(attempt) = &settlement.attempt {
            self.attempts.insert((attempt.job_id, attempt.version), attempt.clone());
        }
        for new_job in &settlement.new_jobs {
            self.insert(new_job, now)?;
        }
        Ok(Settled::Applied)
    }

    fn has_recorded(&self, settlement: &Settlement) -> bool {
        let Fence { job_id, version, .. } = settlement.fence;
        let recorded = self.attempts.get(&(job_id, version)).map(Recorded::from);
        recorded.is_some_and(|recorded| settlement.is_recorded_by(&recorded))
    }

    pub(super) fn alert(&mut self, job_id: JobId, error: &ErrorReport, now: Timestamp) {
        let error_hash = error_hash(error);
        let quiet = self.alerts.iter().any(|alert| {
            alert.job_id == job_id && alert.error_hash == error_hash && elapsed(alert.at, now) < ALERT_QUIET
        });
        if !quiet {
            self.alerts.push(Alert { job_id, error_hash, at: now });
        }
    }

    fn claim(&mut self, request: &ClaimRequest, now: Timestamp) -> Result<Vec<Claim>, StoreError> {
        let mut merge = LaneMerge::new(request, self.due_lanes(request, now), now, self.permits_left());
        let Pick::Jobs(picked) = merge.pick() else { unreachable!("all lanes were read to their ends") };
        let mut claimed = Vec::with_capacity(picked.len());
        for id in picked {
            let Some((_, job)) = self.transition(id, Event::Claim)? else { continue };
            job.picked_by = Some(request.node);
            job.picked_at = Some(now);
            let fence = Fence { job_id: id, version: job.version, node: request.node };
            let job = job.clone();
            if let Some(resource) = &job.spec.resource {
                self.permits.insert(fence, resource.clone());
            }
            let inputs = self.inputs_of(&job);
            let signal = self.signal_of(id);
            claimed.push(Claim { fence, job, inputs, signal });
        }
        Ok(claimed)
    }

    /// The lanes of a request, with all of their jobs that are due.
    fn due_lanes(&self, request: &ClaimRequest, now: Timestamp) -> Vec<Lane<'_>> {
        let mut places: BTreeMap<_, Vec<LanePlace>> = BTreeMap::new();
        for (index, pool) in request.pools.iter().enumerate() {
            for job in self.jobs.values().filter(|job| self.waits_for(pool, job) && job.due() <= now) {
                let resource = job.spec.resource.as_ref().map_or("", AsRef::as_ref);
                let ends = (job.spec.queue.as_str(), job.spec.kind.as_str(), job.spec.priority);
                let place = (job.scheduled_time, job.id);
                places.entry((index, job.crash_count > 0, resource, ends)).or_default().push(place);
            }
        }
        let lane = |((pool, probation, resource, ends), mut places): (_, Vec<LanePlace>)| {
            let mut lane = Lane::new(pool, probation, Cow::Borrowed(resource), ends);
            places.sort_unstable();
            for place in places {
                lane.push(place);
            }
            lane
        };
        places.into_iter().map(lane).collect()
    }

    /// Whether the job is one that the pool takes when it is due.
    fn waits_for(&self, pool: &Pool, job: &JobRecord) -> bool {
        job.state == JobState::Pending
            && pool.takes(job.spec.queue.as_str(), job.spec.kind.as_str())
            && !self.paused_queues.contains(&pool.queue)
    }
}
