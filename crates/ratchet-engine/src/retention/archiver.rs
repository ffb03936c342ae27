use std::time::{Duration, Instant};

use ratchet_core::store::{ArchiveRequest, Archived, PurgeLog, Removal};
use ratchet_core::{JobId, JobState, NodeId, Retention, StoreError};

use super::BulkEventKind;
use super::archive::{LINES_TOGETHER, TOGETHER};
use super::pacing::Pace;
use super::scan::LogScan;
use crate::node::context::NodeContext;
use crate::observe::stats::Loop;
use crate::upkeep::Upkeep;
use crate::upkeep::heartbeat::Standing;
use crate::upkeep::lease::{self, KeptLease, Lease};

/// How long the lease lasts if its holder dies.
const LEASE_TTL: Duration = Duration::from_secs(30);
/// How often the lease is renewed.
const LEASE_EVERY: Duration = Duration::from_secs(10);
/// How often, at most and at least, jobs are looked at again that could not go when they were passed.
const AGAIN_MIN: Duration = Duration::from_mins(1);
const AGAIN_MAX: Duration = Duration::from_hours(1);

/// Archives and purges in small portions, with pauses.
pub(crate) struct Archiver {
    node: NodeContext,
    lease: KeptLease,
    retention: Retention,
    every: Duration,
    pace: Pace,
    /// The last job of each state that was looked at. Most of what came before is gone, and a database may still have to
    /// step over it.
    passed: [Passed; JobState::ALL.len()],
    /// How far the purge of logs is, likewise.
    lines: LogScan,
    /// When to look at all lines from the start.
    lines_again: Instant,
}

/// How often successes are deleted whose retention is zero.
const DELETE_EVERY: Duration = Duration::from_secs(2);
/// After this number of portions in a row a round has fallen behind: they are some thousand jobs.
const BEHIND_AFTER: u32 = 20;

/// How far the archiving of jobs of one state is.
#[derive(Debug, Clone, Copy)]
struct Passed {
    last: Option<JobId>,
    /// When to begin from the start: a job may have been passed that was not old enough, or that something hung on.
    again: Instant,
}

impl Passed {
    /// Jobs of a short retention are looked at again soon: none is kept for much longer than its time. Those that are deleted
    /// are looked at from the start in every round: what ended out of order is to go too, and nothing else is left before it.
    fn new(now: Instant, retention: &Retention, state: JobState) -> Self {
        let again = match retention.removal(state) {
            Some((Removal::Delete, _)) => now,
            Some((Removal::Archive, age)) => now + (age / 4).clamp(AGAIN_MIN, AGAIN_MAX),
            None => now + AGAIN_MAX,
        };
        Self { last: None, again }
    }
}

/// What there is to do.
#[derive(Debug, Clone, Copy)]
enum Chore {
    Archive(JobState, Removal, Duration),
    PurgeArchive(Duration),
    PurgeSchedules(Duration),
    PurgeLogs(Duration),
}

impl Upkeep for Archiver {
    const LOOP: Loop = Loop::Retention;

    async fn look(&mut self, standing: &Standing) -> Result<Duration, StoreError> {
        self.round(standing.node).await?;
        // Spread, so that many nodes do not ask at the same moment.
        Ok(self.every + self.every.mul_f64(fastrand::f64() / 4.0))
    }
}

impl Archiver {
    pub(crate) fn new(node: NodeContext, retention: Retention) -> Self {
        let every = node.timing.retention_interval;
        let every = if retention.deletes_successes() { every.min(DELETE_EVERY) } else { every };
        let lease = Lease { store: node.store.clone(), name: lease::RETENTION, ttl: LEASE_TTL };
        let now = Instant::now();
        let passed = JobState::ALL.map(|state| Passed::new(now, &retention, state));
        let (lease, lines) = (KeptLease::new(lease, LEASE_EVERY.min(every)), LogScan::new(now));
        let (pace, lines_again) = (Pace::new(), now + AGAIN_MAX);
        Self { node, lease, retention, every, pace, passed, lines, lines_again }
    }

