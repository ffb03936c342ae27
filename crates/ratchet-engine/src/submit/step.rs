//! A job with its options: what every builder collects, and what follows another job.

use std::time::Duration;

use ratchet_core::{BusinessKey, Due, InvalidInput, JobSpec, NewJob, SignalKey, SignalWait};

use crate::job::{Job, spec_of};
use crate::node::ids::new_job_id;

/// A job with options of its own, to be submitted by another job's end.
///
/// A job by itself is a step with its kind's defaults; [`JobExt::with`] sets options.
#[derive(Debug, Clone)]
pub struct Step {
    options: Result<StepParts, InvalidInput>,
}

/// The options of a step, none of them refused.
#[derive(Debug, Clone)]
pub(super) struct StepParts {
    pub(super) spec: JobSpec,
    pub(super) due: Due,
    pub(super) business_key: Option<BusinessKey>,
    pub(super) signal: Option<SignalWait>,
}

impl Step {
    pub(crate) fn of<J: Job>(job: &J) -> Self {
        let options = spec_of(job).map(|spec| StepParts { spec, due: Due::NOW, business_key: None, signal: None });
        Self { options }
    }

    /// Sets an option to a value, unless that is refused; see [`apply`].
    pub(super) fn set<T>(&mut self, value: Result<T, InvalidInput>, set: impl FnOnce(&mut StepParts, T)) {
        apply(&mut self.options, |options| value.map(|value| set(options, value)));
    }

    /// Returns the job to store, if it is stored as one at the submit: by itself, a step of a chain or a workflow, a child of a
    /// batch.
    pub(crate) fn into_job(self) -> Result<NewJob, InvalidInput> {
        let StepParts { spec, due, business_key, signal } = self.options?;
        let job = NewJob { due, business_key, ..NewJob::new(new_job_id(), spec) };
        Ok(match signal {
            Some(wait) => job.awaiting(wait),
            None => job,
        })
    }

    /// Returns the spec, if a job is made of it only later. It has no delay and no business key, and awaits no signal.
    pub(crate) fn into_spec(self, later: Later) -> Result<JobSpec, InvalidInput> {
        let options = self.options?;
        let (delay, business_key, signal) = later.instead();
        let refused = |field: &str, instead: &str| {
            Err(InvalidInput::new(field, format!("is for jobs and for steps of chains and workflows; {instead}")))
        };
        match options {
            StepParts { due, .. } if due != Due::NOW => refused("delay", delay),
            StepParts { business_key: Some(_), .. } => refused("business_key", business_key),
            StepParts { signal: Some(_), .. } => refused("await_signal", signal),
            StepParts { spec, .. } if spec.trace.is_some() && matches!(later, Later::Schedule) => Err(
                InvalidInput::new("trace_context", "is for jobs and steps; each fire of a schedule stands for itself"),
            ),
            StepParts { spec, .. } => Ok(spec),
        }
    }
}

/// Applies an option to what a builder has gathered. The first option that is refused is reported at submit; later ones change
/// nothing any more.
pub(crate) fn apply<T>(
    gathered: &mut Result<T, InvalidInput>,
    option: impl FnOnce(&mut T) -> Result<(), InvalidInput>,
) {
    if let Ok(options) = gathered
        && let Err(refused) = option(options)
    {
        *gathered = Err(refused);
    }
}

/// What creates the job of a step later.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Later {
    /// The end of another job, or the progress of a batch.
    Callback,
    /// A schedule.
    Schedule,
}

impl Later {
    /// Returns what to use instead of a delay, a business key and a signal.
    const fn instead(self) -> (&'static str, &'static str, &'static str) {
        match self {
            Self::Callback => ("a callback begins at once", "a callback holds none", "a callback begins at once"),
            Self::Schedule => (
                "a schedule says itself when its jobs begin",
                "a schedule has one of its own, .business_key(…)",
                "the jobs of a schedule begin when it fires",
            ),
        }
    }
}

