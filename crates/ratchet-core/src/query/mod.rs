//! Lists, counts and explanations: filters and pages that every store shares.

pub mod page;
pub mod job_head;
pub mod count;
pub mod insight;
pub mod explain;
pub mod job_log;
