//! Turns of the pump: settle, claim, and what to do when the database will not.

use std::sync::Arc;
use std::time::{Duration, Instant};

use ratchet_core::claim::ClaimRequest;
use ratchet_core::store::Turn;
use ratchet_core::{ErrorKind, Followed, FollowedBy, JobFlags, Priority, Settled, Settlement, StoreError};

use tokio_util::sync::ReusableBoxFuture;
use tracing::Instrument;

use crate::observe::job_metrics::Recorder as _;
use crate::observe::metrics::names;
use crate::observe::settled_events::settled_events;
use crate::observe::stats::Loop;
use crate::pump::attempts::permit_of;
use crate::pump::claim_filter::ClaimFilter;
use crate::pump::failures::{PAUSE_MAX, PAUSE_MIN};
use crate::pump::flights::Flight;
use crate::pump::slots::{Most, PoolIndex};
use crate::pump::unsettled::EndedAttempt;
use crate::pump::{Part, Pump};

/// Settlements in one transaction.
const SETTLE_TOGETHER: usize = 500;
/// How often a node looks for the steps that Ratchet itself runs, if nothing tells it of one.
const LOOK_INSIDE_EVERY: Duration = Duration::from_secs(1);
/// How often a node looks whether anything may run, while nothing may.
const LOOK_AGAIN: Duration = Duration::from_secs(5);
/// How often the smallest form of a settlement may be refused before it is given up; that takes half a minute.
const REFUSALS_MAX: u32 = 12;

impl Pump {
    /// Begins one transaction: settles what has ended, claims for the room there is, or does both, in this order.
    pub(super) fn begin(&mut self, part: Part, now: Instant) {
        let count = match part {
            Part::Both => self.unsettled.len().min(SETTLE_TOGETHER),
            Part::Settle => self.unsettled.len().min(SETTLE_TOGETHER).min(self.group()),
            Part::Claim => 0,
        };
        let internal = self.looks_inside(now);
        let claims = part != Part::Settle && self.is_time_to_claim(now);
        let request = claims.then(|| self.next_claim(now, count, internal)).flatten();
        if request.is_none() && count == 0 {
            return;
        }
        if request.is_some() && internal {
            self.timers.internal = now + LOOK_INSIDE_EVERY;
        }
        self.counters.turns.add(1);
        let request = request.map(Arc::new);
        let room = request.as_ref().map_or(0, |request| request.limit);
        let span = tracing::debug_span!("job.turn", settle = count, claim = room);
        let unsettled = self.unsettled.take(count);
        let (store, settlements, asked) = (self.store.clone(), unsettled.shared(), request.clone());
        let answer = async move { store.settle_and_claim(&settlements, asked.as_deref()).await };
        self.flights.push(Flight::new(unsettled, request, now, ReusableBoxFuture::new(answer.instrument(span))));
        if !self.unsettled.is_empty() {
            // The others have gathered too.
            self.timers.settle = now;
        }
    }

    /// Acts on the answer of the store.
    pub(super) async fn land(&mut self, flight: Flight, answer: Result<Turn, StoreError>) {
        let Flight { mut unsettled, request, began, .. } = flight;
        let outcome = if answer.is_ok() { "ok" } else { "error" };
        self.counters.meter.time(names::TURN, &[("outcome", outcome)], began.elapsed());
        let count = unsettled.len();
        match answer {
            Ok(turn) => {
                if count > 0 {
                    self.settle_failures.clear();
                }
                if request.is_some() {
                    self.claim_failures.clear();
                }
                self.counters.last_success.mark(Loop::Turn, self.client.now());
                self.finish(turn, unsettled.drain(count), request.as_deref());
            }
            Err(error) => {
                self.unsettled.put_back(unsettled);
                self.turn_failed(error, count, request.as_deref()).await;
            }
        }
    }