    fn chores(&self) -> Vec<Chore> {
        let ended = JobState::ALL.into_iter().filter_map(|state| {
            let (removal, age) = self.retention.removal(state)?;
            Some(Chore::Archive(state, removal, age))
        });
        let purges = [
            self.retention.archive.map(Chore::PurgeArchive),
            self.retention.schedules.map(Chore::PurgeSchedules),
            self.retention.logs.map(Chore::PurgeLogs),
        ];
        ended.chain(purges.into_iter().flatten()).collect()
    }

    /// Does every chore until there is nothing more to do, unless another node does. One that fails keeps no other from being
    /// done; the first error is returned.
    async fn round(&mut self, node: NodeId) -> Result<(), StoreError> {
        let now = Instant::now();
        for state in JobState::ALL {
            let passed = &mut self.passed[state as usize];
            if now >= passed.again {
                *passed = Passed::new(now, &self.retention, state);
            }
        }
        if now >= self.lines_again {
            (self.lines, self.lines_again) = (LogScan::new(now), now + AGAIN_MAX);
        }
        self.lines.begin(now);
        let mut failed = Ok(());
        for chore in self.chores() {
            let (mut done, mut deleted, mut portions) = (0, 0, 0);
            let ended = loop {
                if !self.lease.keep(node).await? {
                    break false;
                }
                let some = match self.some_of(chore).await {
                    Ok(some) => some,
                    Err(error) => {
                        failed = failed.and(Err(error));
                        break true;
                    }
                };
                done += some.moved;
                deleted += some.deleted;
                portions += 1;
                // A round that has much to do takes hours, and is well if its portions are.
                self.node.counters.last_success.mark(Loop::Retention, self.node.client.now());
                if !some.more {
                    break true;
                }
                // Successes that nobody wants are as many as the cluster can run.
                match chore {
                    Chore::Archive(_, Removal::Delete, _) if portions > BEHIND_AFTER => self.pace.rest_briefly().await,
                    _ => self.pace.rest().await,
                }
            };
            self.report(chore, done, deleted);
            if !ended {
                break;
            }
        }
        failed
    }

    /// Runs one transaction. Returns the number of jobs, schedules or lines that it moved or deleted, and whether there are more.
    async fn some_of(&mut self, chore: Chore) -> Result<Archived, StoreError> {
        let limit = self.pace.begin(TOGETHER);
        let full = |count: u64| Archived { moved: count, more: count >= limit as u64, ..Archived::default() };
        match chore {
            Chore::Archive(state, removal, age) => {
                let passed = &mut self.passed[state as usize];
                let request = ArchiveRequest { removal, state, age, after: passed.last, limit, only: None };
                let done = self.node.store.archive(&request).await?;
                passed.last = done.last;
                Ok(done)
            }
            Chore::PurgeArchive(age) => self.node.store.purge_archive(age, limit).await.map(full),
            Chore::PurgeSchedules(age) => self.node.store.purge_schedules(age, limit).await.map(full),
            Chore::PurgeLogs(age) => {
                let limit = self.pace.begin(LINES_TOGETHER);
                let request = PurgeLog { age, after: self.lines.reached, limit };
                let done = self.node.store.purge_log(&request).await?;
                self.lines.reached = done.last;
                Ok(Archived { moved: done.purged, more: done.more, ..Archived::default() })
            }
        }
    }

    fn report(&self, chore: Chore, count: u64, deleted: u64) {
        self.node.client.publish_count(deleted, |count| BulkEventKind::JobsDeleted { count });
        if count + deleted > 0 {
            tracing::debug!(?chore, count, deleted, "archived or purged");
        }
        self.node.client.publish_count(count, |count| match chore {
            Chore::Archive(state, ..) => BulkEventKind::JobsArchived { state, count },
            Chore::PurgeArchive(_) => BulkEventKind::ArchivePurged { count },
            Chore::PurgeSchedules(_) => BulkEventKind::SchedulesPurged { count },
            Chore::PurgeLogs(_) => BulkEventKind::LogsPurged { lines: count },
        });
    }
}
