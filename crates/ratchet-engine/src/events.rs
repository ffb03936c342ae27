//! What happened to jobs, told after it was committed.

use std::fmt;
use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use ratchet_core::decide::CRASH_LIMIT;
use ratchet_core::settlement::DeadLetterReason;
use ratchet_core::{
    BatchSummary, BusinessKey, Change, Clock, DeferReason, DeliveryId, Followed, FollowedBy, JobId, JobRecord,
    JobState, JobType, Kind, NodeId, Priority, QueueName, Settlement,
};
use tokio::sync::broadcast;
use tokio_util::sync::CancellationToken;

use crate::batch::summary_of;

/// Something that happened to a job.
///
/// Events are published in order, after the commit that they speak of, on the node that made the change, at most once.
/// What must not be missed belongs in a callback, which is a job.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct JobEvent {
    /// The job.
    pub job_id: JobId,
    /// Its kind.
    pub kind: Kind,
    /// Its queue.
    pub queue: QueueName,
    /// How it came to be.
    pub job_type: JobType,
    /// How urgent it is.
    pub priority: Priority,
    /// Its business key.
    pub business_key: Option<BusinessKey>,
    /// The node that made the change; `None` for a client without an engine.
    pub node: Option<NodeId>,
    /// When, by this machine's clock.
    pub at: Timestamp,
    /// What happened.
    pub what: JobEventKind,
}

/// What happened to a job.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub enum JobEventKind {
    /// An attempt begins.
    Started {
        /// Which, from 1.
        attempt: u32,
    },
    /// It succeeded.
    Completed {
        /// How long the attempt took.
        duration: Duration,
    },
    /// An attempt failed; what follows is told by the next event.
    Failed {
        /// The sanitised error.
        error: String,
        /// Which attempt, from 1.
        attempt: u32,
    },
    /// It will be tried again: after a failed attempt, or because a person said so.
    Retrying {
        /// The sanitised error; `None` after a manual retry.
        error: Option<String>,
        /// How many attempts were counted.
        attempt: u32,
        /// When it is due, by the database's clock.
        due: Timestamp,
    },
    /// It failed for good.
    DeadLettered {
        /// The sanitised error.
        error: String,
        /// How many attempts were counted.
        attempt: u32,
        /// Why it is not tried again.
        reason: DeadLetterReason,
    },
    /// An attempt took longer than its timeout; told before [`Failed`](Self::Failed).
    TimedOut {
        /// The timeout.
        timeout: Duration,
    },
    /// It went back without an attempt consumed.
    Deferred {
        /// Why.
        reason: DeferReason,
        /// How long it was put off.
        delay: Duration,
    },
    /// It was cancelled.
    Cancelled {
        /// Where it stood before.
        previous: JobState,
        /// How long its attempt had been running, if one was.
        duration: Option<Duration>,
    },
    /// It has nothing left to wait for: the jobs before it have ended as was asked.
    Released,
    /// It waits for its signal from now on, and for nothing else. Not told of jobs that were submitted in a caller's own
    /// transaction.
    SignalWaiting,
    /// Its signal has come. Of a delivery to more than a thousand jobs, a thousand are told.
    Signaled {
        /// The delivery, the same for all jobs that it reached.
        delivery_id: DeliveryId,
        /// How many jobs it reached.
        jobs: usize,
        /// Whether this job can run now; if not, it waits for others.
        released: bool,
    },
    /// Its signal did not come in time; told before [`DeadLettered`](Self::DeadLettered).
    SignalTimedOut,
    /// It was cancelled because of another job's end.
    CancelledBy {
        /// The job that failed or was cancelled, however far up.
        because: JobId,
    },
    /// It waits again, because what had cancelled it was retried.
    Revived,
    /// The last child of the batch that it stands for has ended; told after [`Released`](Self::Released).
    BatchCompleting,
    /// The batch that it stands for is through; told after [`Completed`](Self::Completed).
    BatchCompleted {
        /// Children.
        total: u64,
        /// Those that succeeded.
        succeeded: u64,
        /// Those in the dead letter queue.
        failed: u64,
        /// Those that were cancelled.
        canceled: u64,
    },
    /// It was paused.
    Paused,
    /// It goes on after a pause.
    Resumed,
    /// Its node died and it was given to others, or to the dead letter queue.
    Rescued {
        /// How many times in a row its node has died.
        crash_count: u32,
    },
}

/// Tells what happened; cheap while nobody listens.
#[derive(Debug, Clone)]
pub(crate) struct EventBus {
    sender: broadcast::Sender<Arc<JobEvent>>,
    clock: Arc<dyn Clock>,
}

/// Events that a slow listener may lag behind before it loses the oldest.
const CAPACITY: usize = 8_192;

impl EventBus {
    pub(crate) fn new(clock: Arc<dyn Clock>) -> Self {
        Self { sender: broadcast::Sender::new(CAPACITY), clock }
    }

    pub(crate) fn now(&self) -> Timestamp {
        self.clock.now()
    }

    pub(crate) fn subscribe(&self) -> EventStream {
        EventStream { receiver: self.sender.subscribe() }
    }

    /// Tells what became of a job because others ended.
    pub(crate) fn publish_followed(&self, followed: &Followed, node: Option<NodeId>) {
        let what = match &followed.what {
            FollowedBy::Released => JobEventKind::Released,
            FollowedBy::Awaiting | FollowedBy::Signaled => JobEventKind::SignalWaiting,
            FollowedBy::Canceled { because } => JobEventKind::CancelledBy { because: *because },
            FollowedBy::Revived => JobEventKind::Revived,
            FollowedBy::Failed { error } => {
                JobEventKind::DeadLettered { error: error.clone(), attempt: 0, reason: DeadLetterReason::NeverRan }
            }
        };
        self.publish_about(followed, node, what);
    }

