//! Stores that break one rule each, to prove that the suite notices.
//!
//! A [`BrokenStore`] stands before a good store, passes everything on, and has one [`Flaw`]. Flaws are by subject, as the calls of a
//! store are: each file is a decorator for the calls of its subject.

mod archive;
mod batches;
mod breakers;
mod cluster;
mod control;
mod insight;
mod job_log;
mod jobs;
mod query;
mod schedules;
mod resources;
mod signals;
mod turn;

use std::collections::{BTreeMap, BTreeSet};
use std::marker::PhantomData;
use std::ops::Deref;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use ratchet_core::record::JobRecord;
use ratchet_core::signal::Delivery;
use ratchet_core::store::StoreDecorator;
use ratchet_core::{
    BusinessKey, Claim, IdempotencyKey, JobId, Kind, LogLine, LogPlace, NodeId, QueueName, SignalKey, Store,
};

macro_rules! flaws {
    ($($(#[$doc:meta])* $name:ident,)*) => {
        /// The rule that a broken store breaks.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
        pub enum Flaw {
            $($(#[$doc])* $name,)*
        }

        impl Flaw {
            /// Every flaw.
            pub const ALL: &'static [Self] = &[$(Self::$name,)*];
        }
    };
}

flaws! {
    // Submitting, reading, deleting.
    /// Stores no params, tags, principal, trace, callbacks and origin.
    LosesSpec,
    /// Stores no resource, unless there is a timeout too.
    LosesLoneOptions,
    /// Replaces what is not ASCII.
    MangledText,
    /// Stores no JSON and no text over ten thousand bytes.
    LosesLargeText,
    /// Turns integers into floating point numbers.
    RoundsNumbers,
    /// Folds keys to lower case and trims them.
    FoldsKeys,
    /// Touches every new job, so that its version is not zero.
    TouchesTwice,
    /// Runs everything at once: no delays.
    LosesDelay,
    /// Forgets given times.
    ClampsTime,
    /// Starts waiting jobs at once.
    IgnoresStart,
    /// Finds jobs in its own order.
    FindsInItsOwnOrder,
    /// Finds a job for any id.
    FindsNeighbors,
    /// Handles no more than five hundred of anything.
    StopsAtFiveHundred,
    /// Refuses to do nothing.
    RefusesNothing,
    /// Stores each job of a unit alone.
    SplitsUnits,
    /// Stores nothing after a refused unit.
    StopsAtRefusal,
    /// Refuses jobs that are already there.
    RefusesResubmit,
    /// Stores jobs again that are already there.
    ResubmitsAfresh,
    /// Says that it deleted, and did not.
    DeletesNothing,
    /// Deletes live jobs too.
    DeletesAnything,
    /// Deletes the history of all jobs with one.
    DeletesAllHistory,
    // Keys.
    /// Stores no business keys.
    ForgetsBusinessKeys,
    /// Never frees a business key.
    KeepsBusinessKeys,
    /// Finds the last holder for any business key.
    MixesKeys,
    /// Stores no idempotency keys.
    ForgetsIdempotency,
    /// Frees an idempotency key when its job is deleted.
    IdempotencyDiesWithJob,
    /// Looks at the business key of a job that another stands for.
    ExistingTakesKey,
    /// Takes one key for all jobs without.
    InventsKeys,
    // Claiming.
    /// Hands out a claimed job again.
    ClaimsTwice,
    /// Shows a claimed job as it was before.
    ClaimsShowThePast,
    /// Takes ten times what was asked for.
    IgnoresLimit,
    /// Answers an empty poll with an error.
    ErrsWhenEmpty,
    /// Claims every kind.
    IgnoresKinds,
    /// Claims from every queue.
    IgnoresQueues,
    /// Claims in the wrong order.
    ReversesClaims,
    /// Claims the last instead of the first.
    TakesTheLast,
    /// Knows no ageing.
    IgnoresAgeing,
    /// Ages even when told not to.
    AlwaysAges,
    /// Claims all jobs on probation.
    IgnoresProbation,
    /// Lets nodes claim that are not alive.
    SwallowsConflicts,
    /// Settles and claims in two transactions.
    TurnsInTwo,
    /// Claims before it settles.
    ClaimsFirst,
    /// Claims paused jobs.
    ClaimsPaused,
    /// Knows no next due time.
    NeverDue,
    /// Takes any kind, queue and probation for the next due.
    AnythingIsDue,
    // Settling.
    /// Settles by whatever fence the row has now.
    NoFence,
    /// Checks the version but not the owner.
    IgnoresOwner,
    /// Says that every settlement was applied.
    SaysApplied,
    /// Starts the version anew when a job is retried.
    ForgetsVersion,
    /// Counts attempts and crashes twice.
    CountsTwice,
    /// Stores no results.
    LosesResult,
    /// Stores `null` for no result.
    InventsResult,
    /// Takes a failed attempt for a deferral.
    RescheduleKeepsTime,
    /// Takes a deferral for a failed attempt.
    DeferConsumesAttempt,
    /// Puts off what was deferred by nothing.
    SnoozesAnyway,
    /// Keeps the crash count for ever.
    NeverForgivesCrashes,
    /// Remembers the owner of what went back.
    KeepsOwner,
    /// One stale settlement makes all stale.
    PoisonsNeighbors,
    /// Does not recognize what it wrote.
    ForgetsItsOwn,
    /// Takes any end for its own.
    MaybeMeansYes,
    /// Archives what it is to delete.
    ArchivesTheUnwanted,
    /// Deletes what ended otherwise than asked.
    DeletesOtherEnds,
    /// Deletes jobs that others are tied to.
    DeletesTheTied,
    /// Deletes what has just ended.
    DeletesTooSoon,
    /// Stores no callbacks.
    LosesCallbacks,
    /// Stores callbacks of settlements that changed nothing.
    EffectsFromTheList,
    /// Frees keys by settlements that changed nothing.
    FreesFromTheList,
    /// Records no attempts.
    LosesAttempts,
    /// Has no record of the attempts that succeeded.
    LosesSuccesses,
    /// Shows every attempt twice.
    RecordsTwice,
    /// Shows attempts of all jobs.
    MixesAttempts,
    /// Counts an alert for every settlement.
    AlertsAlways,
    /// Knows one alert at most.
    AlertsOnce,
    // Control.
    /// Says that a verb worked where it may not.
    NoGuard,
    /// Does nothing when asked.
    ControlsNothing,
    /// Cancels a running job without a record.
    CancelsWithoutRecord,
    /// Records an attempt for every canceled job.
    InventsAttempts,
    /// Resumes every job as PENDING.
    ResumeRevives,
    /// Keeps the error of a retried job.
    RetryKeepsError,
    /// Lets a released job count as waiting since it was submitted.
    ReleaseKeepsTime,
    /// Replaces in several transactions.
    ReplacesInSteps,
    // Nodes and leases.
    /// Registers no nodes through the heartbeat.
    DeafHeartbeat,
    /// Registers every node that beats.
    BeatsRegister,
    /// Accepts heartbeats and forgets them.
    ForgetsBeats,
    /// Keeps the time of a heartbeat and not what it says.
    ForgetsVitals,
    /// Keeps all that a heartbeat says but the services.
    ForgetsServices,
    /// Keeps the services of a heartbeat when the next one has none.
    KeepsServices,
    /// Lists nodes in the order of their ids.
    ListsNodesById,
    /// Deregisters nobody.
    KeepsNodes,
    /// Loses names of nodes.
    LosesNodeNames,
    /// Finds no orphans.
    FindsNoOrphans,
    /// Takes every running job for an orphan.
    OrphansEverything,
    /// Knows no grace.
    NoGrace,
    /// Knows a grace of an hour.
    LongGrace,
    /// Returns all orphans at once.
    OrphansWithoutLimit,
    /// Lets anyone look for orphans.
    AnyoneObserves,
    /// Keeps dead nodes for ever.
    KeepsTheDead,
    /// Shows no running jobs.
    ReconcilesNothing,
    /// Shows the running jobs of all nodes.
    ReconcilesEverything,
    /// Loses progress.
    LosesProgress,
    /// Writes progress by any fence.
    UnfencedProgress,
    /// Has a clock that does not move.
    StoppedClock,
    /// Gives a lease to anyone.
    LeaseForAll,
    /// Renews no lease.
    LeaseNeverRenewed,
    /// Never takes a lease back.
    LeaseForEver,
    /// Releases no lease.
    KeepsLeases,
    /// Refuses to release a lease that nobody holds.
    ErrsOnRelease,
    /// Lets anyone release a lease.
    AnyoneReleases,
    // Queues and queries.
    /// Pauses no queue.
    IgnoresQueuePause,
    /// Says that it paused and resumed, always.
    AlwaysSaysPaused,
    /// Cancels the jobs of a queue that is paused.
    CancelsWithQueue,
    /// Lists no queue without live jobs.
    HidesEmptyQueues,
    /// Lists the oldest first.
    ListsOldestFirst,
    /// Lists all jobs whatever the filter.
    IgnoresFilters,
    /// Lists newest first, whatever the order is that was asked for.
    IgnoresOrder,
    /// Begins anew if a cursor comes from a list in another order.
    TakesAnyCursor,
    /// Lists a job once for each of its tags.
    ListsPerTag,
    /// Begins every page at the start.
    ForgetsCursor,
    /// Says that there is a next page after a full one.
    AlwaysMore,
    /// Accepts any limit.
    AnyLimit,
    /// Counts states without jobs.
    CountsNothing,

    // Workflows.
    /// Stores no edges: what waits waits for ever.
    LosesEdges,
    /// Stores edges without priority, order, description and exclusivity.
    LosesEdgeOptions,
    /// Takes every end for the one that was hoped for.
    IgnoresConditions,
    /// Releases a join with its first parent.
    CountsOneParent,
    /// Takes every join for one of any.
    JoinsAny,
    /// Takes every join for one of all.
    JoinsAll,
    /// Claims jobs without what came of those before.
    ForgetsInputs,
    /// Cancels what a retry brings back.
    RevivesNothing,
    /// Does not tell what follows from an end.
    HidesWhatFollows,

    // Schedules.
    /// Fires for whatever instant is next.
    FiresBlindly,
    /// Makes a declared schedule anew every time.
    DeclaresAnew,
    /// Retires schedules that were declared a moment ago.
    RetiresAnything,
    /// Lets every fire run beside the last.
    AlwaysOverlaps,
    /// Catches up with everything.
    AlwaysCatchesUp,
    /// Takes a fire for a declaration.
    FiresRenew,
    /// Makes a schedule that was retired as if it had never been.
    ForgetsTheRetired,
    /// Passes over fires while the last job is paused, whatever it was before.
    WaitsForThePaused,

    // Signals.
    /// Lets no job wait for a signal: it waits for ever.
    LosesWaits,
    /// Delivers no signal.
    DeliversNothing,
    /// Says of every delivery that it reached a job.
    SaysDelivered,
    /// Delivers to a key what is for a job, and to all keys what is for one.
    DeliversToAll,
    /// Delivers without decision and sender.
    ForgetsSender,
    /// Delivers to each job of a key apart.
    DeliversApart,
    /// Lets the second signal take the place of the first.
    LastSignalWins,
    /// Claims jobs without their signals.
    ForgetsSignals,
    /// Ends no wait.
    NeverExpires,
    /// Ends every wait at once.
    ExpiresEarly,
    /// Ends more waits than it was asked to, and some if asked for none.
    ExpiresWithoutLimit,
    /// Releases a retried job that has not got its signal.
    RetriesUnsignaled,
    /// Keeps no signal.
    KeepsNoSignal,
    /// Keeps every signal for ten years.
    KeepsSignalsForEver,
    /// Gives a kept signal to every job that comes.
    GivesKeptSignalsAgain,
    /// Lets the last of the kept signals count.
    KeepsTheLastSignal,
    /// Sweeps nothing.
    SweepsNothing,

    // Batches.
    /// Stores no batches: the jobs that stand for them wait for ever.
    LosesBatches,
    /// Takes every batch for one that is sealed.
    SealsEarly,
    /// Seals nothing.
    SealsNothing,
    /// Takes children for any batch.
    ExtendsAnything,
    /// Counts children again that are given again.
    CountsChunksTwice,
    /// Counts children that other jobs stand for.
    CountsStandIns,
    /// Counts no successes.
    CountsNoChildren,
    /// Counts failures as successes.
    CountsFailuresAsSuccess,
    /// Counts whatever is settled.
    CountsAttempts,
    /// Keeps no times of batches.
    LosesBatchTimes,
    /// Retries children of batches that are over.
    RetriesAnyChild,
    /// Cancels a batch without its children.
    SparesChildren,
    /// Cancels more children than it was told to.
    CancelsAllAtOnce,
    /// Is never through with canceling.
    NeverThrough,
    /// Tells nobody how far a batch is.
    LosesHooks,
    /// Tells of every child.
    TellsAlways,

    // The archive and the dead letter queue.
    /// Archives nothing.
    ArchivesNothing,
    /// Archives after half the time.
    ArchivesEarly,
    /// Cancels live jobs, to archive them.
    ArchivesLive,
    /// Takes canceled jobs away that a retry could have brought back.
    ArchivesTheRevivable,
    /// Says of all ended jobs that they were archived.
    SaysArchived,
    /// Deletes what it should archive.
    DeletesInsteadOfArchiving,
    /// Archives more than it was told to.
    ArchivesAllAtOnce,
    /// Archives from the start again and again.
    ArchivesFromTheStart,
    /// Keeps one attempt of an archived job, and no signal.
    ForgetsArchivedHistory,
    /// Shows archived jobs in every list.
    MixesArchive,
    /// Shows archived jobs in no list.
    HidesArchive,
    /// Purges nothing.
    PurgesNothing,
    /// Purges after half the time.
    PurgesEarly,
    /// Purges more than it was told to.
    PurgesAllAtOnce,
    /// Forgets of what class an error was.
    LosesErrorClass,
    /// Retries dead letters one by one, until one is refused.
    RetriesInSteps,
    /// Retries more dead letters than it was told to.
    RetriesAllAtOnce,

    // Resources.
    /// Gives out one permit too many.
    OneTooMany,
    /// Gives out one permit too few.
    OneTooFew,
    /// Ends no permit while its node lives.
    KeepsPermits,
    /// Ends a permit as soon as the job is no longer RUNNING.
    EndsPermitsEarly,
    /// Says that no permit is out.
    HidesPermits,
    /// Lets the code change what was set by hand.
    CodeBeatsHand,
    /// Removes no limit.
    KeepsLimits,

    // Circuit breakers.
    /// Says of every order that it changed something.
    AlwaysSaysOpened,
    /// Forgets a breaker that was reset.
    ForgetsResets,
    /// Takes every order for the first.
    CountsNoOrders,
    /// Takes an order that is given again for a new one.
    RepeatsOrders,
    /// Gives every order about all services that it knows.
    MixesServices,

    // Looking at queues.
    /// Misses the last lane.
    MissesLanes,
    /// Counts what is not due yet too.
    CountsAllTimes,
    /// Counts on where it should stop.
    CountsOn,
    /// Takes failures for successes.
    MixesEnds,
    /// Sees no job run.
    SeesNothingRun,

    // Logs.
    /// Keeps no lines.
    LosesLines,
    /// Keeps lines without their fields.
    LosesLogFields,
    /// Lets a line that is given again take the place of the first.
    LastLineWins,
    /// Reads logs in the order of their times.
    ReadsLogsByTime,
    /// Shows the lines of all jobs.
    MixesLogs,
    /// Keeps lines of the present claim only.
    FencesLogs,
    /// Touches the jobs whose lines it keeps.
    LogsTouchJobs,
    /// Purges from the start again and again.
    PurgesFromTheStart,
    /// Keeps the log of a deleted job.
    KeepsLogs,
}

/// A good store with one flaw: a stack of decorators, each of which breaks the calls of one subject.
#[derive(Debug)]
pub struct BrokenStore(Arc<dyn Store>);

impl BrokenStore {
    /// Puts a flaw before a good store.
    pub fn new(good: Arc<dyn Store>, flaw: Flaw) -> Self {
        let broken = Arc::new(Broken { good: good.clone(), flaw, seen: Mutex::default() });
        let store = Layer::<archive::Archive>::over(good, &broken);
        let store = Layer::<batches::Batches>::over(store, &broken);
        let store = Layer::<breakers::Breakers>::over(store, &broken);
        let store = Layer::<cluster::Cluster>::over(store, &broken);
        let store = Layer::<control::Control>::over(store, &broken);
        let store = Layer::<insight::Insight>::over(store, &broken);
        let store = Layer::<job_log::JobLogs>::over(store, &broken);
        let store = Layer::<jobs::Jobs>::over(store, &broken);
        let store = Layer::<query::Queries>::over(store, &broken);
        let store = Layer::<schedules::Schedules>::over(store, &broken);
        let store = Layer::<resources::Resources>::over(store, &broken);
        let store = Layer::<signals::Signals>::over(store, &broken);
        Self(Layer::<turn::Turns>::over(store, &broken))
    }
}

impl StoreDecorator for BrokenStore {
    fn inner(&self) -> &dyn Store {
        &*self.0
    }

    fn name(&self) -> &'static str {
        "broken"
    }
}

/// The calls of one subject, broken. Each subject's file says how.
#[derive(Debug)]
struct Layer<Subject> {
    below: Arc<dyn Store>,
    broken: Arc<Broken>,
    subject: PhantomData<Subject>,
}

impl<Subject> Layer<Subject>
where
    Self: Store + 'static,
{
    fn over(below: Arc<dyn Store>, broken: &Arc<Broken>) -> Arc<dyn Store> {
        Arc::new(Self { below, broken: broken.clone(), subject: PhantomData })
    }
}

impl<Subject> Layer<Subject> {
    /// The store that is asked what this layer does not break.
    fn below(&self) -> &dyn Store {
        &*self.below
    }
}

impl<Subject> Deref for Layer<Subject> {
    type Target = Broken;
    fn deref(&self) -> &Broken {
        &self.broken
    }
}

/// What all layers of a broken store know.
#[derive(Debug)]
struct Broken {
    /// The store without a flaw.
    good: Arc<dyn Store>,
    flaw: Flaw,
    seen: Mutex<Seen>,
}

/// What a broken store remembers to do wrong later.
#[derive(Debug, Default)]
struct Seen {
    jobs: Vec<JobId>,
    keys: BTreeMap<BusinessKey, JobId>,
    once: BTreeMap<IdempotencyKey, JobId>,
    kinds: BTreeSet<Kind>,
    queues: BTreeSet<QueueName>,
    nodes: BTreeSet<NodeId>,
    claims: Vec<Claim>,
    owners: BTreeMap<JobId, Option<NodeId>>,
    crashes: BTreeMap<JobId, u32>,
    errors: BTreeMap<JobId, Option<String>>,
    versions: BTreeMap<JobId, u64>,
    released: BTreeSet<JobId>,
    settled: BTreeMap<JobId, u64>,
    leases: BTreeMap<String, NodeId>,
    awaited: BTreeSet<SignalKey>,
    kept: BTreeMap<SignalKey, Delivery>,
    late: BTreeMap<JobId, Delivery>,
    extended: BTreeMap<JobId, u64>,
    lines: BTreeMap<(JobId, LogPlace), LogLine>,
    started: Option<jiff::Timestamp>,
    deleted: bool,
}

impl Broken {
    fn has(&self, flaw: Flaw) -> bool {
        self.flaw == flaw
    }

    fn seen(&self) -> MutexGuard<'_, Seen> {
        self.seen.lock().unwrap_or_else(PoisonError::into_inner)
    }

    async fn inner_job(&self, id: JobId) -> Option<JobRecord> {
        self.good.find(&[id]).await.ok()?.pop()
    }

    async fn is_archived(&self, id: JobId) -> bool {
        self.inner_job(id).await.is_some_and(|job| job.archived_at.is_some())
    }

    /// The job as this store shows it.
    fn shown(&self, mut job: JobRecord) -> JobRecord {
        let seen = self.seen();
        match self.flaw {
            Flaw::NeverForgivesCrashes => {
                job.crash_count = job.crash_count.max(seen.crashes.get(&job.id).copied().unwrap_or(0));
            }
            Flaw::KeepsOwner if job.picked_by.is_none() => {
                job.picked_by = seen.owners.get(&job.id).copied().flatten();
            }
            Flaw::RetryKeepsError if job.last_error.is_none() => {
                job.last_error = seen.errors.get(&job.id).cloned().flatten();
            }
            Flaw::ReleaseKeepsTime if seen.released.contains(&job.id) => job.scheduled_time = job.created_at,
            Flaw::ForgetsVersion => job.version -= seen.versions.get(&job.id).copied().unwrap_or(0),
            Flaw::CancelsWithoutRecord => {
                job.timing = job.timing.filter(|_| job.state != ratchet_core::JobState::Canceled);
            }
            Flaw::MangledText => {
                job.last_error = job.last_error.map(|text| mangled(&text));
            }
            Flaw::LosesLargeText => job.result = job.result.filter(|result| result.as_str().len() < 10_000),
            _ => {}
        }
        job
    }
}

fn mangled(text: &str) -> String {
    text.chars().map(|c| if c.is_ascii() { c } else { '?' }).collect()
}
