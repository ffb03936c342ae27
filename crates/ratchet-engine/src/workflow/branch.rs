use ratchet_core::InvalidInput;
use ratchet_core::flow::{Condition, Operator, ResultTest};
use serde_json::Value;

use super::condition::{Conditional, ResultCondition};

/// When a branch is taken: a condition, what it means, and its place among others.
#[derive(Debug, Clone)]
pub struct When {
    pub(crate) condition: Result<Conditional, InvalidInput>,
    pub(crate) description: Option<String>,
    pub(crate) priority: i32,
}

impl When {
    fn of(condition: Result<Conditional, InvalidInput>) -> Self {
        Self { condition, description: None, priority: 0 }
    }

    pub(crate) fn data(condition: Condition) -> Self {
        Self::of(Ok(Conditional::Data(condition)))
    }

    /// What it means, for people: at most 255 characters.
    #[must_use]
    pub fn describe(mut self, description: impl Into<String>) -> Self {
        self.description = Some(description.into());
        self
    }

    /// Among exclusive branches the lowest is asked first; 0 unless said otherwise, and of equals the first defined.
    #[must_use]
    pub fn priority(mut self, priority: i32) -> Self {
        self.priority = priority;
        self
    }
}

/// A condition on a result of type `T`.
///
/// A [`When`], a [`Condition`] or a [`ResultTest`] is one on any result; a function under `#[condition]` only on the type
/// that it takes, which the compiler checks.
pub trait IntoBranch<T>: Sized {
    /// The condition.
    fn into_branch(self) -> When;

    /// With a description.
    fn describe(self, description: impl Into<String>) -> When {
        self.into_branch().describe(description)
    }

    /// With a place among exclusive branches.
    fn priority(self, priority: i32) -> When {
        self.into_branch().priority(priority)
    }
}

impl<T> IntoBranch<T> for When {
    fn into_branch(self) -> When {
        self
    }
}

impl<T> IntoBranch<T> for Condition {
    fn into_branch(self) -> When {
        When::data(self)
    }
}

impl<T> IntoBranch<T> for ResultTest {
    fn into_branch(self) -> When {
        When::data(Condition::Result(self))
    }
}

impl<C: ResultCondition> IntoBranch<C::Input> for C {
    fn into_branch(self) -> When {
        When::of(Ok(Conditional::Function(C::KIND)))
    }
}

/// The value at a JSON pointer in a job's result, to be compared: `result("/total").at_least(100)`.
///
/// The empty pointer is the whole result.
pub fn result(pointer: impl Into<String>) -> ResultAt {
    ResultAt(pointer.into())
}

/// The place in a result that a condition is about; made by [`result`].
#[derive(Debug, Clone)]
pub struct ResultAt(String);

macro_rules! comparisons {
    ($($(#[$doc:meta])* $name:ident => $operator:ident;)*) => {
        impl ResultAt {
            $($(#[$doc])*
            pub fn $name(self, value: impl Into<Value>) -> When {
                let test = ResultTest::new(self.0, Operator::$operator, value);
                When::of(test.map(|test| Conditional::Data(Condition::Result(test))))
            })*

            /// Is there, and is not null.
            pub fn exists(self) -> When {
                let test = ResultTest::new(self.0, Operator::Exists, Value::Null);
                When::of(test.map(|test| Conditional::Data(Condition::Result(test))))
            }
        }
    };
}

comparisons! {
    /// Is this value.
    is => Is;
    /// Is anything but this value.
    is_not => IsNot;
    /// Is more than this number or text.
    more_than => MoreThan;
    /// Is this number or text, or more.
    at_least => AtLeast;
    /// Is less than this number or text.
    less_than => LessThan;
    /// Is this number or text, or less.
    at_most => AtMost;
    /// Is one of the values of this list.
    one_of => OneOf;
    /// Is a list that has this value in it, or a text with this part.
    contains => Contains;
}
