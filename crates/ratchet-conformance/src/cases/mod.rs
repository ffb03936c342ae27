//! The list of all cases: one line each, with the flaws that must turn it red.

mod alone;
mod retention;
mod together;

use crate::Case;
use crate::broken::Flaw;
use crate::{
    archive, batches, branches, breakers, claim, cluster, control, counts, dead_letters, declarations, delete, effects,
    growth, insight, job_log, keys, leases, mailbox, next_due, order, permits, query, queues, races, random, replace,
    retry, revivals, schedule_queues, schedules, settle, signals, submit, texts, unwanted, walk, workflows,
};

/// Hands the list to [`expand_cases!`](crate::expand_cases). Each part of it passes on what the parts before it have.
#[doc(hidden)]
#[macro_export]
macro_rules! list_cases {
    ($($how:tt)*) => { $crate::list_cases_alone! { [$($how)*] } };
}

/// Makes tests, or the list as data, of the cases.
#[doc(hidden)]
#[macro_export]
macro_rules! expand_cases {
    ([tests $fixture:path] $($group:ident :: $name:ident [$($flaw:ident),* $(,)?],)*) => {
        $(
            #[test]
            fn $name() {
                $crate::run(stringify!($name), $fixture);
            }
        )*
    };
    ([data] $($group:ident :: $name:ident [$($flaw:ident),* $(,)?],)*) => {
        /// Every case, in the order in which one reads them.
        pub const CASES: &[Case] = &[
            $(Case {
                name: stringify!($name),
                run: |harness| Box::pin($group::$name(harness)),
                broken_by: &[$(Flaw::$flaw),*],
            },)*
        ];
    };
}

/// Makes a test of every case, on the fresh stores that an `async fn() -> Fixture` gives.
///
/// See the [crate](crate) for an example.
#[macro_export]
macro_rules! suite {
    ($fixture:path) => {
        $crate::list_cases! { tests $fixture }
    };
}

list_cases! { data }
