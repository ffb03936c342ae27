//! What narrows lists of jobs and of dead letters.

use clap::Args;
use ratchet::{
    BusinessKey, InvalidInput, JobFilter, JobId, JobType, Kind, Principal, Priority, QueueName, Tag, Timestamp,
};

use crate::queues::queue_name;
use crate::times;

/// Which jobs.
#[derive(Args)]
pub(crate) struct JobFilterArgs {
    /// Only of this kind
    #[arg(long, value_parser = kind)]
    kind: Option<Kind>,
    /// Only in this queue
    #[arg(long, value_parser = queue_name)]
    queue: Option<QueueName>,
    /// Only with this tag
    #[arg(long, value_parser = tag)]
    tag: Option<Tag>,
    /// Only with this business key, held or once held
    #[arg(long, value_name = "KEY", value_parser = business_key)]
    business_key: Option<BusinessKey>,
    /// Only the children of this batch or schedule
    #[arg(long, value_name = "ID")]
    parent: Option<JobId>,
    /// Only submitted for this principal
    #[arg(long, value_name = "NAME", value_parser = principal)]
    principal: Option<Principal>,
    /// Only of this priority: lowest, low, normal, high, critical
    #[arg(long)]
    priority: Option<Priority>,
    /// Only that came to be so, such as `single`, `callback`, `batch_child`, `recurring`
    #[arg(long = "type", value_name = "TYPE")]
    job_type: Option<JobType>,
    /// Only made at this time or later, such as 2026-01-31T08:00Z or 2026-01-31T08:00+01; when a job was made its id says,
    /// by the clock of whoever made it
    #[arg(long, value_name = "TIME", value_parser = times::time)]
    made_from: Option<Timestamp>,
    /// Only made before this time
    #[arg(long, value_name = "TIME", value_parser = times::time)]
    made_until: Option<Timestamp>,
    /// Only ended at this time or later
    #[arg(long, value_name = "TIME", value_parser = times::time)]
    ended_from: Option<Timestamp>,
    /// Only ended before this time
    #[arg(long, value_name = "TIME", value_parser = times::time)]
    ended_until: Option<Timestamp>,
}

impl JobFilterArgs {
    pub(crate) fn into_filter(self) -> JobFilter {
        JobFilter {
            kind: self.kind,
            queue: self.queue,
            tag: self.tag,
            business_key: self.business_key,
            parent: self.parent,
            principal: self.principal,
            priority: self.priority,
            job_type: self.job_type,
            made_from: self.made_from,
            made_until: self.made_until,
            ended_from: self.ended_from,
            ended_until: self.ended_until,
            ..JobFilter::default()
        }
    }
}

fn kind(text: &str) -> Result<Kind, InvalidInput> {
    Kind::new(text)
}

fn tag(text: &str) -> Result<Tag, InvalidInput> {
    Tag::new(text)
}

fn business_key(text: &str) -> Result<BusinessKey, InvalidInput> {
    BusinessKey::new(text)
}

fn principal(text: &str) -> Result<Principal, InvalidInput> {
    Principal::new(text)
}
