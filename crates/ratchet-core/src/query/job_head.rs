//! The part of a job that filters and counts read.

use std::borrow::Cow;
use std::collections::BTreeMap;

use jiff::Timestamp;

use crate::id::{JobId, NodeId};
use crate::name::Tag;
use crate::record::JobRecord;

/// The columns of a job that a [`JobFilter`](crate::page::JobFilter) or a [`CountBy`](crate::CountBy) reads, borrowed from the
/// row or record that has them.
///
/// State, type and priority are as stored, so that a node also filters and counts jobs whose values only a newer version knows.
#[derive(Debug, Clone)]
pub struct JobHead<'a> {
    /// The job's id, which contains the time of its creation.
    pub id: JobId,
    /// The name of its state.
    pub state: &'a str,
    /// Its kind.
    pub kind: &'a str,
    /// Its queue.
    pub queue: &'a str,
    /// The name of its type.
    pub job_type: &'a str,
    /// The level of its priority.
    pub priority: i64,
    /// Its tags.
    pub tags: Cow<'a, [Tag]>,
    /// Its business key, owned now or once.
    pub business_key: Option<&'a str>,
    /// The batch or schedule that it belongs to.
    pub parent: Option<JobId>,
    /// The principal on whose behalf it was submitted.
    pub principal: Option<&'a str>,
    /// The time of its end.
    pub terminated_at: Option<Timestamp>,
    /// The node that runs it.
    pub picked_by: Option<NodeId>,
    /// Its parameters. Only [`CountBy::Param`](crate::CountBy::Param) needs them; for all else a store may leave them out.
    pub params: Cow<'a, BTreeMap<String, String>>,
}

impl<'a> JobHead<'a> {
    /// Returns the head of a whole job.
    pub fn of(job: &'a JobRecord) -> Self {
        let spec = &job.spec;
        Self {
            id: job.id,
            state: job.state.as_str(),
            kind: spec.kind.as_str(),
            queue: spec.queue.as_str(),
            job_type: job.job_type.as_str(),
            priority: spec.priority.level().into(),
            tags: Cow::Borrowed(&spec.tags),
            business_key: job.business_key.as_ref().map(AsRef::as_ref),
            parent: job.parent,
            principal: spec.principal.as_ref().map(AsRef::as_ref),
            terminated_at: job.terminated_at,
            picked_by: job.picked_by,
            params: Cow::Borrowed(&spec.params),
        }
    }
}
