use std::fmt;
use std::marker::PhantomData;

use ratchet_core::flow::{Condition, Operator, ResultTest};
use ratchet_core::{Input, InvalidInput, JobSpec, JobState, JsonText, Kind, QueueName, limits};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::client::Client;
use crate::job::failure::Failure;
use crate::job::registry::Registration;
use crate::job::{Job, JobDefaults};
use crate::protect::codec::CodecError;
use crate::pump::slots::INTERNAL_QUEUE;
use crate::run::context::{JobContext, decode_input};

/// What the kinds of steps begin with that tell whether a condition holds.
pub(crate) const CONDITION_PREFIX: &str = "ratchet.when";

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
    /// It is tried again like any job; after the last try the branch, and what follows it, is canceled, and this step is in
    /// the dead letter queue with the error.
    fn holds(input: &Self::Input) -> Result<bool, Failure>;
}

/// The step that asks a [`ResultCondition`]; `conditions![…]` registers it.
pub struct ConditionStep<C> {
    answers: Answers,
    _condition: PhantomData<fn() -> C>,
}

impl<C> fmt::Debug for ConditionStep<C> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("ConditionStep")
    }
}

impl<C> Serialize for ConditionStep<C> {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.answers.serialize(serializer)
    }
}

impl<'de, C> Deserialize<'de> for ConditionStep<C> {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Answers::deserialize(deserializer).map(|answers| Self { answers, _condition: PhantomData })
    }
}

impl<C: ResultCondition> Job for ConditionStep<C> {
    const KIND: &'static str = C::KIND;
    type Output = JsonText;

    async fn run(self, ctx: JobContext) -> Result<JsonText, Failure> {
        let input = judged(&ctx)?;
        let holds = input.state == JobState::Succeeded && C::holds(&decode_input(input)?)?;
        self.answers.answer(holds, &ctx)
    }
}

/// The step that asks a condition which is data, where it stands among others that are not: every node has it.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct DataCondition {
    pub(crate) condition: Condition,
    #[serde(default)]
    answers: Answers,
}

impl Job for DataCondition {
    const KIND: &'static str = CONDITION_PREFIX;
    type Output = JsonText;

    fn defaults() -> JobDefaults {
        JobDefaults::default().max_retries(0)
    }

    async fn run(self, ctx: JobContext) -> Result<JsonText, Failure> {
        let input = judged(&ctx)?;
        let holds = self.condition.holds(input.state, input.result.as_ref()).map_err(|problem| {
            let text = format!("{problem} ({})", self.condition);
            Failure::do_not_retry(text, "the result will not change")
        })?;
        self.answers.answer(holds, &ctx)
    }
}

/// The job whose result a condition is about: that of the first edge.
fn judged(ctx: &JobContext) -> Result<&Input, Failure> {
    let nothing = || Failure::do_not_retry("a condition without a job to judge", "nothing will come");
    ctx.inputs().first().ok_or_else(nothing)
}

/// What the step of a condition has as its result.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub(crate) enum Answers {
    /// Yes or no.
    #[default]
    Plainly,
    /// That, and the result that was judged: for a step that waits for this one and not for the job before.
    WithResult,
}

#[derive(Serialize, Deserialize)]
struct Answer {
    holds: bool,
    judged: JsonText,
}

impl Answers {
    fn answer(self, holds: bool, ctx: &JobContext) -> Result<JsonText, Failure> {
        // As it is stored: this step's own result is in the open.
        let judged =
            || ctx.stored_inputs().first().and_then(|input| input.result.clone()).unwrap_or_else(JsonText::null);
        let answer = match self {
            Self::Plainly => JsonText::encode("result", &holds, limits::RESULT_BYTES_MAX),
            Self::WithResult => {
                JsonText::encode("result", &Answer { holds, judged: judged() }, limits::RESULT_BYTES_MAX)
            }
        };
        answer.map_err(|refused| Failure::do_not_retry(refused, "the result will not change"))
    }

    /// Whether the step said this.
    pub(crate) fn said(self, yes: bool) -> Result<Condition, InvalidInput> {
        let pointer = match self {
            Self::Plainly => "",
            Self::WithResult => "/holds",
        };
        ResultTest::new(pointer, Operator::Is, Value::Bool(yes)).map(Condition::Result)
    }
}

/// What a job before hands over: its result, or that of the job behind a condition; `None` if a condition only says yes.
pub(crate) fn handed_over(input: &Input) -> Option<JsonText> {
    if !input.kind.as_str().starts_with(CONDITION_PREFIX) {
        return Some(input.result.clone().unwrap_or_else(JsonText::null));
    }
    input.result.as_ref()?.decode::<Answer>().ok().map(|answer| answer.judged)
}

/// The result of a job before, decoded; also inside the answer of a condition.
pub(crate) fn open_result(client: &Client, input: &Input) -> Result<Option<JsonText>, CodecError> {
    let Some(stored) = &input.result else { return Ok(None) };
    if !input.kind.as_str().starts_with(CONDITION_PREFIX) {
        return client.decoded(stored).map(Some);
    }
    let Ok(answer) = stored.decode::<Answer>() else { return Ok(Some(stored.clone())) };
    let decoded = Answer { judged: client.decoded(&answer.judged)?, ..answer };
    let text = serde_json::to_string(&decoded).expect("a flag and JSON are JSON");
    Ok(Some(JsonText::from_store(text)))
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
    ///
    /// One that is a function stays in the default queue: every node that has registered it serves that one.
    pub(crate) fn spec(&self, answers: Answers) -> Result<JobSpec, InvalidInput> {
        match self {
            Self::Data(condition) => {
                let mut spec = crate::job::spec_of(&DataCondition { condition: condition.clone(), answers })?;
                spec.queue = QueueName::new(INTERNAL_QUEUE)?;
                Ok(spec)
            }
            Self::Function(kind) => {
                if !kind.strip_prefix(CONDITION_PREFIX).is_some_and(|name| name.starts_with('.') && name.len() > 1) {
                    let problem =
                        format!("is {kind:?}; the kind of a condition is \"{CONDITION_PREFIX}.\" and its name");
                    return Err(InvalidInput::new("condition", problem));
                }
                let payload = JsonText::encode("payload", &answers, limits::PAYLOAD_BYTES_MAX)?;
                Ok(JobSpec::new(Kind::new(kind)?, payload))
            }
        }
    }
}