    /// Whether anybody listens.
    pub(crate) fn is_heard(&self) -> bool {
        self.sender.receiver_count() > 0
    }

    /// Tells of a job that is known by what became of it.
    pub(crate) fn publish_about(&self, followed: &Followed, node: Option<NodeId>, what: JobEventKind) {
        if !self.is_heard() {
            return;
        }
        let event = JobEvent {
            job_id: followed.id,
            kind: followed.kind.clone(),
            queue: followed.queue.clone(),
            job_type: followed.job_type,
            priority: followed.priority,
            business_key: followed.business_key.clone(),
            node,
            at: self.clock.now(),
            what,
        };
        let completing = event.job_type == JobType::BatchParent && event.what == JobEventKind::Released;
        let then = completing.then(|| JobEvent { what: JobEventKind::BatchCompleting, ..event.clone() });
        for event in std::iter::once(event).chain(then) {
            let _ = self.sender.send(Arc::new(event));
        }
    }

    pub(crate) fn publish(&self, job: &JobRecord, node: Option<NodeId>, what: JobEventKind) {
        if self.sender.receiver_count() == 0 {
            return;
        }
        let event = JobEvent {
            job_id: job.id,
            kind: job.spec.kind.clone(),
            queue: job.spec.queue.clone(),
            job_type: job.job_type,
            priority: job.spec.priority,
            business_key: job.business_key.clone(),
            node,
            at: self.clock.now(),
            what,
        };
        // Nobody listening is no error.
        let _ = self.sender.send(Arc::new(event));
    }

    /// Tells what a settlement did, once it is committed.
    pub(crate) fn publish_settled(&self, job: &JobRecord, settlement: &Settlement, defer: Option<DeferReason>) {
        use ratchet_core::AttemptStatus;
        let node = Some(settlement.fence.node);
        let attempt = settlement.attempt.as_ref();
        let failed = |error: &str, attempt| JobEventKind::Failed { error: error.to_owned(), attempt };
        if let (Some(AttemptStatus::TimedOut), Some(timeout)) = (attempt.map(|a| a.status), job.spec.timeout) {
            self.publish(job, node, JobEventKind::TimedOut { timeout });
        }
        match &settlement.change {
            Change::Succeed { result, .. } => {
                let duration = attempt.map(|a| a.timing.duration).unwrap_or_default();
                self.publish(job, node, JobEventKind::Completed { duration });
                if let Some(summary) = summary_of(result.as_ref()).filter(|_| job.job_type == JobType::BatchParent) {
                    let BatchSummary { total, succeeded, failed, canceled, .. } = summary;
                    self.publish(job, node, JobEventKind::BatchCompleted { total, succeeded, failed, canceled });
                }
            }
            Change::Reschedule { delay, attempts, error } => {
                self.publish(job, node, failed(error.text(), *attempts));
                let ended = attempt.map_or_else(|| self.clock.now(), |a| a.timing.ended_at);
                let due = ratchet_core::clock::later(ended, *delay);
                let error = Some(error.text().to_owned());
                self.publish(job, node, JobEventKind::Retrying { error, attempt: *attempts, due });
            }
            Change::Fail { attempts, error, reason } => {
                if let DeadLetterReason::CrashLimit { .. } = reason {
                    self.publish(job, node, JobEventKind::Rescued { crash_count: CRASH_LIMIT });
                }
                self.publish(job, node, failed(error.text(), *attempts));
                let what = JobEventKind::DeadLettered {
                    error: error.text().to_owned(),
                    attempt: *attempts,
                    reason: reason.clone(),
                };
                self.publish(job, node, what);
            }
            Change::Defer { delay } => {
                let reason = defer.unwrap_or(DeferReason::Drained);
                self.publish(job, node, JobEventKind::Deferred { reason, delay: *delay });
            }
            Change::Rescue { crash_count } => {
                self.publish(job, node, JobEventKind::Rescued { crash_count: *crash_count });
            }
        }
    }
}

/// Events as they come. One that does not keep up loses the oldest, and is told how many.
pub struct EventStream {
    receiver: broadcast::Receiver<Arc<JobEvent>>,
}

impl EventStream {
    /// The next event; `None` when the engine has ended.
    pub async fn next(&mut self) -> Option<Arc<JobEvent>> {
        loop {
            match self.receiver.recv().await {
                Ok(event) => return Some(event),
                Err(broadcast::error::RecvError::Closed) => return None,
                Err(broadcast::error::RecvError::Lagged(lost)) => {
                    tracing::warn!(lost, "an event listener was too slow and lost events");
                }
            }
        }
    }
}

impl fmt::Debug for EventStream {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("EventStream").finish_non_exhaustive()
    }
}

/// A function that is told of every event, on a task of its own: it can neither slow nor break the engine.
pub(crate) type Listener = Box<dyn Fn(&JobEvent) + Send + Sync>;

/// Tells a listener of events until `stop`, and then of those that are left.
pub(crate) async fn listen(mut events: EventStream, listener: Listener, stop: CancellationToken) {
    let tell = |event: Arc<JobEvent>| {
        if std::panic::catch_unwind(AssertUnwindSafe(|| listener(&event))).is_err() {
            tracing::error!(job.id = %event.job_id, "an event listener panicked; it stays registered");
        }
    };
    while let Some(Some(event)) = stop.run_until_cancelled(events.next()).await {
        tell(event);
    }
    while let Ok(event) = events.receiver.try_recv() {
        tell(event);
    }
}
