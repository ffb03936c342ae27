//! The one door through which everything passes that is submitted.
//!
//! A job is completed with the principal that the client acts for, asked about, and written by the codec, here and nowhere
//! else. What has passed is [`Admitted`], and nothing else can be handed to the store.

use std::ops::Deref;
use std::sync::Arc;

use ratchet_core::batch::BATCH_KIND;
use ratchet_core::prepare::PreparedSubmit;
use ratchet_core::schedule::NewSchedule;
use ratchet_core::store::{SubmitOutcome, SubmitUnit};
use ratchet_core::{Hint, InvalidInput, JobSpec, JobType, Kind, NewJob, limits};

use crate::client::Client;
use crate::observe::metrics::{Meter, names};
use crate::protect::authorizer::{Action, Authorizer, Target};
use crate::protect::codec::{Codec, Part};
use crate::protect::policy::{self, JobPolicy, PolicyRefusal};
use crate::submit::error::SubmitError;
use crate::workflow::CONDITION_PREFIX;

/// What a process has been told about jobs: which may be submitted, who may do what, how they are written.
#[derive(Clone, Default)]
pub(crate) struct Rules {
    pub(crate) policy: Option<Arc<dyn JobPolicy>>,
    pub(crate) authorizer: Option<Arc<dyn Authorizer>>,
    pub(crate) codec: Codec,
}

/// A job or a unit that passed the door and may be stored.
///
/// It can be read and handed to a store by reference, but not changed. The only way out, [`prepared`](Admitted::prepared),
/// leads into a caller's own transaction.
#[derive(Debug)]
pub(crate) struct Admitted<T>(T);

impl<T> Deref for Admitted<T> {
    type Target = T;
    fn deref(&self) -> &T {
        &self.0
    }
}

impl<T> Admitted<Vec<T>> {
    pub(crate) fn none(capacity: usize) -> Self {
        Self(Vec::with_capacity(capacity))
    }

    pub(crate) fn push(&mut self, one: Admitted<T>) {
        self.0.push(one.0);
    }

    pub(crate) fn clear(&mut self) {
        self.0.clear();
    }

    pub(crate) fn drain(&mut self) -> impl DoubleEndedIterator<Item = Admitted<T>> + ExactSizeIterator {
        self.0.drain(..).map(Admitted)
    }
}

impl Admitted<SubmitUnit> {
    /// Returns the submit that a store writes in its caller's transaction.
    pub(crate) fn prepared<H, E>(
        self,
        hint: Option<Hint>,
        finish: impl FnOnce(SubmitOutcome) -> Result<H, E> + Send + 'static,
    ) -> PreparedSubmit<H, E> {
        PreparedSubmit { unit: self.0, hint, finish: Box::new(finish) }
    }
}

impl Client {
    /// Lets jobs in that are stored together.
    pub(crate) fn admit(&self, mut unit: SubmitUnit) -> Result<Admitted<SubmitUnit>, SubmitError> {
        self.trace(&mut unit);
        if self.admits_everything() {
            return Ok(Admitted(unit));
        }
        let alone = unit.jobs.len() == 1;
        let loose = !alone && unit.edges.is_empty() && unit.batch.is_none();
        let mut children = 0_u64;
        for (at, job) in unit.jobs.iter_mut().enumerate() {
            let place = match (&job.step, job.job_type) {
                (_, JobType::BatchChild) => {
                    children += 1;
                    child_place(children - 1)
                }
                (Some(step), _) => format!("step {:?}.", step.as_str()),
                _ if at == 0 && !loose => String::new(),
                _ => format!("job[{at}]."),
            };
            self.admit_job(&place, job)?;
        }
        if let Some(hook) = unit.batch.as_mut().and_then(|batch| batch.hook.as_mut()) {
            self.admit_spec("on_progress.", &mut hook.spec)?;
        }
        Ok(Admitted(unit))
    }

    /// Lets a child in that is added to an open batch.
    pub(crate) fn admit_child(&self, at: u64, mut job: NewJob) -> Result<Admitted<NewJob>, SubmitError> {
        job.spec.trace = job.spec.trace.take().or_else(|| self.current_trace());
        if !self.admits_everything() {
            self.admit_job(&child_place(at), &mut job)?;
        }
        Ok(Admitted(job))
    }

