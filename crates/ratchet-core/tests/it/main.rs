//! The core from the outside: schedules beside an oracle that looks at the clock.
#![expect(clippy::unwrap_used, reason = "helpers of tests")]

mod oracle;
mod random_schedules;
mod shifts;
