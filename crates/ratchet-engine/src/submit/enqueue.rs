//! The builder of one job, with the jobs that follow it.

use std::marker::PhantomData;
use std::time::Duration;

use jiff::Timestamp;
use ratchet_core::flow::Condition;
use ratchet_core::prepare::{PrepareSubmit, PreparedSubmit};
use ratchet_core::store::{Replacement, SubmitUnit, Submitted};
use ratchet_core::{
    BusinessKey, Due, ErrorKind, IdempotencyKey, InvalidInput, JobId, NewJob, Priority, SignalKey, SignalWait,
    StoreError, limits,
};

use crate::client::Client;
use crate::client::control::canceled_event;
use crate::client::handle::JobHandle;
use crate::job::Job;
use crate::protect::authorizer::Action;
use crate::submit::error::{SubmitError, SubmittedKind};
use crate::submit::step::{IntoStep, Later, Step, spec_options};
use crate::submit::unit::Waking;
use crate::workflow::{IntoBranch, Plan, When};

/// A job that is about to be submitted; nothing happens before [`submit`](Enqueue::submit).
#[derive(Debug)]
#[must_use = "nothing is submitted before .submit()"]
pub struct Enqueue<J: Job> {
    client: Client,
    options: SubmitOptions,
    _job: PhantomData<fn() -> J>,
}

/// The options of a submit, without the job's type.
#[derive(Debug)]
pub(crate) struct SubmitOptions {
    step: Step,
    immediate: bool,
    idempotency_key: Option<IdempotencyKey>,
    on_success: Option<Step>,
    on_failure: Option<Step>,
    /// The steps that follow the first job, one after the other.
    chain: Vec<Step>,
    /// The steps that follow the first job on a condition.
    branches: Vec<(When, Step)>,
    exclusive: bool,
}

spec_options!(<J: Job> Enqueue<J>, options.step);

impl<J: Job> Enqueue<J> {
    pub(crate) fn new(client: Client, job: &J) -> Self {
        let options = SubmitOptions {
            step: Step::of(job),
            immediate: false,
            idempotency_key: None,
            on_success: None,
            on_failure: None,
            chain: Vec::new(),
            branches: Vec::new(),
            exclusive: false,
        };
        Self { client, options, _job: PhantomData }
    }

    /// Makes the job due this long after it is stored.
    pub fn delay(mut self, delay: Duration) -> Self {
        self.options.step.set(Ok(delay), |job, delay| job.due = Due::After(delay));
        self
    }

    /// Makes the job due at this time; a time in the past means now.
    pub fn at(mut self, time: Timestamp) -> Self {
        self.options.step.set(Ok(time), |job, time| job.due = Due::At(time));
        self
    }

    /// Wakes the nodes for the job even if it is neither critical nor due at once.
    pub fn immediate(mut self) -> Self {
        self.options.immediate = true;
        self
    }

    /// Deduplicates submissions. The first job submitted with this key wins; later submissions return its handle. Keys never
    /// expire and are shared by all kinds: begin them with their subject, such as `charge:7`.
    pub fn idempotency_key(mut self, key: impl AsRef<str>) -> Self {
        let SubmitOptions { step, idempotency_key, .. } = &mut self.options;
        step.set(IdempotencyKey::new(key), |_, key| *idempotency_key = Some(key));
        self
    }

    /// Refuses other jobs with this key while this job is live.
    pub fn business_key(mut self, key: impl AsRef<str>) -> Self {
        self.options.step.set(BusinessKey::new(key), |job, key| job.business_key = Some(key));
        self
    }

    /// Makes the job wait, instead of running at once, for a [`signal`](Client::signal) with this key, or for one to this very job
    /// ([`Client::signal_job`]). The handler reads it from [`JobContext::signal`](crate::JobContext::signal).
    ///
    /// If no signal arrives within `timeout`, the job fails permanently without running, and its dependent jobs follow that
    /// failure. `None` waits without a limit. A signal that was sent a little earlier is not lost: it is stored for the first
    /// job that waits for its key.
    pub fn await_signal(mut self, key: impl AsRef<str>, timeout: impl Into<Option<Duration>>) -> Self {
        let timeout = timeout.into();
        self.options.step.set(SignalKey::new(key), |job, key| job.signal = Some(SignalWait { key, timeout }));
        self
    }

