use std::time::Duration;

use async_trait::async_trait;
use jiff::Timestamp;

use super::{ArchivedSchedule, MemoryStore, Tables};
use crate::clock::elapsed;
use crate::error::StoreError;
use crate::flow::{Edge, EdgeState, JobFlags};
use crate::id::JobId;
use crate::page::{JobCursor, Page};
use crate::schedule::{
    ArchiveReason, Firing, History, NewSchedule, ScheduleFilter, ScheduleRecord, arrange, holds_up, may_end,
};
use crate::store::{Declared, Fired, ScheduleStore};

#[async_trait]
impl ScheduleStore for MemoryStore {
    async fn create_schedule(&self, new: &NewSchedule) -> Result<(), StoreError> {
        let (mut tables, now) = self.open();
        tables.create_schedule(new, now)
    }

    async fn declare_schedules(&self, all: &[NewSchedule]) -> Result<Vec<Declared>, StoreError> {
        let (mut tables, now) = self.open();
        let before = tables.clone();
        let declared: Result<_, _> = all.iter().map(|new| tables.declare_schedules(new, now)).collect();
        if declared.is_err() {
            *tables = before;
        }
        declared
    }

    async fn find_schedules(&self, ids: &[JobId]) -> Result<Vec<ScheduleRecord>, StoreError> {
        let (tables, _) = self.open();
        Ok(ids.iter().filter_map(|id| tables.schedules.get(id).cloned()).collect())
    }

    async fn list_schedules(
        &self,
        filter: &ScheduleFilter,
        after: Option<JobCursor>,
        limit: usize,
    ) -> Result<Page<ScheduleRecord>, StoreError> {
        super::query::check_limit(limit)?;
        let (tables, _) = self.open();
        let passes = |one: &&ScheduleRecord| {
            after.is_none_or(|cursor| one.id < cursor.0)
                && filter.tag.as_ref().is_none_or(|tag| one.spec.tags.contains(tag))
                && filter.business_key.as_ref().is_none_or(|key| one.business_key.as_ref() == Some(key))
                && filter.declared.is_none_or(|declared| one.declared == declared)
        };
        let mut left = tables.schedules.values().rev().filter(passes);
        let items: Vec<ScheduleRecord> = left.by_ref().take(limit).cloned().collect();
        let more = left.next().is_some();
        let next = items.last().filter(|_| more).map(|one| JobCursor(one.id));
        Ok(Page { items, next })
    }

    async fn next_fire(&self) -> Result<Option<Duration>, StoreError> {
        let (tables, now) = self.open();
        let fires = tables.schedules.values().filter(|one| !one.paused).filter_map(|one| one.next_fire);
        Ok(fires.min().map(|next| elapsed(now, next)))
    }

    async fn due_schedules(&self, limit: usize) -> Result<(Timestamp, Vec<ScheduleRecord>), StoreError> {
        let (tables, now) = self.open();
        let is_due = |one: &&ScheduleRecord| !one.paused && one.next_fire.is_some_and(|next| next <= now);
        let mut due: Vec<ScheduleRecord> = tables.schedules.values().filter(is_due).cloned().collect();
        due.sort_by_key(|one| (one.next_fire, one.id));
        due.truncate(limit);
        Ok((now, due))
    }

    async fn fire_schedules(&self, firings: &[Firing]) -> Result<Vec<Fired>, StoreError> {
        let (mut tables, now) = self.open();
        firings.iter().map(|firing| tables.fire(firing, now)).collect()
    }

    async fn pause_schedule(&self, id: JobId) -> Result<bool, StoreError> {
        let (mut tables, now) = self.open();
        let Some(one) = tables.schedules.get_mut(&id).filter(|one| !one.paused) else { return Ok(false) };
        (one.paused, one.updated_at) = (true, now);
        Ok(true)
    }

    async fn resume_schedule(&self, id: JobId, next_fire: Option<Timestamp>) -> Result<bool, StoreError> {
        let (mut tables, now) = self.open();
        let Some(one) = tables.schedules.get_mut(&id).filter(|one| one.paused) else { return Ok(false) };
        (one.paused, one.next_fire, one.updated_at) = (false, next_fire, now);
        Ok(true)
    }

