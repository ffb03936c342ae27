//! The list of all cases for coordinators, with the flaws that must turn each red.

use super::CoordinatorCase;
use super::broken::CoordinatorFlaw;
use super::{closing, coalescing, counting, delivery, early, listeners, messages, outage};

/// Hands the list to [`expand_coordinator_cases!`](crate::expand_coordinator_cases).
#[doc(hidden)]
#[macro_export]
macro_rules! list_coordinator_cases {
    ($($how:tt)*) => { $crate::expand_coordinator_cases! { [$($how)*]
        delivery::a_hint_reaches_another_node_once_and_in_time [Mute, Slow, TellsTwice],
        delivery::every_priority_arrives_as_it_was_sent [FlattensPriority],
        delivery::origin_and_priority_arrive_exactly [LosesOrigin, FlattensPriority],
        delivery::a_node_does_not_hear_its_own_hints [HearsItself],
        delivery::those_who_share_a_coordinator_hear_each_other_once [DeafToNeighbors, TellsTwice],

        listeners::every_listener_is_told [TellsTheFirstAlone],
        listeners::a_panicking_listener_does_not_harm_the_others [StopsAtPanic, CountsNoPanics],
        listeners::a_listener_is_told_nothing_after_its_guard_is_dropped [KeepsDroppedListeners],

        messages::an_unknown_version_is_rejected_and_counted [AcceptsAnyVersion, CountsNoRejects],
        messages::an_unreadable_message_is_rejected_and_counted [CountsNoRejects, ChokesOnGarbage],
        messages::a_message_that_is_too_long_is_rejected_and_counted [AcceptsAnyLength, CountsNoRejects],

        counting::every_notify_is_counted_as_sent_once [CountsSentTwice],
        counting::every_hint_that_comes_in_is_counted_once [CountsReceivedTwice],
        counting::own_hints_that_come_back_are_counted_as_such_once [CountsOwnAsReceived, CountsOwnTwice],

        coalescing::a_burst_leaves_in_few_messages_and_each_hint_is_counted [CoalescesNothing, CountsNothingCoalesced],
        coalescing::of_coalesced_hints_the_highest_priority_of_each_origin_arrives [
            KeepsTheFirstPriority, LosesTheRestOfAWindow, LosesOrigin,
        ],

        outage::notify_is_quick_and_harmless_while_the_transport_is_away [PanicsWhenCut, BlocksWhenCut],
        outage::hints_arrive_again_after_an_outage [NeverComesBack],
        outage::an_outage_is_counted [HidesOutages],

        closing::closing_twice_is_harmless [PanicsAtSecondClose],
        closing::a_closed_coordinator_tells_nothing [HearsAfterClose],
        closing::a_closed_coordinator_sends_nothing [SendsAfterClose, PanicsAfterClose],
        closing::what_was_announced_before_the_close_is_sent [ForgetsWhenClosed],

        early::hints_that_came_early_reach_the_first_listener_as_one [
            ForgetsEarlyHints, TellsTheLastEarlyHint, TellsEveryEarlyHint,
        ],
    } };
}

/// Makes tests, or the list as data, of the cases.
#[doc(hidden)]
#[macro_export]
macro_rules! expand_coordinator_cases {
    ([tests $fixture:path] $($group:ident :: $name:ident [$($flaw:ident),* $(,)?],)*) => {
        $(
            #[test]
            fn $name() {
                $crate::coordinator::run(stringify!($name), $fixture);
            }
        )*
    };
    ([data] $($group:ident :: $name:ident [$($flaw:ident),* $(,)?],)*) => {
        /// Every case for coordinators, in the order in which one reads them.
        pub const COORDINATOR_CASES: &[CoordinatorCase] = &[
            $(CoordinatorCase {
                name: stringify!($name),
                run: |cluster| Box::pin($group::$name(cluster)),
                broken_by: &[$(CoordinatorFlaw::$flaw),*],
            },)*
        ];
    };
}

/// Makes a test of every case, on the transports that an `async fn() -> CoordinatorFixture` gives.
///
/// See [`coordinator`](crate::coordinator) for an example.
#[macro_export]
macro_rules! coordinator_suite {
    ($fixture:path) => {
        $crate::list_coordinator_cases! { tests $fixture }
    };
}

list_coordinator_cases! { data }