    /// Submitted when this job succeeds, in the same transaction.
    pub fn on_success(mut self, step: impl IntoStep) -> Self {
        self.options.on_success = Some(step.into_step());
        self
    }

    /// Submitted when this job fails for good, in the same transaction.
    pub fn on_failure(mut self, step: impl IntoStep) -> Self {
        self.options.on_failure = Some(step.into_step());
        self
    }

    /// Follows when this job, and every step that was added before, has succeeded.
    ///
    /// Every step is stored at submit and waits. If one fails for good or is canceled, all that follow are canceled; a
    /// retry of the one that failed brings them back. A step may take the result of the one before: [`Prev`](crate::Prev).
    pub fn then(mut self, step: impl IntoStep) -> Self {
        self.options.chain.push(step.into_step());
        self
    }

    /// Follows when this job, the first, has succeeded, beside whatever else does.
    pub fn then_on_success(self, step: impl IntoStep) -> Self {
        self.branch(When::data(Condition::Success), step)
    }

    /// Follows when this job, the first, has failed for good.
    pub fn then_on_failure(self, step: impl IntoStep) -> Self {
        self.branch(When::data(Condition::Failure), step)
    }

    /// Follows when this job, the first, has succeeded and its result is so: [`result`](crate::result), or a function under
    /// `#[condition]` that takes this job's result.
    pub fn when(self, condition: impl IntoBranch<J::Output>, step: impl IntoStep) -> Self {
        self.branch(condition.into_branch(), step)
    }

    /// Of the branches of this job at most one is taken: the first that holds, by priority and then in their order.
    pub fn exclusive(mut self) -> Self {
        self.options.exclusive = true;
        self
    }

    fn branch(mut self, when: When, step: impl IntoStep) -> Self {
        self.options.branches.push((when, step.into_step()));
        self
    }

    /// Stores the job. When this returns, the job will reach a terminal state while any capable node lives.
    ///
    /// # Errors
    /// [`SubmitError::Invalid`] for bad input, [`SubmitError::Duplicate`] while the business key is held,
    /// [`SubmitError::Refused`] by the [`JobPolicy`](crate::JobPolicy), [`SubmitError::Denied`] by the
    /// [`Authorizer`](crate::Authorizer), all without anything written; [`SubmitError::IdempotencyKeyReused`] if the idempotency key
    /// stands for a workflow or a batch; [`SubmitError::Store`] if the database could not be reached or refused.
    pub async fn submit(self) -> Result<JobHandle<J::Output>, SubmitError> {
        let Self { client, options, .. } = self;
        let (unit, wake) = options.into_unit(&client)?;
        let submitted = client.submit_unit(unit, wake).await?[0];
        client.check_submitted_kind(submitted, SubmittedKind::Job).await?;
        Ok(JobHandle::new(client, submitted))
    }

    /// Cancels the job `old` and stores this one in its place, in one transaction.
    ///
    /// This job may take over the business key of the old one, whose record will point to it. It takes over nothing else: what
    /// follows a step is canceled with it, and a child of a batch counts as canceled.
    ///
    /// # Errors
    /// As [`submit`](Self::submit), and [`SubmitError::Store`] of kind [`NotFound`](ErrorKind::NotFound) or
    /// [`Conflict`](ErrorKind::Conflict) if there is no such job or it has already ended.
    pub async fn replace(self, old: JobId) -> Result<JobHandle<J::Output>, SubmitError> {
        let Self { client, options, .. } = self;
        let (unit, wake) = options.into_unit(&client)?;
        if unit.is_one_thing() {
            let problem = "cannot replace a job; replace it by one without steps and branches";
            return Err(InvalidInput::new("then", problem).into());
        }
        let unit = client.admit(unit)?;
        let job = &unit.jobs[0];
        if !client.judge(Action::Replace, old).await?? {
            let doing = format!("replacing job {old}");
            return Err(StoreError::new(ErrorKind::NotFound, doing, "there is no such job").into());
        }
        let submitted = match client.store().replace(old, job).await? {
            Replacement::Existing(id) => Submitted::Existing(id),
            Replacement::Replaced(replaced) => {
                client.publish(&replaced.job, canceled_event(&replaced));
                client.followed(&replaced.followed, None);
                client.wake_for(&replaced.followed);
                client.wake().revoked();
                Submitted::Created(job.id)
            }
        };
        client.submitted(wake);
        if job.signal.is_some() {
            client.tell_awaiting(vec![job.id]).await;
        }
        Ok(JobHandle::new(client, submitted))
    }

