use std::cmp::Ordering;
use std::fmt;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::invalid::InvalidInput;
use crate::json::JsonText;
use crate::state::JobState;

/// What the end of a job must be like for an edge to hold. It is data: stored with the edge and shown to people.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
pub enum Condition {
    /// The job succeeded.
    Success,
    /// The job failed for good.
    Failure,
    /// The job ran to its end, whatever came of it; not if it was canceled.
    Finished,
    /// The job has ended in any way, canceled too.
    Ended,
    /// The job succeeded, and its result passes a test.
    #[serde(rename = "RESULT_VALUE")]
    Result(ResultTest),
}

impl Condition {
    /// The names of all conditions.
    pub const NAMES: [&str; 5] = ["SUCCESS", "FAILURE", "FINISHED", "ENDED", "RESULT_VALUE"];

    /// Its name, in capitals.
    pub const fn as_str(&self) -> &'static str {
        match self {
            Self::Success => "SUCCESS",
            Self::Failure => "FAILURE",
            Self::Finished => "FINISHED",
            Self::Ended => "ENDED",
            Self::Result(_) => "RESULT_VALUE",
        }
    }

    /// The condition of a stored name and test.
    pub fn from_parts(name: &str, test: Option<ResultTest>) -> Option<Self> {
        match (name, test) {
            ("SUCCESS", None) => Some(Self::Success),
            ("FAILURE", None) => Some(Self::Failure),
            ("FINISHED", None) => Some(Self::Finished),
            ("ENDED", None) => Some(Self::Ended),
            ("RESULT_VALUE", Some(test)) => Some(Self::Result(test)),
            _ => None,
        }
    }

    /// The test of the result, if it is one.
    pub const fn test(&self) -> Option<&ResultTest> {
        match self {
            Self::Result(test) => Some(test),
            _ => None,
        }
    }

    /// Whether a job that ended so makes the edge hold; why it cannot be told, if it cannot.
    pub fn holds(&self, state: JobState, result: Option<&JsonText>) -> Result<bool, String> {
        let succeeded = state == JobState::Succeeded;
        match self {
            Self::Success => Ok(succeeded),
            Self::Failure => Ok(state == JobState::Failed),
            Self::Finished => Ok(succeeded || state == JobState::Failed),
            Self::Ended => Ok(true),
            Self::Result(test) if succeeded => test.passes(result),
            Self::Result(_) => Ok(false),
        }
    }
}

impl fmt::Display for Condition {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Result(test) => test.fmt(f),
            other => f.write_str(&other.as_str().to_ascii_lowercase()),
        }
    }
}

/// A test of a job's result: the value at a JSON pointer, compared.
///
/// ```
/// use ratchet_core::JsonText;
/// use ratchet_core::flow::{Operator, ResultTest};
///
/// let test = ResultTest::new("/total", Operator::AtLeast, 100)?;
/// let result = JsonText::encode("result", &serde_json::json!({ "total": 120 }), 64)?;
/// assert_eq!(test.passes(Some(&result)), Ok(true));
/// # Ok::<(), ratchet_core::InvalidInput>(())
/// ```
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ResultTest {
    /// Where to look: a JSON pointer, the empty text being the whole result.
    pub pointer: String,
    /// How to compare.
    pub operator: Operator,
    /// With what.
    #[serde(default)]
    pub value: Value,
}

/// How a [`ResultTest`] compares.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
pub enum Operator {
    /// Is the value.
    Is,
    /// Is anything but the value.
    IsNot,
    /// Is more than the value: two numbers or two texts.
    MoreThan,
    /// Is the value or more.
    AtLeast,
    /// Is less than the value.
    LessThan,
    /// Is the value or less.
    AtMost,
    /// Is one of the values of a list.
    OneOf,
    /// Is a list that has the value in it, or a text that has it as a part.
    Contains,
    /// Is there, and is not null.
    Exists,
}

impl Operator {
    const fn sign(self) -> &'static str {
        match self {
            Self::Is => "=",
            Self::IsNot => "!=",
            Self::MoreThan => ">",
            Self::AtLeast => ">=",
            Self::LessThan => "<",
            Self::AtMost => "<=",
            Self::OneOf => "is one of",
            Self::Contains => "contains",
            Self::Exists => "exists",
        }
    }
}

/// Characters of a pointer.
const POINTER_MAX: usize = 255;
/// Bytes of a value to compare with.
const VALUE_BYTES_MAX: usize = 4_096;

