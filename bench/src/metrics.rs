//! Measurements, and statistics of several of them.

use std::time::Duration;

/// One measurement of one round: the product's beside its reference.
#[derive(Debug, Clone)]
pub struct Sample {
    /// What was measured.
    pub name: &'static str,
    /// The product's value.
    pub value: f64,
    /// The reference: the raw value, or the product's without the feature that is measured.
    pub raw: f64,
    /// The product's against the raw one, in the same round.
    pub ratio: f64,
    /// What else is worth knowing, by name.
    pub extras: Vec<(&'static str, f64)>,
}

impl Sample {
    /// Returns a measurement beside its reference.
    pub fn new(name: &'static str, value: f64, raw: f64) -> Self {
        Self { name, value, raw, ratio: value / raw, extras: Vec::new() }
    }

    /// The same, with something else that is worth knowing.
    #[must_use]
    pub fn with(mut self, name: &'static str, value: f64) -> Self {
        self.extras.push((name, value));
        self
    }

    /// Returns the median of several rounds, each value by itself. The two of a round lie close together in time, so that what else the
    /// machine does spoils their ratio less than either of them.
    pub fn median(rounds: &[Self]) -> Self {
        let of = |field: &dyn Fn(&Self) -> f64| median(&rounds.iter().map(field).collect::<Vec<_>>());
        let first = &rounds[0];
        let mut sample = Self::new(first.name, of(&|sample| sample.value), of(&|sample| sample.raw));
        sample.ratio = of(&|sample| sample.ratio);
        sample.extras =
            (0..first.extras.len()).map(|n| (first.extras[n].0, of(&|sample| sample.extras[n].1))).collect();
        let ratios: Vec<f64> = rounds.iter().map(|sample| sample.ratio).collect();
        sample.with("ratio_lowest", percentile(&ratios, 0)).with("ratio_highest", percentile(&ratios, 100))
    }

    /// Something else that is worth knowing, if it is known.
    pub fn extra(&self, name: &str) -> Option<f64> {
        self.extras.iter().find(|extra| extra.0 == name).map(|extra| extra.1)
    }
}

/// The middle one.
pub fn median(values: &[f64]) -> f64 {
    percentile(values, 50)
}

/// Nearest rank.
pub fn percentile(values: &[f64], percent: usize) -> f64 {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    let rank = (sorted.len() * percent).div_ceil(100).max(1);
    sorted.get(rank - 1).copied().unwrap_or(0.0)
}

/// Jobs per second.
pub fn rate(jobs: usize, took: Duration) -> f64 {
    float(jobs) / took.as_secs_f64()
}

/// A count, to reckon with.
#[expect(clippy::cast_precision_loss, reason = "counts of a benchmark are far below 2^52")]
pub fn float(count: usize) -> f64 {
    count as f64
}

/// So much of something for each of so many jobs.
pub fn per_job(count: u64, jobs: usize) -> f64 {
    float(usize::try_from(count).unwrap_or(usize::MAX)) / float(jobs)
}

/// Microseconds.
pub fn micros(took: Duration) -> f64 {
    took.as_secs_f64() * 1e6
}