    pub(crate) fn into_parts(self) -> (Client, SubmitOptions) {
        (self.client, self.options)
    }
}

impl SubmitOptions {
    /// The jobs to store, checked, the first first, and whether the nodes are to be woken for it.
    pub(crate) fn into_unit(mut self, client: &Client) -> Result<(SubmitUnit, Waking), InvalidInput> {
        let (chain, branches) = (std::mem::take(&mut self.chain), std::mem::take(&mut self.branches));
        let exclusive = self.exclusive;
        let (job, waking) = self.into_job(client.now())?;
        let mut plan = Plan::new(vec![job]);
        let mut last = 0;
        for (at, step) in chain.into_iter().enumerate() {
            let place = plan.add(step_job(&format!("then[{at}]"), step)?);
            plan.link(last, place, When::data(Condition::Success), false);
            last = place;
        }
        for (at, (when, step)) in branches.into_iter().enumerate() {
            let place = plan.add(step_job(&format!("when[{at}]"), step)?);
            plan.link(0, place, when, exclusive);
        }
        Ok((plan.unit(client)?, waking))
    }

    /// The first job.
    fn into_job(self, now: Timestamp) -> Result<(NewJob, Waking), InvalidInput> {
        let callback = |field: &str, step: Option<Step>| -> Result<_, InvalidInput> {
            let named = |e: InvalidInput| InvalidInput::new(format!("{field}.{}", e.field()), e.problem());
            step.map(|step| step.into_spec(Later::Callback)).transpose().map_err(named)
        };
        let mut job = self.step.into_job()?;
        job.idempotency_key = self.idempotency_key;
        job.on_success = callback("on_success", self.on_success)?;
        job.on_failure = callback("on_failure", self.on_failure)?;
        job.check()?;
        if let Due::At(time) = job.due {
            limits::check_time("at", time, now)?;
        }
        // Delayed jobs start by the timer that watches due times. One that waits may find its signal there.
        let wake = self.immediate || job.spec.priority == Priority::Critical || job.due == Due::NOW;
        let waking = Waking(wake.then_some(job.spec.priority));
        Ok((job, waking))
    }
}

/// The job of a step, checked; errors name where it stands.
fn step_job(field: &str, step: Step) -> Result<NewJob, InvalidInput> {
    let named = |e: InvalidInput| InvalidInput::new(format!("{field}.{}", e.field()), e.problem());
    let job = step.into_job().map_err(named)?;
    job.check().map_err(named)?;
    Ok(job)
}

impl<J: Job> PrepareSubmit for Enqueue<J> {
    type Handle = JobHandle<J::Output>;
    type Error = SubmitError;

    fn prepare(self) -> Result<PreparedSubmit<Self::Handle, SubmitError>, SubmitError> {
        let Self { client, options, .. } = self;
        let (unit, waking) = options.into_unit(&client)?;
        let unit = client.admit(unit)?;
        let hint = client.hint(waking);
        Ok(unit.prepared(hint, move |outcome| {
            let submitted = outcome?[0];
            // The caller's commit is not reported here: the pump polls for the job, and other nodes learn of it only if the
            // store can notify them with the commit.
            client.wake().expect(submitted.id());
            Ok(JobHandle::new(client, submitted))
        }))
    }
}
