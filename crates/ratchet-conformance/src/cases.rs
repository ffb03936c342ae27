//! The list of all cases: one line each, with the flaws that must turn it red.

use crate::Case;
use crate::broken::Flaw;
use crate::{
    branches, claim, cluster, control, delete, effects, keys, leases, next_due, order, query, queues, races, random,
    recurring, replace, retry, revivals, settle, signals, submit, texts, walk, workflows,
};

/// Hands the list to [`expand_cases!`](crate::expand_cases).
#[doc(hidden)]
#[macro_export]
macro_rules! list_cases {
    ($($how:tt)*) => { $crate::expand_cases! { [$($how)*]
        submit::a_submitted_job_comes_back_as_it_was_given [LosesSpec],
        submit::each_option_alone_comes_back [LosesSpec, LosesLoneOptions],
        submit::a_callbacks_origin_comes_back_as_it_was_given [LosesSpec],
        submit::a_new_job_is_pending_at_version_zero [TouchesTwice],
        submit::a_delayed_job_is_due_after_its_delay [LosesDelay],
        submit::a_given_time_is_kept_even_in_the_past [ClampsTime],
        submit::a_job_may_start_waiting [IgnoresStart],
        submit::jobs_are_found_in_the_order_of_the_ids [FindsInItsOwnOrder],
        submit::unknown_ids_are_left_out [FindsNeighbours],
        submit::two_thousand_jobs_are_stored_in_one_call_and_found [StopsAtFiveHundred],
        submit::many_large_payloads_are_stored_in_one_call [LosesLargeText],
        submit::submitting_nothing_is_no_error [RefusesNothing],
        submit::a_unit_stands_or_falls_as_a_whole [SplitsUnits],
        submit::a_unit_cannot_take_one_business_key_twice [SplitsUnits, ForgetsBusinessKeys],
        submit::a_refused_unit_leaves_its_keys_free [SplitsUnits],
        submit::a_refused_unit_does_not_harm_its_neighbours [StopsAtRefusal],
        submit::a_unit_submitted_again_is_reported_as_created [RefusesResubmit],
        submit::a_job_submitted_again_keeps_what_became_of_it [RefusesResubmit, ResubmitsAfresh],

        texts::multibyte_texts_come_back [MangledText],
        texts::texts_at_their_limits_come_back [MangledText, LosesLargeText],
        texts::a_payload_at_its_limit_comes_back [LosesLargeText],
        texts::json_comes_back_by_value [RoundsNumbers],
        texts::a_result_at_its_limit_comes_back [LosesLargeText],
        texts::a_long_multibyte_error_comes_back [MangledText],
        texts::keys_are_compared_exactly [FoldsKeys],
        texts::a_nodes_name_and_info_come_back [LosesNodeNames],

        delete::a_terminal_job_is_deleted_with_its_history [DeletesNothing, AlertsAlways],
        delete::deleting_one_job_leaves_the_others [DeletesNothing, DeletesAllHistory],
        delete::a_live_job_is_not_deleted [DeletesNothing, DeletesAnything],
        delete::deleting_an_unknown_job_says_false [DeletesNothing],
        delete::an_idempotency_key_outlives_its_job [ForgetsIdempotency, IdempotencyDiesWithJob],

        keys::a_business_key_is_held_while_its_job_is_pending_running_or_deferred [ForgetsBusinessKeys],
        keys::a_business_key_is_held_through_pause_and_resume [ForgetsBusinessKeys, ControlsNothing],
        keys::a_business_key_is_held_while_its_job_waits [ForgetsBusinessKeys, IgnoresStart],
        keys::a_business_key_is_free_after_success [KeepsBusinessKeys],
        keys::a_business_key_is_free_after_failure [KeepsBusinessKeys],
        keys::a_business_key_is_free_after_cancellation [KeepsBusinessKeys],
        keys::a_job_paused_after_its_failure_holds_no_key [KeepsBusinessKeys, ResumeRevives],
        keys::a_retried_job_takes_its_key_again_and_frees_it_once [ForgetsBusinessKeys, KeepsBusinessKeys],
        keys::a_retry_is_refused_while_another_job_holds_the_key [ForgetsBusinessKeys],
        keys::each_business_key_finds_its_own_job [MixesKeys, KeepsBusinessKeys],
        keys::an_idempotency_key_stands_for_its_first_job [ForgetsIdempotency],
        keys::an_idempotency_key_counts_within_one_call [ForgetsIdempotency],
        keys::a_key_of_a_refused_unit_is_free_for_the_next_of_the_same_call [SplitsUnits],
        keys::a_job_that_stands_for_another_takes_no_business_key [ForgetsIdempotency, ExistingTakesKey],
        keys::jobs_without_keys_do_not_meet [InventsKeys],

        claim::a_job_is_claimed_once [ClaimsTwice],
        claim::a_claim_sets_owner_time_and_version [ClaimsShowThePast, TouchesTwice],
        claim::a_claim_carries_the_whole_job [LosesSpec],
        claim::a_claim_takes_no_more_than_its_limit [IgnoresLimit],
        claim::a_claim_takes_no_more_than_a_pool_has_room_for [IgnoresLimit],
        claim::pools_have_room_each_for_itself [IgnoresLimit, ReversesClaims, IgnoresKinds],
        claim::a_poll_that_finds_nothing_is_empty [ErrsWhenEmpty],
        claim::a_job_is_claimed_when_its_time_has_come [LosesDelay],
        claim::only_pending_jobs_are_claimed [ClaimsTwice, ClaimsPaused, IgnoresStart],
        claim::only_kinds_of_the_pool_are_claimed [IgnoresKinds],
        claim::only_jobs_of_the_pools_queue_are_claimed [IgnoresQueues],
        claim::a_job_on_probation_is_claimed_only_if_asked_for [IgnoresProbation],
        claim::at_most_one_job_on_probation_is_claimed_at_a_time [IgnoresProbation],
        claim::an_unregistered_node_claims_nothing [SwallowsConflicts],
        claim::a_deregistered_node_claims_nothing [SwallowsConflicts, KeepsNodes],
        claim::a_node_that_was_declared_dead_claims_nothing [SwallowsConflicts],
        claim::a_turn_that_fails_settles_nothing [TurnsInTwo],
        claim::a_turn_settles_before_it_claims [ClaimsFirst],

        order::urgent_jobs_go_first [ReversesClaims],
        order::a_limited_claim_takes_the_first_in_order [TakesTheLast],
        order::among_equals_the_longest_due_goes_first [ReversesClaims, ClampsTime],
        order::among_jobs_of_one_time_the_smallest_id_goes_first [ReversesClaims],
        order::an_old_job_beats_a_fresh_urgent_one [IgnoresAgeing, AlwaysAges],
        order::without_boost_age_does_not_count [AlwaysAges],
        order::a_deferred_job_goes_on_ageing [DeferConsumesAttempt, IgnoresAgeing],
        order::a_rescheduled_job_ages_from_its_new_time [RescheduleKeepsTime],
        order::claims_follow_a_brute_force_model [
            ReversesClaims, IgnoresAgeing, AlwaysAges, IgnoresProbation, IgnoresLimit, DeferConsumesAttempt, LosesDelay,
        ],
        order::claims_of_many_kinds_follow_a_brute_force_model [ReversesClaims, IgnoresAgeing, AlwaysAges],

        next_due::nothing_is_due_in_an_empty_store [AnythingIsDue],
        next_due::the_earliest_time_is_the_next [NeverDue, AnythingIsDue],
        next_due::a_job_that_is_due_already_leaves_no_time [NeverDue],
        next_due::a_deferred_job_is_due_at_the_end_of_its_deferral [NeverDue, LosesDelay],
        next_due::only_jobs_that_the_node_can_claim_count_as_next [NeverDue, AnythingIsDue],
        next_due::a_job_on_probation_is_next_only_if_asked_for [NeverDue, AnythingIsDue],

        settle::success_keeps_result_timing_and_attempts [LosesResult, CountsTwice, LosesAttempts],
        settle::success_without_a_result_has_none [InventsResult],
        settle::failure_keeps_error_timing_and_attempts [CountsTwice, LosesAttempts],
        settle::a_rescheduled_job_waits_with_its_error_and_attempts [CountsTwice, LosesDelay, RescheduleKeepsTime],
        settle::a_deferred_job_consumes_no_attempt_and_keeps_its_time [DeferConsumesAttempt, LosesDelay],
        settle::a_job_deferred_by_nothing_can_run_at_once [SnoozesAnyway],
        settle::a_rescued_job_counts_the_crash_and_keeps_its_time [CountsTwice],
        settle::a_normally_ended_attempt_clears_the_crash_count [NeverForgivesCrashes],
        settle::the_last_crash_ends_in_the_dead_letter_queue [CountsTwice],
        settle::a_job_that_goes_back_has_no_owner [KeepsOwner, LosesProgress],
        settle::a_node_whose_job_was_rescued_can_finish_nothing [NoFence, SaysApplied],
        settle::an_earlier_claim_of_the_same_node_can_finish_nothing [NoFence, SaysApplied],
        settle::another_node_cannot_finish_the_job [NoFence, IgnoresOwner],
        settle::a_cancelled_job_can_be_finished_by_nobody [SaysApplied],
        settle::an_unknown_job_can_be_finished_by_nobody [SaysApplied],
        settle::a_fence_from_before_a_retry_stays_stale [ForgetsVersion, NoFence],
        settle::a_fence_settles_once_even_in_one_call [SaysApplied],
        settle::a_stale_settlement_does_not_harm_its_neighbours [PoisonsNeighbours],
        settle::hundreds_of_jobs_are_settled_in_one_turn [StopsAtFiveHundred],
        settle::many_large_results_are_settled_in_one_turn [LosesLargeText],
        settle::a_settlement_written_before_is_recognised [ForgetsItsOwn],
        settle::a_settlement_that_was_not_written_before_is_written [MaybeMeansYes],
        settle::an_end_that_somebody_else_wrote_is_not_taken_for_ones_own [MaybeMeansYes],

        effects::a_callback_is_submitted_with_the_settlement [LosesCallbacks],
        effects::a_callback_of_a_conflict_is_not_submitted [EffectsFromTheList],
        effects::a_callback_is_submitted_once_when_its_settlement_is_repeated [EffectsFromTheList],
        effects::a_conflict_frees_no_key [FreesFromTheList],
        effects::a_conflict_frees_no_key_that_another_job_has_taken [FreesFromTheList],
        effects::every_attempt_is_recorded_in_order [LosesAttempts, RecordsTwice],
        effects::every_status_of_an_attempt_comes_back [LosesAttempts, CancelsWithoutRecord],
        effects::a_settlement_without_an_attempt_records_none [InventsAttempts],
        effects::attempts_of_two_jobs_do_not_mix [MixesAttempts],
        effects::an_alert_is_recorded_once_an_hour [AlertsAlways, AlertsOnce],
        effects::another_error_is_another_alert [AlertsOnce],
        effects::only_a_dead_letter_alerts [AlertsAlways],

        control::a_live_job_can_be_cancelled [ControlsNothing],
        control::a_cancelled_attempt_is_recorded_with_its_timing [CancelsWithoutRecord],
        control::a_job_cancelled_before_it_ran_has_no_attempt [InventsAttempts],
        control::what_is_over_cannot_be_cancelled [NoGuard],
        control::a_paused_job_goes_on_from_where_it_was [ControlsNothing, ClaimsPaused],
        control::a_paused_job_keeps_its_attempts_error_and_deferral [ControlsNothing, LosesDelay],
        control::a_failed_job_can_be_paused_and_is_failed_again_when_resumed [ResumeRevives, NoGuard],
        control::pausing_a_paused_job_changes_nothing [NoGuard],
        control::a_running_job_cannot_be_paused [NoGuard],
        control::a_job_that_is_not_paused_cannot_be_resumed [NoGuard],
        control::a_released_job_is_due_from_its_release [ControlsNothing, ReleaseKeepsTime],
        control::a_job_released_before_its_time_keeps_its_time [ControlsNothing, LosesDelay],
        control::a_job_is_released_once [NoGuard],
        control::nothing_can_be_asked_of_an_unknown_job [NoGuard],

        retry::a_retried_job_starts_afresh_and_is_due_now [RetryKeepsError, ForgetsVersion],
        retry::a_retried_job_keeps_its_history_and_its_version_goes_on [ForgetsVersion, LosesAttempts],
        retry::only_failed_jobs_can_be_retried [NoGuard],
        retry::a_job_can_be_retried_again_and_again [NoGuard, CountsTwice],

        replace::a_replaced_job_is_cancelled_and_names_its_successor [ReplacesInSteps],
        replace::a_running_job_can_be_replaced_and_its_attempt_finishes_nothing [CancelsWithoutRecord, SaysApplied],
        replace::a_waiting_or_paused_job_can_be_replaced [IgnoresStart],
        replace::a_replacement_may_take_over_the_business_key [ForgetsBusinessKeys, KeepsBusinessKeys],
        replace::a_refused_replacement_changes_nothing [ReplacesInSteps],
        replace::what_is_over_cannot_be_replaced [ReplacesInSteps],
        replace::an_unknown_job_cannot_be_replaced [ReplacesInSteps],
        replace::a_replacement_with_a_used_idempotency_key_changes_nothing [ReplacesInSteps],
        replace::a_replacement_asked_for_again_finds_the_first [ForgetsIdempotency],

        cluster::a_registered_node_is_listed_alive [LosesNodeNames],
        cluster::a_heartbeat_moves_the_time_and_nothing_else [ForgetsBeats],
        cluster::a_heartbeat_says_how_the_node_is [ForgetsVitals],
        cluster::the_most_recently_heard_of_node_is_listed_first [ListsNodesById, ForgetsBeats],
        cluster::a_stranger_has_no_heartbeat [BeatsRegister],
        cluster::a_node_can_register_through_its_pulse [DeafPulse],
        cluster::a_deregistered_node_is_gone [KeepsNodes, BeatsRegister],
        cluster::a_dead_nodes_job_is_an_orphan_and_can_be_rescued [FindsNoOrphans],
        cluster::a_slow_job_of_a_live_node_is_no_orphan [OrphansEverything, NoGrace, ForgetsBeats],
        cluster::a_node_within_its_grace_is_alive [NoGrace, OrphansEverything],
        cluster::a_grace_may_be_shorter_than_a_minute [LongGrace, FindsNoOrphans],
        cluster::a_job_picked_within_the_grace_is_not_yet_an_orphan [OrphansEverything, NoGrace],
        cluster::jobs_of_a_deregistered_node_are_orphans_at_once [KeepsNodes, FindsNoOrphans, OrphansEverything],
        cluster::only_running_jobs_are_orphans [FindsNoOrphans, ControlsNothing],
        cluster::orphans_come_in_portions [OrphansWithoutLimit],
        cluster::of_several_rescuers_one_wins [SaysApplied, RecordsTwice],
        cluster::a_dead_node_has_no_heartbeat_and_is_removed_after_its_jobs [BeatsRegister, KeepsTheDead],
        cluster::an_idle_dead_node_is_removed [KeepsTheDead, LongGrace],
        cluster::the_observer_is_never_among_the_dead [AnyoneObserves, OrphansEverything],
        cluster::a_dead_or_unknown_observer_is_refused [AnyoneObserves],
        cluster::a_node_reads_what_it_runs [ReconcilesNothing, ReconcilesEverything],
        cluster::progress_is_kept_and_changes_no_version [LosesProgress, ReconcilesNothing],
        cluster::stale_progress_is_dropped [UnfencedProgress, LosesProgress],
        cluster::the_stores_time_moves_with_its_clock [StoppedClock],

        leases::a_lease_has_one_owner [LeaseForAll],
        leases::a_released_lease_can_be_taken_by_another [KeepsLeases],
        leases::a_lease_can_be_renewed_by_its_owner [LeaseNeverRenewed, LeaseForEver],
        leases::an_expired_lease_can_be_taken [LeaseForEver, LeaseForAll],
        leases::a_lease_is_released_by_its_owner_alone [AnyoneReleases],
        leases::releasing_a_lease_that_nobody_holds_is_harmless [ErrsOnRelease],

        queues::a_paused_queue_is_passed_by [IgnoresQueuePause],
        queues::pausing_and_resuming_say_whether_they_did [AlwaysSaysPaused],
        queues::a_job_that_runs_goes_on_when_its_queue_is_paused [IgnoresQueuePause, CancelsWithQueue],
        queues::a_queue_can_be_paused_before_its_first_job [IgnoresQueuePause],
        queues::queues_are_listed_with_their_live_jobs [HidesEmptyQueues, IgnoresQueuePause],

        query::jobs_are_listed_newest_first [ListsOldestFirst],
        query::pages_show_every_job_once [ForgetsCursor, AlwaysMore, ListsOldestFirst],
        query::a_page_is_not_moved_by_newer_jobs [ForgetsCursor],
        query::a_page_has_one_to_a_thousand_jobs [AnyLimit],
        query::jobs_are_filtered_by_state [IgnoresFilters],
        query::jobs_are_filtered_by_kind_and_queue [IgnoresFilters],
        query::jobs_are_filtered_by_tag [IgnoresFilters, ListsPerTag],
        query::pages_of_filtered_jobs_show_every_job_once [IgnoresFilters, ForgetsCursor, ListsPerTag],
        query::jobs_are_filtered_by_business_key_held_or_once_held [IgnoresFilters],
        query::jobs_are_counted_by_state [CountsNothing],

        walk::every_legal_event_lands_where_the_table_says [ControlsNothing, ResumeRevives, ForgetsBusinessKeys],
        walk::every_illegal_event_changes_nothing [NoGuard, SaysApplied, ClaimsTwice],

        races::racing_nodes_claim_disjoint_sets_and_miss_nothing [ClaimsTwice],
        races::of_racing_settlements_of_one_claim_one_is_applied [SaysApplied],
        races::a_cancellation_and_a_settlement_have_one_winner [SaysApplied, NoGuard],
        races::racing_retries_revive_a_job_once [NoGuard],
        races::after_retry_and_cancellation_the_key_fits_the_state [ForgetsBusinessKeys, NoGuard],
        races::after_pause_and_cancellation_the_job_is_cancelled [ControlsNothing],
        races::a_pause_and_a_claim_have_one_winner [NoGuard, ClaimsPaused],
        races::after_its_pause_a_queue_gives_no_more_jobs [IgnoresQueuePause],
        races::of_racing_submits_with_one_business_key_one_is_stored [ForgetsBusinessKeys],
        races::of_racing_submits_with_one_idempotency_key_one_is_stored [ForgetsIdempotency],
        races::a_retry_and_a_submit_have_one_winner_of_the_key [ForgetsBusinessKeys],
        races::of_racing_nodes_one_gets_the_lease [LeaseForAll],
        races::of_racing_replacements_one_succeeds [ReplacesInSteps],
        races::submitting_settling_and_claiming_at_once_loses_nothing [ClaimsTwice],
        races::claimers_drain_to_empty_again_and_again [ClaimsTwice],

        random::random_operations_agree_with_the_model [
            NoFence, CountsTwice, LosesDelay, KeepsBusinessKeys, IgnoresProbation,
            LosesCallbacks, ForgetsVersion, IgnoresQueuePause, ReversesClaims, UnfencedProgress,
        ],

        workflows::a_workflow_comes_back_as_it_was_given [LosesEdges, LosesEdgeOptions, IgnoresConditions],
        workflows::the_steps_of_a_chain_run_one_after_the_other [LosesEdges, IgnoresStart, HidesWhatFollows],
        workflows::a_settlement_and_the_claim_of_what_it_releases_are_one_turn [LosesEdges, ClaimsFirst],
        workflows::a_step_that_goes_back_releases_nothing [IgnoresStart],
        workflows::the_failure_of_a_step_cancels_all_that_follow [LosesEdges, IgnoresConditions, HidesWhatFollows],
        workflows::the_cancellation_of_a_step_cancels_all_that_follow [LosesEdges, IgnoresConditions],
        workflows::a_running_step_that_is_cancelled_takes_its_followers_along [LosesEdges, IgnoresConditions],
        workflows::a_cancelled_step_frees_its_business_key [LosesEdges, IgnoresConditions, ForgetsBusinessKeys],
        workflows::a_join_waits_for_all_its_parents [LosesEdges, CountsOneParent],
        workflows::a_join_whose_parents_end_in_one_turn_is_released_once [LosesEdges],
        workflows::the_failure_of_one_parent_cancels_a_join [LosesEdges, IgnoresConditions, JoinsAny],
        workflows::a_join_of_any_runs_after_all_have_ended_if_one_edge_held [LosesEdges, JoinsAll, IgnoresConditions],
        branches::branches_follow_success_failure_and_the_end [LosesEdges, IgnoresConditions],
        branches::branches_follow_the_value_of_a_result [LosesEdges, IgnoresConditions, LosesResult],
        branches::of_exclusive_branches_one_is_taken [LosesEdges, LosesEdgeOptions],
        branches::a_condition_that_cannot_be_told_fails_its_step [LosesEdges, IgnoresConditions],
        branches::a_claim_carries_what_came_of_the_jobs_before [ForgetsInputs, LosesResult],
        branches::a_branch_for_a_failure_knows_the_error [ForgetsInputs, LosesEdges],
        revivals::a_retry_revives_what_the_failure_had_cancelled [LosesEdges, RevivesNothing],
        revivals::a_retry_is_refused_while_another_job_holds_a_key_of_what_it_would_revive [
            LosesEdges, ForgetsBusinessKeys,
        ],
        revivals::a_join_comes_back_when_the_last_of_its_failed_parents_is_retried [LosesEdges, JoinsAny, RevivesNothing],
        revivals::what_a_person_cancelled_is_not_revived [RevivesNothing],
        branches::a_branch_that_has_run_does_not_run_again [LosesEdges],
        workflows::a_steps_delay_begins_with_its_release [LosesEdges, LosesDelay],
        workflows::a_released_step_counts_as_waiting_since_its_release [LosesEdges],
        workflows::a_workflow_is_stored_as_a_whole_or_not_at_all [SplitsUnits, ForgetsBusinessKeys],
        workflows::a_workflow_submitted_again_stands_for_the_first [ForgetsIdempotency, RefusesResubmit],
        workflows::a_job_that_a_live_one_needs_is_not_deleted [LosesEdges],
        workflows::a_stale_settlement_releases_nothing [SaysApplied],
        workflows::a_replaced_step_takes_its_followers_along [LosesEdges],
        workflows::a_thousand_steps_are_stored_at_once_and_cancelled_with_their_root [LosesEdges],
        workflows::two_parents_that_end_at_the_same_time_release_a_join_once [LosesEdges],
        revivals::an_end_and_a_retry_at_the_same_time_leave_no_join_stuck [LosesEdges, RevivesNothing],
        workflows::workflows_are_listed_newest_first_page_by_page [LosesEdges],
        workflows::children_are_listed_by_their_parent [IgnoresFilters],

        recurring::a_schedule_comes_back_as_it_was_given [LosesSpec, ForgetsBusinessKeys],
        recurring::a_business_key_is_held_by_one_schedule_or_job [ForgetsBusinessKeys, DeletesNothing],
        recurring::a_due_schedule_fires_a_job_and_goes_on [ClampsTime, SaysApplied],
        recurring::of_several_who_fire_one_wins [SaysApplied],
        recurring::a_fire_for_another_instant_than_expected_changes_nothing [FiresBlindly, SaysApplied],
        recurring::overdue_fires_are_caught_up_with_once_fired_or_skipped [AlwaysCatchesUp],
        recurring::a_paused_schedule_does_not_fire_and_a_resumed_one_goes_on [ControlsNothing, SaysApplied],
        recurring::the_next_fire_is_that_of_the_first_schedule_that_is_not_paused [NeverDue, ControlsNothing],
        recurring::the_longest_due_are_found_first_and_no_more_than_asked_for [ReversesClaims, IgnoresLimit],
        recurring::an_overlapping_fire_is_skipped_while_the_last_job_lives [AlwaysOverlaps],
        recurring::an_overlapping_fire_waits_until_the_last_job_has_ended_in_any_way [AlwaysOverlaps],
        recurring::a_declared_schedule_is_created_kept_and_changed [DeclaresAnew, LosesSpec],
        recurring::nodes_that_declare_the_same_at_once_make_one_schedule [DeclaresAnew],
        recurring::a_cancelled_schedule_is_gone_with_its_key_and_tags_and_its_jobs_stay [
            DeletesNothing,
        ],
        recurring::a_schedule_that_was_declared_lately_is_not_retired [RetiresAnything],
        recurring::schedules_are_listed_newest_first_by_tag_and_key [IgnoresFilters],

        signals::a_job_that_awaits_a_signal_comes_back_as_it_was_given [LosesWaits, IgnoresStart, ExpiresEarly],
        signals::a_signal_to_a_job_releases_it [LosesWaits, DeliversNothing, DeliversToAll],
        signals::a_claim_brings_the_signal_along [ForgetsSignals, ForgetsSender, RoundsNumbers],
        signals::an_approval_without_more_comes_back [ForgetsSender],
        signals::the_first_signal_counts [SaysDelivered, LastSignalWins],
        signals::a_signal_for_nobody_reaches_nobody [SaysDelivered],
        signals::a_signal_to_a_key_releases_all_that_wait_for_it [DeliversToAll, DeliversApart, DeliversNothing],
        signals::a_thousand_jobs_are_signalled_at_once [DeliversNothing, LosesWaits],
        signals::a_wait_ends_when_its_time_is_over_and_not_before [NeverExpires, ExpiresEarly, SaysDelivered],
        signals::only_jobs_that_still_wait_expire [NeverExpires, DeliversNothing, ControlsNothing],
        signals::waits_end_in_portions [ExpiresWithoutLimit, NeverExpires],
        signals::a_job_that_awaits_a_signal_can_be_cancelled [ControlsNothing, KeepsBusinessKeys, SaysDelivered],
        signals::a_wait_that_ends_frees_the_key_alerts_and_calls_back [NeverExpires, KeepsBusinessKeys],
        signals::branches_follow_a_wait_that_ends [NeverExpires, LosesEdges],
        signals::a_retried_job_waits_for_its_signal_again [RetriesUnsignaled, NeverExpires, RevivesNothing],
        signals::a_signal_that_nobody_waits_for_is_kept_for_the_first_who_comes [
            KeepsNoSignal, GivesKeptSignalsAgain, KeepsTheLastSignal,
        ],
        signals::a_kept_signal_is_taken_once_within_one_submit [KeepsNoSignal, GivesKeptSignalsAgain],
        signals::a_delay_begins_with_the_signal [LosesDelay, KeepsNoSignal],
        signals::a_signal_is_kept_for_its_time_only [KeepsSignalsForEver, KeepsNoSignal],
        signals::a_refused_submit_takes_no_kept_signal [KeepsNoSignal, SplitsUnits],
        signals::a_retried_job_takes_what_was_kept_since [KeepsNoSignal, GivesKeptSignalsAgain],
        signals::keys_that_nothing_is_kept_for_are_swept [SweepsNothing, KeepsNoSignal],
        signals::the_time_of_a_step_begins_when_it_is_reached [
            LosesEdges, NeverExpires, ExpiresEarly, HidesWhatFollows,
        ],
        signals::a_signal_may_come_before_its_step_is_reached [DeliversNothing, SaysDelivered, ForgetsSignals],
        signals::a_step_takes_a_kept_signal_and_waits_for_its_parents [KeepsNoSignal, LosesEdges],
        signals::a_step_that_failed_and_was_revived_waits_for_its_signal_anew [NeverExpires, RevivesNothing],
        signals::a_deleted_job_leaves_no_wait_behind [DeletesNothing],
        signals::a_job_that_awaits_may_replace_another [KeepsNoSignal, LosesWaits],
        signals::no_signal_falls_between_a_submit_and_a_delivery [KeepsNoSignal, DeliversNothing],
        signals::of_two_deliveries_one_counts [SaysDelivered],
        signals::a_delivery_and_the_end_of_the_wait_have_one_winner [SaysDelivered, NeverExpires],
        signals::a_delivery_and_the_end_of_a_parent_release_a_step_once [DeliversNothing],
    } };
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
                run: |bench| Box::pin($group::$name(bench)),
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