    /// What to ask for now; `None` if there is no room, or nothing that may run.
    fn next_claim(&mut self, now: Instant, settling: usize, internal: bool) -> Option<ClaimRequest> {
        self.claim.tried = !self.claim.tried;
        if self.claim.tried {
            self.slots.next_round();
        }
        let (request, again) = self.claim_request(settling, internal, self.claim.tried);
        self.timers.readmit = again.map(|wait| now + wait);
        if request.limit == 0 && self.slots.free() > 0 {
            // Nothing that is registered here may run: there is no reason to look before something may.
            self.timers.poll = now + LOOK_AGAIN;
            self.timers.due = None;
        }
        (request.limit > 0).then_some(request)
    }

    /// Returns the request for a claim beside the first `settling` settlements, and the wait until kinds that it leaves out may
    /// be asked for again.
    fn claim_request(&self, settling: usize, internal: bool, tries: bool) -> (ClaimRequest, Option<Duration>) {
        let (settled, later) = self.unsettled.attempts().split_at(settling);
        // An attempt that the store may have to be asked about once more keeps its slot for now.
        let frees = |ended: &&EndedAttempt| ended.held.is_none() && ended.own_commit.is_none();
        let freed = settled.iter().filter(frees).map(|ended| ended.pool);
        let on_probation = self.running.values().any(|running| running.job.crash_count > 0)
            || later.iter().any(|ended| ended.job.crash_count > 0)
            || self.flights.unsettled().any(|(_, ended)| ended.job.crash_count > 0);
        let mut filter = ClaimFilter::new(&self.runner.registry, &self.runner.resilience, tries);
        let node = self.standing.borrow().node;
        let most = if self.overlaps() { Most::Half } else { Most::All };
        let request = self.slots.request(freed, node, &self.config, !on_probation, internal, most, &mut filter);
        (request, filter.again())
    }

    async fn try_settle(&self, count: usize) -> Result<Turn, StoreError> {
        self.store.settle_and_claim(self.unsettled.as_slice(count), None).await
    }

    /// Acts on a committed turn.
    fn finish(&mut self, turn: Turn, settled: Vec<(Settlement, EndedAttempt)>, request: Option<&ClaimRequest>) {
        let permits_taken = turn.claimed.iter().filter(|claim| claim.job.spec.resource.is_some()).count();
        let (mut poll_again, permits_ended) = self.finish_settlements(settled, &turn.settled);
        poll_again |= self.finish_followed(&turn.followed);
        if permits_ended > permits_taken {
            // The jobs that wait for them may be another node's, or wait for the next poll of this one.
            poll_again |= request.is_none();
            self.client.announce(Priority::default());
        }
        // Rescheduled jobs have due times that are not known here.
        self.timers.ask_due_soon();
        if let Some(request) = request {
            let claimed = turn.claimed.len();
            let started: Vec<PoolIndex> = turn.claimed.into_iter().filter_map(|claim| self.dispatch(claim)).collect();
            self.counters.claimed.add(started.len());
            self.slots.note_load(&started, claimed >= request.limit);
            self.plan_poll(request.limit, claimed);
        }
        if poll_again {
            self.timers.poll = Instant::now();
        }
        // Last: the claimed jobs run meanwhile.
        self.metrics.record(&self.counters.meter);
    }

