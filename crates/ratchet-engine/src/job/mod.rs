//! What a user writes, by hand or with `#[job]`.

pub(crate) mod registry;
pub(crate) mod inject;
pub mod failure;
pub(crate) mod testing;

use std::future::Future;
use std::time::Duration;

use ratchet_core::breaker::BreakerConfig;
use ratchet_core::{Backoff, InvalidInput, JobSpec, JsonText, Kind, Priority, QueueName, ResourceName, limits};
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::job::failure::Failure;
use crate::job::inject::Requirement;
use crate::run::context::JobContext;
use crate::schedule::Scheduled;

/// A job: a payload that is stored, and what to do with it.
///
/// `#[job]` on a function writes this; by hand it looks so:
///
/// ```
/// use ratchet_engine::{Failure, Job, JobContext};
/// use serde::{Deserialize, Serialize};
///
/// #[derive(Serialize, Deserialize)]
/// struct Greet {
///     name: String,
/// }
///
/// impl Job for Greet {
///     const KIND: &'static str = "greet";
///     type Output = usize;
///
///     async fn run(self, _ctx: JobContext) -> Result<usize, Failure> {
///         println!("hello, {}", self.name);
///         Ok(self.name.len())
///     }
/// }
/// ```
pub trait Job: Serialize + DeserializeOwned + Send + 'static {
    /// The stable name under which jobs of this sort are stored: `[a-z0-9._-]`, at most 128 characters.
    ///
    /// It outlives the type's name: jobs in the database are found by it.
    const KIND: &'static str;

    /// What a successful run returns.
    type Output: Serialize + DeserializeOwned + Send + 'static;

    /// Options of every job of this kind, unless a submit says otherwise.
    fn defaults() -> JobDefaults {
        JobDefaults::default()
    }

    /// When jobs of this kind are fired by themselves, if they are.
    ///
    /// ```
    /// # use ratchet_engine::{Failure, Job, JobContext};
    /// use ratchet_engine::Scheduled;
    ///
    /// # #[derive(serde::Serialize, serde::Deserialize)]
    /// struct CleanUp;
    ///
    /// impl Job for CleanUp {
    ///     const KIND: &'static str = "clean-up";
    ///     type Output = ();
    ///
    ///     fn schedule() -> Option<Scheduled> {
    ///         Some(Scheduled::cron(&CleanUp, "0 0 3 ? * SUN").zone("Europe/Berlin"))
    ///     }
    /// #   async fn run(self, _: JobContext) -> Result<(), Failure> { Ok(()) }
    /// }
    /// ```
    fn schedule() -> Option<Scheduled> {
        None
    }

    /// The [`State`](crate::State)s that `run` will ask its context for.
    fn requires() -> Vec<Requirement> {
        Vec::new()
    }

    /// Does the work. It may run more than once for one submit: after a failure, and after a crash.
    fn run(self, ctx: JobContext) -> impl Future<Output = Result<Self::Output, Failure>> + Send;
}

/// Options that a kind of job has unless a submit says otherwise.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct JobDefaults {
    /// The queue; `default` if unnamed.
    pub queue: Option<&'static str>,
    /// How urgent.
    pub priority: Priority,
    /// How many attempts may follow the first.
    pub max_retries: u32,
    /// How long to wait between attempts.
    pub backoff: Backoff,
    /// How long one attempt may take.
    pub timeout: Option<Duration>,
    /// What it needs a permit for while it runs.
    pub resource: Option<&'static str>,
    /// Whether the handler blocks its thread and so belongs on the blocking pool.
    pub blocking: bool,
    /// What the handler calls, for the circuit breaker; the kind if unnamed. Kinds that call the same share a breaker.
    pub service: Option<&'static str>,
    /// How that breaker judges, unless the node says otherwise.
    pub breaker: Option<BreakerConfig>,
}

impl Default for JobDefaults {
    fn default() -> Self {
        Self {
            queue: None,
            priority: Priority::default(),
            max_retries: JobSpec::MAX_RETRIES_DEFAULT,
            backoff: Backoff::default(),
            timeout: None,
            resource: None,
            blocking: false,
            service: None,
            breaker: None,
        }
    }
}

impl JobDefaults {
    /// In this queue.
    #[must_use]
    pub fn queue(mut self, queue: &'static str) -> Self {
        self.queue = Some(queue);
        self
    }

    /// This urgent.
    #[must_use]
    pub fn priority(mut self, priority: Priority) -> Self {
        self.priority = priority;
        self
    }

    /// With so many retries.
    #[must_use]
    pub fn max_retries(mut self, max_retries: u32) -> Self {
        self.max_retries = max_retries;
        self
    }

    /// With this backoff.
    #[must_use]
    pub fn backoff(mut self, backoff: Backoff) -> Self {
        self.backoff = backoff;
        self
    }

    /// With this limit on one attempt.
    #[must_use]
    pub fn timeout(mut self, timeout: Duration) -> Self {
        self.timeout = Some(timeout);
        self
    }

    /// With a permit for this resource.
    #[must_use]
    pub fn resource(mut self, resource: &'static str) -> Self {
        self.resource = Some(resource);
        self
    }

    /// On the blocking pool.
    #[must_use]
    pub fn blocking(mut self) -> Self {
        self.blocking = true;
        self
    }

    /// Calling this service.
    #[must_use]
    pub fn service(mut self, service: &'static str) -> Self {
        self.service = Some(service);
        self
    }

    /// With this circuit breaker for its service.
    #[must_use]
    pub fn breaker(mut self, config: BreakerConfig) -> Self {
        self.breaker = Some(config);
        self
    }
}

/// The spec of a job with its kind's defaults.
pub(crate) fn spec_of<J: Job>(job: &J) -> Result<JobSpec, InvalidInput> {
    let defaults = J::defaults();
    let payload = JsonText::encode("payload", job, limits::PAYLOAD_BYTES_MAX)?;
    let mut spec = JobSpec::new(Kind::new(J::KIND)?, payload);
    spec.queue = defaults.queue.map(QueueName::new).transpose()?.unwrap_or_default();
    spec.priority = defaults.priority;
    spec.max_retries = defaults.max_retries;
    spec.backoff = defaults.backoff;
    spec.timeout = defaults.timeout;
    spec.resource = defaults.resource.map(ResourceName::new).transpose()?;
    Ok(spec)
}
