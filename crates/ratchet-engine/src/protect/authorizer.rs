//! Who may do what.

use std::collections::BTreeSet;
use std::fmt;

use ratchet_core::schedule::ScheduleRecord;
use ratchet_core::{
    DeadLetterFilter, ErrorKind, InvalidInput, JobId, JobRecord, JobSpec, Principal, QueueName, ResourceName,
    ServiceName, SignalKey, StoreError,
};

/// Decides what a caller may do and see.
///
/// A caller is somebody for whom a client acts: [`Client::as_principal`](crate::Client::as_principal). A client that acts for
/// nobody is the application itself, and is not asked about. Without an authorizer everybody may do everything.
///
/// What a caller may not read is not there for him: he gets the answer that he would get if there were no such job. What he
/// may read but not change is refused with an error of kind [`Denied`](ErrorKind::Denied). Lists are narrowed in the store by
/// [`scope`](Self::scope), so that pages are full and nothing is counted that he may not see; it has to let
/// through what [`allows`](Self::allows) lets him read, and no more.
///
/// It is asked often and in the middle of things: it should be quick, and look up roles that it keeps in memory. If it
/// panics, nothing is allowed.
///
/// ```
/// use ratchet_core::Principal;
/// use ratchet_engine::{Action, Authorizer, Scope, Target};
///
/// /// Everybody may look at everything, and change what is his own.
/// struct LookButDoNotTouch;
///
/// impl Authorizer for LookButDoNotTouch {
///     fn allows(&self, caller: &Principal, action: Action, target: &Target<'_>) -> bool {
///         action == Action::Read || target.principal() == Some(caller)
///     }
///
///     fn scope(&self, _caller: &Principal) -> Scope {
///         Scope::Everything
///     }
/// }
/// ```
pub trait Authorizer: Send + Sync + 'static {
    /// Whether the caller may do this to that.
    fn allows(&self, caller: &Principal, action: Action, target: &Target<'_>) -> bool;

    /// What lists show to the caller.
    fn scope(&self, caller: &Principal) -> Scope;
}