    /// Publishes settlements and frees their slots. Returns whether to poll for jobs that they created or
    /// released, and the number of permits that they ended.
    fn finish_settlements(&mut self, settled: Vec<(Settlement, EndedAttempt)>, outcomes: &[Settled]) -> (bool, usize) {
        let (mut poll_again, mut permits_ended) = (false, 0);
        // Once for all of them: each call is a metric for a collector.
        self.counters.settled.add(outcomes.iter().filter(|settled| **settled != Settled::Conflict).count());
        for ((settlement, mut ended), settled) in settled.into_iter().zip(outcomes) {
            if *settled == Settled::Conflict
                && let Some(own_commit) = ended.own_commit.take()
            {
                // The handler failed after it had committed its own end, or another writer was first: ask which.
                self.unsettled.push(own_commit, ended);
                continue;
            }
            match settled {
                Settled::Applied | Settled::AlreadyApplied => {
                    let events = settled_events(&ended.job, &settlement, ended.defer, || self.client.now());
                    self.metrics.settled(&ended.job, &settlement, &events);
                    self.client.bus().publish_settled(&ended.job, &settlement, events);
                    // The jobs that the handler's own transaction has released are not in this turn.
                    let unseen = *settled == Settled::AlreadyApplied && ended.job.flow.has(JobFlags::DEPENDANTS);
                    poll_again |= unseen || !settlement.new_jobs.is_empty();
                    for job in &settlement.new_jobs {
                        // A job of a kind that runs here is claimed here, at once; others are for other nodes.
                        if self.runner.registry.get(&job.spec.kind).is_none() {
                            self.client.announce(job.spec.priority);
                        }
                    }
                }
                Settled::Conflict => {
                    self.counters.conflicts.add(1);
                    tracing::warn!(
                        job.id = %ended.job.id, job.kind = %ended.job.spec.kind, event = %settlement.change.event(),
                        "a result came too late: the job was canceled or given to another node"
                    );
                }
            }
            let permit = permit_of(&ended.job, settlement.fence);
            permits_ended += usize::from(settlement.ends_permit);
            self.free_slot(ended.pool, ended.held, permit);
        }
        (poll_again, permits_ended)
    }

    /// Publishes the effects on dependent jobs, and wakes the nodes that run those that were released. Returns whether to poll
    /// for them.
    fn finish_followed(&mut self, followed: &[Followed]) -> bool {
        if followed.is_empty() {
            return false;
        }
        let released_some = self.client.followed(followed, None);
        for released in followed.iter().filter(|one| one.what == FollowedBy::Released) {
            match self.runner.registry.get(&released.kind) {
                Some(entry) if entry.internal => self.timers.internal = Instant::now(),
                Some(_) => {}
                None => self.client.announce(released.priority),
            }
        }
        released_some
    }

    async fn turn_failed(&mut self, error: StoreError, count: usize, request: Option<&ClaimRequest>) {
        self.counters.turn_errors.add(1);
        if let Some(request) = request {
            self.claim.uncertain |= *error.kind() == ErrorKind::Unavailable;
            if *error.kind() == ErrorKind::Conflict {
                // Declared dead, and the heartbeat will notice; settlements go on without a claim.
                tracing::warn!(node = %request.node, "this node may not claim: it is not registered or was declared dead");
                self.claim.refused = Some(request.node);
                return;
            }
        }
        if error.is_retryable() {
            self.unsettled.may_be_applied(count);
            self.pause(&error, count > 0, request.is_some());
        } else if count == 0 {
            self.pause(&error, false, true);
        } else if request.is_some() {
            // Which half is at fault is not known yet: settle alone first.
            self.timers.claim_again = Instant::now() + PAUSE_MIN;
            self.timers.settle = Instant::now();
        } else {
            self.settle_apart(count, &error).await;
        }
    }

    /// Lets what has failed, settling or claiming, wait before the next try, longer each time.
    fn pause(&mut self, error: &StoreError, settling: bool, claiming: bool) {
        let (mut pause, mut log) = (Duration::ZERO, false);
        for (failed, failures) in [(settling, &mut self.settle_failures), (claiming, &mut self.claim_failures)] {
            if failed {
                pause = pause.max(failures.count());
                log |= failures.to_log().is_some();
            }
        }
        if log {
            let waiting = self.unsettled.len();
            tracing::warn!(
                error = error as &dyn std::error::Error,
                waiting,
                pause_ms = pause.as_millis(),
                "the store failed; trying again"
            );
        }
        let at = Instant::now() + pause;
        if settling {
            self.timers.settle = at;
        }
        if claiming {
            self.timers.claim_again = at;
        }
    }

