//! Events of jobs and schedules, published after the commit.

use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use ratchet_core::schedule::ScheduleRecord;
use ratchet_core::settlement::DeadLetterReason;
use ratchet_core::{
    BusinessKey, Clock, DeferReason, DeliveryId, Followed, FollowedBy, JobId, JobRecord, JobState, JobType, Kind,
    NodeId, Priority, QueueName, Settlement,
};

use crate::observe::bus::{Bus, EventStream};
use crate::observe::job_metrics::Recorder;
use crate::observe::metrics::Meter;

/// Something that happened to a job.
///
/// Events are published in order, after the commit that they speak of, on the node that made the change, at most once.
/// What must not be missed belongs in a callback, which is a job.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct JobEvent {
    /// The job; of an event about a schedule, the schedule.
    pub job_id: JobId,
    /// Its kind.
    pub kind: Kind,
    /// Its queue.
    pub queue: QueueName,
    /// How it came to be; of a schedule, how its jobs do.
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
        /// The sanitized error.
        error: String,
        /// Which attempt, from 1.
        attempt: u32,
    },
    /// It will be tried again: after a failed attempt, or because a person said so.
    Retrying {
        /// The sanitized error; `None` after a manual retry.
        error: Option<String>,
        /// How many attempts were counted.
        attempt: u32,
        /// When it is due, by the database's clock.
        due: Timestamp,
    },
    /// It failed for good.
    DeadLettered {
        /// The sanitized error.
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
    /// It was canceled.
    Canceled {
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
    /// It was canceled because of another job's end.
    CanceledBy {
        /// The job that failed or was canceled, however far up.
        because: JobId,
    },
    /// It waits again, because what had canceled it, or had let it go, was retried.
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
        /// Those that were canceled.
        canceled: u64,
    },
    /// It was paused.
    Paused,
    /// It goes on after a pause.
    Resumed,
    /// The condition of the branch that it is has held; told after [`Released`](Self::Released).
    BranchTaken,
    /// A schedule has fired.
    ScheduleFired {
        /// The jobs that were stored.
        jobs: u64,
    },
    /// Fires of a schedule were passed over, by its policies for overdue and overlapping ones.
    ScheduleSkipped {
        /// How many.
        fires: u64,
    },
    /// A schedule was paused.
    SchedulePaused,
    /// A schedule goes on after a pause.
    ScheduleResumed,
    /// A schedule was canceled.
    ScheduleCanceled,
    /// A schedule has ended, because no live node declares it any more.
    ScheduleRetired,
    /// Its node died and it was given to others, or to the dead letter queue.
    Rescued {
        /// How many times in a row its node has died.
        crash_count: u32,
    },
}

/// The job or the schedule of an event.
#[derive(Clone, Copy)]
struct EventSubject<'a> {
    id: JobId,
    kind: &'a Kind,
    queue: &'a QueueName,
    job_type: JobType,
    priority: Priority,
    business_key: Option<&'a BusinessKey>,
}

impl<'a> From<&'a JobRecord> for EventSubject<'a> {
    fn from(job: &'a JobRecord) -> Self {
        let JobRecord { id, spec, job_type, business_key, .. } = job;
        let (kind, queue, priority) = (&spec.kind, &spec.queue, spec.priority);
        Self { id: *id, kind, queue, job_type: *job_type, priority, business_key: business_key.as_ref() }
    }
}

impl<'a> From<&'a Followed> for EventSubject<'a> {
    fn from(followed: &'a Followed) -> Self {
        let Followed { id, kind, queue, job_type, priority, business_key, .. } = followed;
        Self { id: *id, kind, queue, job_type: *job_type, priority: *priority, business_key: business_key.as_ref() }
    }
}

impl<'a> From<&'a ScheduleRecord> for EventSubject<'a> {
    fn from(schedule: &'a ScheduleRecord) -> Self {
        let ScheduleRecord { id, spec, business_key, .. } = schedule;
        let (kind, queue, priority) = (&spec.kind, &spec.queue, spec.priority);
        Self { id: *id, kind, queue, job_type: JobType::Recurring, priority, business_key: business_key.as_ref() }
    }
}

