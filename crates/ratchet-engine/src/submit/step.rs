//! SubmitOptions of a job that follows another.

use std::time::Duration;

use ratchet_core::{
    Backoff, BusinessKey, Due, InvalidInput, JobSpec, NewJob, Principal, Priority, QueueName, ResourceName, SignalKey,
    SignalWait, Tag, TraceContext,
};

use crate::job::{Job, spec_of};
use crate::node::ids::new_job_id;

/// A job with options of its own, to be submitted by another job's end.
///
/// A job by itself is a step with its kind's defaults; [`JobExt::with`] sets options.
#[derive(Debug, Clone)]
pub struct Step {
    pub(crate) spec: Result<JobSpec, InvalidInput>,
    delay: Duration,
    business_key: Option<BusinessKey>,
    signal: Option<SignalWait>,
}

impl Step {
    pub(crate) fn of<J: Job>(job: &J) -> Self {
        Self { spec: spec_of(job), delay: Duration::ZERO, business_key: None, signal: None }
    }

    /// Applies an option; the first that is refused is reported at submit.
    pub(crate) fn set(&mut self, option: impl FnOnce(&mut JobSpec) -> Result<(), InvalidInput>) {
        if let Ok(spec) = &mut self.spec
            && let Err(refused) = option(spec)
        {
            self.spec = Err(refused);
        }
    }
}

impl Step {
    /// The job to store, if it stands for itself: a step of a chain or a workflow, a child of a batch.
    pub(crate) fn into_job(self) -> Result<NewJob, InvalidInput> {
        let mut job = NewJob::new(new_job_id(), self.spec?);
        job.due = Due::After(self.delay);
        job.business_key = self.business_key;
        Ok(match self.signal {
            Some(wait) => job.awaiting(wait),
            None => job,
        })
    }

    /// Makes the step wait for a signal.
    pub(crate) fn await_signal(&mut self, key: impl AsRef<str>, timeout: Option<Duration>) {
        match SignalKey::new(key) {
            Ok(key) => self.signal = Some(SignalWait { key, timeout }),
            Err(refused) => self.spec = Err(refused),
        }
    }

    /// The signal that the first job of a submit waits for.
    pub(crate) fn take_signal(&mut self) -> Option<SignalWait> {
        self.signal.take()
    }

    /// What to do, if it becomes a job only later. It has no delay, holds no key and awaits nothing.
    pub(crate) fn into_spec(self, later: Later) -> Result<JobSpec, InvalidInput> {
        let spec = self.spec?;
        let (delay, business_key, signal) = later.instead();
        let refused = |field: &str, instead: &str| {
            Err(InvalidInput::new(field, format!("is for jobs and for steps of chains and workflows; {instead}")))
        };
        match self {
            Self { delay: given, .. } if !given.is_zero() => refused("delay", delay),
            Self { business_key: Some(_), .. } => refused("business_key", business_key),
            Self { signal: Some(_), .. } => refused("await_signal", signal),
            _ if spec.trace.is_some() && matches!(later, Later::Schedule) => Err(InvalidInput::new(
                "trace_context",
                "is for jobs and steps; each fire of a schedule stands for itself",
            )),
            _ => Ok(spec),
        }
    }
}

/// What makes a job of a step only later.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Later {
    /// The end of another job, or the progress of a batch.
    Callback,
    /// A schedule.
    Schedule,
}

