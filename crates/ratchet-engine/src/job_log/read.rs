use std::time::Duration;

use ratchet_core::store::{PurgeLog, PurgedLog};
use ratchet_core::{JobId, LogFilter, LogPage, LogPlace, StoreError};

use crate::client::Client;
use crate::protect::authorizer::{Action, Target};
use crate::retention::{LINES_TOGETHER, Pace};

impl Client {
    /// A page of what the handlers of a job wrote down, in the order in which they did, attempt by attempt; `limit` is 1 to
    /// 1,000.
    ///
    /// Lines come a moment after they were written. To follow a job that runs, ask again after the last line.
    ///
    /// ```
    /// # use ratchet_core::{JobId, LogFilter, LogLevel, LogLine, StoreError};
    /// # async fn example(client: ratchet_engine::Client, id: JobId) -> Result<(), StoreError> {
    /// let warnings = LogFilter { level_min: LogLevel::Warn, ..LogFilter::default() };
    /// let mut after = None;
    /// loop {
    ///     let page = client.job_log(id, &warnings, after, 100).await?;
    ///     for line in &page.lines {
    ///         println!("{} {} {}", line.at, line.level, line.message);
    ///     }
    ///     after = page.next;
    ///     if after.is_none() {
    ///         return Ok(());
    ///     }
    /// }
    /// # }
    /// ```
    pub async fn job_log(
        &self,
        id: JobId,
        filter: &LogFilter,
        after: Option<LogPlace>,
        limit: usize,
    ) -> Result<LogPage, StoreError> {
        if !self.may(Action::Read, id).await? {
            return Ok(LogPage { lines: Vec::new(), next: None });
        }
        self.store().read_log(id, filter, after, limit).await
    }

    /// Deletes lines of jobs' logs that are older than `age`; says how many.
    ///
    /// Nodes do this all the time, by their `retention`. This is for whoever does not want to wait, or lets no node do it.
    pub async fn purge_job_logs(&self, age: Duration) -> Result<u64, StoreError> {
        self.demand(Action::Purge, &Target::Ended)?;
        let (mut purged, mut after, mut pace) = (0, None, Pace::new());
        loop {
            let request = PurgeLog { age, after, limit: pace.begin(LINES_TOGETHER) };
            let PurgedLog { purged: now, last, more } = self.store().purge_log(&request).await?;
            purged += now;
            after = last;
            if !more {
                return Ok(purged);
            }
            pace.rest().await;
        }
    }
}