    /// The database refuses the group for good: halves it until the settlement at fault stands alone, and writes that
    /// in its smallest form.
    async fn settle_apart(&mut self, count: usize, error: &StoreError) {
        tracing::error!(
            error = error as &dyn std::error::Error,
            count,
            "a group of settlements was refused; settling apart"
        );
        let mut groups = vec![count];
        while let Some(group) = groups.pop() {
            match self.try_settle(group).await {
                Ok(turn) => {
                    let settled = self.unsettled.drain(group);
                    self.finish(turn, settled, None);
                }
                Err(error) if error.is_retryable() => {
                    self.unsettled.may_be_applied(group);
                    return self.pause(&error, true, true);
                }
                Err(_) if group > 1 => groups.extend([group - group / 2, group / 2]),
                Err(_) => {
                    if let Err(error) = self.settle_minimal().await {
                        return self.pause(&error, true, true);
                    }
                }
            }
        }
    }

    /// Writes the first settlement in its smallest form, which holds nothing of the user's.
    ///
    /// If that is refused too, the fault is not in the result: a privilege or a table may be missing, or the server is in a
    /// state whose error nobody knew. The result is kept and tried again, behind the others, for a while.
    async fn settle_minimal(&mut self) -> Result<(), StoreError> {
        let minimal = self.unsettled.as_slice(1)[0].minimal();
        let full = self.unsettled.replace_first(minimal);
        let error = match self.try_settle(1).await {
            Ok(turn) => {
                self.counters.minimal.add(1);
                let settled = self.unsettled.drain(1);
                self.finish(turn, settled, None);
                return Ok(());
            }
            Err(error) => error,
        };
        self.unsettled.replace_first(full);
        if error.is_retryable() {
            self.unsettled.may_be_applied(1);
            return Err(error);
        }
        if self.unsettled.refuse_first() == REFUSALS_MAX {
            self.give_up(&error);
        } else {
            self.unsettled.rotate();
        }
        Err(error)
    }

    /// Not even the smallest form can be written: the reconcile will find the job unknown here and hand it back.
    fn give_up(&mut self, error: &StoreError) {
        let Some((settlement, ended)) = self.unsettled.drain(1).pop() else { return };
        let permit = permit_of(&ended.job, settlement.fence);
        if ended.held.is_none() {
            self.released.extend(permit);
        }
        tracing::error!(
            job.id = %ended.job.id, job.kind = %ended.job.spec.kind, error = error as &dyn std::error::Error,
            "the result of a job cannot be written in any form; the job will run again"
        );
        self.claim.uncertain = true;
        self.free_slot(ended.pool, ended.held, permit);
    }

    /// Ends the permits of attempts that nothing is settled of: they were canceled, or held a thread until now.
    pub(super) async fn release_permits(&mut self) {
        match self.store.release_permits(&self.released).await {
            Ok(()) => {
                self.released.clear();
                self.timers.poll = Instant::now();
                self.client.announce(Priority::default());
            }
            Err(error) => {
                tracing::warn!(error = &error as &dyn std::error::Error, "permits could not be ended; trying again");
                self.timers.release = Instant::now() + PAUSE_MAX;
            }
        }
    }

    /// Sets the timer for the next job that becomes due.
    pub(super) async fn ask_next_due(&mut self) {
        self.timers.ask_due = None;
        self.timers.asked_due = Instant::now();
        let (request, _) = self.claim_request(0, true, true);
        match self.store.next_due(&request).await {
            Ok(due) => self.timers.due = due.map(|wait| Instant::now() + wait),
            Err(error) => {
                tracing::debug!(error = &error as &dyn std::error::Error, "asking for the next due time failed");
                self.timers.ask_due = Some(Instant::now() + PAUSE_MAX);
            }
        }
    }
}
