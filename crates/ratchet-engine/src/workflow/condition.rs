use std::fmt;
use std::marker::PhantomData;

use ratchet_core::flow::Condition;
use ratchet_core::{InvalidInput, JobSpec, JobState, JsonText, Kind, QueueName, limits};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use crate::context::{JobContext, decode_input};
use crate::failure::Failure;
use crate::job::{Job, JobDefaults};
use crate::registry::Registration;
use crate::slots::INTERNAL_QUEUE;

/// What the kinds of steps begin with that tell whether a condition holds.
pub(crate) const KIND_PREFIX: &str = "ratchet.when";

/// Whether a kind is that of such a step.
pub(crate) fn is_condition(kind: &Kind) -> bool {
    kind.as_str().starts_with(KIND_PREFIX)
}

/// A condition on a job's result that is a function of the application: stored by its name, run on a node that has it.
///
/// `#[condition]` on a function writes this. It runs as a step of its own, claimed like any job, so that a node which does
/// not know it leaves it to one that does.
///
/// ```
/// use ratchet_engine::{Failure, ResultCondition};
///
/// #[derive(serde::Deserialize)]
/// struct Receipt {
///     cents: u64,
/// }
///
/// struct IsLarge;
///
/// impl ResultCondition for IsLarge {
///     const KIND: &'static str = "ratchet.when.is-large";
///     type Input = Receipt;
///
///     fn holds(receipt: &Receipt) -> Result<bool, Failure> {
///         Ok(receipt.cents >= 100_000)
///     }
/// }
/// ```
pub trait ResultCondition: Send + Sync + 'static {
    /// `ratchet.when.` and a name that outlives the type's: `[a-z0-9._-]`, at most 128 characters in all.
    const KIND: &'static str;

    /// The result that it judges.
    type Input: DeserializeOwned + Send + 'static;

    /// Whether the branch is to be taken.
    ///
    /// # Errors
    /// It is tried again like any job; after the last try the branch, and what follows it, is cancelled, and this step is in
    /// the dead letter queue with the error.
    fn holds(input: &Self::Input) -> Result<bool, Failure>;
}

/// The step that asks a [`ResultCondition`]; `conditions![…]` registers it.
pub struct ConditionStep<C>(PhantomData<fn() -> C>);

impl<C> fmt::Debug for ConditionStep<C> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("ConditionStep")
    }
}

impl<C> Serialize for ConditionStep<C> {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_unit()
    }
}

impl<'de, C> Deserialize<'de> for ConditionStep<C> {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        <()>::deserialize(deserializer).map(|()| Self(PhantomData))
    }
}

impl<C: ResultCondition> Job for ConditionStep<C> {
    const KIND: &'static str = C::KIND;
    type Output = bool;

    async fn run(self, ctx: JobContext) -> Result<bool, Failure> {
        // The first edge is that of the job whose result is judged.
        match ctx.inputs().first() {
            Some(input) if input.state == JobState::Succeeded => C::holds(&decode_input(input)?),
            Some(_) => Ok(false),
            None => Err(Failure::do_not_retry("a condition without a job to judge", "nothing will come")),
        }
    }
}

/// The step that asks a condition which is data, where it stands among others that are not: every node has it.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct DataCondition {
    pub(crate) condition: Condition,
}

impl Job for DataCondition {
    const KIND: &'static str = KIND_PREFIX;
    type Output = bool;

    fn defaults() -> JobDefaults {
        JobDefaults::default().max_retries(0)
    }

    async fn run(self, ctx: JobContext) -> Result<bool, Failure> {
        let Some(input) = ctx.inputs().first() else {
            return Err(Failure::do_not_retry("a condition without a job to judge", "nothing will come"));
        };
        let told = self.condition.holds(input.state, input.result.as_ref());
        told.map_err(|problem| {
            let text = format!("{problem} ({})", self.condition);
            Failure::do_not_retry(text, "the result will not change")
        })
    }
}

/// The registration of a condition; `conditions![…]` calls it.
pub fn condition_registration_of<C: ResultCondition>(_condition: &C) -> Registration {
    Registration::of::<ConditionStep<C>>()
}

/// The registrations of the conditions that are named: `conditions![is_large, is_domestic]`. They go where the jobs go:
/// `.jobs(conditions![…])`.
#[macro_export]
macro_rules! conditions {
    ($($condition:path),* $(,)?) => {
        ::std::vec![$($crate::condition_registration_of(&$condition)),*]
    };
}

/// A condition, free of the type that it judges.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Conditional {
    /// Told by the store with the job's end.
    Data(Condition),
    /// Told by a step of this kind.
    Function(&'static str),
}

impl Conditional {
    /// The step that asks it.
    pub(crate) fn spec(&self) -> Result<JobSpec, InvalidInput> {
        match self {
            Self::Data(condition) => {
                let mut spec = crate::job::spec_of(&DataCondition { condition: condition.clone() })?;
                spec.queue = QueueName::new(INTERNAL_QUEUE)?;
                Ok(spec)
            }
            Self::Function(kind) => {
                if !kind.strip_prefix(KIND_PREFIX).is_some_and(|name| name.starts_with('.') && name.len() > 1) {
                    let problem = format!("is {kind:?}; the kind of a condition is \"{KIND_PREFIX}.\" and its name");
                    return Err(InvalidInput::new("condition", problem));
                }
                let payload = JsonText::encode("payload", &(), limits::PAYLOAD_BYTES_MAX)?;
                Ok(JobSpec::new(Kind::new(kind)?, payload))
            }
        }
    }
}