/// Writes the options that every job has, whether it is submitted by itself or follows another: setters of a type that has a
/// [`Step`] at `$step`.
macro_rules! spec_options {
    (<$($generic:ident: $bound:ident)?> $type:ty, $($step:ident).+) => {
        impl$(<$generic: $bound>)? $type {
            /// Sets the queue, instead of the kind's own.
            pub fn queue(mut self, queue: impl AsRef<str>) -> Self {
                self.$($step).+.set(ratchet_core::QueueName::new(queue), |job, queue| job.spec.queue = queue);
                self
            }

            /// Sets the priority.
            pub fn priority(mut self, priority: ratchet_core::Priority) -> Self {
                self.$($step).+.set(Ok(priority), |job, priority| job.spec.priority = priority);
                self
            }

            /// Sets the number of attempts that may follow the first.
            pub fn max_retries(mut self, max_retries: u32) -> Self {
                self.$($step).+.set(Ok(max_retries), |job, max_retries| job.spec.max_retries = max_retries);
                self
            }

            /// Sets the wait between attempts.
            pub fn backoff(mut self, backoff: ratchet_core::Backoff) -> Self {
                self.$($step).+.set(Ok(backoff), |job, backoff| job.spec.backoff = backoff);
                self
            }

            /// Sets the longest time that one attempt may take.
            pub fn timeout(mut self, timeout: std::time::Duration) -> Self {
                self.$($step).+.set(Ok(timeout), |job, timeout| job.spec.timeout = Some(timeout));
                self
            }

            /// Adds tags to find the job by: trimmed, in lower case, each stored once.
            pub fn tags<T: AsRef<str>>(mut self, tags: impl IntoIterator<Item = T>) -> Self {
                let tags = tags.into_iter().map(ratchet_core::Tag::new).collect::<Result<Vec<_>, _>>();
                self.$($step).+.set(tags, |job, tags| {
                    for tag in tags {
                        if !job.spec.tags.contains(&tag) {
                            job.spec.tags.push(tag);
                        }
                    }
                });
                self
            }

            /// Adds a parameter: free text for the handler and for people.
            pub fn param(mut self, key: impl Into<String>, value: impl Into<String>) -> Self {
                self.$($step).+.set(Ok((key.into(), value.into())), |job, (key, value)| {
                    job.spec.params.insert(key, value);
                });
                self
            }

            /// Sets the principal on whose behalf the job is submitted.
            pub fn principal(mut self, principal: impl AsRef<str>) -> Self {
                let principal = ratchet_core::Principal::new(principal);
                self.$($step).+.set(principal, |job, principal| job.spec.principal = Some(principal));
                self
            }

            /// Sets the limited resource that every attempt needs a permit of.
            pub fn resource(mut self, resource: impl AsRef<str>) -> Self {
                let resource = ratchet_core::ResourceName::new(resource);
                self.$($step).+.set(resource, |job, resource| job.spec.resource = Some(resource));
                self
            }

            /// Sets the trace that the job belongs to, instead of the one that is current at the submit. Jobs that follow from
            /// it continue that trace.
            pub fn trace_context(mut self, context: ratchet_core::TraceContext) -> Self {
                self.$($step).+.set(Ok(context), |job, context| job.spec.trace = Some(context));
                self
            }
        }
    };
}

/// The options of a step, inside [`JobExt::with`].
#[derive(Debug, Clone)]
#[must_use = "options take effect when they are returned"]
pub struct StepOptions {
    step: Step,
}

spec_options!(<> StepOptions, step);

impl StepOptions {
    /// Makes the step due this long after the step before has ended.
    pub fn delay(mut self, delay: Duration) -> Self {
        self.step.set(Ok(delay), |step, delay| step.due = Due::After(delay));
        self
    }

    /// Makes the step wait for a signal too, after the steps before it: see
    /// [`Enqueue::await_signal`](crate::Enqueue::await_signal). A signal that arrives earlier counts; the time limit begins when
    /// the step waits for nothing else.
    pub fn await_signal(mut self, key: impl AsRef<str>, timeout: impl Into<Option<Duration>>) -> Self {
        let timeout = timeout.into();
        self.step.set(SignalKey::new(key), |step, key| step.signal = Some(SignalWait { key, timeout }));
        self
    }

    /// Refuses other jobs with this key while the step is live, also while it waits.
    pub fn business_key(mut self, key: impl AsRef<str>) -> Self {
        self.step.set(BusinessKey::new(key), |step, key| step.business_key = Some(key));
        self
    }
}

/// Gives a job options in place: `refund(invoice).with(|step| step.max_retries(3))`.
pub trait JobExt: Job {
    /// Returns the job as a step with options.
    fn with(self, options: impl FnOnce(StepOptions) -> StepOptions) -> Step {
        options(StepOptions { step: Step::of(&self) }).step
    }
}

impl<J: Job> JobExt for J {}

/// A job that can follow another, with or without options.
pub trait IntoStep {
    /// Returns the step.
    fn into_step(self) -> Step;
}

impl<J: Job> IntoStep for J {
    fn into_step(self) -> Step {
        Step::of(&self)
    }
}

impl IntoStep for Step {
    fn into_step(self) -> Step {
        self
    }
}

pub(crate) use spec_options;