    /// Lets a schedule in that is created at run time.
    pub(crate) fn admit_schedule(&self, mut new: NewSchedule) -> Result<Admitted<NewSchedule>, SubmitError> {
        if self.admits_everything() {
            return Ok(Admitted(new));
        }
        self.sign(&mut new.spec);
        self.demand(Action::Create, &Target::Schedule { id: None, spec: &new.spec })?;
        self.admit_spec("", &mut new.spec)?;
        self.admit_callbacks("", &mut new.on_success, &mut new.on_failure)?;
        Ok(Admitted(new))
    }

    /// Lets the job of a schedule in that a person fires: its arguments are those of the schedule, which are written already,
    /// and so is its principal.
    pub(crate) fn admit_fired(&self, job: NewJob) -> Result<Admitted<SubmitUnit>, PolicyRefusal> {
        self.check(&job.spec)?;
        Ok(Admitted(SubmitUnit::of(vec![job])))
    }

    fn admit_job(&self, place: &str, job: &mut NewJob) -> Result<(), SubmitError> {
        self.admit_spec(place, &mut job.spec)?;
        self.admit_callbacks(place, &mut job.on_success, &mut job.on_failure)
    }

    fn admit_callbacks(
        &self,
        place: &str,
        on_success: &mut Option<JobSpec>,
        on_failure: &mut Option<JobSpec>,
    ) -> Result<(), SubmitError> {
        for (field, spec) in [("on_success", on_success), ("on_failure", on_failure)] {
            if let Some(spec) = spec {
                self.admit_spec(&format!("{place}{field}."), spec)?;
            }
        }
        Ok(())
    }

    fn admit_spec(&self, place: &str, spec: &mut JobSpec) -> Result<(), SubmitError> {
        self.sign(spec);
        self.check(spec).map_err(|refusal| refusal.at(place))?;
        // A condition is part of what it is a condition of; a batch is somebody's wish.
        if !is_own_step(&spec.kind) || spec.kind.as_str() == BATCH_KIND {
            self.demand(Action::Create, &Target::Job { id: None, spec })?;
        }
        let codec = &self.rules().codec;
        let named = |e: InvalidInput| InvalidInput::new(format!("{place}{}", e.field()), e.problem());
        let (part, most) = (Part::Arguments(&spec.kind), limits::PAYLOAD_BYTES_MAX);
        let sealed = codec.seal(self.meter(), part, &spec.payload, "payload", most);
        spec.payload = sealed.map_err(named)?;
        Ok(())
    }

    fn check(&self, spec: &JobSpec) -> Result<(), PolicyRefusal> {
        let count = |_: &PolicyRefusal| self.meter().count(names::SUBMITS_REFUSED, &[("reason", "policy")], 1);
        self.rules().check(self.meter(), spec).inspect_err(count)
    }

    /// Submits for whom the client acts, unless it is for somebody else.
    fn sign(&self, spec: &mut JobSpec) {
        if spec.principal.is_none() {
            spec.principal = self.principal().cloned();
        }
    }

    fn admits_everything(&self) -> bool {
        let Rules { policy, authorizer: _, codec } = self.rules();
        policy.is_none() && codec.0.is_none() && self.principal().is_none()
    }
}

impl Rules {
    /// Whether the policy allows a job. Ratchet's own steps come with jobs that it was asked about.
    pub(crate) fn check(&self, meter: &Meter, spec: &JobSpec) -> Result<(), PolicyRefusal> {
        if is_own_step(&spec.kind) { Ok(()) } else { policy::ask(meter, self.policy.as_ref(), spec) }
    }

    /// Lets schedules in that the code of this node declares. They are written as they are: nodes compare what is stored with
    /// what they declare, and no two encryptions of a text are the same.
    pub(crate) fn admit_declared(&self, meter: &Meter, all: &[NewSchedule]) -> Result<(), PolicyRefusal> {
        let named = |new: &NewSchedule| format!("schedule of {}: ", new.spec.kind);
        all.iter().try_for_each(|new| self.check(meter, &new.spec).map_err(|refusal| refusal.at(&named(new))))
    }
}

impl std::fmt::Debug for Rules {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let (policy, authorizer) = (self.policy.is_some(), self.authorizer.is_some());
        f.debug_struct("Rules").field("policy", &policy).field("authorizer", &authorizer).finish_non_exhaustive()
    }
}

fn child_place(at: u64) -> String {
    format!("child[{at}].")
}

/// Whether jobs of this kind are steps that Ratchet adds to those of its users: they tell whether conditions hold, and stand
/// for batches.
pub(crate) fn is_own_step(kind: &Kind) -> bool {
    let kind = kind.as_str();
    kind == BATCH_KIND
        || kind.strip_prefix(CONDITION_PREFIX).is_some_and(|name| name.is_empty() || name.starts_with('.'))
}
