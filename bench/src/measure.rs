//! What is measured, and how the rounds are interleaved.

use std::path::Path;

use crate::product::Product;
use crate::raw_sqlite::Raw;

/// How much is measured.
pub(crate) struct Sizes {
    pub(crate) rounds: usize,
    pub(crate) single: usize,
    pub(crate) callers_64: usize,
    pub(crate) bulk: usize,
    pub(crate) drain: usize,
    pub(crate) end_to_end: usize,
    pub(crate) latency: usize,
}

impl Sizes {
    pub(crate) const FULL: Self = Self {
        rounds: 5,
        single: 3_000,
        callers_64: 40_000,
        bulk: 100_000,
        drain: 100_000,
        end_to_end: 100_000,
        latency: 300,
    };
    pub(crate) const QUICK: Self = Self {
        rounds: 3,
        single: 500,
        callers_64: 10_000,
        bulk: 20_000,
        drain: 20_000,
        end_to_end: 20_000,
        latency: 50,
    };
}

/// One measure: the product's figure beside the raw one.
pub(crate) struct Measure {
    pub(crate) name: &'static str,
    pub(crate) unit: &'static str,
    pub(crate) what: String,
    pub(crate) value: f64,
    pub(crate) raw: f64,
}

/// Rows in one raw transaction where the product's group commit decides for itself.
const GROUP: usize = 64;
const BULK: usize = 1_000;

pub(crate) async fn sqlite(sizes: &Sizes) -> anyhow::Result<Vec<Measure>> {
    let batch = ratchet::Slots::default().tasks;
    let mut rows: Vec<Rounds> = vec![
        Rounds::new("submit_1", "jobs/s", "one caller, a commit each".to_owned()),
        Rounds::new("submit_64", "jobs/s", format!("64 callers one by one; raw: {GROUP} rows a commit, 1 connection")),
        Rounds::new("submit_bulk", "jobs/s", format!("{BULK} jobs a call")),
        Rounds::new("drain", "jobs/s", format!("{} no-op jobs; raw: {batch} a commit, as many as slots", sizes.drain)),
        Rounds::new("end_to_end", "jobs/s", format!("bulk submit and drain at once; raw: {batch} a commit")),
        Rounds::new("idle_p50", "us", "submit → handler starts, idle node; raw: submit + claim of one".to_owned()),
        Rounds::new("idle_p99", "us", "the same, p99".to_owned()),
    ];
    for round in 0..=sizes.rounds {
        // The first round warms caches and the write-ahead log; it is not counted.
        let figures = one_round(sizes, batch).await?;
        for (row, figure) in rows.iter_mut().zip(figures) {
            if round > 0 {
                row.figures.push(figure);
            }
        }
        eprintln!("round {round} of {} done", sizes.rounds);
    }
    Ok(rows.into_iter().map(Rounds::median).collect())
}

/// (product, raw) of each measure, raw and product in turn, each on a file of its own.
async fn one_round(sizes: &Sizes, batch: usize) -> anyhow::Result<Vec<(f64, f64)>> {
    let dir = tempfile::tempdir()?;
    let file = |name: &str| dir.path().join(name);
    let mut figures = Vec::new();

    let raw = raw_at(&file("raw-1")).await?.submit(sizes.single, 1).await?;
    figures.push((Product::at(&file("p-1")).await?.submit(sizes.single, 1).await?, raw));
    let raw = raw_at(&file("raw-64")).await?.submit(sizes.callers_64, GROUP).await?;
    figures.push((Product::at(&file("p-64")).await?.submit(sizes.callers_64, 64).await?, raw));
    let raw = raw_at(&file("raw-bulk")).await?.submit(sizes.bulk, BULK).await?;
    figures.push((Product::at(&file("p-bulk")).await?.submit_bulk(sizes.bulk, BULK).await?, raw));

    let mut raw = raw_at(&file("raw-drain")).await?;
    raw.submit(sizes.drain, BULK).await?;
    let raw = raw.drain(sizes.drain, batch).await?;
    let product = Product::at(&file("p-drain")).await?;
    product.submit_bulk(sizes.drain, BULK).await?;
    figures.push((product.drain(sizes.drain).await?, raw));

    let raw = raw_at(&file("raw-e2e")).await?.end_to_end(sizes.end_to_end, BULK, batch).await?;
    figures.push((Product::at(&file("p-e2e")).await?.end_to_end(sizes.end_to_end, BULK).await?, raw));

    let raw = raw_at(&file("raw-idle")).await?.submit_and_claim_one(sizes.latency).await?;
    let product = Product::at(&file("p-idle")).await?.idle_latency(sizes.latency).await?;
    figures.push((percentile(&product, 50), percentile(&raw, 50)));
    figures.push((percentile(&product, 99), percentile(&raw, 99)));
    Ok(figures)
}

async fn raw_at(path: &Path) -> anyhow::Result<Raw> {
    Raw::at(path).await
}

struct Rounds {
    name: &'static str,
    unit: &'static str,
    what: String,
    figures: Vec<(f64, f64)>,
}

impl Rounds {
    fn new(name: &'static str, unit: &'static str, what: String) -> Self {
        Self { name, unit, what, figures: Vec::new() }
    }

    fn median(self) -> Measure {
        let values: Vec<f64> = self.figures.iter().map(|(value, _)| *value).collect();
        let raws: Vec<f64> = self.figures.iter().map(|(_, raw)| *raw).collect();
        let (value, raw) = (percentile(&values, 50), percentile(&raws, 50));
        Measure { name: self.name, unit: self.unit, what: self.what, value, raw }
    }
}

/// Nearest rank.
pub(crate) fn percentile(values: &[f64], percent: usize) -> f64 {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    let rank = (sorted.len() * percent).div_ceil(100).max(1);
    sorted.get(rank - 1).copied().unwrap_or(0.0)
}

/// Jobs per second.
#[expect(clippy::cast_precision_loss, reason = "some hundred thousand")]
pub(crate) fn rate(jobs: usize, took: std::time::Duration) -> f64 {
    jobs as f64 / took.as_secs_f64()
}