/// Publishes events; cheap while nothing listens.
#[derive(Debug)]
pub(crate) struct EventBus {
    bus: Bus<JobEvent>,
    clock: Arc<dyn Clock>,
    meter: Meter,
}

/// Events that a slow listener may lag behind before it loses the oldest.
const CAPACITY: usize = 8_192;

impl EventBus {
    pub(crate) fn new(clock: Arc<dyn Clock>, meter: Meter) -> Self {
        Self { bus: Bus::new(CAPACITY), clock, meter }
    }

    pub(crate) fn now(&self) -> Timestamp {
        self.clock.now()
    }

    pub(crate) fn subscribe(&self) -> EventStream {
        self.bus.subscribe()
    }

    /// Publishes the effect that another job's end had on a job.
    pub(crate) fn publish_followed(&self, followed: &Followed, node: Option<NodeId>) {
        let what = match &followed.what {
            FollowedBy::Released => JobEventKind::Released,
            FollowedBy::Awaiting | FollowedBy::Signaled => JobEventKind::SignalWaiting,
            FollowedBy::Canceled { because } => JobEventKind::CanceledBy { because: *because },
            FollowedBy::Revived => JobEventKind::Revived,
            FollowedBy::Failed { error } => {
                JobEventKind::DeadLettered { error: error.clone(), attempt: 0, reason: DeadLetterReason::NeverRan }
            }
        };
        self.publish_about(followed, node, what);
    }

    pub(crate) fn meter(&self) -> &Meter {
        &self.meter
    }

    /// Returns whether there are listeners.
    pub(crate) fn is_heard(&self) -> bool {
        self.bus.is_heard()
    }

    /// Publishes an event of a job that another job's end, or a signal, has changed.
    pub(crate) fn publish_about(&self, followed: &Followed, node: Option<NodeId>, what: JobEventKind) {
        (&self.meter).event(&followed.kind, &followed.queue, &what);
        if !self.is_heard() {
            return;
        }
        let then = match (followed.job_type, &what) {
            (JobType::BatchParent, JobEventKind::Released) => Some(JobEventKind::BatchCompleting),
            (JobType::WorkflowBranch, JobEventKind::Released) => Some(JobEventKind::BranchTaken),
            _ => None,
        };
        let event = self.event(followed.into(), node, what);
        let then = then.map(|what| JobEvent { what, ..event.clone() });
        for event in std::iter::once(event).chain(then) {
            self.bus.send(event);
        }
    }

    /// Publishes an event of a schedule.
    pub(crate) fn publish_schedule(&self, schedule: &ScheduleRecord, node: Option<NodeId>, what: JobEventKind) {
        if self.is_heard() {
            self.bus.send(self.event(schedule.into(), node, what));
        }
    }

    /// Publishes an event of a job, and counts it in the metrics at once.
    pub(crate) fn publish(&self, job: &JobRecord, node: Option<NodeId>, what: JobEventKind) {
        self.publish_with(&mut &self.meter, job, node, what);
    }

    /// Publishes an event of a job, and counts it in these metrics.
    pub(crate) fn publish_with(
        &self,
        metrics: &mut impl Recorder,
        job: &JobRecord,
        node: Option<NodeId>,
        what: JobEventKind,
    ) {
        metrics.event(&job.spec.kind, &job.spec.queue, &what);
        if self.is_heard() {
            self.bus.send(self.event(job.into(), node, what));
        }
    }

    fn event(&self, subject: EventSubject<'_>, node: Option<NodeId>, what: JobEventKind) -> JobEvent {
        let EventSubject { id, kind, queue, job_type, priority, business_key } = subject;
        JobEvent {
            job_id: id,
            kind: kind.clone(),
            queue: queue.clone(),
            job_type,
            priority,
            business_key: business_key.cloned(),
            node,
            at: self.clock.now(),
            what,
        }
    }

    /// Publishes the events of a committed settlement. [`Recorder::settled`] counts them.
    pub(crate) fn publish_settled(&self, job: &JobRecord, settlement: &Settlement, events: Vec<JobEventKind>) {
        if self.is_heard() {
            for what in events {
                self.bus.send(self.event(job.into(), Some(settlement.fence.node), what));
            }
        }
    }
}