    async fn cancel_schedule(
        &self,
        id: JobId,
        reason: ArchiveReason,
        idle_for: Option<Duration>,
    ) -> Result<bool, StoreError> {
        let (mut tables, now) = self.open();
        let Some(one) = tables.schedules.get(&id) else { return Ok(false) };
        if !may_end(one.updated_at, idle_for, now) {
            return Ok(false);
        }
        if let Some(one) = tables.schedules.remove(&id) {
            if let Some(key) = &one.business_key {
                tables.business_keys.remove(key);
            }
            tables.schedule_archive.push(ArchivedSchedule { schedule: one, reason, archived_at: now });
        }
        Ok(true)
    }
}

impl Tables {
    fn declare_schedules(&mut self, new: &NewSchedule, now: Timestamp) -> Result<Declared, StoreError> {
        let Some(known) = self.schedules.get_mut(&new.id) else {
            self.create_schedule(new, now)?;
            let ended = self.schedule_archive.iter().rev().find(|one| one.schedule.id == new.id);
            let history = match ended {
                Some(one) if one.reason == ArchiveReason::Retired => one.schedule.history(),
                _ => History::default(),
            };
            if let Some(one) = self.schedules.get_mut(&new.id) {
                *one = one.clone().after(history);
            }
            return Ok(Declared::Created);
        };
        known.updated_at = now;
        if known.is_as_declared(new) {
            return Ok(Declared::Unchanged);
        }
        let next_fire = known.next_fire_if_changed(new, now);
        *known = ScheduleRecord {
            next_fire,
            updated_at: now,
            business_key: known.business_key.clone(),
            ..ScheduleRecord::stored(new, known.created_at).after(known.history())
        };
        Ok(Declared::Changed)
    }

    fn create_schedule(&mut self, new: &NewSchedule, now: Timestamp) -> Result<(), StoreError> {
        if self.schedules.contains_key(&new.id) {
            return Ok(());
        }
        if let Some(key) = &new.business_key {
            if let Some(holder) = self.business_keys.get(key) {
                return Err(StoreError::duplicate("create a schedule", key.clone(), *holder));
            }
            self.business_keys.insert(key.clone(), new.id);
        }
        self.schedules.insert(new.id, ScheduleRecord::stored(new, now));
        Ok(())
    }

    fn fire(&mut self, firing: &Firing, now: Timestamp) -> Result<Fired, StoreError> {
        let Some(one) = self.schedules.get(&firing.id) else { return Ok(Fired::Conflict) };
        if !one.may_fire(firing) {
            return Ok(Fired::Conflict);
        }
        let firing = firing.without(|id| self.jobs.contains_key(&id));
        let live = one.last_job.filter(|id| self.holds_up(*id));
        let open = |edge: &&Edge| edge.workflow == firing.id && edge.state == EdgeState::Open;
        let queued = self.edges.values().filter(open).count();
        let arranged = arrange(&firing, one.overlap, live, queued);
        for job in &arranged.jobs {
            self.insert(job, now)?;
        }
        for edge in &arranged.edges {
            self.edges.insert((edge.parent, edge.child), edge.clone());
            // The last job may be from a time when nobody waited for it.
            if let Some(parent) = self.jobs.get_mut(&edge.parent) {
                parent.flow = parent.flow.with(JobFlags::DEPENDANTS);
                parent.workflow = Some(firing.id);
            }
        }
        let advance = arranged.advance(&firing);
        if let Some(one) = self.schedules.get_mut(&firing.id) {
            advance.write(one);
        }
        Ok(Fired::Done { jobs: advance.fired, skipped: advance.skipped })
    }

    fn holds_up(&self, id: JobId) -> bool {
        let has_open_edge = || self.edges.values().any(|edge| edge.child == id && edge.state == EdgeState::Open);
        self.jobs.get(&id).is_some_and(|job| holds_up(job.place(), has_open_edge()))
    }
}
