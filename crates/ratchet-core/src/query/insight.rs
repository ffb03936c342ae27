//! How queues are: what waits in them, for how long, and how fast it goes.
//!
//! Everything is read from beginnings and ends of indexes, so that it costs as much with ten million jobs as with a thousand.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use jiff::Timestamp;
use serde::Serialize;

use crate::clock::elapsed;
use crate::error::StoreError;
use crate::name::{Kind, QueueName, ResourceName};
use crate::priority::Priority;
use crate::state::JobState;
use crate::store::{Store, WaitingLane};

/// Of one lane (queue, kind, priority) no more jobs are counted.
pub const COUNTED_MAX: u64 = 10_000;
/// How many of the jobs that ended last say how fast it goes, of each end.
pub const RECENT_MAX: usize = 1_000;

/// A number of jobs, as far as they were counted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize)]
pub struct Depth {
    /// How many.
    pub count: u64,
    /// Whether there are more than were counted.
    pub or_more: bool,
}

impl std::fmt::Display for Depth {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}{}", self.count, if self.or_more { "+" } else { "" })
    }
}

/// How a queue is.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct QueueHealth {
    /// Its name.
    pub queue: QueueName,
    /// Whether claims pass it by.
    pub paused: bool,
    /// PENDING jobs, due or not; those that were put off are not among them.
    pub waiting: Depth,
    /// How long the oldest of them that is due has waited.
    pub oldest_wait: Option<Duration>,
    /// RUNNING jobs.
    pub running: u64,
    /// How it went lately.
    pub recent: Recent,
}

/// How it went, by the jobs that ended last.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize)]
pub struct Recent {
    /// How many of them succeeded.
    pub succeeded: u64,
    /// How many of them failed for good.
    pub failed: u64,
    /// How many ended a minute, from the first of them until now.
    pub per_minute: f64,
    /// How long they had waited for their last attempt.
    pub wait: Percentiles,
    /// How long their last attempt took.
    pub run: Percentiles,
}

/// How long something took for half, for nineteen of twenty and for 99 of a hundred.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize)]
pub struct Percentiles {
    /// Half took no longer.
    pub p50: Duration,
    /// 95 of a hundred took no longer.
    pub p95: Duration,
    /// 99 of a hundred took no longer.
    pub p99: Duration,
}

impl Percentiles {
    /// Of some durations; zero of none.
    pub fn of(mut durations: Vec<Duration>) -> Self {
        durations.sort_unstable();
        let at = |hundredths: usize| {
            let place = (durations.len() * hundredths).div_ceil(100);
            durations.get(place.saturating_sub(1)).copied().unwrap_or_default()
        };
        Self { p50: at(50), p95: at(95), p99: at(99) }
    }
}

/// A job that ended lately.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RecentEnd {
    /// Its queue.
    pub queue: QueueName,
    /// What it ended as.
    pub state: JobState,
    /// When.
    pub at: Timestamp,
    /// How long it had waited, and how long it took; jobs that never ran have neither.
    pub times: Option<(Duration, Duration)>,
}

/// A range of jobs that wait: those of a lane that became due before a time.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LaneRange {
    /// Whether they are on probation.
    pub probation: bool,
    /// What they need a permit for.
    pub resource: Option<ResourceName>,
    /// Their queue.
    pub queue: QueueName,
    /// Their kind.
    pub kind: Kind,
    /// Their priority.
    pub priority: Priority,
    /// Before when they became due; `None` for all.
    pub before: Option<Timestamp>,
}

impl LaneRange {
    /// What of a lane became due before a time; `None` for all.
    pub fn of(lane: &WaitingLane, before: Option<Timestamp>) -> Self {
        let WaitingLane { probation, resource, queue, kind, priority, .. } = lane.clone();
        Self { probation, resource, queue, kind, priority, before }
    }
}

/// The jobs of a queue that wait.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct QueueBacklog {
    /// How many, due or not.
    pub depth: Depth,
    /// How long ago the first of them became due; `None` if none is due.
    pub oldest: Option<Duration>,
}

