use ratchet_core::dead_letter::Grouping;
use ratchet_core::page::{JobCursor, JobFilter, PAGE_LIMIT_MAX, Page};
use ratchet_core::store::{LETTER_PAGES_MAX, RetriedAll};
use ratchet_core::{DeadLetter, DeadLetterFilter, DeadLetterGroup, StoreError};
use serde::Serialize;

use super::BulkEventKind;
use crate::client::Client;
use crate::client::caller::no_page;
use crate::protect::authorizer::{Action, Target};

/// Dead letters put together by why they failed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct DeadLetterGroups {
    /// The groups, the largest first.
    pub groups: Vec<DeadLetterGroup>,
    /// How many dead letters were looked at: the newest.
    pub looked_at: u64,
    /// Whether those were all. If not, counts are of the newest, and a narrower filter tells more.
    pub complete: bool,
}

impl Client {
    /// A page of dead letters with their errors, newest first.
    pub async fn dead_letters(
        &self,
        filter: &JobFilter,
        after: Option<JobCursor>,
        limit: usize,
    ) -> Result<Page<DeadLetter>, StoreError> {
        match self.scoped(filter) {
            Some(filter) => self.store().dead_letters(&filter, after, limit).await,
            None => Ok(no_page()),
        }
    }

    /// Dead letters by why they failed: kind, class and text of the error, without numbers and ids. The newest twenty
    /// thousand are looked at.
    pub async fn dead_letter_groups(&self, filter: &JobFilter) -> Result<DeadLetterGroups, StoreError> {
        let mut grouping = Grouping::default();
        let (mut after, mut looked_at) = (None, 0);
        for _ in 0..LETTER_PAGES_MAX {
            let page = self.dead_letters(filter, after, PAGE_LIMIT_MAX).await?;
            page.items.iter().for_each(|letter| grouping.add(letter));
            looked_at += page.items.len() as u64;
            after = page.next;
            if after.is_none() {
                break;
            }
        }
        Ok(DeadLetterGroups { groups: grouping.into_groups(), looked_at, complete: after.is_none() })
    }

    /// Retries up to `limit` (1 to 1,000) dead letters, the newest first: all of them, or none. Publishes one event for all.
    ///
    /// Children of batches that are over are passed over.
    ///
    /// # Errors
    /// [`Duplicate`](ratchet_core::ErrorKind::Duplicate) if a live job holds the business key of one of them. The error
    /// names those [dead letters](StoreError::held); with [`except`](DeadLetterFilter::except) the others can be retried.
    pub async fn retry_all(&self, filter: &DeadLetterFilter, limit: usize) -> Result<RetriedAll, StoreError> {
        let Some(jobs) = self.scoped(&filter.jobs) else { return Ok(RetriedAll::default()) };
        let filter = &DeadLetterFilter { jobs: jobs.into_owned(), ..filter.clone() };
        self.demand(Action::Retry, &Target::DeadLetters(filter))?;
        let retried = self.store().retry_all(filter, limit).await?;
        if retried.count > 0 {
            let (count, revived) = (retried.count, retried.revived);
            self.publish_bulk(BulkEventKind::JobsRetried { count, revived, filter: Box::new(filter.clone()) });
        }
        if let Some(priority) = retried.priority {
            self.wake().work();
            self.announce(priority);
        }
        Ok(retried)
    }
}
