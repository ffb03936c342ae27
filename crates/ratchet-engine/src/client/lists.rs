//! Listing and counting jobs; listing nodes.

use ratchet_core::node::NodeRecord;
use ratchet_core::page::{JobFilter, ListCursor, Page};
use ratchet_core::store::StateCounts;
use ratchet_core::{CountBy, Counted, JobRecord, StoreError};

use crate::client::Client;
use crate::client::caller::no_page;
use crate::protect::authorizer::{Action, Scope, Target};

impl Client {
    /// Returns a page of jobs in the order of the filter, with archived ones if the filter asks for them.
    ///
    /// A page may be shorter than `limit`, even empty, and have a next one: go on while there is one.
    ///
    /// # Errors
    /// [`Invalid`](ratchet_core::ErrorKind::Invalid) if `limit` is not 1 to 1,000, or `after` is of a list in another order.
    pub async fn list(
        &self,
        filter: &JobFilter,
        after: Option<ListCursor>,
        limit: usize,
    ) -> Result<Page<JobRecord, ListCursor>, StoreError> {
        match self.scoped(filter) {
            Some(filter) => self.inner.store.list(&filter, after, limit).await,
            None => Ok(no_page()),
        }
    }

    /// Counts the jobs of a filter in groups: failed ones by kind, waiting ones by priority, those of a tag by state or by node.
    ///
    /// Examines the newest 100,000 jobs; [`Counted::more`] says whether there are others.
    ///
    /// ```
    /// # use ratchet_core::page::JobFilter;
    /// # use ratchet_core::{CountBy, JobState, StoreError, Tag};
    /// # async fn count(client: ratchet_engine::Client, tag: Tag) -> Result<(), StoreError> {
    /// let pending = JobFilter { states: vec![JobState::Pending], tag: Some(tag), ..JobFilter::default() };
    /// for (priority, jobs) in client.count(&pending, &CountBy::Priority).await?.groups {
    ///     println!("{jobs} of priority {priority}");
    /// }
    /// # Ok(())
    /// # }
    /// ```
    pub async fn count(&self, filter: &JobFilter, by: &CountBy) -> Result<Counted, StoreError> {
        match self.scoped(filter) {
            Some(filter) => self.inner.store.count(&filter, by).await,
            None => Ok(Counted::default()),
        }
    }

    /// Returns the number of jobs in each state.
    pub async fn count_by_state(&self) -> Result<StateCounts, StoreError> {
        match self.scope() {
            Scope::Everything => self.inner.store.count_by_state().await,
            Scope::Of(principal) => self.inner.store.count_by_state_of(&principal).await,
            Scope::Nothing => Ok(StateCounts::new()),
        }
    }

    /// Returns every node that the store knows, most recent heartbeat first.
    pub async fn nodes(&self) -> Result<Vec<NodeRecord>, StoreError> {
        self.demand(Action::Read, &Target::Nodes)?;
        self.inner.store.nodes().await
    }
}
