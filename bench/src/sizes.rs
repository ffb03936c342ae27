//! How much is measured.

pub(crate) struct Sizes {
    /// Rounds that count; one small one before them warms caches and the write-ahead log.
    pub(crate) rounds: usize,
    pub(crate) single: usize,
    pub(crate) callers_64: usize,
    pub(crate) bulk: usize,
    pub(crate) drain: usize,
    pub(crate) end_to_end: usize,
    /// Submits to an idle node.
    pub(crate) latency: usize,
    /// How many jobs wait when claims are timed, in growing order.
    pub(crate) backlogs: &'static [usize],
    /// Claims that are timed at each backlog.
    pub(crate) claims: usize,
    /// What is written before anything is timed, so that the log's files are there.
    pub(crate) warm_mb: usize,
}

impl Sizes {
    pub(crate) const FULL: Self = Self {
        rounds: 3,
        single: 2_000,
        callers_64: 40_000,
        bulk: 100_000,
        drain: 100_000,
        end_to_end: 50_000,
        latency: 200,
        backlogs: &[1_000, 100_000, 1_000_000],
        claims: 200,
        warm_mb: 1_024,
    };
    pub(crate) const QUICK: Self = Self {
        rounds: 3,
        single: 600,
        callers_64: 6_000,
        bulk: 20_000,
        drain: 6_000,
        end_to_end: 5_000,
        latency: 20,
        backlogs: &[1_000, 100_000],
        claims: 30,
        warm_mb: 128,
    };
    /// The round that does not count.
    pub(crate) const WARM: Self = Self {
        rounds: 1,
        single: 100,
        callers_64: 2_000,
        bulk: 10_000,
        drain: 2_000,
        end_to_end: 2_000,
        latency: 5,
        backlogs: &[],
        claims: 0,
        warm_mb: 0,
    };
}
