use std::time::Duration;

use ratchet_core::schedule::NewSchedule;
use ratchet_core::schedule::{Cron, CronExpression, DstPolicy, Every, MisfirePolicy, OverlapPolicy, Schedule, Zone};
use ratchet_core::{BusinessKey, InvalidInput, Timestamp};

use super::handle::ScheduleHandle;
use crate::client::Client;
use crate::node::ids::new_job_id;
use crate::submit::error::SubmitError;
use crate::submit::step::{IntoStep, Later, Step};

/// A schedule that is about to be created; nothing happens before [`create`](Self::create).
///
/// ```
/// # use ratchet_engine::{Client, Failure, Job, JobContext, JobExt};
/// # #[derive(serde::Serialize, serde::Deserialize)] struct Report;
/// # impl Job for Report {
/// #     const KIND: &'static str = "report";
/// #     type Output = ();
/// #     async fn run(self, _: JobContext) -> Result<(), Failure> { Ok(()) }
/// # }
/// # async fn example(client: Client) -> Result<(), Box<dyn std::error::Error>> {
/// let nightly = client
///     .schedule(Report.with(|step| step.max_retries(5).tags(["reports"])))
///     .cron("0 0 2 * * ?")
///     .zone("Europe/Berlin")
///     .business_key("nightly-report")
///     .create()
///     .await?;
/// println!("{:?}", nightly.next_fires(3).await?);
/// # Ok(())
/// # }
/// ```
#[derive(Debug)]
#[must_use = "nothing is created before .create()"]
pub struct ScheduleBuilder {
    client: Client,
    step: Step,
    times: Times,
    zone: Option<String>,
    dst: DstPolicy,
    misfire: MisfirePolicy,
    overlap: OverlapPolicy,
    business_key: Option<String>,
    on_success: Option<Step>,
    on_failure: Option<Step>,
}

#[derive(Debug)]
enum Times {
    None,
    Cron(String),
    Every(Duration),
}

impl ScheduleBuilder {
    pub(crate) fn new(client: Client, step: impl IntoStep) -> Self {
        Self {
            client,
            step: step.into_step(),
            times: Times::None,
            zone: None,
            dst: DstPolicy::default(),
            misfire: MisfirePolicy::default(),
            overlap: OverlapPolicy::default(),
            business_key: None,
            on_success: None,
            on_failure: None,
        }
    }

    /// By the clock on the wall: a Quartz cron expression of six or seven fields, the first being seconds.
    pub fn cron(mut self, expression: impl Into<String>) -> Self {
        self.times = Times::Cron(expression.into());
        self
    }

    /// By elapsed time, from now on; at least a second.
    pub fn every(mut self, interval: Duration) -> Self {
        self.times = Times::Every(interval);
        self
    }

    /// On the clock of this IANA zone, `Europe/Berlin`; UTC unless said otherwise. For cron only.
    pub fn zone(mut self, zone: impl Into<String>) -> Self {
        self.zone = Some(zone.into());
        self
    }

    /// What happens when the zone's clock is put forward or back.
    pub fn dst(mut self, dst: DstPolicy) -> Self {
        self.dst = dst;
        self
    }

    /// What becomes of fires that are overdue, when there are several: eleven are caught up with unless said otherwise.
    pub fn misfire(mut self, misfire: MisfirePolicy) -> Self {
        self.misfire = misfire;
        self
    }

    /// What becomes of a fire while the last job has not ended: it runs beside it unless said otherwise.
    pub fn overlap(mut self, overlap: OverlapPolicy) -> Self {
        self.overlap = overlap;
        self
    }

    /// As long as this schedule is there, no other schedule and no job with this key is accepted.
    pub fn business_key(mut self, key: impl Into<String>) -> Self {
        self.business_key = Some(key.into());
        self
    }

    /// Submitted when a fired job succeeds, in the same transaction.
    pub fn on_success(mut self, step: impl IntoStep) -> Self {
        self.on_success = Some(step.into_step());
        self
    }

    /// Submitted when a fired job fails for good, in the same transaction.
    pub fn on_failure(mut self, step: impl IntoStep) -> Self {
        self.on_failure = Some(step.into_step());
        self
    }

    /// Stores the schedule.
    ///
    /// # Errors
    /// [`SubmitError::Invalid`] for bad input, [`SubmitError::Duplicate`] while the business key is held, both without
    /// anything written; [`SubmitError::Store`] if the database could not be reached.
    pub async fn create(self) -> Result<ScheduleHandle, SubmitError> {
        let client = self.client.clone();
        let now = client.store().database_time().await?;
        let new = client.admit_schedule(self.into_new_schedule(now)?)?;
        client.store().create_schedule(&new).await?;
        client.schedules_changed();
        Ok(ScheduleHandle::new(client, new.id))
    }

    fn into_new_schedule(self, now: Timestamp) -> Result<NewSchedule, InvalidInput> {
        let schedule = match self.times {
            Times::None => {
                let problem = "has no times; add .cron(\"0 0 2 * * ?\") or .every(Duration::from_mins(5))";
                return Err(InvalidInput::new("schedule", problem));
            }
            Times::Cron(expression) => cron(&expression, self.zone.as_deref(), self.dst)?,
            Times::Every(_) if self.zone.is_some() => {
                return Err(InvalidInput::new("zone", "is for cron; an interval knows no clock on the wall"));
            }
            Times::Every(interval) => Schedule::Every(Every::new(interval, now)?),
        };
        let next_fire = schedule.next_after(now);
        if next_fire.is_none() {
            return Err(InvalidInput::new("cron", "has no time left: the last is over"));
        }
        let callback = |field: &str, step: Option<Step>| {
            let named = |e: InvalidInput| InvalidInput::new(format!("{field}.{}", e.field()), e.problem());
            step.map(|step| step.into_spec(Later::Callback)).transpose().map_err(named)
        };
        let new = NewSchedule {
            id: new_job_id(),
            spec: self.step.into_spec(Later::Schedule)?,
            on_success: callback("on_success", self.on_success)?,
            on_failure: callback("on_failure", self.on_failure)?,
            next_fire,
            schedule,
            misfire: self.misfire,
            overlap: self.overlap,
            business_key: self.business_key.map(BusinessKey::new).transpose()?,
            declared: false,
        };
        new.check()?;
        Ok(new)
    }
}

/// A schedule of an expression in a zone.
pub(super) fn cron(expression: &str, zone: Option<&str>, dst: DstPolicy) -> Result<Schedule, InvalidInput> {
    let zone = zone.map(Zone::new).transpose()?.unwrap_or_default();
    Ok(Schedule::Cron(Cron::new(CronExpression::new(expression)?).in_zone(zone).with_dst(dst)))
}
