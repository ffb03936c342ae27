use std::sync::Arc;

use ratchet_core::page::{JobCursor, Page};
use ratchet_core::schedule::{ArchiveReason, Firing, ScheduleFilter, ScheduleRecord};
use ratchet_core::{Due, ErrorKind, JobId, NewJob, StoreError};
use tokio::sync::Notify;

use super::{ScheduleBuilder, ScheduleHandle};
use crate::client::Client;
use crate::client::caller::{Filling, no_page};
use crate::node::ids::new_job_id;
use crate::observe::events::JobEventKind;
use crate::protect::authorizer::{Action, Scope, Target};
use crate::submit::step::IntoStep;
use crate::submit::unit::Waking;

/// Schedules.
impl Client {
    /// Begins a schedule that fires this job again and again: times follow, [`ScheduleBuilder::create`] does it.
    pub fn schedule(&self, step: impl IntoStep) -> ScheduleBuilder {
        ScheduleBuilder::new(self.clone(), step)
    }

    /// A schedule as it stands; `None` if there is none of this id.
    pub async fn find_schedule(&self, id: JobId) -> Result<Option<ScheduleRecord>, StoreError> {
        Ok(self.store().find_schedules(&[id]).await?.pop().filter(|schedule| self.reads_schedule(schedule)))
    }

    /// A handle to a schedule that was created earlier, perhaps by another process.
    pub fn schedule_handle(&self, id: JobId) -> ScheduleHandle {
        ScheduleHandle::new(self.clone(), id)
    }

    /// A page of schedules, newest first. For a caller who may not read them all a page may be short though there is a next
    /// one.
    pub async fn schedules(
        &self,
        filter: &ScheduleFilter,
        after: Option<JobCursor>,
        limit: usize,
    ) -> Result<Page<ScheduleRecord>, StoreError> {
        match self.scope() {
            Scope::Everything => return self.store().list_schedules(filter, after, limit).await,
            Scope::Nothing => return Ok(no_page()),
            Scope::Of(_) => {}
        }
        let mut filling = Filling::new(after, limit);
        while filling.goes_on() {
            let portion = self.store().list_schedules(filter, filling.after(), limit).await?;
            filling.add(portion, |schedule| schedule.id, |schedule| self.reads_schedule(schedule));
        }
        Ok(filling.page())
    }

    /// Suspends a schedule; jobs that it has fired go on. `false` if it is paused already or unknown.
    pub async fn pause_schedule(&self, id: JobId) -> Result<bool, StoreError> {
        if !self.may_schedule(Action::Pause, id).await? {
            return Ok(false);
        }
        let paused = self.store().pause_schedule(id).await?;
        if paused
            && self.bus().is_heard()
            && let Some(record) = self.find_schedule(id).await?
        {
            self.publish_schedule(&record, JobEventKind::SchedulePaused);
        }
        Ok(paused)
    }

    /// Lets a paused schedule go on with its next future fire; what fell into the pause is not made up for. `false` if it
    /// is not paused or unknown.
    pub async fn resume_schedule(&self, id: JobId) -> Result<bool, StoreError> {
        let Some(record) = self.find_schedule(id).await? else { return Ok(false) };
        self.demand(Action::Resume, &Target::schedule(&record))?;
        let now = self.store().database_time().await?;
        let resumed = self.store().resume_schedule(id, record.schedule.next_after(now)).await?;
        if resumed {
            self.publish_schedule(&record, JobEventKind::ScheduleResumed);
        }
        self.schedules_changed();
        Ok(resumed)
    }

    /// Fires a schedule now, beside its own times; the job that it fired, or `None` if there is no such schedule.
    pub async fn run_schedule_now(&self, id: JobId) -> Result<Option<JobId>, StoreError> {
        let Some(record) = self.find_schedule(id).await? else { return Ok(None) };
        self.demand(Action::Fire, &Target::schedule(&record))?;
        let now = self.store().database_time().await?;
        let job = NewJob { id: new_job_id(), due: Due::NOW, ..record.job_at(now) };
        let (id, priority) = (job.id, job.spec.priority);
        let unit = self.admit_fired(job).map_err(|refused| {
            StoreError::new(ErrorKind::Invalid, "firing a schedule", format!("the job policy refused it: {refused}"))
        })?;
        self.submitter().submit(unit).await?;
        self.submitted(Waking(Some(priority)));
        Ok(Some(id))
    }

    /// Ends a schedule; the jobs that it has fired stay. `false` if there is none. One that the code of live nodes declares
    /// comes back with the next start of such a node, or when one goes on after it was declared dead: pause it to be sure.
    pub async fn cancel_schedule(&self, id: JobId) -> Result<bool, StoreError> {
        if !self.may_schedule(Action::Cancel, id).await? {
            return Ok(false);
        }
        let record = if self.bus().is_heard() { self.find_schedule(id).await? } else { None };
        let canceled = self.store().cancel_schedule(id, ArchiveReason::Canceled, None).await?;
        if let Some(record) = record.filter(|_| canceled) {
            self.publish_schedule(&record, JobEventKind::ScheduleCanceled);
        }
        Ok(canceled)
    }

    /// Ends every schedule that passes the filter, by tag or by business key; says how many those were.
    ///
    /// # Errors
    /// [`Invalid`](ErrorKind::Invalid) if the filter is empty, which is more likely a slip than meant.
    pub async fn cancel_schedules(&self, filter: &ScheduleFilter) -> Result<usize, StoreError> {
        if *filter == ScheduleFilter::default() {
            let problem =
                "the filter is empty, so this would cancel every schedule; give a tag, a business key or declared";
            return Err(StoreError::new(ErrorKind::Invalid, "canceling schedules", problem));
        }
        let mut canceled = 0;
        let mut after = None;
        loop {
            let page = self.schedules(filter, after, 100).await?;
            for one in &page.items {
                canceled += usize::from(self.cancel_schedule(one.id).await?);
            }
            after = page.next;
            if after.is_none() {
                return Ok(canceled);
            }
        }
    }

    /// Schedules were created or resumed: this process looks at once.
    pub(crate) fn schedules_changed(&self) {
        self.schedules_notice().notify_one();
    }

    /// Tells of a schedule.
    pub(crate) fn publish_schedule(&self, schedule: &ScheduleRecord, what: JobEventKind) {
        self.bus().publish_schedule(schedule, self.node(), what);
    }

    /// Tells what firing a schedule came to.
    pub(crate) fn publish_fired(&self, schedule: &ScheduleRecord, jobs: u64, skipped: u64) {
        if jobs > 0 {
            self.publish_schedule(schedule, JobEventKind::ScheduleFired { jobs });
        }
        if skipped > 0 {
            self.publish_schedule(schedule, JobEventKind::ScheduleSkipped { fires: skipped });
        }
    }

    /// Schedules have fired these jobs: wakes the nodes.
    pub(crate) fn fired(&self, firings: &[Firing]) {
        let priority = firings.iter().flat_map(|firing| &firing.jobs).map(|job| job.spec.priority).max();
        self.submitted(Waking(priority));
    }
}

/// Tells this process that schedules were created or resumed here.
pub(crate) type Notice = Arc<Notify>;