impl ResultTest {
    /// A test, checked.
    ///
    /// # Errors
    /// If the pointer is not one, or the value is none that the operator could ever be asked about.
    pub fn new(pointer: impl Into<String>, operator: Operator, value: impl Into<Value>) -> Result<Self, InvalidInput> {
        let test = Self { pointer: pointer.into(), operator, value: value.into() };
        test.check()?;
        Ok(test)
    }

    /// Checks what the field types cannot.
    pub fn check(&self) -> Result<(), InvalidInput> {
        let Self { pointer, operator, value } = self;
        if !(pointer.is_empty() || pointer.starts_with('/')) {
            let problem = format!("is {pointer:?}; a JSON pointer is empty or begins with a slash, like /total");
            return Err(InvalidInput::new("pointer", problem));
        }
        if pointer.chars().count() > POINTER_MAX {
            return Err(InvalidInput::new("pointer", format!("is longer than {POINTER_MAX} characters")));
        }
        if pointer.contains('\0') || value.to_string().contains("\\u0000") {
            return Err(InvalidInput::new("condition", "contains a NUL character"));
        }
        if value.to_string().len() > VALUE_BYTES_MAX {
            return Err(InvalidInput::new("value", format!("is longer than {VALUE_BYTES_MAX} bytes of JSON")));
        }
        let fits = match operator {
            Operator::Is | Operator::IsNot | Operator::Contains | Operator::Exists => true,
            Operator::OneOf => value.is_array(),
            Operator::MoreThan | Operator::AtLeast | Operator::LessThan | Operator::AtMost => {
                value.is_number() || value.is_string()
            }
        };
        if fits {
            return Ok(());
        }
        let wanted = if *operator == Operator::OneOf { "a list" } else { "a number or a text" };
        Err(InvalidInput::new("value", format!("is {value}; `{}` compares with {wanted}", operator.sign())))
    }

    /// Whether a result passes; why it cannot be told, if it cannot.
    ///
    /// A value that is not there, or of another sort than what it is compared with, is an error and not a no: most
    /// often the pointer is wrong, and a branch that is never taken would hide it.
    pub fn passes(&self, result: Option<&JsonText>) -> Result<bool, String> {
        let text = result.map_or("null", JsonText::as_str);
        let result: Value = serde_json::from_str(text).map_err(|error| format!("the result is no JSON: {error}"))?;
        let found = result.pointer(&self.pointer);
        if self.operator == Operator::Exists {
            return Ok(found.is_some_and(|found| !found.is_null()));
        }
        let Some(found) = found else { return Err(format!("the result has nothing at {:?}", self.pointer)) };
        let incomparable = || format!("{} at {:?} cannot be compared with {}", sort(found), self.pointer, self.value);
        let compared = || compare(found, &self.value).ok_or_else(incomparable);
        match (self.operator, &self.value) {
            (Operator::Is, value) => Ok(equal(found, value)),
            (Operator::IsNot, value) => Ok(!equal(found, value)),
            (Operator::MoreThan, _) => Ok(compared()?.is_gt()),
            (Operator::AtLeast, _) => Ok(compared()?.is_ge()),
            (Operator::LessThan, _) => Ok(compared()?.is_lt()),
            (Operator::AtMost, _) => Ok(compared()?.is_le()),
            (Operator::OneOf, Value::Array(values)) => Ok(values.iter().any(|value| equal(found, value))),
            (Operator::Contains, value) => match (found, value) {
                (Value::Array(values), value) => Ok(values.iter().any(|one| equal(one, value))),
                (Value::String(text), Value::String(part)) => Ok(text.contains(part.as_str())),
                _ => Err(incomparable()),
            },
            (Operator::OneOf | Operator::Exists, _) => Err(incomparable()),
        }
    }
}

impl fmt::Display for ResultTest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let place = if self.pointer.is_empty() { "result" } else { &self.pointer };
        match self.operator {
            Operator::Exists => write!(f, "{place} exists"),
            operator => write!(f, "{place} {} {}", operator.sign(), self.value),
        }
    }
}

fn sort(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "a truth value",
        Value::Number(_) => "a number",
        Value::String(_) => "a text",
        Value::Array(_) => "a list",
        Value::Object(_) => "an object",
    }
}

/// Numbers are equal by value: 1 and 1.0 are.
fn equal(a: &Value, b: &Value) -> bool {
    if a.is_number() && b.is_number() { compare(a, b) == Some(Ordering::Equal) } else { a == b }
}

