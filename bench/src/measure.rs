//! What is measured, and how the rounds are interleaved.

use std::time::Duration;

use anyhow::Result;
use ratchet_bench::metrics::{Sample, per_job, percentile, rate};

use crate::claims;
use crate::product::{From, Tuned};
use crate::site::Site;
use crate::sizes::Sizes;
use crate::target::{self, Target};
use crate::{ceiling, product};

/// One measure: medians over the rounds, and what they should be.
pub(crate) struct Measure {
    pub(crate) sample: Sample,
    pub(crate) unit: &'static str,
    pub(crate) what: String,
    pub(crate) target: Option<Target>,
}

/// Callers that submit one by one, and the rows of one raw transaction beside them.
const CALLERS: usize = 64;
const BULK: usize = 1_000;
/// A node that was tuned for many small jobs.
const TUNED: Tuned = Tuned { slots: 2_000, claim_max: 1_000 };
/// Turns that the product and the bare statements take within a round of submits.
const SLICES: usize = 10;
/// Between two submits to an idle node.
const PAUSE: Duration = Duration::from_millis(15);

const ROUND: &[&str] =
    &["submit_1", "submit_64", "submit_bulk", "drain", "drain_tuned", "end_to_end", "idle", "remote"];

pub(crate) async fn run(site: &dyn Site, sizes: &Sizes, only: &[String]) -> Result<Vec<Measure>> {
    site.warm(sizes.warm_mb).await?;
    let wanted = |name: &&&str| only.is_empty() || only.iter().any(|word| name.starts_with(word.as_str()));
    let names: Vec<&str> = ROUND.iter().filter(wanted).copied().collect();
    let mut rounds: Vec<Vec<Sample>> = Vec::new();
    for round in 0..=sizes.rounds {
        // The first round is not counted.
        let sizes = if round == 0 { &Sizes::WARM } else { sizes };
        let first = if round % 2 == 0 { First::Raw } else { First::Product };
        let mut samples = Vec::new();
        for name in &names {
            samples.extend(one(site, sizes, name, first).await?);
        }
        if round > 0 {
            rounds.push(samples);
        }
        eprintln!("round {round} done");
    }
    let of = |n: usize| rounds.iter().map(|samples| samples[n].clone()).collect::<Vec<_>>();
    let count = rounds.first().map_or(0, Vec::len);
    let mut samples: Vec<Sample> = (0..count).map(|n| Sample::median(&of(n))).collect();
    if wanted(&&"claim") {
        samples.extend(claims::against_backlog(site, sizes).await?);
    }
    Ok(samples.into_iter().map(|sample| measure(site.name(), sizes, sample)).collect())
}

/// One measure of one round.
async fn one(site: &dyn Site, sizes: &Sizes, name: &str, first: First) -> Result<Vec<Sample>> {
    let batch = ratchet::Slots::default().tasks;
    let samples = match name {
        "submit_1" => vec![submit(site, "submit_1", sizes.single, [1, 1], first).await?],
        "submit_64" => {
            vec![submit(site, "submit_64", sizes.callers_64, [site.writers(), CALLERS], first).await?]
        }
        "submit_bulk" => {
            let raw = ceiling::submit(site, sizes.bulk, BULK);
            let (value, raw) = first.pair(product::submit_bulk(site, sizes.bulk, BULK), raw).await?;
            vec![Sample::new("submit_bulk", value, raw)]
        }
        "drain" => vec![drain(site, "drain", sizes.drain, batch, None, first).await?],
        "drain_tuned" => vec![drain(site, "drain_tuned", sizes.drain, TUNED.claim_max, Some(TUNED), first).await?],
        "end_to_end" => {
            let raw = ceiling::end_to_end(site, sizes.end_to_end, BULK, batch);
            let (value, raw) = first.pair(product::end_to_end(site, sizes.end_to_end, BULK), raw).await?;
            vec![Sample::new("end_to_end", value, raw)]
        }
        "idle" => latency(site, sizes.latency, From::Here, ["idle_p50", "idle_p99"]).await?,
        _ => latency(site, sizes.latency, From::Elsewhere, ["remote_p50", "remote_p99"]).await?,
    };
    for sample in &samples {
        eprintln!("  {:<12} {:>10.0}, raw {:>10.0}, ratio {:.2}", sample.name, sample.value, sample.raw, sample.ratio);
    }
    Ok(samples)
}

/// Who comes first in a round: in turn, so that neither gains by its place.
#[derive(Clone, Copy)]
enum First {
    Raw,
    Product,
}

