//! Which kinds a node can run, and how.

use std::collections::BTreeMap;
use std::fmt;
use std::future::Future;
use std::marker::PhantomData;
use std::pin::Pin;
use std::sync::Arc;

use ratchet_core::breaker::BreakerConfig;
use ratchet_core::{JsonText, Kind, QueueName, ResourceName, ServiceName, json, limits};

use crate::batch::BatchEnd;
use crate::job::failure::Failure;
use crate::job::inject::{Requirement, StateMap};
use crate::job::{Job, JobDefaults};
use crate::node::start::StartError;
use crate::observe::metrics::names;
use crate::protect::codec::Part;
use crate::run::context::JobContext;
use crate::schedule::Scheduled;
use crate::workflow::DataCondition;

/// A kind and its handler, ready to be given to the builder. `jobs![…]` makes them.
#[derive(Clone)]
pub struct Registration {
    kind: &'static str,
    defaults: JobDefaults,
    requires: Vec<Requirement>,
    schedule: Option<Scheduled>,
    handler: Arc<dyn Handler>,
}

impl Registration {
    /// The registration of a job type.
    pub fn of<J: Job>() -> Self {
        Self {
            kind: J::KIND,
            defaults: J::defaults(),
            requires: J::requires(),
            schedule: J::schedule(),
            handler: Arc::new(TypedHandler::<J>(PhantomData)),
        }
    }

    pub(crate) fn schedule(&self) -> Option<&Scheduled> {
        self.schedule.as_ref()
    }

    /// The service that the kind calls: one that names none is its own.
    pub(crate) fn service(&self) -> &'static str {
        self.defaults.service.unwrap_or(self.kind)
    }

    /// The breaker that the kind asks for.
    pub(crate) fn breaker(&self) -> Option<BreakerConfig> {
        self.defaults.breaker
    }

    /// The kind.
    pub fn kind(&self) -> &'static str {
        self.kind
    }
}

impl fmt::Debug for Registration {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Registration").field("kind", &self.kind).finish_non_exhaustive()
    }
}

/// A function that makes a job of its arguments: what `#[job]` leaves under the function's name.
pub trait JobConstructor<Args> {
    /// The job that it makes.
    type Job: Job;
}

macro_rules! constructors {
    ($($arg:ident)*) => {
        impl<F, J: Job, $($arg),*> JobConstructor<($($arg,)*)> for F where F: Fn($($arg),*) -> J {
            type Job = J;
        }
    };
}

constructors!();
constructors!(A);
constructors!(A B);
constructors!(A B C);
constructors!(A B C D);
constructors!(A B C D E);
constructors!(A B C D E G);
constructors!(A B C D E G H);
constructors!(A B C D E G H I);
constructors!(A B C D E G H I K);
constructors!(A B C D E G H I K L);
constructors!(A B C D E G H I K L M);
constructors!(A B C D E G H I K L M N);

/// The registration of the job that `constructor` makes; `jobs![…]` calls it.
pub fn registration_of<Args, C: JobConstructor<Args>>(_constructor: &C) -> Registration {
    Registration::of::<C::Job>()
}

/// The registrations of the jobs whose constructors are named: `jobs![charge, send_receipt]`.
#[macro_export]
macro_rules! jobs {
    ($($constructor:path),* $(,)?) => {
        ::std::vec![$($crate::registration_of(&$constructor)),*]
    };
}

/// The handlers of a node, checked.
#[derive(Debug, Default)]
pub(crate) struct Registry {
    entries: BTreeMap<Kind, RegisteredKind>,
}

#[derive(Debug)]
pub(crate) struct RegisteredKind {
    pub(crate) queue: QueueName,
    pub(crate) blocking: bool,
    /// What its jobs call, whose breaker they heed; the steps that Ratchet itself runs heed none.
    pub(crate) service: Option<Arc<str>>,
    /// Whether every node has it, whatever the application has registered.
    pub(crate) internal: bool,
    pub(crate) handler: Arc<dyn Handler>,
}