fn compare(a: &Value, b: &Value) -> Option<Ordering> {
    match (a, b) {
        (Value::String(a), Value::String(b)) => Some(a.cmp(b)),
        (Value::Number(a), Value::Number(b)) => match (whole(a), whole(b)) {
            (Some(a), Some(b)) => Some(a.cmp(&b)),
            _ => a.as_f64()?.partial_cmp(&b.as_f64()?),
        },
        _ => None,
    }
}

fn whole(number: &serde_json::Number) -> Option<i128> {
    number.as_i64().map(i128::from).or_else(|| number.as_u64().map(i128::from))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn text(value: &Value) -> JsonText {
        JsonText::encode("result", value, 1_000).unwrap()
    }

    #[test]
    fn a_condition_holds_by_the_state_alone_unless_it_tests_the_result() {
        use Condition::{Ended, Failure, Finished, Success};
        let check = |condition: &Condition, expected: [bool; 3]| {
            let states = [JobState::Succeeded, JobState::Failed, JobState::Canceled];
            assert_eq!(states.map(|state| condition.holds(state, None).unwrap()), expected, "{condition}");
        };
        check(&Success, [true, false, false]);
        check(&Failure, [false, true, false]);
        check(&Finished, [true, true, false]);
        check(&Ended, [true, true, true]);
        check(&Condition::Result(ResultTest::new("", Operator::Is, Value::Null).unwrap()), [true, false, false]);
    }

    #[test]
    fn a_test_compares_what_is_at_the_pointer() {
        use Operator::{AtLeast, AtMost, Contains, Exists, Is, IsNot, LessThan, MoreThan, OneOf};
        let result = text(&json!({ "n": 10, "f": 1.5, "s": "mango", "l": [1, "a"], "z": null, "b": true }));
        let check = |pointer: &str, operator, value: Value, expected: Result<bool, &str>| {
            let test = ResultTest::new(pointer, operator, value).unwrap();
            assert_eq!(test.passes(Some(&result)), expected.map_err(str::to_owned), "{test}");
        };
        check("/n", Is, json!(10), Ok(true));
        check("/n", Is, json!(10.0), Ok(true));
        check("/n", IsNot, json!("10"), Ok(true));
        check("/n", MoreThan, json!(9.5), Ok(true));
        check("/n", MoreThan, json!(10), Ok(false));
        check("/n", AtLeast, json!(10), Ok(true));
        check("/n", AtMost, json!(10), Ok(true));
        check("/f", LessThan, json!(2), Ok(true));
        check("/s", LessThan, json!("pear"), Ok(true));
        check("/s", OneOf, json!(["kiwi", "mango"]), Ok(true));
        check("/s", OneOf, json!([]), Ok(false));
        check("/s", Contains, json!("ang"), Ok(true));
        check("/l", Contains, json!("a"), Ok(true));
        check("/l/0", Is, json!(1), Ok(true));
        check("/z", Is, Value::Null, Ok(true));
        check("/z", Exists, Value::Null, Ok(false));
        check("/nowhere", Exists, Value::Null, Ok(false));
        check("/b", Exists, Value::Null, Ok(true));
        check("/nowhere", Is, json!(1), Err("the result has nothing at \"/nowhere\""));
        check("/s", MoreThan, json!(1), Err("a text at \"/s\" cannot be compared with 1"));
        check("/n", Contains, json!(1), Err("a number at \"/n\" cannot be compared with 1"));
    }

    #[test]
    fn a_test_that_could_never_be_answered_is_refused() {
        let check = |pointer: &str, operator, value: Value, expected: &str| {
            assert_eq!(ResultTest::new(pointer, operator, value).unwrap_err().to_string(), expected);
        };
        check(
            "total",
            Operator::Is,
            json!(1),
            "`pointer` is \"total\"; a JSON pointer is empty or begins with a slash, like /total",
        );
        check("/a", Operator::MoreThan, json!([1]), "`value` is [1]; `>` compares with a number or a text");
        check("/a", Operator::OneOf, json!(1), "`value` is 1; `is one of` compares with a list");
    }

    #[test]
    fn large_whole_numbers_are_compared_exactly() {
        let result = text(&json!(9_007_199_254_740_993_u64));
        let test = ResultTest::new("", Operator::Is, 9_007_199_254_740_992_u64).unwrap();
        assert_eq!(test.passes(Some(&result)), Ok(false));
    }
}
