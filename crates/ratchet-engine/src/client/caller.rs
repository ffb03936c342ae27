//! A client that acts for somebody: what he may do, and what he sees.

use std::borrow::Cow;
use std::collections::BTreeSet;

use ratchet_core::page::{JobCursor, JobFilter, Page};
use ratchet_core::schedule::ScheduleRecord;
use ratchet_core::{InvalidInput, JobId, JobRecord, Principal, StoreError};

use crate::client::Client;
use crate::guard;
use crate::protect::authorizer::{Action, Authorizer, Denied, Scope, Target};

impl Client {
    /// This client, acting for somebody.
    ///
    /// What is submitted through it is submitted for him, unless it names another principal. What he may do and see is
    /// for the [`Authorizer`] to say, if there is one. Handles, builders and batches that come from it act for him too.
    ///
    /// It is for code that acts for a person, not a cell for code that is not trusted. Whoever holds a client, acting or
    /// not, can have one that acts for anybody else from it, by this very call and without anybody being asked; and
    /// [`store`](Self::store) and [`events`](Self::events) know no caller. So hand the client to your own code only, and
    /// let `principal` come from where you have found out who it is.
    ///
    /// ```
    /// # use ratchet_core::{InvalidInput, MemoryStore};
    /// # use ratchet_engine::{Client, OwnJobs, SystemClock};
    /// # let store = MemoryStore::new(std::sync::Arc::new(SystemClock));
    /// let client = Client::new(store).with_authorizer(OwnJobs::new());
    /// let alice = client.as_principal("alice")?;
    /// assert_eq!(alice.principal().unwrap().as_str(), "alice");
    /// # Ok::<(), InvalidInput>(())
    /// ```
    ///
    /// # Errors
    /// If it is empty, or longer than 255 characters.
    pub fn as_principal(&self, principal: impl AsRef<str>) -> Result<Self, InvalidInput> {
        Ok(self.clone().acting_for(Principal::new(principal)?))
    }

    /// Whether the caller may do this; `true` if nobody restricts him.
    pub(crate) fn allows(&self, action: Action, target: &Target<'_>) -> bool {
        let Some((caller, authorizer)) = self.restricted() else { return true };
        guard::call(self.meter(), guard::AUTHORIZER, || authorizer.allows(caller, action, target)).unwrap_or(false)
    }

    /// The same, as an error: for what the caller may know of.
    pub(crate) fn demand(&self, action: Action, target: &Target<'_>) -> Result<(), Denied> {
        match self.principal() {
            Some(caller) if !self.allows(action, target) => Err(Denied::new(action, caller, target)),
            _ => Ok(()),
        }
    }

    /// Whether the caller may do this to a job: `false` if there is none for him, an error if he may only read it.
    pub(crate) async fn may(&self, action: Action, id: JobId) -> Result<bool, StoreError> {
        Ok(self.judge(action, id).await??)
    }

    /// The same, with the refusal apart.
    ///
    /// A job's principal never changes, so nothing can come between the question and the deed.
    pub(crate) async fn judge(&self, action: Action, id: JobId) -> Result<Result<bool, Denied>, StoreError> {
        if self.restricted().is_none() {
            return Ok(Ok(true));
        }
        let Some(job) = self.find(id).await? else { return Ok(Ok(false)) };
        Ok(self.demand(action, &Target::job(&job)).map(|()| true))
    }

    /// The same for a schedule.
    pub(crate) async fn may_schedule(&self, action: Action, id: JobId) -> Result<bool, StoreError> {
        if self.restricted().is_none() {
            return Ok(true);
        }
        let Some(schedule) = self.find_schedule(id).await? else { return Ok(false) };
        self.demand(action, &Target::schedule(&schedule))?;
        Ok(true)
    }

    pub(crate) fn reads(&self, job: &JobRecord) -> bool {
        self.allows(Action::Read, &Target::job(job))
    }

    pub(crate) fn reads_schedule(&self, schedule: &ScheduleRecord) -> bool {
        self.allows(Action::Read, &Target::schedule(schedule))
    }

    /// Which of these jobs the caller may read.
    pub(crate) async fn readable(&self, ids: &[JobId]) -> Result<BTreeSet<JobId>, StoreError> {
        let found = self.store().find(ids).await?;
        Ok(found.iter().filter(|job| self.reads(job)).map(|job| job.id).collect())
    }

    /// What lists show to the caller.
    pub(crate) fn scope(&self) -> Scope {
        let Some((caller, authorizer)) = self.restricted() else { return Scope::Everything };
        guard::call(self.meter(), guard::AUTHORIZER, || authorizer.scope(caller)).unwrap_or(Scope::Nothing)
    }

