//! Lists, a page at a time.

use std::fmt::Display;

use clap::Args;
use ratchet::{JobCursor, JobId};

/// Which page of a list.
#[derive(Args)]
pub(crate) struct Pages {
    /// At most so many on the page
    #[arg(long, value_name = "N", default_value_t = 20, value_parser = clap::value_parser!(u16).range(1..=1000))]
    limit: u16,
    /// Begin after this one; the last line of a page names it
    #[arg(long, value_name = "ID")]
    after: Option<JobId>,
}

impl Pages {
    /// Where the page begins, and how long it is.
    pub(crate) fn ask(&self) -> (Option<JobCursor>, usize) {
        (self.after.map(JobCursor), usize::from(self.limit))
    }
}

/// The last line of a page that another one follows.
pub(crate) fn more(next: Option<impl Display>) -> String {
    next.map(|last| format!("\n\nMore: --after {last}")).unwrap_or_default()
}
