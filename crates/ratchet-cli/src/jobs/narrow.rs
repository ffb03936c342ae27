//! What narrows lists of jobs and of dead letters.

use clap::Args;
use ratchet::{BusinessKey, InvalidInput, JobFilter, JobId, Kind, Principal, QueueName, Tag, Timestamp};

use crate::queues::queue_name;

/// Which jobs.
#[derive(Args)]
pub(crate) struct Narrow {
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
    /// Only made at this time or later, such as 2026-01-31T08:00:00Z
    #[arg(long, value_name = "TIME")]
    made_from: Option<Timestamp>,
    /// Only made before this time
    #[arg(long, value_name = "TIME")]
    made_until: Option<Timestamp>,
}

impl Narrow {
    pub(crate) fn into_filter(self) -> JobFilter {
        let Self { kind, queue, tag, business_key, parent, principal, made_from, made_until } = self;
        JobFilter { kind, queue, tag, business_key, parent, principal, made_from, made_until, ..JobFilter::default() }
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
