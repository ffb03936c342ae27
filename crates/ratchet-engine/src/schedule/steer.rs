use std::sync::Arc;

use ratchet_core::page::{JobCursor, Page};
use ratchet_core::recurring::{ArchiveReason, Firing, RecurringFilter, RecurringRecord};
use ratchet_core::store::SubmitUnit;
use ratchet_core::{Due, JobId, NewJob, StoreError};
use tokio::sync::Notify;

use super::{ScheduleBuilder, ScheduleHandle};
use crate::client::Client;
use crate::enqueue::Waking;
use crate::ids::new_job_id;
use crate::step::IntoStep;

/// Schedules.
impl Client {
    /// Begins a schedule that fires this job again and again: times follow, [`ScheduleBuilder::create`] does it.
    pub fn schedule(&self, step: impl IntoStep) -> ScheduleBuilder {
        ScheduleBuilder::new(self.clone(), step)
    }

    /// A schedule as it stands; `None` if there is none of this id.
    pub async fn find_schedule(&self, id: JobId) -> Result<Option<RecurringRecord>, StoreError> {
        Ok(self.store().find_recurring(&[id]).await?.pop())
    }

    /// A handle to a schedule that was created earlier, perhaps by another process.
    pub fn schedule_handle(&self, id: JobId) -> ScheduleHandle {
        ScheduleHandle::new(self.clone(), id)
    }

    /// A page of schedules, newest first.
    pub async fn schedules(
        &self,
        filter: &RecurringFilter,
        after: Option<JobCursor>,
        limit: usize,
    ) -> Result<Page<RecurringRecord>, StoreError> {
        self.store().list_recurring(filter, after, limit).await
    }

    /// Suspends a schedule; jobs that it has fired go on. `false` if it is paused already or unknown.
    pub async fn pause_schedule(&self, id: JobId) -> Result<bool, StoreError> {
        self.store().pause_recurring(id).await
    }

    /// Lets a paused schedule go on with its next future fire; what fell into the pause is not made up for. `false` if it
    /// is not paused or unknown.
    pub async fn resume_schedule(&self, id: JobId) -> Result<bool, StoreError> {
        let Some(record) = self.find_schedule(id).await? else { return Ok(false) };
        let now = self.store().database_time().await?;
        let resumed = self.store().resume_recurring(id, record.schedule.next_after(now)).await?;
        self.schedules_changed();
        Ok(resumed)
    }

    /// Fires a schedule now, beside its own times; the job that it fired, or `None` if there is no such schedule.
    pub async fn run_schedule_now(&self, id: JobId) -> Result<Option<JobId>, StoreError> {
        let Some(record) = self.find_schedule(id).await? else { return Ok(None) };
        let now = self.store().database_time().await?;
        let job = NewJob { id: new_job_id(), due: Due::NOW, ..record.job_at(now) };
        let (id, priority) = (job.id, job.spec.priority);
        self.submitter().submit(SubmitUnit::of(vec![job])).await?;
        self.submitted(Waking(Some(priority)));
        Ok(Some(id))
    }

    /// Ends a schedule; the jobs that it has fired stay. `false` if there is none. One that the code of live nodes declares
    /// comes back with the next start of such a node.
    pub async fn cancel_schedule(&self, id: JobId) -> Result<bool, StoreError> {
        self.store().cancel_recurring(id, ArchiveReason::Canceled, None).await
    }

    /// Ends every schedule that passes the filter, by tag or by business key; says how many those were.
    pub async fn cancel_schedules(&self, filter: &RecurringFilter) -> Result<usize, StoreError> {
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

    /// Schedules have fired these jobs: wakes the nodes.
    pub(crate) fn fired(&self, firings: &[Firing]) {
        let priority = firings.iter().flat_map(|firing| &firing.jobs).map(|job| job.spec.priority).max();
        self.submitted(Waking(priority));
    }
}

/// Tells this process that schedules were created or resumed here.
pub(crate) type Notice = Arc<Notify>;