    /// A filter of jobs within the caller's scope; `None` if it lets nothing through.
    pub(crate) fn scoped<'a>(&self, filter: &'a JobFilter) -> Option<Cow<'a, JobFilter>> {
        match (self.scope(), &filter.principal) {
            (Scope::Everything, _) => Some(Cow::Borrowed(filter)),
            (Scope::Of(whose), None) => Some(Cow::Owned(JobFilter { principal: Some(whose), ..filter.clone() })),
            (Scope::Of(whose), Some(wanted)) if whose == *wanted => Some(Cow::Borrowed(filter)),
            (Scope::Of(_) | Scope::Nothing, _) => None,
        }
    }

    /// Who asks, and whom to ask about it; `None` if nobody restricts this client.
    fn restricted(&self) -> Option<(&Principal, &dyn Authorizer)> {
        self.principal().zip(self.rules().authorizer.as_deref())
    }
}

/// A page with nothing on it.
pub(crate) const fn no_page<T, C>() -> Page<T, C> {
    Page { items: Vec::new(), next: None }
}

/// Fills a page with what a caller may read, of a list that the store cannot narrow by principal.
///
/// After so many portions it gives up on filling the page; the cursor says where to go on.
pub(crate) struct Filling<T> {
    page: Page<T>,
    limit: usize,
    portions: usize,
    more: bool,
}

const PORTIONS_MAX: usize = 20;

impl<T> Filling<T> {
    pub(crate) fn new(after: Option<JobCursor>, limit: usize) -> Self {
        Self { page: Page { items: Vec::new(), next: after }, limit, portions: 0, more: true }
    }

    /// Whether the page wants another portion.
    pub(crate) fn goes_on(&self) -> bool {
        self.more && self.page.items.len() < self.limit && self.portions < PORTIONS_MAX
    }

    /// Where that begins.
    pub(crate) fn after(&self) -> Option<JobCursor> {
        self.page.next
    }

    /// Takes of a portion what fits and may be read.
    pub(crate) fn add(&mut self, portion: Page<T>, id: impl Fn(&T) -> JobId, is_readable: impl Fn(&T) -> bool) {
        self.portions += 1;
        self.page.next = portion.next;
        self.more = portion.next.is_some();
        for item in portion.items {
            if self.page.items.len() == self.limit {
                // What is left of the portion comes again with the next page.
                let last = self.page.items.last().map(&id);
                self.page.next = last.map(JobCursor);
                return;
            }
            if is_readable(&item) {
                self.page.items.push(item);
            }
        }
    }

    pub(crate) fn page(self) -> Page<T> {
        self.page
    }
}

#[cfg(test)]
mod tests {
    use uuid::Uuid;

    use super::*;

    type IsReadable = fn(u128) -> bool;

    /// Fills a page from a list of `total` items of which some may be read.
    fn fill(total: u128, is_readable: IsReadable, limit: usize, after: Option<JobCursor>) -> Page<JobId> {
        let mut filling = Filling::new(after, limit);
        while filling.goes_on() {
            let from = filling.after().map_or(total, |cursor| cursor.0.0.as_u128());
            let items: Vec<_> = (0..from).rev().take(limit).map(|n| JobId(Uuid::from_u128(n))).collect();
            let next = items.last().filter(|last| last.0.as_u128() > 0).copied().map(JobCursor);
            filling.add(Page { items, next }, |id| *id, |id| is_readable(id.0.as_u128()));
        }
        filling.page()
    }

    #[test]
    fn pages_are_full_and_nothing_is_missed_or_told_twice() {
        let sorts: [IsReadable; 5] = [|_| true, |n| n % 3 == 0, |n| n % 10 == 9, |n| n % 7 < 3, |n| n % 7 > 3];
        for (is_readable, limit) in sorts.into_iter().flat_map(|sort| (1..12).map(move |limit| (sort, limit))) {
            let mut all = Vec::new();
            let mut after = None;
            for _ in 0..1_000 {
                let page = fill(100, is_readable, limit, after);
                assert!(page.items.len() == limit || page.next.is_none(), "{limit}: {page:?}");
                all.extend(page.items);
                after = page.next;
                if after.is_none() {
                    break;
                }
            }
            let expected = (0..100).rev().filter(|n| is_readable(*n)).map(|n| JobId(Uuid::from_u128(n)));
            assert_eq!(all, expected.collect::<Vec<_>>(), "{limit}");
        }
        assert!(fill(0, |_| true, 3, None).items.is_empty());
    }

    #[test]
    fn a_page_is_given_up_on_after_a_while_and_says_where_to_go_on() {
        let page = fill(10_000, |n| n % 9_999 == 0, 10, None);
        assert_eq!(page.items, [JobId(Uuid::from_u128(9_999))]);
        assert_eq!(page.next, Some(JobCursor(JobId(Uuid::from_u128(9_800)))));
    }
}