impl First {
    async fn pair<P, R>(
        self,
        product: impl Future<Output = Result<P>>,
        raw: impl Future<Output = Result<R>>,
    ) -> Result<(P, R)> {
        Ok(match self {
            Self::Raw => {
                let raw = raw.await?;
                (product.await?, raw)
            }
            Self::Product => (product.await?, raw.await?),
        })
    }
}

/// `callers` are raw connections, and the product's callers; as many as these are the rows of one raw commit beside.
///
/// The two take turns within the round: what a machine does in the background changes from one half of a second to the next.
async fn submit(site: &dyn Site, name: &'static str, jobs: usize, callers: [usize; 2], first: First) -> Result<Sample> {
    let both = ceiling::submit(site, jobs, callers[1]).await?;
    let (product, mut raw) =
        (product::Callers::open(site, callers[1]).await?, ceiling::Singles::open(site, callers[0]).await?);
    let jobs = jobs / SLICES;
    let mut took = [Duration::ZERO; 2];
    for _ in 0..SLICES {
        let (ours, bare) = first.pair(product.submit(jobs), raw.submit(jobs)).await?;
        took[0] += ours;
        took[1] += bare;
    }
    let [value, raw] = took.map(|took| rate(jobs * SLICES, took));
    Ok(Sample::new(name, value, raw).with("raw_hot_cold", both).with("ratio_to_hot_cold", value / both))
}

async fn drain(
    site: &dyn Site,
    name: &'static str,
    jobs: usize,
    batch: usize,
    tuned: Option<Tuned>,
    first: First,
) -> Result<Sample> {
    let ours = product::drain(site, jobs, BULK, tuned);
    let (product, raw) = first.pair(ours, ceiling::drain(site, jobs, BULK, batch)).await?;
    let [node, server] = product.cpu_us_per_job;
    let mut sample = Sample::new(name, product.rate, raw.rate)
        .with("cpu_us_per_job", node + server)
        .with("node_cpu_us_per_job", node)
        .with("server_cpu_us_per_job", server)
        .with("jobs_per_turn", product.jobs_per_turn)
        .with("statements_per_job", product.statements_per_job)
        .with("commits_per_job", product.commits_per_job)
        .with("retries_per_job", product.retries_per_job);
    if let Some((bytes, raw)) = product.log_bytes_per_job.zip(raw.log_bytes_per_job) {
        sample = sample.with("log_bytes_per_job", bytes).with("raw_log_bytes_per_job", raw);
    }
    if let Some(rows) = product.dead_rows {
        sample = sample.with("dead_rows_after", per_job(rows, 1));
    }
    Ok(sample)
}

async fn latency(site: &dyn Site, times: usize, from: From, names: [&'static str; 2]) -> Result<Vec<Sample>> {
    let (submits, claims) = ceiling::submit_and_claim_one(site, times, PAUSE).await?;
    let product = product::idle_latency(site, times, PAUSE, from).await?;
    let raw: Vec<f64> = submits.iter().zip(&claims).map(|(submit, claim)| submit + claim).collect();
    let sample = |name, percent| {
        Sample::new(name, percentile(&product, percent), percentile(&raw, percent))
            .with("raw_submit", percentile(&submits, percent))
            .with("raw_claim", percentile(&claims, percent))
    };
    Ok(vec![sample(names[0], 50), sample(names[1], 99)])
}

fn measure(site: &str, sizes: &Sizes, sample: Sample) -> Measure {
    let batch = ratchet::Slots::default().tasks;
    let (unit, what) = match sample.name {
        "submit_1" => ("jobs/s", "one caller, a commit each; raw: one row in one table".to_owned()),
        "submit_64" => ("jobs/s", format!("{CALLERS} callers one by one; raw: one row in one table, many connections")),
        "submit_bulk" => ("jobs/s", format!("{BULK} jobs a call; raw: hot and cold rows")),
        "drain" => ("jobs/s", format!("{} no-op jobs; raw: {batch} a commit, as many as slots", sizes.drain)),
        "drain_tuned" => {
            let Tuned { slots, claim_max } = TUNED;
            (
                "jobs/s",
                format!("{} no-op jobs, {slots} slots, claims of {claim_max}; raw: as many a commit", sizes.drain),
            )
        }
        "end_to_end" => {
            ("jobs/s", format!("{} jobs, bulk submit and drain at once; raw: {batch} a commit", sizes.end_to_end))
        }
        "idle_p50" | "idle_p99" => ("us", "submit → handler starts, idle node; raw: submit + claim of one".to_owned()),
        "remote_p50" | "remote_p99" => ("us", "submit by another process → handler starts, idle node".to_owned()),
        name if name.starts_with("claim_times") => ("×", claims::what(name)),
        name => ("us", claims::what(name)),
    };
    Measure { target: target::of(site, &sample), sample, unit, what }
}
