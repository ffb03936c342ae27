//! The events of a settlement.

use jiff::Timestamp;
use ratchet_core::decide::CRASH_LIMIT;
use ratchet_core::settlement::DeadLetterReason;
use ratchet_core::{
    AttemptStatus, BatchSummary, Change, DeferReason, ErrorReport, JobRecord, JobType, Settlement, clock,
};

use crate::batch::summary_of;
use crate::observe::events::JobEventKind;

/// Passes the events of a settlement to `publish`, in their order. `now` is asked for only if no attempt says when it ended.
pub(super) fn settled_events(
    job: &JobRecord,
    settlement: &Settlement,
    defer: Option<DeferReason>,
    now: impl FnOnce() -> Timestamp,
    mut publish: impl FnMut(JobEventKind),
) {
    let attempt = settlement.attempt.as_ref();
    if let (Some(AttemptStatus::TimedOut), Some(timeout)) = (attempt.map(|a| a.status), job.spec.timeout) {
        publish(JobEventKind::TimedOut { timeout });
    }
    let failed = |error: &ErrorReport, attempt| JobEventKind::Failed { error: error.text().to_owned(), attempt };
    match &settlement.change {
        Change::Succeed { result, .. } => {
            let duration = attempt.map(|a| a.timing.duration).unwrap_or_default();
            publish(JobEventKind::Completed { duration });
            if let Some(summary) = summary_of(result.as_ref()).filter(|_| job.job_type == JobType::BatchParent) {
                let BatchSummary { total, succeeded, failed, canceled, .. } = summary;
                publish(JobEventKind::BatchCompleted { total, succeeded, failed, canceled });
            }
        }
        Change::Reschedule { delay, attempts, error } => {
            publish(failed(error, *attempts));
            let due = clock::later(attempt.map_or_else(now, |a| a.timing.ended_at), *delay);
            let error = Some(error.text().to_owned());
            publish(JobEventKind::Retrying { error, attempt: *attempts, due });
        }
        Change::Fail { attempts, error, reason } => {
            if let DeadLetterReason::CrashLimit { .. } = reason {
                publish(JobEventKind::Rescued { crash_count: CRASH_LIMIT });
            }
            publish(failed(error, *attempts));
            let (error, reason) = (error.text().to_owned(), reason.clone());
            publish(JobEventKind::DeadLettered { error, attempt: *attempts, reason });
        }
        Change::Defer { delay } => {
            let reason = defer.unwrap_or(DeferReason::Drained);
            publish(JobEventKind::Deferred { reason, delay: *delay });
        }
        Change::Rescue { crash_count } => publish(JobEventKind::Rescued { crash_count: *crash_count }),
    }
}