impl Registry {
    /// Refuses bad kinds and queues, a kind that is registered twice, and handlers whose state is missing.
    pub(crate) fn build(registrations: Vec<Registration>, states: &StateMap) -> Result<Self, StartError> {
        let mut registry = Self::default();
        let own = registrations.into_iter().map(|registration| (registration, false));
        for (registration, internal) in own.chain(internal().into_iter().map(|registration| (registration, true))) {
            let Registration { kind, defaults, requires, handler, .. } = registration;
            let kind = Kind::new(kind)?;
            let queue = defaults.queue.map(QueueName::new).transpose()?.unwrap_or_default();
            if let Some(missing) = requires.iter().find(|needed| !states.satisfies(needed)) {
                return Err(StartError::MissingState { kind, type_name: missing.type_name() });
            }
            defaults.service.map(ServiceName::new).transpose()?;
            defaults.resource.map(ResourceName::new).transpose()?;
            let service = (!internal).then(|| defaults.service.unwrap_or(kind.as_str()).into());
            let entry = RegisteredKind { queue, blocking: defaults.blocking, service, internal, handler };
            if registry.entries.insert(kind.clone(), entry).is_some() {
                return Err(StartError::DuplicateKind { kind });
            }
        }
        Ok(registry)
    }

    pub(crate) fn get(&self, kind: &Kind) -> Option<&RegisteredKind> {
        self.entries.get(kind)
    }

    /// What the application has registered.
    pub(crate) fn own(&self) -> impl Iterator<Item = (&Kind, &RegisteredKind)> {
        self.entries.iter().filter(|(_, entry)| !entry.internal)
    }

    /// What every node has.
    pub(crate) fn internal(&self) -> impl Iterator<Item = (&Kind, &RegisteredKind)> {
        self.entries.iter().filter(|(_, entry)| entry.internal)
    }

    /// Whether the application has registered nothing.
    pub(crate) fn is_empty(&self) -> bool {
        self.own().next().is_none()
    }
}

/// What every node runs, whatever the application has registered.
fn internal() -> Vec<Registration> {
    vec![Registration::of::<DataCondition>(), Registration::of::<BatchEnd>()]
}

type HandlerFuture = Pin<Box<dyn Future<Output = Result<Option<JsonText>, Failure>> + Send>>;

/// A handler whose payload and result are JSON.
pub(crate) trait Handler: Send + Sync {
    /// Decodes the payload and runs; the result is `None` for the unit type.
    fn run(&self, ctx: JobContext) -> HandlerFuture;
}

impl fmt::Debug for dyn Handler {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Handler")
    }
}

struct TypedHandler<J>(PhantomData<fn() -> J>);

impl<J: Job> Handler for TypedHandler<J> {
    fn run(&self, ctx: JobContext) -> HandlerFuture {
        Box::pin(async move {
            let unreadable = |by| {
                ctx.client().meter().count(names::UNREADABLE, &[("kind", J::KIND), ("by", by)], 1);
            };
            ctx.open().inspect_err(|_| unreadable("codec"))?;
            let job: J = ctx.payload().decode().map_err(|error| {
                unreadable("handler");
                Failure::do_not_retry(
                    format!("the payload of this job cannot be read by the handler of {:?}: {error}", J::KIND),
                    "the payload will not change",
                )
            })?;
            let output = job.run(ctx.clone()).await?;
            encode_result(&ctx, &output)
        })
    }
}

/// Results are recorded on the job's behalf: NUL is replaced, but what is too large fails the job, since dropping data
/// silently would be worse.
pub(crate) fn encode_result<T: serde::Serialize>(ctx: &JobContext, output: &T) -> Result<Option<JsonText>, Failure> {
    let text = serde_json::to_string(output).map_err(|error| {
        Failure::do_not_retry(format!("the result cannot be written as JSON: {error}"), "the result will not change")
    })?;
    if text == "null" {
        return Ok(None);
    }
    let parsed = JsonText::parse("result", json::without_nul(text), limits::RESULT_BYTES_MAX);
    let sealed = parsed.and_then(|result| {
        let (client, part) = (ctx.client(), Part::Result(ctx.kind()));
        client.rules().codec.seal(client.meter(), part, &result, "result", limits::RESULT_BYTES_MAX)
    });
    match sealed {
        Ok(result) => Ok(Some(result)),
        Err(refused) => Err(Failure::do_not_retry(refused, "the result will not shrink by running again")),
    }
}
