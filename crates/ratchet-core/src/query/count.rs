//! How many jobs there are, by what they have in common.

use std::collections::BTreeMap;
use std::str::FromStr;

use serde::Serialize;

use crate::id::NodeId;
use crate::invalid::InvalidInput;
use crate::job_head::JobHead;
use crate::limits;
use crate::priority::Priority;

/// What jobs are counted by.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum CountBy {
    /// Where they stand.
    State,
    /// Their kind.
    Kind,
    /// Their queue.
    Queue,
    /// Their priority.
    Priority,
    /// How they came to be.
    JobType,
    /// The node that runs them, or ran them last. Jobs that never ran are in no group.
    Node,
    /// The value of this parameter. Jobs without it are in no group.
    Param(String),
}

impl CountBy {
    /// By a parameter.
    pub fn param(name: impl Into<String>) -> Result<Self, InvalidInput> {
        let name = name.into();
        limits::check_text("param", &name, limits::PARAM_KEY_CHARS_MAX)?;
        Ok(Self::Param(name))
    }

    /// Returns the group that a job belongs to; `last` is the node that ran it last.
    pub fn group(&self, job: &JobHead<'_>, last: Option<NodeId>) -> Option<String> {
        Some(match self {
            Self::State => job.state.to_owned(),
            Self::Kind => job.kind.to_owned(),
            Self::Queue => job.queue.to_owned(),
            Self::Priority => {
                let known = u8::try_from(job.priority).ok().and_then(Priority::from_level);
                known.map_or_else(|| job.priority.to_string(), |priority| priority.as_str().to_owned())
            }
            Self::JobType => job.job_type.to_owned(),
            Self::Node => job.picked_by.or(last)?.to_string(),
            Self::Param(name) => job.params.get(name)?.clone(),
        })
    }
}

impl FromStr for CountBy {
    type Err = InvalidInput;

    /// `state`, `kind`, `queue`, `priority`, `type`, `node`, or `param:NAME`.
    fn from_str(text: &str) -> Result<Self, InvalidInput> {
        Ok(match text {
            "state" => Self::State,
            "kind" => Self::Kind,
            "queue" => Self::Queue,
            "priority" => Self::Priority,
            "type" => Self::JobType,
            "node" => Self::Node,
            _ => {
                let Some(name) = text.strip_prefix("param:") else {
                    let problem = "use state, kind, queue, priority, type, node or param:NAME";
                    return Err(InvalidInput::new("by", format!("is {text:?}; {problem}")));
                };
                Self::param(name)?
            }
        })
    }
}

/// How many jobs a filter lets through.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct Counted {
    /// All of them, also those that are in no group.
    pub jobs: u64,
    /// How many are in each group; groups without jobs are left out.
    pub groups: BTreeMap<String, u64>,
    /// Whether there may be more: no more than [`COUNTED_MAX`] jobs are looked at, the newest of each way to find them.
    pub more: bool,
}

/// Most jobs that are looked at for one count.
pub const COUNTED_MAX: usize = 100_000;

impl Counted {
    /// One more job, of this group if it is in one.
    pub fn add(&mut self, group: Option<String>) {
        self.jobs += 1;
        if let Some(group) = group {
            *self.groups.entry(group).or_default() += 1;
        }
    }
}

#[cfg(test)]
mod tests {
    use jiff::Timestamp;
    use uuid::Uuid;

    use super::*;
    use crate::id::JobId;
    use crate::json::JsonText;
    use crate::name::Kind;
    use crate::record::JobRecord;
    use crate::spec::{JobSpec, JobType};
    use crate::state::JobState;

    #[test]
    fn a_job_is_in_one_group() {
        let [node, last] = [1, 2].map(|number| NodeId(Uuid::from_u128(number)));
        let mut spec = JobSpec::new(Kind::new("work").unwrap(), JsonText::null());
        spec.priority = Priority::High;
        spec.params.insert("tenant".to_owned(), "acme".to_owned());
        let (id, now) = (JobId(Uuid::from_u128(3)), Timestamp::UNIX_EPOCH);
        let job = JobRecord::stored(id, spec, JobType::Single, JobState::Running, now, now);
        let head = JobHead::of(&job);
        let runs = JobHead { picked_by: Some(node), ..head.clone() };
        let newer = JobHead { state: "UNKNOWN", job_type: "UNKNOWN", priority: 1_000, ..head.clone() };
        let check = |by: &str, job: &JobHead<'_>, ran: Option<NodeId>, expected: Option<&str>| {
            let group = by.parse::<CountBy>().unwrap().group(job, ran);
            assert_eq!(group.as_deref(), expected, "by {by}: {job:?}");
        };
        check("state", &head, None, Some(JobState::Running.as_str()));
        check("state", &newer, None, Some("UNKNOWN"));
        check("kind", &head, None, Some("work"));
        check("queue", &head, None, Some("default"));
        check("priority", &head, None, Some("HIGH"));
        check("priority", &newer, None, Some("1000"));
        check("type", &head, None, Some("SINGLE"));
        check("type", &newer, None, Some("UNKNOWN"));
        check("node", &head, None, None);
        check("node", &head, Some(last), Some(&last.to_string()));
        check("node", &runs, Some(last), Some(&node.to_string()));
        check("param:tenant", &head, None, Some("acme"));
        check("param:tenan", &head, None, None);
    }

    #[test]
    fn what_is_counted_by_is_named() {
        let check = |text: &str, by| assert_eq!(text.parse::<CountBy>().unwrap(), by);
        check("state", CountBy::State);
        check("type", CountBy::JobType);
        check("param:tenant.id", CountBy::Param("tenant.id".to_owned()));
        for (wrong, why) in [("color", "use state, kind"), ("param:", "1 to 64 characters")] {
            let error = wrong.parse::<CountBy>().unwrap_err().to_string();
            assert!(error.contains(why), "{error}");
        }
    }
}
