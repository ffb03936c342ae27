//! Ids of jobs and nodes.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};
use uuid::Uuid;

use crate::invalid::InvalidInput;

macro_rules! uuid_id {
    ($(#[$doc:meta])* $name:ident, $field:literal) => {
        $(#[$doc])*
        #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
        pub struct $name(pub Uuid);

        impl $name {
            /// The sixteen bytes in which stores keep it; their order is the order of ids.
            pub fn as_bytes(&self) -> &[u8; 16] {
                self.0.as_bytes()
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                self.0.fmt(f)
            }
        }

        impl fmt::Debug for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                self.0.fmt(f)
            }
        }

        impl FromStr for $name {
            type Err = InvalidInput;
            fn from_str(text: &str) -> Result<Self, InvalidInput> {
                Uuid::from_str(text).map(Self).map_err(|_| {
                    InvalidInput::new($field, format!("is {text:?}, not a UUID such as 01890a5d-ac96-774b-bcce-b302099a8057"))
                })
            }
        }
    };
}

uuid_id!(
    /// The id of a job: a UUIDv7, so that ids sort by time of submission.
    JobId,
    "job id"
);
uuid_id!(
    /// The id of one incarnation of a node: new at every start, never used again.
    NodeId,
    "node id"
);
