//! The cost of observability: drains of jobs that write lines to their logs, with metrics, spans and logs on, beside
//! drains with all of it off.
//!
//! `cargo run --release -p ratchet-bench --bin observability -- --database postgres://…` on a database that may be filled. A recorder
//! and a subscriber are there for the whole of a process, so each drain has a process of its own.

use std::fs::File;
use std::process::{Command, Stdio};

use anyhow::{Context as _, Result, ensure};
use clap::{Parser, ValueEnum};
use ratchet::prelude::*;
use ratchet::{JobLogLayer, JobLogs};
use ratchet_bench::bare::Bare;
use ratchet_bench::compare::{Table, order};
use ratchet_bench::metrics::Sample;
use ratchet_bench::noop;
use tracing::Subscriber;
use tracing_subscriber::filter::LevelFilter;
use tracing_subscriber::fmt::format::FmtSpan;
use tracing_subscriber::layer::{Layer, SubscriberExt as _};
use tracing_subscriber::registry::LookupSpan;
use tracing_subscriber::util::SubscriberInitExt as _;

#[derive(Parser)]
struct Args {
    /// Where: a database that may be filled
    #[arg(long)]
    database: String,
    /// Jobs of one drain
    #[arg(long, default_value_t = 20_000)]
    jobs: usize,
    #[arg(long, default_value_t = 5)]
    rounds: usize,
    /// Lines that each job writes to its log
    #[arg(long, default_value_t = 2, value_parser = clap::value_parser!(u64).range(0..=100))]
    lines: u64,
    /// What is held against `off`
    #[arg(long, value_delimiter = ',', default_values = ["on", "debug"])]
    sides: Vec<Side>,
    /// Drains once, on this side, and prints the measurements: what the processes of a run do
    #[arg(long)]
    side: Option<Side>,
}

#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Side {
    /// No recorder, no subscriber, nothing kept of jobs' logs.
    Off,
    /// The Prometheus recorder alone.
    Metrics,
    /// A subscriber alone, at INFO.
    Tracing,
    /// Jobs' logs alone.
    Logs,
    /// All of them, as a service has them: at INFO.
    On,
    /// All of them, at DEBUG.
    Debug,
}

impl Side {
    fn name(self) -> &'static str {
        match self {
            Self::Off => "off",
            Self::Metrics => "metrics",
            Self::Tracing => "tracing",
            Self::Logs => "logs",
            Self::On => "on",
            Self::Debug => "debug",
        }
    }

    fn has_metrics(self) -> bool {
        matches!(self, Self::Metrics | Self::On | Self::Debug)
    }

    fn has_logs(self) -> bool {
        matches!(self, Self::Logs | Self::On | Self::Debug)
    }

    fn level(self) -> LevelFilter {
        match self {
            Self::Off | Self::Metrics | Self::Logs => LevelFilter::OFF,
            Self::Tracing | Self::On => LevelFilter::INFO,
            Self::Debug => LevelFilter::DEBUG,
        }
    }
}

/// Says so many things, in turn in both ways that a handler has.
#[job(kind = "bench.says")]
async fn says(ctx: &JobContext, lines: u64) {
    for line in 0..lines {
        if line % 2 == 0 {
            ctx.log().field("line", line).info("begins");
        } else {
            tracing::info!(line, "ends");
        }
    }
}

fn main() -> Result<()> {
    let args = Args::parse();
    match args.side {
        Some(side) => tokio::runtime::Runtime::new()?.block_on(drain(side, &args)),
        None => compare(&args),
    }
}

/// One drain, in this process: prints jobs a second, lines that were not written yet when the last job had ended, and lines
/// that were left out.
async fn drain(side: Side, args: &Args) -> Result<()> {
    let exporter = side.has_metrics().then(ratchet::prometheus::install).transpose()?;
    let (level, logs) = (side.level(), side.has_logs());
    if logs || level != LevelFilter::OFF {
        let kept = logs.then(|| JobLogLayer::new().with_filter(LevelFilter::INFO));
        tracing_subscriber::registry().with(told(level)?).with(kept).init();
    }
    let store = ratchet::open_store(&args.database, true).await?;
    let client = Client::new(store.clone());
    noop::fill_with(&client, args.jobs, noop::TOGETHER, |_| says(args.lines)).await?;
    Bare::open(&args.database).await?.tidy().await?;
    let job_logs = if logs { JobLogs::default() } else { JobLogs::off() };
    let node = Ratchet::builder().store(store).jobs(jobs![says]).job_logs(job_logs);
    let (rate, stats) = noop::drain(node, args.jobs).await?;
    let lines = if logs { args.jobs as u64 * args.lines } else { 0 };
    let (written, lost) = (stats.log_lines, stats.log_lines_lost);
    if let Some(exporter) = exporter {
        let counted = format!("ratchet_jobs_completed{{kind=\"bench.says\"}} {}", args.jobs);
        ensure!(exporter.render().contains(&counted), "the recorder has not seen {counted}");
    }
    println!("{rate} {} {lost}", lines.saturating_sub(written + lost));
    Ok(())
}

/// Writes events, and spans as they end: a span costs what it costs when somebody is handed it.
fn told<S: Subscriber + for<'l> LookupSpan<'l>>(level: LevelFilter) -> Result<Option<impl Layer<S>>> {
    let nowhere = File::options().write(true).open("/dev/null")?;
    let told = tracing_subscriber::fmt::layer().with_ansi(false).with_span_events(FmtSpan::CLOSE).with_writer(nowhere);
    Ok((level != LevelFilter::OFF).then(|| told.with_filter(level)))
}

/// What is left of the throughput should be at least this.
const FLOOR: f64 = 0.9;

/// All sides in turn; the first round is not counted.
fn compare(args: &Args) -> Result<()> {
    let mut rounds: Vec<Vec<Sample>> = vec![Vec::new(); args.sides.len()];
    for round in 0..=args.rounds {
        let places = args.sides.len() + 1;
        let mut drained = vec![[0.0; 3]; places];
        for place in order(round, places) {
            // The last place is that of `off`.
            drained[place] = in_process(args, args.sides.get(place).copied().unwrap_or(Side::Off))?;
        }
        let [off, ..] = drained[args.sides.len()];
        for (place, side) in args.sides.iter().enumerate().filter(|_| round > 0) {
            let [rate, waiting, lost] = drained[place];
            rounds[place]
                .push(Sample::new(side.name(), rate, off).with("lines waiting", waiting).with("lines lost", lost));
        }
    }
    let title = format!("drains of {} jobs, {} lines each, {} rounds", args.jobs, args.lines, args.rounds);
    Table { title: &title, beside: Side::Off.name(), extras: &["lines waiting", "lines lost"], floor: Some(FLOOR) }
        .print(&rounds);
    Ok(())
}

/// What a drain in a process of its own prints.
fn in_process(args: &Args, side: Side) -> Result<[f64; 3]> {
    let mut process = Command::new(std::env::current_exe()?);
    process.args([
        "--database",
        &args.database,
        "--side",
        side.name(),
        "--jobs",
        &args.jobs.to_string(),
        "--lines",
        &args.lines.to_string(),
    ]);
    let output = process.stderr(Stdio::inherit()).output()?;
    ensure!(output.status.success(), "the drain {:?} ended with {}", side.name(), output.status);
    let text = String::from_utf8(output.stdout)?;
    let measured = text.split_whitespace().map(str::parse).collect::<Result<Vec<f64>, _>>()?;
    <[f64; 3]>::try_from(measured).ok().with_context(|| format!("the drain said {text:?}"))
}
