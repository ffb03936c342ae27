use std::ops::Bound;
use std::sync::Arc;

use async_trait::async_trait;
use uuid::Uuid;

use super::query::check_limit;
use super::{MemoryStore, Tables, to_micros};
use crate::clock::{earlier, elapsed};
use crate::error::StoreError;
use crate::id::JobId;
use crate::job_log::{LogFilter, LogLine, LogPage, LogPlace};
use crate::store::{JobLogStore, PurgeLog, PurgedLog};

#[async_trait]
impl JobLogStore for MemoryStore {
    async fn append_log(&self, lines: Arc<[LogLine]>) -> Result<(), StoreError> {
        let (mut tables, _) = self.open();
        for line in lines.iter() {
            let kept = LogLine { at: to_micros(line.at), ..line.clone() };
            tables.log.entry((line.job_id, line.place())).or_insert(kept);
        }
        Ok(())
    }

    async fn read_log(
        &self,
        id: JobId,
        filter: &LogFilter,
        after: Option<LogPlace>,
        limit: usize,
    ) -> Result<LogPage, StoreError> {
        check_limit(limit)?;
        let (tables, _) = self.open();
        let from = after.map_or(Bound::Included((id, FIRST)), |place| Bound::Excluded((id, place)));
        let of_job = tables.log.range((from, Bound::Included((id, LAST)))).map(|(_, line)| line);
        let mut lines: Vec<LogLine> = of_job.filter(|line| filter.passes(line)).take(limit + 1).cloned().collect();
        let more = lines.len() > limit;
        lines.truncate(limit);
        let next = lines.last().filter(|_| more).map(LogLine::place);
        Ok(LogPage { lines, next })
    }

    async fn purge_log(&self, request: &PurgeLog) -> Result<PurgedLog, StoreError> {
        let (mut tables, now) = self.open();
        let below = (JobId::floor(earlier(now, request.age)), FIRST);
        let from = request.after.map_or(Bound::Included((JobId(Uuid::nil()), FIRST)), Bound::Excluded);
        if matches!(from, Bound::Excluded(after) if after >= below) {
            return Ok(PurgedLog { last: request.after, ..PurgedLog::default() });
        }
        let range = (from, Bound::Excluded(below));
        let looked_at: Vec<_> = tables.log.range(range).map(|(key, _)| *key).take(request.limit).collect();
        let mut purged = 0;
        for key in &looked_at {
            if tables.log.get(key).is_some_and(|line| elapsed(line.at, now) >= request.age) {
                tables.log.remove(key);
                purged += 1;
            }
        }
        let more = looked_at.len() == request.limit && request.limit > 0;
        Ok(PurgedLog { purged, last: looked_at.last().copied().or(request.after), more })
    }
}

const FIRST: LogPlace = LogPlace { version: 0, seq: 0 };
const LAST: LogPlace = LogPlace { version: u64::MAX, seq: u32::MAX };

impl Tables {
    /// A job's lines go with it.
    pub(super) fn forget_log(&mut self, id: JobId) {
        let keys: Vec<_> = self.log.range((id, FIRST)..=(id, LAST)).map(|(key, _)| *key).collect();
        for key in keys {
            self.log.remove(&key);
        }
    }
}