impl Later {
    /// What there is instead of a delay, a business key and a signal.
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

/// The options that a submit and a step have in common.
macro_rules! spec_options {
    ($vis:vis $type:ty, $step:ident) => {
        impl $type {
            /// In this queue.
            #[must_use]
            $vis fn queue(mut self, queue: impl AsRef<str>) -> Self {
                self.$step.set(|spec| QueueName::new(queue).map(|queue| spec.queue = queue));
                self
            }

            /// How urgent it is.
            #[must_use]
            $vis fn priority(mut self, priority: Priority) -> Self {
                self.$step.set(|spec| Ok(spec.priority = priority));
                self
            }

            /// How many attempts may follow the first.
            #[must_use]
            $vis fn max_retries(mut self, max_retries: u32) -> Self {
                self.$step.set(|spec| Ok(spec.max_retries = max_retries));
                self
            }

            /// How long to wait between attempts.
            #[must_use]
            $vis fn backoff(mut self, backoff: Backoff) -> Self {
                self.$step.set(|spec| Ok(spec.backoff = backoff));
                self
            }

            /// How long one attempt may take.
            #[must_use]
            $vis fn timeout(mut self, timeout: Duration) -> Self {
                self.$step.set(|spec| Ok(spec.timeout = Some(timeout)));
                self
            }

            /// Adds words to find it by: trimmed, in lower case, each kept once.
            #[must_use]
            $vis fn tags<T: AsRef<str>>(mut self, tags: impl IntoIterator<Item = T>) -> Self {
                self.$step.set(|spec| {
                    for tag in tags {
                        let tag = Tag::new(tag)?;
                        if !spec.tags.contains(&tag) {
                            spec.tags.push(tag);
                        }
                    }
                    Ok(())
                });
                self
            }

            /// Adds a free word for the handler and for people.
            #[must_use]
            $vis fn param(mut self, key: impl Into<String>, value: impl Into<String>) -> Self {
                self.$step.set(|spec| {
                    spec.params.insert(key.into(), value.into());
                    Ok(())
                });
                self
            }

            /// Who asks for it.
            #[must_use]
            $vis fn principal(mut self, principal: impl AsRef<str>) -> Self {
                self.$step.set(|spec| Principal::new(principal).map(|principal| spec.principal = Some(principal)));
                self
            }

            /// A limited resource that it needs.
            #[must_use]
            $vis fn resource(mut self, resource: impl AsRef<str>) -> Self {
                self.$step.set(|spec| ResourceName::new(resource).map(|resource| spec.resource = Some(resource)));
                self
            }

            /// The trace that it belongs to.
            #[must_use]
            $vis fn trace_context(mut self, context: TraceContext) -> Self {
                self.$step.set(|spec| Ok(spec.trace = Some(context)));
                self
            }
        }
    };
}

/// SubmitOptions of a step, inside [`JobExt::with`].
#[derive(Debug, Clone)]
pub struct StepOptions {
    step: Step,
}

spec_options!(pub StepOptions, step);

impl StepOptions {
    /// Due this long after the step before has ended.
    #[must_use]
    pub fn delay(mut self, delay: Duration) -> Self {
        self.step.delay = delay;
        self
    }

    /// Waits for a signal too, when what comes before has ended: see [`Enqueue::await_signal`](crate::Enqueue::await_signal).
    /// A signal that comes earlier counts; the time limit begins when the step waits for nothing else.
    #[must_use]
    pub fn await_signal(mut self, key: impl AsRef<str>, timeout: impl Into<Option<Duration>>) -> Self {
        self.step.await_signal(key, timeout.into());
        self
    }

    /// While this step is live, also while it waits, no other job with this key is accepted.
    #[must_use]
    pub fn business_key(mut self, key: impl AsRef<str>) -> Self {
        match BusinessKey::new(key) {
            Ok(key) => self.step.business_key = Some(key),
            Err(refused) => self.step.spec = Err(refused),
        }
        self
    }
}

/// Gives a job options where it stands: `refund(invoice).with(|step| step.max_retries(3))`.
pub trait JobExt: Job {
    /// The job as a step with options.
    fn with(self, options: impl FnOnce(StepOptions) -> StepOptions) -> Step {
        options(StepOptions { step: Step::of(&self) }).step
    }
}

impl<J: Job> JobExt for J {}

/// What can follow a job: another job, with or without options.
pub trait IntoStep {
    /// The step.
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
