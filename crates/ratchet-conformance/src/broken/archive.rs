use std::time::Duration;

use ratchet_core::page::{ArchiveScope, JobCursor, JobFilter, Page};
use ratchet_core::store::{ArchiveRequest, Archived, Removal, RetriedAll, StoreDecorator};
use ratchet_core::{DeadLetter, DeadLetterFilter, JobState, Store, StoreError};

use super::{Broken, Flaw, Layer};
use crate::signals::to_job;

#[derive(Debug)]
pub(super) enum Archive {}

impl StoreDecorator for Layer<Archive> {
    fn inner(&self) -> &dyn Store {
        self.below()
    }

    async fn archive(&self, request: &ArchiveRequest) -> Result<Archived, StoreError> {
        let mut request = request.clone();
        match self.flaw {
            Flaw::IgnoresFilters => request.only = None,
            Flaw::ArchivesTheUnwanted => request.removal = Removal::Archive,
            Flaw::DeletesOtherEnds if request.removal == Removal::Delete => {
                let failed = ArchiveRequest { state: JobState::Failed, ..request.clone() };
                self.good.archive(&failed).await?;
            }
            Flaw::DeletesTooSoon if request.removal == Removal::Delete => request.age = Duration::ZERO,
            Flaw::ArchivesNothing => return Ok(Archived::default()),
            Flaw::ArchivesEarly => request.age /= 2,
            Flaw::ArchivesAllAtOnce => request.limit = 1_000,
            Flaw::ArchivesFromTheStart => request.after = None,
            Flaw::StopsAtFiveHundred => request.limit = request.limit.min(500),
            Flaw::ArchivesTheRevivable if request.state == JobState::Canceled => {
                let canceled = JobFilter { states: vec![JobState::Canceled], ..JobFilter::default() };
                for job in self.good.list(&canceled, None, 1_000).await?.items {
                    self.good.delete(job.id).await?;
                }
            }
            Flaw::ArchivesLive => {
                let seen = self.seen().jobs.clone();
                for id in seen {
                    self.good.cancel(id).await?;
                }
            }
            _ => {}
        }
        let mut done = self.good.archive(&request).await?;
        match self.flaw {
            Flaw::SaysArchived => {
                let states = vec![request.state];
                let there = JobFilter { states, ..JobFilter::default() };
                done.moved += self.good.list(&there, None, 1_000).await?.items.len() as u64;
            }
            Flaw::DeletesTheTied if request.removal == Removal::Delete => self.delete_archived().await?,
            Flaw::DeletesInsteadOfArchiving => self.delete_archived().await?,
            _ => {}
        }
        Ok(done)
    }

    async fn purge_archive(&self, age: Duration, limit: usize) -> Result<u64, StoreError> {
        match self.flaw {
            Flaw::PurgesNothing => Ok(0),
            Flaw::PurgesEarly => self.good.purge_archive(age / 2, limit).await,
            Flaw::PurgesAllAtOnce => self.good.purge_archive(age, 1_000).await,
            _ => self.good.purge_archive(age, limit).await,
        }
    }

    async fn purge_schedules(&self, age: Duration, limit: usize) -> Result<u64, StoreError> {
        match self.flaw {
            Flaw::PurgesNothing => Ok(0),
            Flaw::PurgesEarly => self.good.purge_schedules(age / 2, limit).await,
            Flaw::PurgesAllAtOnce => self.good.purge_schedules(age, 1_000).await,
            _ => self.good.purge_schedules(age, limit).await,
        }
    }

    async fn dead_letters(
        &self,
        filter: &JobFilter,
        after: Option<JobCursor>,
        limit: usize,
    ) -> Result<Page<DeadLetter>, StoreError> {
        let (mut filter, mut after, mut limit) = (filter.clone(), after, limit);
        match self.flaw {
            Flaw::IgnoresFilters => filter = JobFilter::default(),
            Flaw::ForgetsCursor => after = None,
            Flaw::AnyLimit => limit = limit.clamp(1, 1_000),
            _ => {}
        }
        let mut page = self.good.dead_letters(&filter, after, limit).await?;
        if self.has(Flaw::LosesErrorClass) {
            page.items.iter_mut().for_each(|letter| letter.error_class = None);
        }
        Ok(page)
    }

    async fn retry_all(&self, filter: &DeadLetterFilter, limit: usize) -> Result<RetriedAll, StoreError> {
        let (mut filter, mut limit) = (filter.clone(), limit);
        match self.flaw {
            Flaw::IgnoresFilters => filter = DeadLetterFilter::default(),
            Flaw::AnyLimit => limit = limit.clamp(1, 1_000),
            Flaw::RetriesAllAtOnce => limit = 1_000,
            Flaw::StopsAtFiveHundred => limit = limit.min(500),
            Flaw::RetriesInSteps => return self.retry_in_steps(&filter, limit).await,
            _ => {}
        }
        let mut retried = self.good.retry_all(&filter, limit).await?;
        match self.flaw {
            Flaw::RevivesNothing => {
                let waiting = JobFilter { states: vec![JobState::Waiting], ..JobFilter::default() };
                for job in self.good.list(&waiting, None, 1_000).await?.items {
                    self.good.cancel(job.id).await?;
                }
            }
            Flaw::RetriesUnsignaled => {
                let waiting = JobFilter { states: vec![JobState::Waiting], ..JobFilter::default() };
                for job in self.good.list(&waiting, None, 1_000).await?.items {
                    self.good.deliver(&to_job(job.id)).await?;
                }
            }
            Flaw::RetriesAnyChild => {
                retried.count += std::mem::take(&mut retried.passed_over);
            }
            _ => {}
        }
        Ok(retried)
    }
}

impl Broken {
    async fn delete_archived(&self) -> Result<(), StoreError> {
        let archived = JobFilter { archive: ArchiveScope::Archived, ..JobFilter::default() };
        for job in self.good.list(&archived, None, 1_000).await?.items {
            self.good.delete(job.id).await?;
        }
        Ok(())
    }

    /// Retries one after the other, until one is refused.
    async fn retry_in_steps(&self, filter: &DeadLetterFilter, limit: usize) -> Result<RetriedAll, StoreError> {
        let mut retried = RetriedAll::default();
        for letter in self.good.dead_letters(&filter.jobs, None, limit).await?.items {
            retried.count += u64::from(self.good.retry(letter.id).await?.is_some());
        }
        Ok(retried)
    }
}
