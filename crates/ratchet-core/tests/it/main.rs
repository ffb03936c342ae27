//! The core from the outside: schedules beside an oracle that looks at the clock, the merge of lanes beside a sorted list.
#![expect(clippy::unwrap_used, reason = "helpers of tests")]

mod merged_lanes;
mod oracle;
mod random_schedules;
mod seed;
mod shifts;
