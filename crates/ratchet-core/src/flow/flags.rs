use serde::Serialize;

use super::Join;

/// How a job is tied to others: what a store has to look after when it ends, and what it waits for.
///
/// Kept beside the job as a small number, so that a job without ties costs nothing.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct JobFlags(u16);

impl JobFlags {
    /// Others wait for its end.
    pub const DEPENDANTS: Self = Self(1);
    /// It waits, or waited, for others.
    pub const INPUTS: Self = Self(2);
    /// One edge that holds is enough for it; see [`Join::Any`].
    pub const JOIN_ANY: Self = Self(4);
    /// Of its edges at least one holds. Only kept for [`Join::Any`], while the job waits.
    pub const HELD: Self = Self(8);
    /// It is one of the jobs of a batch.
    pub const BATCH_CHILD: Self = Self(16);
    /// It stands for a batch.
    pub const BATCH: Self = Self(32);
    /// It waits for a signal that has not come yet.
    pub const SIGNAL: Self = Self(64);
    /// The signal that it waited for has come.
    pub const SIGNALED: Self = Self(128);

    /// No ties.
    pub const fn none() -> Self {
        Self(0)
    }

    /// Whether there are no ties.
    pub const fn is_none(self) -> bool {
        self.0 == 0
    }

    /// Whether all of `flags` are set.
    pub const fn has(self, flags: Self) -> bool {
        self.0 & flags.0 == flags.0
    }

    /// With these flags too.
    #[must_use]
    pub const fn with(self, flags: Self) -> Self {
        Self(self.0 | flags.0)
    }

    /// Without these flags.
    #[must_use]
    pub const fn without(self, flags: Self) -> Self {
        Self(self.0 & !flags.0)
    }

    /// As it is stored.
    pub const fn bits(self) -> u16 {
        self.0
    }

    /// As it was stored; flags of newer versions are kept.
    pub const fn from_bits(bits: u16) -> Self {
        Self(bits)
    }

    /// When the job's edges let it go.
    pub const fn join(self) -> Join {
        if self.has(Self::JOIN_ANY) { Join::Any } else { Join::All }
    }

    /// What is kept of it when the job has ended: what only waiting jobs have is gone.
    #[must_use]
    pub const fn at_rest(self) -> Self {
        self.without(Self::HELD)
    }
}

impl Serialize for JobFlags {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_u16(self.0)
    }
}
