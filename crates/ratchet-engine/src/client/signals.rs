//! Sending signals to jobs that wait for them.

use std::time::Duration;

use ratchet_core::signal::{Delivery, SignalTarget};
use ratchet_core::store::{Delivered, SubmitUnit};
use ratchet_core::{
    DeliveryId, FollowedBy, InvalidInput, JobFlags, JobId, JobState, JsonText, Principal, SignalDecision, SignalKey,
    SignalRecord, StoreError, limits,
};
use serde::Serialize;

use crate::client::Client;
use crate::node::ids::new_delivery_id;
use crate::observe::events::JobEventKind;
use crate::observe::job_metrics::Recorder as _;
use crate::protect::authorizer::{Action, Target};
use crate::protect::codec::Part;
use crate::submit::step::apply;

/// How long a signal to a key is kept for a job to come, unless it is told otherwise.
pub const KEEP_FOR_DEFAULT: Duration = Duration::from_hours(24);
/// Jobs of one delivery that are told of, so that a large one does not push everything else out of slow listeners.
const TOLD_MAX: usize = 1_000;

/// A signal that is about to be sent; nothing happens before [`send`](Self::send).
#[derive(Debug)]
#[must_use = "nothing is sent before .send()"]
pub struct SendSignal {
    client: Client,
    delivery: Result<Delivery, InvalidInput>,
}

/// What a signal came to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct SignalOutcome {
    /// The id of the delivery; every job that got the signal knows it.
    pub delivery_id: DeliveryId,
    /// How many jobs got it.
    pub delivered: usize,
    /// How many of them can run now; the others wait for other jobs too.
    pub released: usize,
    /// Whether it is kept for a job to come, because none waited.
    pub kept: bool,
}

