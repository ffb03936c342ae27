//! Cases of what has ended and of what keeps order: archive, permits, insight, dead letters, logs.

/// Adds to the list of cases.
#[doc(hidden)]
#[macro_export]
macro_rules! list_cases_care {
    ([$($how:tt)*] $($before:tt)*) => { $crate::expand_cases! { [$($how)*] $($before)*
        archive::a_job_is_archived_when_it_ended_long_enough_ago [
            ArchivesNothing, ArchivesEarly, SaysArchived, DeletesInsteadOfArchiving,
        ],
        archive::an_archived_job_is_found_as_it_was [
            ArchivesNothing, ForgetsArchivedHistory, DeletesInsteadOfArchiving,
        ],
        archive::of_an_archived_jobs_attempts_the_last_fifty_are_kept [ArchivesNothing, ForgetsArchivedHistory],
        archive::live_jobs_are_not_archived [ArchivesLive],
        archive::a_job_that_a_live_one_depends_on_is_not_archived [SaysArchived, ArchivesLive, LosesEdges],
        archive::a_retried_step_finds_its_input_in_the_archive [ForgetsInputs, DeletesInsteadOfArchiving],
        archive::what_a_retry_can_bring_back_is_not_archived [LosesEdges, ArchivesTheRevivable],
        archive::a_workflow_is_listed_while_one_of_its_steps_is_not_archived [LosesEdges, ArchivesNothing],
        archive::a_batch_is_archived_after_its_last_child [SaysArchived, HidesArchive, LosesBatches],
        archive::archiving_goes_on_where_it_was [ArchivesAllAtOnce, ArchivesFromTheStart, ArchivesNothing],
        archive::of_jobs_that_are_named_no_others_are_archived [IgnoresFilters, ArchivesEarly, ArchivesNothing],
        archive::hundreds_of_jobs_are_archived_at_once [StopsAtFiveHundred, HidesArchive, MixesArchive],
        archive::lists_look_into_the_archive_if_asked [HidesArchive, MixesArchive, IgnoresFilters],
        archive::pages_over_both_show_every_job_once_while_jobs_are_archived [
            ForgetsCursor, HidesArchive, DeletesInsteadOfArchiving,
        ],
        archive::nothing_can_be_asked_of_an_archived_job [NoGuard, DeletesNothing, DeletesInsteadOfArchiving],
        archive::the_keys_of_an_archived_job_are_what_they_were [IdempotencyDiesWithJob, KeepsBusinessKeys],
        archive::the_archive_is_purged_by_age_and_in_portions [PurgesNothing, PurgesEarly, PurgesAllAtOnce],
        archive::ended_schedules_are_purged_by_age_and_in_portions [PurgesNothing, PurgesEarly, PurgesAllAtOnce],
        archive::an_archiving_and_a_retry_have_one_winner [SaysArchived, DeletesInsteadOfArchiving],

        query::a_list_by_a_rare_kind_finds_everything_in_the_end [IgnoresFilters, ForgetsCursor, ListsOldestFirst],

        discards::a_discarded_success_leaves_nothing_but_its_idempotency_key [
            KeepsSuccesses, KeepsBusinessKeys, IdempotencyDiesWithJob,
        ],
        discards::only_successes_are_discarded [DiscardsAlways],
        discards::what_hangs_on_others_is_not_discarded [DiscardsTheTied],
        discards::a_job_that_somebody_waits_for_is_not_discarded [ForgetsWhoWaits, KeepsSuccesses],
        discards::a_discarded_success_whose_reply_was_lost_is_recognised [ForgetsItsOwn, MaybeMeansYes],
        discards::hundreds_of_successes_are_discarded_at_once [KeepsSuccesses],

        permits::as_many_run_as_there_are_permits [OneTooMany, OneTooFew, KeepsPermits, HidesPermits],
        permits::jobs_without_the_resource_are_not_held_up [OneTooMany, OneTooFew],
        permits::a_permit_ends_with_every_sort_of_settlement [KeepsPermits, HidesPermits],
        permits::a_permit_is_the_attempts_and_not_the_jobs [KeepsPermits, EndsPermitsEarly],
        permits::a_cancelled_job_keeps_its_permit_until_its_handler_has_ended [KeepsPermits, EndsPermitsEarly],
        permits::the_permits_of_dead_nodes_are_void [OneTooMany, OneTooFew, HidesPermits],
        permits::a_job_on_probation_needs_a_permit_too [OneTooMany, KeepsPermits],
        permits::permits_go_to_the_most_urgent_and_oldest [KeepsPermits, OneTooFew],
        permits::one_resource_limits_kinds_and_queues_together [OneTooMany, IgnoresQueuePause],
        permits::a_limit_can_be_changed [KeepsLimits, OneTooMany],
        permits::a_limit_begins_with_what_runs_already [HidesPermits, OneTooMany],
        permits::a_limit_set_by_hand_stays [CodeBeatsHand, KeepsLimits, OneTooMany],
        permits::at_capacity_the_next_look_is_after_the_delay [NeverDue, AnythingIsDue],
        permits::what_begins_again_needs_a_permit_again [OneTooMany, KeepsPermits],
        permits::racing_nodes_keep_to_the_limit [OneTooMany],
        permits::many_resources_share_the_room [OneTooMany, KeepsPermits],

        insight::lanes_are_told_with_their_first_job [MissesLanes, CountsAllTimes, CountsOn],
        insight::a_queues_health_says_what_waits_runs_and_ended [
            MissesLanes, MixesEnds, SeesNothingRun, IgnoresQueuePause,
        ],
        insight::of_a_deep_lane_no_more_is_counted_than_matters [CountsOn],
        insight::ended_jobs_are_counted_as_far_as_matters [CountsOn],
        insight::every_situation_has_its_reason [
            MissesLanes, CountsAllTimes, IgnoresQueuePause, LosesEdges, LosesBatches, HidesPermits, ForgetsServices,
        ],

        dead_letters::dead_letters_say_why_they_failed [LosesErrorClass, ForgetsCursor, AnyLimit],
        dead_letters::dead_letters_are_filtered [IgnoresFilters],
        dead_letters::retrying_all_gives_each_a_new_life [RetriesInSteps, ForgetsBusinessKeys],
        dead_letters::retrying_all_keeps_to_its_filter_and_its_limit [IgnoresFilters, RetriesAllAtOnce],
        dead_letters::dead_letters_of_one_fingerprint_are_retried [IgnoresFilters, RetriesInSteps],
        dead_letters::one_taken_key_refuses_all [RetriesInSteps, ForgetsBusinessKeys],
        dead_letters::all_letters_whose_keys_are_held_are_named [RetriesInSteps, ForgetsBusinessKeys],
        dead_letters::a_letter_that_would_revive_what_cannot_be_is_named [RetriesInSteps, ForgetsBusinessKeys],
        dead_letters::dead_letters_that_are_left_out_stay [IgnoresFilters, RetriesAllAtOnce],
        dead_letters::two_dead_letters_with_one_key_refuse_all [RetriesInSteps, ForgetsBusinessKeys],
        dead_letters::one_to_a_thousand_are_retried_at_once [AnyLimit],
        dead_letters::retrying_all_revives_what_was_cancelled [RevivesNothing, LosesEdges],
        dead_letters::children_of_a_batch_are_retried_while_it_is_open [RetriesAnyChild, LosesBatches],
        dead_letters::a_dead_letter_that_nobody_can_judge_is_passed_over [RetriesAnyChild, IgnoresConditions],
        dead_letters::hundreds_of_dead_letters_are_retried_at_once [StopsAtFiveHundred],

        job_log::lines_come_back_as_they_were_given [LosesLines, LosesLogFields, MangledText],
        job_log::lines_come_attempt_by_attempt_in_their_order [ReadsLogsByTime],
        job_log::lines_given_again_are_kept_once_as_they_were [LastLineWins],
        job_log::pages_of_a_log_show_every_line_once [ForgetsCursor, AlwaysMore],
        job_log::a_page_of_a_log_has_one_to_a_thousand_lines [AnyLimit],
        job_log::lines_are_filtered_by_level_and_attempt [IgnoresFilters, ForgetsCursor],
        job_log::lines_of_two_jobs_do_not_mix [MixesLogs],
        job_log::thousands_of_lines_are_appended_in_one_call [StopsAtFiveHundred],
        job_log::lines_at_their_limits_come_back [LosesLargeText, MangledText, LosesLogFields],
        job_log::appending_nothing_is_no_error [RefusesNothing],
        job_log::writing_a_log_changes_no_job [LogsTouchJobs],
        job_log::the_last_words_of_an_attempt_that_lost_its_job_are_kept [FencesLogs],
        job_log::old_lines_are_purged_by_age_and_in_portions [PurgesNothing, PurgesEarly, PurgesAllAtOnce],
        job_log::a_purge_goes_on_where_it_was [PurgesFromTheStart, PurgesNothing, PurgesEarly],
        job_log::a_log_goes_when_its_job_is_deleted [KeepsLogs, DeletesNothing, DeletesAllHistory],
        job_log::an_archived_jobs_log_is_read_and_goes_with_it [KeepsLogs, ForgetsArchivedHistory, ArchivesNothing],
    } };
}
