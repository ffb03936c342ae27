use std::time::Duration;

use ratchet_core::id::declared_id;
use ratchet_core::schedule::NewSchedule;
use ratchet_core::schedule::{DstPolicy, Every, MisfirePolicy, OverlapPolicy, Schedule};
use ratchet_core::{InvalidInput, JobSpec, Timestamp};

use super::builder::cron;
use crate::job::{Job, spec_of};

/// A schedule that a kind of job declares for itself: [`Job::schedule`].
///
/// `#[job(cron = "0 0 2 * * ?", zone = "Europe/Berlin")]` writes it. Nodes make sure at their start that it is there and
/// as the code says; it is retired when no live node declares it any more.
#[derive(Debug, Clone)]
#[must_use = "a schedule is declared by Job::schedule"]
pub struct Scheduled {
    spec: Result<JobSpec, InvalidInput>,
    times: Times,
    zone: Option<&'static str>,
    dst: Option<&'static str>,
    misfire: Option<&'static str>,
    overlap: Option<&'static str>,
}

#[derive(Debug, Clone, Copy)]
enum Times {
    Cron(&'static str),
    Every(Duration),
}

impl Scheduled {
    /// This job, by the clock on the wall.
    pub fn cron<J: Job>(job: &J, expression: &'static str) -> Self {
        Self::of(job, Times::Cron(expression))
    }

    /// This job, by elapsed time since the beginning of 1970: the same instants on every node.
    pub fn every<J: Job>(job: &J, interval: Duration) -> Self {
        Self::of(job, Times::Every(interval))
    }

    fn of<J: Job>(job: &J, times: Times) -> Self {
        Self { spec: spec_of(job), times, zone: None, dst: None, misfire: None, overlap: None }
    }

    /// On the clock of this IANA zone; UTC unless said otherwise.
    pub fn zone(mut self, zone: &'static str) -> Self {
        self.zone = Some(zone);
        self
    }

    /// What happens when the zone's clock is put forward or back: `gap:skip, overlap:last`, or one of the two. For cron only.
    pub fn dst(mut self, dst: &'static str) -> Self {
        self.dst = Some(dst);
        self
    }

    /// What becomes of overdue fires: `skip`, `fire_once` or `catch_up:3`.
    pub fn misfire(mut self, misfire: &'static str) -> Self {
        self.misfire = Some(misfire);
        self
    }

    /// What becomes of a fire while the last job has not ended: `allow`, `skip` or `queue`.
    pub fn overlap(mut self, overlap: &'static str) -> Self {
        self.overlap = Some(overlap);
        self
    }

    /// The schedule to declare, checked.
    pub(crate) fn into_new_schedule(self, now: Timestamp) -> Result<NewSchedule, InvalidInput> {
        let spec = self.spec?;
        let named =
            |e: InvalidInput| InvalidInput::new(format!("schedule of {}: {}", spec.kind, e.field()), e.problem());
        let dst: DstPolicy = self.dst.map(str::parse).transpose().map_err(named)?.unwrap_or_default();
        let schedule = match self.times {
            Times::Cron(expression) => cron(expression, self.zone, dst).map_err(named)?,
            Times::Every(interval) => Schedule::Every(Every::new(interval, Timestamp::UNIX_EPOCH).map_err(named)?),
        };
        let misfire: MisfirePolicy = self.misfire.map(str::parse).transpose().map_err(named)?.unwrap_or_default();
        let overlap: OverlapPolicy = self.overlap.map(str::parse).transpose().map_err(named)?.unwrap_or_default();
        let new = NewSchedule {
            id: declared_id(spec.kind.as_str()),
            spec: spec.clone(),
            on_success: None,
            on_failure: None,
            next_fire: schedule.next_after(now),
            schedule,
            misfire,
            overlap,
            business_key: None,
            declared: true,
        };
        new.check().map_err(named)?;
        Ok(new)
    }
}
