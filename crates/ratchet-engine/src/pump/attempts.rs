//! The attempts of a node: how one begins, how it ends, and when its slot and its permit are free again.

use std::sync::Arc;
use std::time::Instant;

use ratchet_core::{Claim, Fence, JobRecord};
use tokio::task::AbortHandle;

use crate::observe::events::JobEventKind;
use crate::pump::Pump;
use crate::pump::slots::PoolIndex;
use crate::pump::unsettled::EndedAttempt;
use crate::run::context::JobContext;
use crate::run::executor::Held;
use crate::run::gate::BreakerEntry;
use crate::run::{CancelHandle, Ended};

/// An attempt that runs on this node.
pub(super) struct RunningAttempt {
    pub(super) job: Arc<JobRecord>,
    pub(super) ctx: JobContext,
    pub(super) cancel: Arc<CancelHandle>,
    pub(super) task: AbortHandle,
    pool: PoolIndex,
}

/// A message from an attempt to the pump.
pub(super) enum Message {
    /// The attempt has ended.
    Ended(Fence, Box<Ended>),
    /// The thread, or whatever else an abandoned handler occupied, is free: the slot is free too, and the permit ends.
    Freed(PoolIndex, Option<Fence>),
}

/// Returns the permit that an attempt took, by its fence; `None` if the job needs none.
pub(super) fn permit_of(job: &JobRecord, fence: Fence) -> Option<Fence> {
    job.spec.resource.is_some().then_some(fence)
}

impl Pump {
    /// Starts a claimed job, if it may and can run here, and returns the pool of its slot.
    pub(super) fn dispatch(&mut self, claim: Claim) -> Option<PoolIndex> {
        let (fence, job) = (claim.fence, &claim.job);
        let standing = self.standing.borrow().clone();
        if standing.right.is_cancelled() || standing.node != fence.node {
            // Fenced while the claim was under way: the reconcile hands the job back, without a run that would be cut off.
            self.claim.uncertain = true;
            return None;
        }
        let Some(pool) = self.slots.take(&job.spec.queue, &job.spec.kind) else {
            tracing::error!(job.id = %job.id, job.kind = %job.spec.kind, "the store handed out a job that was not asked for");
            return None;
        };
        let cancel = Arc::new(CancelHandle::under(&standing.right));
        let (states, client, logs) = (self.states.clone(), self.client.clone(), self.logs.clone());
        let ctx = JobContext::new(claim, states, client, cancel.token.clone(), logs);
        let job = ctx.shared_job().clone();
        let service = self.runner.registry.get(&job.spec.kind).and_then(|entry| entry.service.as_ref());
        let entry = BreakerEntry::of(service, &self.runner.resilience);
        if !matches!(entry, BreakerEntry::Refused(_)) {
            let what = JobEventKind::Started { attempt: ctx.attempt() };
            self.client.bus().publish_with(&mut self.metrics, &job, Some(fence.node), what);
        }
        let (runner, sender) = (self.runner.clone(), self.sender.clone());
        let (task_ctx, task_cancel) = (ctx.clone(), cancel.clone());
        let task = self.attempts.spawn(async move {
            let (ended, span) = runner.run(&task_ctx, &task_cancel, entry).await;
            // The pump is gone only if the engine was dropped; then nothing may be settled.
            let _ = sender.send(Message::Ended(fence, Box::new(ended))).await;
            if !span.is_disabled() {
                // Closing it is a fifth of what a small job costs where spans are recorded. Other attempts that have ended go
                // first, so that it is done while their results are written.
                tokio::task::yield_now().await;
                drop(span);
            }
        });
        self.timers.reconcile = self.timers.reconcile.min(Instant::now() + self.config.timing.reconcile);
        self.running.insert(fence, RunningAttempt { job, ctx, cancel, task: task.abort_handle(), pool });
        Some(pool)
    }

    /// Receives a message of an attempt.
    pub(super) fn receive(&mut self, message: Message) {
        match message {
            Message::Ended(fence, ended) => self.attempt_ended(fence, *ended),
            Message::Freed(pool, permit) => {
                self.slots.give_back(pool);
                if let Some(permit) = permit {
                    self.held.remove(&permit);
                    self.released.push(permit);
                }
                self.timers.poll = Instant::now();
            }
        }
    }

    /// Puts the settlement of an attempt with those that wait for the next turn. Without a settlement its slot is free at once.
    fn attempt_ended(&mut self, fence: Fence, ended: Ended) {
        let Some(RunningAttempt { job, pool, .. }) = self.running.remove(&fence) else { return };
        let Ended { settlement, defer, own_commit, held } = ended;
        let permit = permit_of(&job, fence);
        let Some(mut settlement) = settlement else {
            if held.is_none() {
                self.released.extend(permit);
            }
            self.free_slot(pool, held, permit);
            self.timers.poll = Instant::now();
            return;
        };
        // An abandoned handler that still runs needs its permit.
        settlement.ends_permit = permit.is_some() && held.is_none();
        if self.unsettled.is_empty() && self.settle_failures.is_none() {
            self.timers.settle = Instant::now() + self.config.gather;
        }
        self.unsettled.push(settlement, EndedAttempt::new(job, pool, defer, own_commit, held));
    }

    /// Gives a slot back: at once, or when what an abandoned handler occupies is free. Then its permit ends too.
    pub(super) fn free_slot(&mut self, pool: PoolIndex, held: Option<Held>, permit: Option<Fence>) {
        match held {
            None => self.slots.give_back(pool),
            Some(held) => {
                self.held.extend(permit);
                let sender = self.sender.clone();
                tokio::spawn(async move {
                    let _ = held.await;
                    let _ = sender.send(Message::Freed(pool, permit)).await;
                });
            }
        }
    }
}
