use std::sync::Arc;

use ratchet_core::store::{PurgeLog, PurgedLog, StoreDecorator};
use ratchet_core::{ErrorKind, JobId, LogFilter, LogLine, LogPage, LogPlace, Store, StoreError};

use super::{Broken, Flaw, Layer, mangled};

#[derive(Debug)]
pub(super) enum JobLogs {}

impl StoreDecorator for Layer<JobLogs> {
    fn inner(&self) -> &dyn Store {
        self.below()
    }

    async fn append_log(&self, lines: Arc<[LogLine]>) -> Result<(), StoreError> {
        if self.has(Flaw::RefusesNothing) && lines.is_empty() {
            return Err(StoreError::new(ErrorKind::Invalid, "appending", "there is nothing to append"));
        }
        let mut lines = lines.to_vec();
        match self.flaw {
            Flaw::LosesLines => lines.clear(),
            Flaw::StopsAtFiveHundred => lines.truncate(500),
            Flaw::LosesLogFields => lines.iter_mut().for_each(|line| line.fields = None),
            Flaw::MangledText => lines.iter_mut().for_each(|line| line.message = mangled(&line.message)),
            Flaw::LosesLargeText => lines.retain(|line| line.message.len() < 10_000),
            Flaw::LastLineWins | Flaw::KeepsLogs => {
                let mut seen = self.seen();
                seen.lines.extend(lines.iter().map(|line| ((line.job_id, line.place()), line.clone())));
            }
            Flaw::FencesLogs => {
                let mut fenced = Vec::new();
                for line in lines {
                    let job = self.inner_job(line.job_id).await;
                    fenced.extend(job.filter(|job| job.version == line.version).map(|_| line));
                }
                lines = fenced;
            }
            Flaw::LogsTouchJobs => {
                for line in &lines {
                    self.good.pause(line.job_id).await?;
                    self.good.resume(line.job_id).await?;
                }
            }
            _ => {}
        }
        self.good.append_log(lines.into()).await
    }

    async fn read_log(
        &self,
        id: JobId,
        filter: &LogFilter,
        after: Option<LogPlace>,
        limit: usize,
    ) -> Result<LogPage, StoreError> {
        let (mut filter, mut after, mut limit) = (*filter, after, limit);
        match self.flaw {
            Flaw::IgnoresFilters => filter = LogFilter::default(),
            Flaw::ForgetsCursor => after = None,
            Flaw::AnyLimit => limit = limit.clamp(1, 1_000),
            Flaw::KeepsLogs if self.inner_job(id).await.is_none() => return Ok(self.remembered(id)),
            Flaw::DeletesAllHistory if self.seen().deleted => return Ok(LogPage::default()),
            Flaw::ForgetsArchivedHistory if self.is_archived(id).await => return Ok(LogPage::default()),
            _ => {}
        }
        let mut page = self.good.read_log(id, &filter, after, limit).await?;
        match self.flaw {
            Flaw::LastLineWins => {
                let seen = self.seen();
                for line in &mut page.lines {
                    line.clone_from(&seen.lines[&(line.job_id, line.place())]);
                }
            }
            Flaw::ReadsLogsByTime => page.lines.sort_by_key(|line| line.at),
            Flaw::AlwaysMore if page.lines.len() == limit => page.next = page.lines.last().map(LogLine::place),
            Flaw::MixesLogs => {
                let all = self.seen().jobs.clone();
                for other in all.into_iter().filter(|other| *other != id) {
                    page.lines.append(&mut self.good.read_log(other, &filter, None, limit).await?.lines);
                }
            }
            _ => {}
        }
        Ok(page)
    }

    async fn purge_log(&self, request: &PurgeLog) -> Result<PurgedLog, StoreError> {
        let mut request = *request;
        match self.flaw {
            Flaw::PurgesNothing => return Ok(PurgedLog::default()),
            Flaw::PurgesEarly => request.age /= 2,
            Flaw::PurgesAllAtOnce => request.limit = 1_000,
            Flaw::PurgesFromTheStart => request.after = None,
            _ => {}
        }
        self.good.purge_log(&request).await
    }
}

impl Broken {
    /// What was written to the log of a job that was deleted.
    fn remembered(&self, id: JobId) -> LogPage {
        let lines = self.seen().lines.values().filter(|line| line.job_id == id).cloned().collect();
        LogPage { lines, next: None }
    }
}