macro_rules! actions {
    ($($(#[$doc:meta])* $action:ident $name:literal)*) => {
        /// What a caller asks for.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
        #[non_exhaustive]
        pub enum Action {
            $($(#[$doc])* $action,)*
        }

        impl Action {
            /// Every action.
            pub const ALL: &[Self] = &[$(Self::$action),*];

            /// Its name, a verb.
            pub const fn as_str(self) -> &'static str {
                match self {
                    $(Self::$action => $name,)*
                }
            }
        }
    };
}

actions! {
    /// Submit a job, in whatever way, or create a schedule. The target has the principal that it is submitted for, which
    /// is the caller's own unless he named another.
    Create "create"
    /// See it: a job with its result, attempts, log and signal, the workflow or the batch that it stands for; a schedule; the
    /// lists of queues, of resources, of circuit breakers and of nodes.
    Read "read"
    /// End a job with all that follows from that, a workflow, a batch, or a schedule.
    Cancel "cancel"
    /// Suspend a job, a schedule or a queue, or hold the circuit breaker of a service open.
    Pause "pause"
    /// Let a job, a schedule or a queue go on, or reset the circuit breaker of a service.
    Resume "resume"
    /// Retry a dead letter, or many of them.
    Retry "retry"
    /// Delete a job that has ended.
    Delete "delete"
    /// Put another job in a job's place. That one has to be created too.
    Replace "replace"
    /// Send a signal, to a job or to all that wait for a key.
    Signal "signal"
    /// Go on with an open batch, or seal it. Its children have to be created too.
    Extend "extend"
    /// Fire a schedule beside its times.
    Fire "fire"
    /// Set or remove the limit of a resource.
    Limit "limit"
    /// Archive jobs that ended long ago, of whomever they are.
    Archive "archive"
    /// Delete for good what was archived or logged long ago, of whomever it is.
    Purge "purge"
}

impl fmt::Display for Action {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

/// What an action is about.
#[derive(Debug, Clone, Copy)]
#[non_exhaustive]
pub enum Target<'a> {
    /// A job, or a batch or a workflow, by the job that stands for it or is its first.
    Job {
        /// Its id; `None` if it is about to be submitted.
        id: Option<JobId>,
        /// What it is. Its arguments are as given when it is about to be submitted, and else as they are stored.
        spec: &'a JobSpec,
    },
    /// A schedule.
    Schedule {
        /// Its id; `None` if it is about to be created.
        id: Option<JobId>,
        /// What it fires.
        spec: &'a JobSpec,
    },
    /// Dead letters, by a filter that was narrowed to the caller's scope.
    DeadLetters(&'a DeadLetterFilter),
    /// Every job that waits for a signal, of whomever it is.
    SignalKey(&'a SignalKey),
    /// A queue.
    Queue(&'a QueueName),
    /// The list of queues, with how many jobs wait in each.
    Queues,
    /// The list of nodes.
    Nodes,
    /// A resource, whose limit is set or removed.
    Resource(&'a ResourceName),
    /// The list of resources, with how many jobs run with each.
    Resources,
    /// A service, whose circuit breaker is opened or reset everywhere.
    Service(&'a ServiceName),
    /// The list of services whose circuit breakers are not closed.
    Services,
    /// Everything that ended long ago, of whomever it is.
    Ended,
}

impl<'a> Target<'a> {
    pub(crate) fn job(job: &'a JobRecord) -> Self {
        Self::Job { id: Some(job.id), spec: &job.spec }
    }

    pub(crate) fn schedule(schedule: &'a ScheduleRecord) -> Self {
        Self::Schedule { id: Some(schedule.id), spec: &schedule.spec }
    }

    /// Whose it is; `None` if it is nobody's, or everybody's.
    pub fn principal(&self) -> Option<&'a Principal> {
        match self {
            Self::Job { spec, .. } | Self::Schedule { spec, .. } => spec.principal.as_ref(),
            Self::DeadLetters(filter) => filter.jobs.principal.as_ref(),
            Self::SignalKey(_)
            | Self::Queue(_)
            | Self::Queues
            | Self::Nodes
            | Self::Resource(_)
            | Self::Resources
            | Self::Service(_)
            | Self::Services
            | Self::Ended => None,
        }
    }
}

impl fmt::Display for Target<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Job { id: Some(id), .. } => write!(f, "job {id}"),
            Self::Job { id: None, spec } => {
                write!(f, "a job of kind {:?}", spec.kind)?;
                spec.principal.as_ref().map_or(Ok(()), |principal| write!(f, " for {principal:?}"))
            }
            Self::Schedule { id: Some(id), .. } => write!(f, "schedule {id}"),
            Self::Schedule { id: None, spec } => write!(f, "a schedule of kind {:?}", spec.kind),
            Self::DeadLetters(_) => f.write_str("dead letters"),
            Self::SignalKey(key) => write!(f, "all that wait for {key:?}"),
            Self::Queue(queue) => write!(f, "queue {queue:?}"),
            Self::Queues => f.write_str("the queues"),
            Self::Nodes => f.write_str("the nodes"),
            Self::Resource(name) => write!(f, "resource {name}"),
            Self::Resources => f.write_str("the resources"),
            Self::Service(service) => write!(f, "service {service:?}"),
            Self::Services => f.write_str("the circuit breakers"),
            Self::Ended => f.write_str("what ended long ago"),
        }
    }
}

/// What lists show to a caller.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Scope {
    /// Everything.
    Everything,
    /// What was submitted for this principal: the caller, or a team that he belongs to.
    Of(Principal),
    /// Nothing.
    Nothing,
}

/// Everybody sees and steers what was submitted for himself; operators see and steer everything.
///
/// What is nobody's own, such as a queue or a signal to all that wait for a key, is the operators'.
///
/// ```
/// use ratchet_engine::OwnJobs;
///
/// let authorizer = OwnJobs::new().operator("root")?;
/// # Ok::<(), ratchet_core::InvalidInput>(())
/// ```
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct OwnJobs {
    operators: BTreeSet<Principal>,
}

impl OwnJobs {
    /// Without operators.
    pub fn new() -> Self {
        Self::default()
    }

    /// With one more operator.
    ///
    /// # Errors
    /// If the name is none that a principal can have.
    pub fn operator(mut self, principal: impl AsRef<str>) -> Result<Self, InvalidInput> {
        self.operators.insert(Principal::new(principal)?);
        Ok(self)
    }
}

impl Authorizer for OwnJobs {
    fn allows(&self, caller: &Principal, _action: Action, target: &Target<'_>) -> bool {
        self.operators.contains(caller) || target.principal() == Some(caller)
    }

    fn scope(&self, caller: &Principal) -> Scope {
        if self.operators.contains(caller) { Scope::Everything } else { Scope::Of(caller.clone()) }
    }
}

/// What a caller may not do.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{principal:?} may not {action} {target}")]
pub struct Denied {
    action: Action,
    principal: Principal,
    target: String,
}

impl Denied {
    pub(crate) fn new(action: Action, principal: &Principal, target: &Target<'_>) -> Self {
        Self { action, principal: principal.clone(), target: target.to_string() }
    }

    /// What was asked for.
    pub fn action(&self) -> Action {
        self.action
    }

    /// Who asked.
    pub fn principal(&self) -> &Principal {
        &self.principal
    }
}

impl From<Denied> for StoreError {
    fn from(denied: Denied) -> Self {
        let kind = ErrorKind::Denied { action: denied.action.as_str(), principal: denied.principal.clone() };
        Self::new(kind, "asking the authorizer", denied.to_string())
    }
}
