use std::time::Duration;

use async_trait::async_trait;
use jiff::Timestamp;

use super::{ArchivedSchedule, MemoryStore, Tables};
use crate::clock::elapsed;
use crate::error::StoreError;
use crate::flow::{Edge, EdgeState, Flow};
use crate::id::JobId;
use crate::page::{JobCursor, Page};
use crate::recurring::{
    ArchiveReason, Firing, History, NewRecurring, RecurringFilter, RecurringRecord, arrange, holds_up, may_end,
};
use crate::store::{Declared, Fired, RecurringStore};

#[async_trait]
impl RecurringStore for MemoryStore {
    async fn create_recurring(&self, new: &NewRecurring) -> Result<(), StoreError> {
        let (mut tables, now) = self.open();
        tables.create_recurring(new, now)
    }

    async fn declare_recurring(&self, all: &[NewRecurring]) -> Result<Vec<Declared>, StoreError> {
        let (mut tables, now) = self.open();
        let before = tables.clone();
        let declared: Result<_, _> = all.iter().map(|new| tables.declare_recurring(new, now)).collect();
        if declared.is_err() {
            *tables = before;
        }
        declared
    }

    async fn find_recurring(&self, ids: &[JobId]) -> Result<Vec<RecurringRecord>, StoreError> {
        let (tables, _) = self.open();
        Ok(ids.iter().filter_map(|id| tables.recurring.get(id).cloned()).collect())
    }

    async fn list_recurring(
        &self,
        filter: &RecurringFilter,
        after: Option<JobCursor>,
        limit: usize,
    ) -> Result<Page<RecurringRecord>, StoreError> {
        super::query::check_limit(limit)?;
        let (tables, _) = self.open();
        let passes = |one: &&RecurringRecord| {
            after.is_none_or(|cursor| one.id < cursor.0)
                && filter.tag.as_ref().is_none_or(|tag| one.spec.tags.contains(tag))
                && filter.business_key.as_ref().is_none_or(|key| one.business_key.as_ref() == Some(key))
                && filter.declared.is_none_or(|declared| one.declared == declared)
        };
        let mut left = tables.recurring.values().rev().filter(passes);
        let items: Vec<RecurringRecord> = left.by_ref().take(limit).cloned().collect();
        let more = left.next().is_some();
        let next = items.last().filter(|_| more).map(|one| JobCursor(one.id));
        Ok(Page { items, next })
    }

    async fn next_fire(&self) -> Result<Option<Duration>, StoreError> {
        let (tables, now) = self.open();
        let fires = tables.recurring.values().filter(|one| !one.paused).filter_map(|one| one.next_fire);
        Ok(fires.min().map(|next| elapsed(now, next)))
    }

    async fn due_recurring(&self, limit: usize) -> Result<(Timestamp, Vec<RecurringRecord>), StoreError> {
        let (tables, now) = self.open();
        let is_due = |one: &&RecurringRecord| !one.paused && one.next_fire.is_some_and(|next| next <= now);
        let mut due: Vec<RecurringRecord> = tables.recurring.values().filter(is_due).cloned().collect();
        due.sort_by_key(|one| (one.next_fire, one.id));
        due.truncate(limit);
        Ok((now, due))
    }

    async fn fire_recurring(&self, firings: &[Firing]) -> Result<Vec<Fired>, StoreError> {
        let (mut tables, now) = self.open();
        firings.iter().map(|firing| tables.fire(firing, now)).collect()
    }

    async fn pause_recurring(&self, id: JobId) -> Result<bool, StoreError> {
        let (mut tables, now) = self.open();
        let Some(one) = tables.recurring.get_mut(&id).filter(|one| !one.paused) else { return Ok(false) };
        (one.paused, one.updated_at) = (true, now);
        Ok(true)
    }

    async fn resume_recurring(&self, id: JobId, next_fire: Option<Timestamp>) -> Result<bool, StoreError> {
        let (mut tables, now) = self.open();
        let Some(one) = tables.recurring.get_mut(&id).filter(|one| one.paused) else { return Ok(false) };
        (one.paused, one.next_fire, one.updated_at) = (false, next_fire, now);
        Ok(true)
    }

    async fn cancel_recurring(
        &self,
        id: JobId,
        reason: ArchiveReason,
        idle_for: Option<Duration>,
    ) -> Result<bool, StoreError> {
        let (mut tables, now) = self.open();
        let Some(one) = tables.recurring.get(&id) else { return Ok(false) };
        if !may_end(one.updated_at, idle_for, now) {
            return Ok(false);
        }
        if let Some(one) = tables.recurring.remove(&id) {
            if let Some(key) = &one.business_key {
                tables.business_keys.remove(key);
            }
            tables.recurring_archive.push(ArchivedSchedule { schedule: one, reason, archived_at: now });
        }
        Ok(true)
    }
}

impl Tables {
    fn declare_recurring(&mut self, new: &NewRecurring, now: Timestamp) -> Result<Declared, StoreError> {
        let Some(known) = self.recurring.get_mut(&new.id) else {
            self.create_recurring(new, now)?;
            let ended = self.recurring_archive.iter().rev().find(|one| one.schedule.id == new.id);
            let history = match ended {
                Some(one) if one.reason == ArchiveReason::Retired => one.schedule.history(),
                _ => History::default(),
            };
            if let Some(one) = self.recurring.get_mut(&new.id) {
                *one = one.clone().after(history);
            }
            return Ok(Declared::Created);
        };
        known.updated_at = now;
        if known.is_as_declared(new) {
            return Ok(Declared::Unchanged);
        }
        let next_fire = known.next_fire_if_changed(new, now);
        *known = RecurringRecord {
            next_fire,
            updated_at: now,
            business_key: known.business_key.clone(),
            ..RecurringRecord::stored(new, known.created_at).after(known.history())
        };
        Ok(Declared::Changed)
    }

    fn create_recurring(&mut self, new: &NewRecurring, now: Timestamp) -> Result<(), StoreError> {
        if self.recurring.contains_key(&new.id) {
            return Ok(());
        }
        if let Some(key) = &new.business_key {
            if let Some(holder) = self.business_keys.get(key) {
                return Err(StoreError::duplicate("create a schedule", key.clone(), *holder));
            }
            self.business_keys.insert(key.clone(), new.id);
        }
        self.recurring.insert(new.id, RecurringRecord::stored(new, now));
        Ok(())
    }

    fn fire(&mut self, firing: &Firing, now: Timestamp) -> Result<Fired, StoreError> {
        let Some(one) = self.recurring.get(&firing.id) else { return Ok(Fired::Conflict) };
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
                parent.flow = parent.flow.with(Flow::DEPENDANTS);
                parent.workflow = Some(firing.id);
            }
        }
        let advance = arranged.advance(&firing);
        if let Some(one) = self.recurring.get_mut(&firing.id) {
            advance.write(one);
        }
        Ok(Fired::Done { jobs: advance.fired, skipped: advance.skipped })
    }

    fn holds_up(&self, id: JobId) -> bool {
        let has_open_edge = || self.edges.values().any(|edge| edge.child == id && edge.state == EdgeState::Open);
        self.jobs.get(&id).is_some_and(|job| holds_up(job.place(), has_open_edge()))
    }
}
