//! Ids of jobs, nodes and deliveries.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
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
uuid_id!(
    /// The id of one delivery of a signal: the same for every job that it reached.
    DeliveryId,
    "delivery id"
);

impl JobId {
    /// The least id of this millisecond: a job that was made before has a lower one, as far as clocks agree.
    #[must_use]
    pub fn floor(at: jiff::Timestamp) -> Self {
        let ms = u64::try_from(at.as_millisecond()).unwrap_or(0);
        Self(Uuid::from_u64_pair(ms << 16, 0))
    }

    /// The least id above this one; the highest of all follows itself.
    #[must_use]
    pub const fn following(self) -> Self {
        Self(Uuid::from_u128(self.0.as_u128().saturating_add(1)))
    }
}

/// The id of a job that follows from another: the same every time it is asked for, so that it is stored once.
///
/// `number` and `what` tell the followers of one job apart. The id sorts with the job that it follows from.
pub fn derived_id(of: JobId, number: u64, what: &str) -> JobId {
    let mut time = [0; 6];
    time.copy_from_slice(&of.as_bytes()[..6]);
    id_from(time, &[of.as_bytes(), &number.to_be_bytes(), what.as_bytes()])
}

/// The id of the job that a schedule fires for an instant: the same whoever fires, so that it is stored once.
pub fn fire_id(schedule: JobId, instant: jiff::Timestamp) -> JobId {
    let ms = u64::try_from(instant.as_millisecond()).unwrap_or(0).to_be_bytes();
    let mut time = [0; 6];
    time.copy_from_slice(&ms[2..]);
    id_from(time, &[schedule.as_bytes(), &instant.as_microsecond().to_be_bytes(), b"fire"])
}

/// The id of the schedule that the code of nodes declares for a kind: the same on every node.
pub fn declared_id(kind: &str) -> JobId {
    id_from([0; 6], &[kind.as_bytes(), b"declared"])
}

/// A UUIDv7 of this time, in milliseconds, whose other bits come from `parts`.
fn id_from(time: [u8; 6], parts: &[&[u8]]) -> JobId {
    let mut hasher = Sha256::new();
    for part in parts {
        hasher.update((part.len() as u64).to_be_bytes());
        hasher.update(part);
    }
    let digest = hasher.finalize();
    let mut bytes = [0; 16];
    bytes[..6].copy_from_slice(&time);
    bytes[6..].copy_from_slice(&digest[..10]);
    bytes[6] = 0x70 | (bytes[6] & 0x0f);
    bytes[8] = 0x80 | (bytes[8] & 0x3f);
    JobId(Uuid::from_bytes(bytes))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_derived_id_is_the_same_again_and_another_for_anything_else() {
        let of: JobId = "01890a5d-ac96-774b-bcce-b302099a8057".parse().unwrap();
        let one = derived_id(of, 1, "on_failure");
        assert_eq!(one, derived_id(of, 1, "on_failure"));
        assert_ne!(one, derived_id(of, 2, "on_failure"));
        assert_ne!(one, derived_id(of, 1, "on_success"));
        let made = jiff::Timestamp::from_millisecond(0x0189_0a5d_ac96).unwrap();
        let next = jiff::Timestamp::from_millisecond(0x0189_0a5d_ac97).unwrap();
        assert!(JobId::floor(made) <= of && of < JobId::floor(next), "an id is at or above the floor of its time");
        assert_eq!((one.0.get_version_num(), one.as_bytes()[..6] == of.as_bytes()[..6]), (7, true));
    }
}
