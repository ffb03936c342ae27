//! Names and keys: text that was checked when it was made, so that nothing later needs to.

use std::fmt;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::invalid::InvalidInput;
use crate::limits;

macro_rules! checked_text {
    ($(#[$doc:meta])* $name:ident, $check:expr) => {
        $(#[$doc])*
        #[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
        #[serde(try_from = "String", into = "String")]
        pub struct $name(Arc<str>);

        impl $name {
            /// Checks the text against its limits.
            pub fn new(text: impl AsRef<str>) -> Result<Self, InvalidInput> {
                let checked: Result<Self, InvalidInput> = ($check)(text.as_ref()).map(|text: &str| Self(text.into()));
                checked
            }

            /// The text itself.
            pub fn as_str(&self) -> &str {
                &self.0
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(&self.0)
            }
        }

        impl fmt::Debug for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(f, "{:?}", &*self.0)
            }
        }

        impl TryFrom<String> for $name {
            type Error = InvalidInput;
            fn try_from(text: String) -> Result<Self, InvalidInput> {
                Self::new(text)
            }
        }

        impl TryFrom<&str> for $name {
            type Error = InvalidInput;
            fn try_from(text: &str) -> Result<Self, InvalidInput> {
                Self::new(text)
            }
        }

        impl From<$name> for String {
            fn from(name: $name) -> String {
                name.0.as_ref().to_owned()
            }
        }

        impl AsRef<str> for $name {
            fn as_ref(&self) -> &str {
                &self.0
            }
        }

        impl std::borrow::Borrow<str> for $name {
            fn borrow(&self) -> &str {
                &self.0
            }
        }
    };
}

checked_text!(
    /// The stable name of a job's handler, such as `billing.charge`.
    Kind,
    |text| limits::check_identifier("kind", text, limits::KIND_CHARS_MAX).map(|()| text)
);
checked_text!(
    /// The name of a queue: a lane of jobs with its own slots.
    QueueName,
    |text| limits::check_identifier("queue", text, limits::QUEUE_CHARS_MAX).map(|()| text)
);
checked_text!(
    /// A key that makes a submit happen once, for ever.
    IdempotencyKey,
    |text| limits::check_text("idempotency_key", text, limits::KEY_CHARS_MAX).map(|()| text)
);
checked_text!(
    /// A key that at most one live job holds.
    BusinessKey,
    |text| limits::check_text("business_key", text, limits::KEY_CHARS_MAX).map(|()| text)
);
checked_text!(
    /// The name of a signal that jobs wait for.
    SignalKey,
    |text| limits::check_text("signal key", text, limits::KEY_CHARS_MAX).map(|()| text)
);
checked_text!(
    /// The name of a limited resource that a job needs.
    ResourceName,
    |text| limits::check_name("resource", text, limits::RESOURCE_CHARS_MAX).map(|()| text)
);
checked_text!(
    /// The name of a service that jobs call.
    ServiceName,
    |text| limits::check_name("service", text, limits::SERVICE_CHARS_MAX).map(|()| text)
);
checked_text!(
    /// Who submitted a job.
    Principal,
    |text| limits::check_name("principal", text, limits::PRINCIPAL_CHARS_MAX).map(|()| text)
);
checked_text!(
    /// The name of a step within its workflow.
    StepName,
    |text| limits::check_text("step", text, limits::STEP_NAME_CHARS_MAX).map(|()| text)
);
checked_text!(
    /// A node's label for people; it need not be unique.
    NodeName,
    |text| limits::check_name("node name", text, limits::NODE_NAME_CHARS_MAX).map(|()| text)
);

macro_rules! read_back {
    ($($name:ident),*) => {
        $(impl $name {
            /// The name as a store has it. It is not checked: earlier versions took what this one would refuse, such as spaces
            /// around a name, and what has it must still be read.
            pub fn from_store(text: &str) -> Self {
                Self(text.into())
            }
        })*
    };
}
read_back!(Principal, ServiceName, NodeName);

/// A word to find jobs by: trimmed and lower case.
///
/// ```
/// use ratchet_core::Tag;
///
/// assert_eq!(Tag::new("  Billing ").unwrap().as_str(), "billing");
/// ```
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Tag(Arc<str>);

impl Tag {
    /// Trims, lowers and checks the text.
    pub fn new(text: impl AsRef<str>) -> Result<Self, InvalidInput> {
        let text = text.as_ref().trim().to_lowercase();
        limits::check_text("tag", &text, limits::TAG_CHARS_MAX)?;
        Ok(Self(text.into()))
    }

    /// The text itself.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for Tag {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl fmt::Debug for Tag {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}", &*self.0)
    }
}

impl TryFrom<String> for Tag {
    type Error = InvalidInput;
    fn try_from(text: String) -> Result<Self, InvalidInput> {
        Self::new(text)
    }
}

impl From<Tag> for String {
    fn from(tag: Tag) -> String {
        tag.0.as_ref().to_owned()
    }
}

impl QueueName {
    /// The queue of jobs that name none: `default`.
    pub fn default_queue() -> Self {
        Self("default".into())
    }
}

impl Default for QueueName {
    fn default() -> Self {
        Self::default_queue()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// MySQL takes names that differ by spaces at the end for the same, and other databases do not.
    #[test]
    fn names_that_databases_compare_have_no_spaces_around_them() {
        let check = |refused: Result<String, InvalidInput>| {
            let refused = refused.unwrap_err().to_string();
            assert!(
                refused.contains("begin or end with a space") || refused.contains("control character"),
                "{refused}"
            );
        };
        for text in ["alice ", " alice", "al\u{7}ice"] {
            check(Principal::new(text).map(String::from));
            check(ServiceName::new(text).map(String::from));
            check(NodeName::new(text).map(String::from));
            check(ResourceName::new(text).map(String::from));
        }
        assert_eq!(Principal::from_store("alice ").as_str(), "alice ", "what is stored is read");
    }
}