/// Why a signal was not sent.
#[derive(Debug, Clone, thiserror::Error)]
#[non_exhaustive]
pub enum SignalError {
    /// The key, the payload or the reason is out of bounds; nothing was written.
    #[error("the signal was refused: {0}")]
    Invalid(#[source] InvalidInput),
    /// The store could not take it.
    #[error(transparent)]
    Store(#[from] StoreError),
}

impl From<InvalidInput> for SignalError {
    fn from(refused: InvalidInput) -> Self {
        Self::Invalid(refused)
    }
}

impl Client {
    /// Begins a signal to every job that waits for this key; [`SendSignal::send`] sends it.
    ///
    /// If no job waits, the signal is kept for a day, and the first job that then begins to wait for the key takes it:
    /// [`keep_for`](SendSignal::keep_for), [`no_keep`](SendSignal::no_keep).
    pub fn signal(&self, key: impl AsRef<str>) -> SendSignal {
        let delivery = SignalKey::new(key)
            .map(|key| Delivery { keep_for: Some(KEEP_FOR_DEFAULT), ..empty(SignalTarget::Key(key)) });
        SendSignal { client: self.clone(), delivery }
    }

    /// Begins a signal to one job that waits, whatever the key of its signal is. It is never kept.
    pub fn signal_job(&self, id: JobId) -> SendSignal {
        SendSignal { client: self.clone(), delivery: Ok(empty(SignalTarget::Job(id))) }
    }

    /// What a job waits or waited for; `None` if it never awaited a signal.
    pub async fn awaited_signal(&self, id: JobId) -> Result<Option<SignalRecord>, StoreError> {
        if !self.may(Action::Read, id).await? {
            return Ok(None);
        }
        Ok(self.store().signals(&[id]).await?.pop())
    }

    /// Tells of jobs that were just submitted and wait for their signals.
    pub(crate) async fn tell_awaiting(&self, ids: Vec<JobId>) {
        if ids.is_empty() || !self.bus().is_heard() {
            return;
        }
        // Read again, because a signal may have been there before. What cannot be read is not told.
        for job in self.store().find(&ids).await.unwrap_or_default() {
            if job.state == JobState::Waiting && job.flow.has(JobFlags::SIGNAL) {
                self.publish(&job, JobEventKind::SignalWaiting);
            }
        }
    }

    /// Says who sends a signal, if the client acts for somebody.
    fn sign_signal(&self, delivery: &mut Delivery) -> Result<(), InvalidInput> {
        match (self.principal(), &delivery.by) {
            (Some(caller), Some(by)) if caller != by => {
                let problem = format!("is {by:?}, but this client acts for {caller:?}; leave it out");
                Err(InvalidInput::new("by", problem))
            }
            (Some(caller), _) => {
                delivery.by = Some(caller.clone());
                Ok(())
            }
            (None, _) => Ok(()),
        }
    }

    fn tell_signaled(&self, delivery_id: DeliveryId, done: &Delivered) {
        let (node, jobs) = (self.node(), done.jobs.len());
        for (at, job) in done.jobs.iter().enumerate() {
            let released = job.what == FollowedBy::Released;
            let what = JobEventKind::Signaled { delivery_id, jobs, released };
            if at < TOLD_MAX {
                self.bus().publish_about(job, node, what);
            } else {
                self.meter().event(&job.kind, &job.queue, &what);
            }
        }
    }
}

/// The jobs of a unit that wait for nothing but a signal.
pub(crate) fn awaiting(unit: &SubmitUnit) -> Vec<JobId> {
    unit.jobs.iter().filter(|job| job.signal.is_some() && job.waits_for == 1).map(|job| job.id).collect()
}

fn empty(target: SignalTarget) -> Delivery {
    Delivery { id: new_delivery_id(), target, payload: JsonText::null(), decision: None, by: None, keep_for: None }
}

impl SendSignal {
    /// What it says: anything that is JSON, at most 64 KiB of it.
    pub fn payload<T: Serialize + ?Sized>(self, payload: &T) -> Self {
        self.set(|delivery| {
            delivery.payload = JsonText::encode("signal payload", payload, limits::SIGNAL_BYTES_MAX)?;
            Ok(())
        })
    }

    /// It approves.
    pub fn approve(self) -> Self {
        self.set(|delivery| {
            delivery.decision = Some(SignalDecision::Approved);
            Ok(())
        })
    }

    /// It rejects, for a reason of at most 2,000 characters. That lets the job go on too: its handler decides.
    pub fn reject(self, reason: impl Into<String>) -> Self {
        self.set(|delivery| {
            delivery.decision = Some(SignalDecision::rejected(reason)?);
            Ok(())
        })
    }

    /// Who sends it. On a client that acts for somebody that is he, and nobody else.
    pub fn by(self, who: impl AsRef<str>) -> Self {
        self.set(|delivery| {
            let named = |refused: InvalidInput| InvalidInput::new("by", refused.problem());
            delivery.by = Some(Principal::new(who).map_err(named)?);
            Ok(())
        })
    }

    /// How long it is kept for a job to come, if none waits for its key; a day unless said otherwise.
    pub fn keep_for(self, keep_for: Duration) -> Self {
        self.set(|delivery| {
            if let SignalTarget::Job(_) = delivery.target {
                return Err(InvalidInput::new("keep_for", "is for signals to a key; one to a job is never kept"));
            }
            delivery.keep_for = Some(keep_for);
            Ok(())
        })
    }

    /// Does not keep it: if no job waits now, it is lost.
    pub fn no_keep(self) -> Self {
        self.set(|delivery| {
            delivery.keep_for = None;
            Ok(())
        })
    }

    /// Delivers it. Of several signals to a job the first counts; the others reach nobody, and that is no error.
    ///
    /// # Errors
    /// [`SignalError::Invalid`] for bad input, with nothing written; [`SignalError::Store`] if the database could not be
    /// reached or refused, or of kind [`Denied`](ratchet_core::ErrorKind::Denied) if whom the client acts for may not.
    pub async fn send(self) -> Result<SignalOutcome, SignalError> {
        let Self { client, delivery } = self;
        let mut delivery = delivery?;
        delivery.check()?;
        client.sign_signal(&mut delivery)?;
        let is_for_nobody = match &delivery.target {
            SignalTarget::Job(id) => !client.may(Action::Signal, *id).await?,
            SignalTarget::Key(key) => {
                client.demand(Action::Signal, &Target::SignalKey(key)).map_err(StoreError::from)?;
                false
            }
        };
        if is_for_nobody {
            return Ok(SignalOutcome { delivery_id: delivery.id, delivered: 0, released: 0, kept: false });
        }
        let (codec, part, most) = (&client.rules().codec, Part::Signal, limits::SIGNAL_BYTES_MAX);
        delivery.payload = codec.seal(client.meter(), part, &delivery.payload, "signal payload", most)?;
        let done = client.store().deliver(&delivery).await?;
        client.tell_signaled(delivery.id, &done);
        let most_urgent = done.released().map(|job| job.priority).max();
        if let Some(priority) = most_urgent {
            client.wake().work();
            client.announce(priority);
        }
        let (delivered, released) = (done.jobs.len(), done.released().count());
        Ok(SignalOutcome { delivery_id: delivery.id, delivered, released, kept: done.kept })
    }

    fn set(mut self, option: impl FnOnce(&mut Delivery) -> Result<(), InvalidInput>) -> Self {
        apply(&mut self.delivery, option);
        self
    }
}