/// What waits, by queue; queues where nothing does are left out.
///
/// # Errors
/// If the store cannot be asked.
pub async fn waiting_by_queue(store: &dyn Store) -> Result<BTreeMap<QueueName, QueueBacklog>, StoreError> {
    let lanes = store.waiting_lanes().await?;
    let ranges: Vec<LaneRange> = lanes.iter().map(|lane| LaneRange::of(lane, None)).collect();
    let counts = store.count_waiting(&ranges, COUNTED_MAX).await?;
    let now = store.database_time().await?;
    let mut queues: BTreeMap<QueueName, QueueBacklog> = BTreeMap::new();
    for (lane, count) in lanes.into_iter().zip(counts) {
        let waiting = queues.entry(lane.queue).or_default();
        waiting.depth.count += count;
        waiting.depth.or_more |= count >= COUNTED_MAX;
        waiting.oldest = waiting.oldest.max((lane.head <= now).then(|| elapsed(lane.head, now)));
    }
    Ok(queues)
}

/// Every queue that is paused, or has jobs that wait, run or ended lately; by name.
///
/// # Errors
/// If the store cannot be asked.
pub async fn queue_health(store: &dyn Store) -> Result<Vec<QueueHealth>, StoreError> {
    let waiting = waiting_by_queue(store).await?;
    let mut ends = store.recent_ends(JobState::Succeeded, RECENT_MAX).await?;
    ends.append(&mut store.recent_ends(JobState::Failed, RECENT_MAX).await?);
    let running = store.running_by_queue().await?;
    let paused = store.paused_queues().await?;
    let now = store.database_time().await?;
    let queues: BTreeSet<&QueueName> =
        waiting.keys().chain(running.keys()).chain(&paused).chain(ends.iter().map(|end| &end.queue)).collect();
    let health = |queue: &QueueName| {
        let QueueBacklog { depth, oldest } = waiting.get(queue).copied().unwrap_or_default();
        QueueHealth {
            queue: queue.clone(),
            paused: paused.contains(queue),
            waiting: depth,
            oldest_wait: oldest,
            running: running.get(queue).copied().unwrap_or(0),
            recent: recent(&ends.iter().filter(|end| end.queue == *queue).collect::<Vec<_>>(), now),
        }
    };
    Ok(queues.into_iter().map(health).collect())
}

fn recent(ends: &[&RecentEnd], now: Timestamp) -> Recent {
    let count = |state| ends.iter().filter(|end| end.state == state).map(|_| 1).sum::<u64>();
    let times = || ends.iter().filter_map(|end| end.times);
    let since = ends.iter().map(|end| elapsed(end.at, now)).max().unwrap_or_default();
    let (succeeded, failed) = (count(JobState::Succeeded), count(JobState::Failed));
    // Of jobs that ended this instant nobody knows a rate.
    let minutes = since.max(Duration::from_secs(1)).as_secs_f64() / 60.0;
    #[expect(clippy::cast_precision_loss, reason = "at most two thousand")]
    let per_minute = (succeeded + failed) as f64 / minutes;
    Recent {
        succeeded,
        failed,
        per_minute,
        wait: Percentiles::of(times().map(|(wait, _)| wait).collect()),
        run: Percentiles::of(times().map(|(_, run)| run).collect()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn percentiles_are_members_of_the_sample() {
        let ms = Duration::from_millis;
        let of = |times: Vec<u64>| Percentiles::of(times.into_iter().map(ms).collect());
        assert_eq!(of(vec![]), Percentiles::default());
        assert_eq!(of(vec![7]), Percentiles { p50: ms(7), p95: ms(7), p99: ms(7) });
        assert_eq!(of((1..=100).rev().collect()), Percentiles { p50: ms(50), p95: ms(95), p99: ms(99) });
        assert_eq!(of(vec![3, 1, 2]), Percentiles { p50: ms(2), p95: ms(3), p99: ms(3) });
    }

    #[test]
    fn a_rate_counts_from_the_first_end_until_now() {
        let now = Timestamp::from_second(10_000).unwrap();
        let queue = QueueName::default();
        let end = |seconds_ago: i64, state| RecentEnd {
            queue: queue.clone(),
            state,
            at: Timestamp::from_second(10_000 - seconds_ago).unwrap(),
            times: None,
        };
        let ends = [end(120, JobState::Succeeded), end(5, JobState::Failed), end(60, JobState::Succeeded)];
        let found = recent(&ends.iter().collect::<Vec<_>>(), now);
        assert_eq!((found.succeeded, found.failed), (2, 1));
        assert!((found.per_minute - 1.5).abs() < 1e-9, "{found:?}");
        assert!(recent(&[&end(0, JobState::Failed)], now).per_minute <= 60.0);
    }
}
