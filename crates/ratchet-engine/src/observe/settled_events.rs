//! The events of a settlement.

use jiff::Timestamp;
use ratchet_core::decide::CRASH_LIMIT;
use ratchet_core::settlement::DeadLetterReason;
use ratchet_core::{
    AttemptStatus, BatchSummary, Change, DeferReason, ErrorReport, JobRecord, JobType, Settlement, clock,
};

use crate::batch::summary_of;
use crate::observe::events::JobEventKind;

/// Returns the events of a settlement, in their order. `now` is called only if no attempt says when it ended.
pub(crate) fn settled_events(
    job: &JobRecord,
    settlement: &Settlement,
    defer: Option<DeferReason>,
    now: impl FnOnce() -> Timestamp,
) -> Vec<JobEventKind> {
    let mut events = Vec::new();
    let attempt = settlement.attempt.as_ref();
    if let (Some(AttemptStatus::TimedOut), Some(timeout)) = (attempt.map(|a| a.status), job.spec.timeout) {
        events.push(JobEventKind::TimedOut { timeout });
    }
    let failed = |error: &ErrorReport, attempt| JobEventKind::Failed { error: error.text().to_owned(), attempt };
    match &settlement.change {
        Change::Succeed { result, .. } => {
            let duration = attempt.map(|a| a.timing.duration).unwrap_or_default();
            events.push(JobEventKind::Completed { duration });
            if let Some(summary) = summary_of(result.as_ref()).filter(|_| job.job_type == JobType::BatchParent) {
                let BatchSummary { total, succeeded, failed, canceled, .. } = summary;
                events.push(JobEventKind::BatchCompleted { total, succeeded, failed, canceled });
            }
        }
        Change::Reschedule { delay, attempts, error } => {
            events.push(failed(error, *attempts));
            let due = clock::later(attempt.map_or_else(now, |a| a.timing.ended_at), *delay);
            let error = Some(error.text().to_owned());
            events.push(JobEventKind::Retrying { error, attempt: *attempts, due });
        }
        Change::Fail { attempts, error, reason } => {
            if let DeadLetterReason::CrashLimit { .. } = reason {
                events.push(JobEventKind::Rescued { crash_count: CRASH_LIMIT });
            }
            events.push(failed(error, *attempts));
            let (error, reason) = (error.text().to_owned(), reason.clone());
            events.push(JobEventKind::DeadLettered { error, attempt: *attempts, reason });
        }
        Change::Defer { delay } => {
            let reason = defer.unwrap_or(DeferReason::Drained);
            events.push(JobEventKind::Deferred { reason, delay: *delay });
        }
        Change::Rescue { crash_count } => events.push(JobEventKind::Rescued { crash_count: *crash_count }),
    }
    events
}
