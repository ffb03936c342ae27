//! What came of the demo's jobs, read back from the database.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::time::Duration;

use ratchet::{Client, JobFilter, JobId, JobRecord, JobState, StoreError, Tag};
use serde::Serialize;

use crate::counts::counted;
use crate::output::table;
use crate::times;

#[derive(Serialize)]
pub(super) struct Summary {
    tag: Tag,
    jobs: usize,
    took_ms: f64,
    rows: Vec<Row>,
    /// Attempts by node.
    nodes: BTreeMap<String, usize>,
    #[serde(skip)]
    dead: Option<JobId>,
}

/// The jobs of one kind that ended in one way.
#[derive(Serialize)]
struct Row {
    kind: String,
    outcome: JobState,
    jobs: usize,
    attempts: u64,
    run_p50_ms: f64,
    run_p99_ms: f64,
}

/// Reads every job of the run.
pub(super) async fn gather(client: &Client, tag: &Tag, took: Duration) -> Result<Summary, StoreError> {
    let filter = JobFilter { tag: Some(tag.clone()), ..JobFilter::default() };
    let mut groups: BTreeMap<(String, JobState), Vec<JobRecord>> = BTreeMap::new();
    let mut after = None;
    loop {
        let page = client.list(&filter, after, 500).await?;
        for job in page.items {
            groups.entry((job.spec.kind.to_string(), job.state)).or_default().push(job);
        }
        after = page.next;
        if after.is_none() {
            break;
        }
    }
    let jobs = groups.values().map(Vec::len).sum();
    let nodes = attempts_by_node(client, groups.values().flatten()).await?;
    let dead = groups.iter().find(|((_, state), _)| *state == JobState::Failed).map(|(_, jobs)| jobs[0].id);
    let rows = groups.into_iter().map(|((kind, outcome), jobs)| row(kind, outcome, &jobs)).collect();
    Ok(Summary { tag: tag.clone(), jobs, took_ms: times::millis(took), rows, nodes, dead })
}

/// How many attempts each node made; one that has left since is shown by its id.
async fn attempts_by_node(
    client: &Client,
    jobs: impl Iterator<Item = &JobRecord>,
) -> Result<BTreeMap<String, usize>, StoreError> {
    let names: BTreeMap<_, _> = client.nodes().await?.into_iter().map(|node| (node.id, node.name)).collect();
    let mut found = BTreeMap::new();
    for job in jobs {
        for attempt in client.attempts(job.id).await? {
            let name = names.get(&attempt.node).map_or_else(|| attempt.node.to_string(), ToString::to_string);
            *found.entry(name).or_default() += 1;
        }
    }
    Ok(found)
}

fn row(kind: String, outcome: JobState, jobs: &[JobRecord]) -> Row {
    let mut run: Vec<Duration> = jobs.iter().filter_map(|job| job.timing).map(|timing| timing.duration).collect();
    run.sort_unstable();
    Row {
        kind,
        outcome,
        jobs: jobs.len(),
        attempts: jobs.iter().map(|job| u64::from(job.attempts)).sum(),
        run_p50_ms: times::millis(percentile(&run, 50)),
        run_p99_ms: times::millis(percentile(&run, 99)),
    }
}

/// The smallest value that so many percent of the values do not exceed.
fn percentile(sorted: &[Duration], percent: usize) -> Duration {
    let rank = (sorted.len() * percent).div_ceil(100).max(1);
    sorted.get(rank - 1).copied().unwrap_or_default()
}

impl Summary {
    pub(super) fn page(&self, database: &str, is_default: bool) -> String {
        let ms = |millis: f64| times::duration(Duration::from_secs_f64(millis / 1_000.0));
        let rows = self.rows.iter().map(|row| {
            [
                row.kind.clone(),
                row.outcome.to_string(),
                row.jobs.to_string(),
                row.attempts.to_string(),
                ms(row.run_p50_ms),
                ms(row.run_p99_ms),
            ]
        });
        let table = table(&["KIND", "OUTCOME", "JOBS", "ATTEMPTS", "RUN P50", "RUN P99"], 0, rows);
        let mut by_outcome: BTreeMap<JobState, usize> = BTreeMap::new();
        for row in &self.rows {
            *by_outcome.entry(row.outcome).or_default() += row.jobs;
        }
        let outcomes: Vec<String> = by_outcome.iter().map(|(state, jobs)| format!("{jobs} {state}")).collect();
        let nodes: Vec<String> = self.nodes.iter().map(|(node, attempts)| format!("{node} {attempts}")).collect();
        let command = if is_default { "ratchet".to_owned() } else { format!("ratchet --database {database}") };
        let mut page = format!(
            "\n{table}\n\n{} in {}: {}\nAttempts by node: {}\n\nThey are in {}. Look at them with\n  {command} jobs list --tag {}",
            counted(self.jobs as u64, "job", "jobs"),
            ms(self.took_ms),
            outcomes.join(", "),
            nodes.join(", "),
            database,
            self.tag,
        );
        if let Some(dead) = self.dead {
            let _ = write!(page, "\n  {command} jobs show {dead}");
        }
        page
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn percentiles_are_values_that_occurred() {
        let values: Vec<Duration> = (1..=100).map(Duration::from_millis).collect();
        let check = |values: &[Duration], percent, millis| {
            assert_eq!(percentile(values, percent), Duration::from_millis(millis), "{percent}");
        };
        check(&values, 50, 50);
        check(&values, 99, 99);
        check(&values[..1], 99, 1);
        check(&values[..2], 50, 1);
        check(&[], 50, 0);
    }
}
