//! Jobs and attempts as programs see them: field names that stay when the library's records change.

use std::collections::BTreeMap;

use ratchet::{
    AttemptRecord, AttemptStatus, Backoff, BusinessKey, IdempotencyKey, JobId, JobRecord, JobState, JobType, JsonText,
    Kind, NodeId, NodeName, NodeRecord, Principal, Priority, QueueName, ResourceName, StepName, Tag, Timestamp,
    TraceContext,
};
use serde::Serialize;

use crate::times::millis;

/// A job.
#[derive(Serialize)]
pub(super) struct JobView {
    pub(super) id: JobId,
    pub(super) kind: Kind,
    pub(super) queue: QueueName,
    #[serde(rename = "type")]
    pub(super) job_type: JobType,
    pub(super) state: JobState,
    pub(super) paused_from: Option<JobState>,
    pub(super) priority: Priority,
    pub(super) attempts: u32,
    pub(super) max_retries: u32,
    pub(super) crash_count: u32,
    pub(super) version: u64,
    pub(super) created_at: Timestamp,
    pub(super) due_at: Timestamp,
    pub(super) ended_at: Option<Timestamp>,
    pub(super) archived_at: Option<Timestamp>,
    pub(super) running_on: Option<NodeId>,
    pub(super) running_since: Option<Timestamp>,
    pub(super) progress: Option<f64>,
    pub(super) duration_ms: Option<f64>,
    pub(super) queue_wait_ms: Option<f64>,
    pub(super) backoff: BackoffView,
    pub(super) timeout_ms: Option<f64>,
    pub(super) tags: Vec<Tag>,
    pub(super) params: BTreeMap<String, String>,
    pub(super) business_key: Option<BusinessKey>,
    pub(super) idempotency_key: Option<IdempotencyKey>,
    pub(super) principal: Option<Principal>,
    pub(super) resource: Option<ResourceName>,
    pub(super) trace: Option<TraceContext>,
    pub(super) callback_of: Option<JobId>,
    pub(super) parent: Option<JobId>,
    pub(super) workflow: Option<JobId>,
    pub(super) step: Option<StepName>,
    /// Edges and signals that are still to come.
    pub(super) waits_for: u32,
    pub(super) canceled_because: Option<JobId>,
    pub(super) superseded_by: Option<JobId>,
    pub(super) error: Option<String>,
    pub(super) payload: JsonText,
    pub(super) result: Option<JsonText>,
}

#[derive(Serialize)]
pub(super) struct BackoffView {
    pub(super) policy: &'static str,
    pub(super) base_ms: f64,
}

impl From<JobRecord> for JobView {
    fn from(job: JobRecord) -> Self {
        let due_at = job.due();
        Self {
            id: job.id,
            kind: job.spec.kind,
            queue: job.spec.queue,
            job_type: job.job_type,
            state: job.state,
            paused_from: job.paused_from,
            priority: job.spec.priority,
            attempts: job.attempts,
            max_retries: job.spec.max_retries,
            crash_count: job.crash_count,
            version: job.version,
            created_at: job.created_at,
            due_at,
            ended_at: job.terminated_at,
            archived_at: job.archived_at,
            running_on: job.picked_by,
            running_since: job.picked_at,
            progress: job.progress,
            duration_ms: job.timing.map(|timing| millis(timing.duration)),
            queue_wait_ms: job.timing.map(|timing| millis(timing.queue_wait)),
            backoff: job.spec.backoff.into(),
            timeout_ms: job.spec.timeout.map(millis),
            tags: job.spec.tags,
            params: job.spec.params,
            business_key: job.business_key,
            idempotency_key: job.idempotency_key,
            principal: job.spec.principal,
            resource: job.spec.resource,
            trace: job.spec.trace,
            callback_of: job.origin.map(|origin| origin.job_id),
            parent: job.parent,
            workflow: job.workflow,
            step: job.step,
            waits_for: job.waits_for,
            canceled_because: job.canceled_because,
            superseded_by: job.superseded_by,
            error: job.last_error,
            payload: job.spec.payload,
            result: job.result,
        }
    }
}

impl From<Backoff> for BackoffView {
    fn from(backoff: Backoff) -> Self {
        Self { policy: backoff.as_str(), base_ms: millis(backoff.base()) }
    }
}

/// One attempt of a job.
#[derive(Serialize)]
pub(super) struct AttemptView {
    pub(super) attempt: u32,
    pub(super) status: &'static str,
    pub(super) version: u64,
    pub(super) node: NodeId,
    /// The node's name, while it is known.
    pub(super) node_name: Option<NodeName>,
    pub(super) started_at: Timestamp,
    /// Not of an attempt whose node died: nobody knows when, or after how long.
    pub(super) ended_at: Option<Timestamp>,
    pub(super) duration_ms: Option<f64>,
    pub(super) queue_wait_ms: f64,
    pub(super) error_class: Option<String>,
    pub(super) error: Option<String>,
}

impl AttemptView {
    /// `nodes` are those that the store still knows.
    pub(super) fn of(attempt: AttemptRecord, nodes: &[NodeRecord]) -> Self {
        let node_name = nodes.iter().find(|node| node.id == attempt.node).map(|node| node.name.clone());
        let timing = attempt.timing;
        let seen = attempt.status != AttemptStatus::Crashed;
        Self {
            attempt: attempt.attempt,
            status: attempt.status.as_str(),
            version: attempt.version,
            node: attempt.node,
            node_name,
            started_at: timing.started_at,
            ended_at: seen.then_some(timing.ended_at),
            duration_ms: seen.then(|| millis(timing.duration)),
            queue_wait_ms: millis(timing.queue_wait),
            error_class: attempt.error_class,
            error: attempt.error,
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use ratchet::AttemptTiming;

    use super::*;

    #[test]
    fn nobody_knows_when_an_attempt_ended_whose_node_died() {
        let id = "01890a5d-ac96-774b-bcce-b302099a8057";
        let (started_at, duration) = (Timestamp::UNIX_EPOCH, Duration::from_millis(7));
        let shown = |status| {
            let attempt = AttemptRecord {
                job_id: id.parse().unwrap(),
                version: 1,
                attempt: 1,
                node: id.parse().unwrap(),
                status,
                timing: AttemptTiming { started_at, ended_at: started_at, duration, queue_wait: duration },
                error_class: None,
                error: None,
            };
            let view = AttemptView::of(attempt, &[]);
            (view.ended_at, view.duration_ms, view.queue_wait_ms)
        };
        assert_eq!(shown(AttemptStatus::Crashed), (None, None, 7.0));
        assert_eq!(shown(AttemptStatus::Failed), (Some(started_at), Some(7.0), 7.0));
    }
}
