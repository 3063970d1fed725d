"""What handrail must do, by id: each requirement split into clauses, each clause with the tests that prove it.

A clause without tests is `planned`. tests/test_requirements.py fails when a named test does not exist.
"""

from typing import NamedTuple


class Clause(NamedTuple):
    """One sentence of a requirement, shortened, and the tests (file::function, below tests/) that prove it."""

    text: str
    tests: tuple[str, ...]


planned: tuple[str, ...] = ()


def clause(text: str, *tests: str) -> Clause:
    return Clause(text, tests)


REQUIREMENTS: dict[str, tuple[Clause, ...]] = {
    # Tools: the base layer
    "T-1": (
        clause(
            "exactly eight base tools, with exactly the parameters of the table",
            "runtime/test_exports.py::test_every_base_tool_has_exactly_its_parameters",
        ),
    ),
    "T-2": (
        clause(
            "an unknown name runs nothing and gives UNKNOWN_TOOL with the active names and a warning event",
            "runtime/test_runtime_offer.py::test_a_name_that_is_not_offered_runs_nothing",
        ),
        clause(
            "no aliasing and no case repair in strict mode",
            "runtime/test_runtime_offer.py::test_a_name_that_is_not_offered_runs_nothing",
        ),
        clause(
            'repair="case" matches names that differ only in case, and says so',
            "runtime/test_runtime_offer.py::test_repair_takes_a_name_that_differs_in_case_only_and_says_so",
            "runtime/test_runtime_offer.py::test_repair_does_not_guess_between_two",
        ),
        clause(
            "custom tools keep their own names",
            "runtime/test_runtime_offer.py::test_a_session_offers_the_base_layer_and_its_custom_tools",
        ),
        clause(
            "companions keep their own names",
            "runtime/test_questions.py::test_a_question_that_is_not_switched_on_is_unknown",
            "tools/companions/test_display.py::test_it_is_off_until_it_is_switched_on",
        ),
        clause("gain-layer and MCP tools keep their own names", *planned),
    ),
    "T-3": (
        clause(
            "no retired name in any definition or schema",
            "runtime/test_exports.py::test_no_retired_name_is_in_any_list_or_schema",
        ),
        clause(
            "no retired name in any prompt",
            "agent/test_prompt.py::test_no_retired_name_and_no_alias_is_in_any_prompt",
        ),
    ),
    "T-4": (
        clause(
            "arguments are checked before policy and before any effect",
            "runtime/test_what_the_model_sees.py::test_wrong_arguments_are_told_before_policy_is_asked",
            "must_hold/test_hold_any_input.py::test_any_arguments_of_any_tool_have_one_result",
        ),
        clause(
            "every problem is listed with field, value and what to pass instead",
            "protocol/test_protocol_arguments.py::test_the_details_list_every_problem",
            "protocol/test_protocol_arguments.py::test_a_refusal_says_what_is_wrong_and_what_to_pass",
        ),
        clause(
            "an alias is refused with the canonical name",
            "protocol/test_protocol_arguments.py::test_an_alias_is_refused_with_the_name_to_use",
        ),
    ),
    "T-5": (
        clause(
            "offset is a 1-based line, negative counts from the end; limit defaults to 2000, at most 10,000",
            "tools/test_read.py::test_an_offset_is_a_line_from_1_or_counts_from_the_end",
            "tools/test_read.py::test_a_limit_of_ten_thousand_is_allowed_and_two_thousand_is_the_default",
            "tools/test_read.py::test_a_limit_out_of_range_is_refused",
        ),
        clause(
            "a page at either end of a large file costs a page",
            "tools/test_read_large.py::test_a_page_at_the_start_knows_its_numbers_and_not_the_total",
            "tools/test_read_large.py::test_a_page_at_the_end_is_counted_from_the_end",
            "tools/test_read_large.py::test_memory_is_bounded_whatever_the_file",
        ),
        clause(
            "lines over 2,000 characters are cut and marked",
            "tools/test_read.py::test_a_line_over_two_thousand_characters_is_cut_and_marked",
            "tools/test_read_large.py::test_lines_are_cut_alike_in_large_and_small_files",
        ),
        clause(
            "meta has returned, total, nextOffset; data has size, mtime, encoding, line ending, hash",
            "tools/test_read.py::test_data_says_what_the_file_is",
            "tools/test_read.py::test_the_budget_holds_whole_lines_and_says_where_to_go_on",
        ),
        clause(
            "over 8 MiB total may be null, and a deep offset uses a cached sparse line index",
            "tools/test_read_large.py::test_a_deep_page_is_found_and_found_again",
            "tools/test_read_large.py::test_once_the_end_was_counted_the_total_is_known",
            "tools/test_read_large.py::test_the_hash_is_of_the_page_and_of_which_file_it_is",
        ),
        clause(
            "a missing file names up to three near ones",
            "tools/test_read_refusals.py::test_a_missing_file_names_up_to_three_that_may_be_meant",
        ),
        clause(
            "directory, device, FIFO, socket: a clear error, never a hang",
            "tools/test_read_refusals.py::test_a_directory_is_no_file_and_ls_is_named",
            "tools/test_read_refusals.py::test_a_device_inside_is_refused",
            "tools/test_read_refusals.py::test_a_fifo_is_refused_whether_or_not_somebody_writes_to_it",
            "tools/test_read_refusals.py::test_a_socket_is_refused",
        ),
        clause("binary is refused", "tools/test_read_refusals.py::test_binary_is_refused"),
        clause(
            "images come back as attachments; read.images=false restores the refusal",
            "tools/test_read_refusals.py::test_a_picture_comes_back_as_an_attachment",
            "tools/test_read_refusals.py::test_pictures_can_be_switched_off",
        ),
        clause(
            "PDF pages as text with the pdf extra",
            "tools/test_read_refusals.py::test_the_text_of_a_pdf_comes_page_by_page",
            "tools/test_read_refusals.py::test_without_the_extra_a_pdf_says_what_to_install",
        ),
    ),
    "T-6": (
        clause(
            "creates parents, overwrites",
            "tools/test_write.py::test_a_new_file_is_created_with_its_parents",
            "tools/test_write.py::test_a_file_is_replaced_and_the_result_says_by_what",
        ),
        clause(
            "atomic: unique temporary file in the same folder, fsync, rename",
            "tools/test_write.py::test_a_reader_sees_the_old_bytes_or_the_new_and_never_a_mixture",
            "tools/test_write_failures.py::test_a_full_disk_leaves_the_old_file_and_nothing_else",
            "must_hold/test_hold_kill.py::test_a_killed_writer_loses_nothing_that_it_reported",
        ),
        clause("keeps the mode", "tools/test_write.py::test_the_mode_stays"),
        clause(
            "JSON, YAML, TOML, front matter, Python, JS and TS that no longer parse: written, with a warning",
            "tools/test_parses.py::test_what_does_not_parse_is_written_with_a_warning",
            "tools/test_parses.py::test_what_parsed_before_is_told_when_it_no_longer_does",
            "tools/test_parses.py::test_what_did_not_parse_before_is_no_news",
        ),
        clause(
            "the result carries a unified diff",
            "tools/test_write.py::test_a_file_is_replaced_and_the_result_says_by_what",
            "edit/test_diff.py::test_git_makes_the_new_text_of_the_old_one",
        ),
    ),
    "T-7": (
        clause(
            "exact match first",
            "edit/test_ladder.py::test_a_text_that_is_there_as_it_is_is_taken_first",
            "tools/test_edit.py::test_a_text_is_replaced_and_the_result_says_what_and_where",
        ),
        clause(
            "it must be unique unless replaceAll, which is false by default",
            "tools/test_edit.py::test_only_one_place_is_replaced_unless_all_are_asked_for",
            "tools/test_edit_refusals.py::test_places_that_overlap_are_several",
            "tools/test_edit_property.py::test_all_places_are_replaced_as_str_replace_does",
        ),
        clause(
            "identical texts, empty oldText on a non-empty file: an error",
            "tools/test_edit_refusals.py::test_the_same_text_changes_nothing",
            "tools/test_edit_refusals.py::test_no_text_is_no_place_in_a_file_that_has_some",
            "tools/test_edit_refusals.py::test_a_missing_file_names_what_may_be_meant",
            "tools/test_edit.py::test_nothing_in_an_empty_file_is_a_place_to_insert",
        ),
        clause(
            "the ladder: each strategy guarded, safest first",
            "edit/test_ladder.py::test_what_is_meant_is_changed_and_nothing_else",
            "edit/test_ladder.py::test_what_could_be_a_wrong_guess_is_refused",
            "edit/test_ladder.py::test_the_strategies_are_in_the_order_they_are_tried",
            "edit/test_ladder_property.py::test_a_strategy_is_used_only_where_those_before_it_find_nothing",
            "edit/test_ladder_property.py::test_a_text_that_could_mean_two_places_is_never_applied",
            "edit/test_ladder_property.py::test_lines_that_the_edit_keeps_stay_as_the_file_has_them",
            "edit/test_ladder_property.py::test_where_only_space_and_looks_differ_the_place_then_says_what_new_text_says",
            "edit/test_ladder.py::test_the_most_literal_reading_comes_first",
        ),
        clause(
            "multi-occurrence: replaceAll with the first strategy that matches",
            "edit/test_ladder.py::test_all_places_are_changed_each_in_its_own_way",
            "edit/test_ladder.py::test_all_places_of_the_safest_strategy_alone_are_changed",
            "edit/test_ladder.py::test_words_are_never_forgiven_where_all_places_are_meant",
        ),
        clause(
            "only the matched span changes",
            "edit/test_ladder_property.py::test_nothing_outside_the_places_changes",
            "edit/test_ladder_property.py::test_what_was_replaced_can_be_put_back",
            "tools/test_edit_property.py::test_a_unique_text_is_replaced_as_str_replace_does",
            "tools/test_edit_property.py::test_mixed_endings_and_damaged_bytes_stay_around_the_place",
            "workspace/test_lossless.py::test_a_part_is_exchanged_and_all_other_bytes_stay",
        ),
        clause(
            "line endings, BOM, encoding and mode survive",
            "tools/test_edit_ladder.py::test_every_byte_besides_stays_and_undo_brings_all_back",
            "tools/test_edit_ladder.py::test_in_mixed_endings_kept_lines_keep_theirs_and_new_ones_take_one",
            "tools/test_edit.py::test_line_endings_are_the_files",
            "tools/test_edit.py::test_encoding_mark_and_mode_stay",
            "tools/test_edit_property.py::test_lines_that_an_edit_keeps_keep_their_ending",
        ),
        clause(
            "meta.strategy says what matched and where",
            "tools/test_edit_ladder.py::test_the_result_says_what_was_found_and_where",
            "tools/test_edit.py::test_a_text_is_replaced_and_the_result_says_what_and_where",
            "tools/test_edit.py::test_many_places_are_counted_and_the_first_are_listed",
        ),
    ),
    "T-8": (
        clause(
            "ambiguous: AMBIGUOUS_MATCH with count and up to three places, line and context",
            "tools/test_edit_refusals.py::test_several_places_are_named_with_what_is_around_them",
            "tools/test_edit_refusals.py::test_three_places_are_all_named",
        ),
        clause(
            "nothing: NO_MATCH with the closest region, its lines and the exact difference made visible",
            "tools/test_edit_refusals.py::test_a_text_that_is_not_there_names_the_closest_and_the_difference",
            "tools/test_edit_refusals.py::test_characters_that_look_alike_are_told_apart",
            "edit/test_closest.py::test_the_region_and_its_first_difference",
            "edit/test_closest.py::test_a_refusal_comes_and_is_short_whatever_the_texts",
        ),
        clause(
            "a placeholder in the place of real lines: OMITTED_TEXT with the line, for edit and write",
            "edit/test_omission.py::test_a_mark_in_the_place_of_real_lines_is_found",
            "edit/test_omission.py::test_an_honest_edit_passes",
            "edit/test_omission.py::test_an_honest_line_may_take_the_place_of_others",
            "tools/test_omitted_text.py::test_an_edit_with_a_placeholder_is_refused_and_says_why",
            "tools/test_omitted_text.py::test_a_write_that_says_in_words_what_it_leaves_out_is_refused",
        ),
    ),
    "T-9": (
        clause(
            "write over a file that changed since read: STALE_FILE only if the bytes differ",
            "tools/test_staleness.py::test_other_bytes_than_were_read_are_not_overwritten",
            "tools/test_staleness.py::test_a_file_with_the_same_bytes_is_not_stale",
        ),
        clause(
            "the check is repeated at the moment of commit",
            "workspace/test_replace.py::test_what_somebody_did_since_the_look_stays",
            "tools/test_staleness.py::test_the_check_is_repeated_after_an_approval_however_late",
        ),
        clause(
            "edit over a file that changed since read, or while somebody was asked",
            "tools/test_edit_stale.py::test_a_file_that_changed_since_it_was_read_is_not_edited",
            "tools/test_edit_stale.py::test_the_bytes_count_and_not_the_times",
            "tools/test_edit_stale.py::test_an_approval_that_came_late_overwrites_nothing",
            "tools/test_edit_stale.py::test_what_another_program_puts_there_meanwhile_is_never_lost",
        ),
        clause(
            "keeping what a command changed overwrites nothing of others, however late the yes",
            "runtime/test_retrying.py::test_a_preview_is_out_of_date_when_a_file_that_it_changes_was_changed",
            "runtime/test_trying_batches.py::test_a_file_that_another_program_changed_meanwhile_is_never_overwritten",
            "runtime/test_late_parking.py::test_what_others_changed_meanwhile_is_not_overwritten",
            "tools/test_exec_layered.py::test_a_kept_trial_whose_files_others_changed_says_what_it_printed_and_overwrites_nothing",
            "tools/test_exec_layered.py::test_what_others_change_while_a_command_runs_is_not_overwritten",
            "changes/test_layered_commit.py::test_what_others_changed_meanwhile_is_never_overwritten",
        ),
    ),
    "T-10": (
        clause(
            "find: ripgrep's walker with globs and excludes",
            "tools/test_find.py::test_a_name_is_found_at_any_depth_and_a_path_from_the_folder_on",
            "tools/test_find.py::test_exclude_leaves_out_files_and_whole_folders",
        ),
        clause(
            "grep: ripgrep's JSON output; colons, odd names and binary safe",
            "tools/test_grep.py::test_colons_in_names_and_lines_split_nothing",
            "tools/test_grep.py::test_odd_names_and_lines_are_made_visible",
            "tools/test_grep.py::test_a_file_with_a_nul_anywhere_is_binary_and_skipped_whole",
        ),
        clause("maxResults is a total, not per file", "tools/test_grep.py::test_max_results_is_a_total_over_all_files"),
        clause(
            "a stable order, the same answer every run",
            "tools/test_find.py::test_the_order_is_that_of_the_names_folder_by_folder",
            "tools/test_find.py::test_many_files_give_the_same_first_ones_every_time",
            "tools/test_grep.py::test_the_same_answer_every_run",
        ),
        clause(
            "at most 1 s or 100,000 hits, and the limit is said",
            "workspace/test_search_limits.py::test_more_hits_than_are_counted_end_the_search_which_says_so",
            "workspace/test_search_limits.py::test_more_text_than_is_held_ends_the_search_which_says_so",
            "workspace/test_search_program.py::test_a_program_that_never_ends_is_ended",
            "workspace/test_search_deadline.py::test_a_search_that_never_ends_takes_no_more_than_its_time",
        ),
        clause(
            "meta says returned, total, files, truncated; the whole list is kept for read, and what to narrow is said",
            "tools/test_find.py::test_the_answer_says_how_many_and_what_searched",
            "tools/test_find.py::test_a_whole_list_that_is_not_shown_is_kept_for_read",
            "tools/test_grep.py::test_more_than_is_shown_is_kept_whole_for_read",
        ),
        clause(
            "dotfiles are searched, ignored folders are not unless path names one; one list for all tools",
            "tools/test_find.py::test_dotfiles_are_found_and_built_in_folders_are_not",
            "workspace/test_search_ignore.py::test_gitignore_holds_without_a_repository_and_nested_ones_add_to_it",
            "workspace/test_search_ignore.py::test_an_ignored_folder_that_is_named_is_searched_by_what_is_inside_it",
        ),
        clause(
            "protected names are skipped and counted, whatever is in them",
            "tools/test_find.py::test_credentials_are_never_named_and_counted",
            "tools/test_grep.py::test_credentials_are_not_searched_and_cannot_be_named",
            "tools/test_grep.py::test_the_count_of_protected_names_tells_nothing_of_what_is_in_them",
        ),
    ),
    "T-11": (
        clause(
            "without ripgrep both fall back to Python and say so",
            "search/test_search_python.py::test_without_ripgrep_both_fall_back_to_python",
            "search/test_search_python.py::test_the_answer_says_that_python_searched",
        ),
        clause(
            "the same results on the same tree",
            "search/test_search_parity.py::test_the_lines_of_real_trees_are_the_same",
            "search/test_search_parity.py::test_the_lines_of_an_odd_tree_are_the_same",
            "search/test_search_parity.py::test_the_files_of_real_trees_are_the_same",
            "search/test_search_parity.py::test_the_files_of_an_odd_tree_are_the_same",
            "search/test_search_parity.py::test_the_tools_say_the_same_with_either_engine",
            "search/test_search_globs.py::test_ignore_files_pass_over_what_ripgrep_passes_over",
            "search/test_search_expressions.py::test_expressions_find_what_ripgrep_finds_or_are_left_to_it",
        ),
        clause(
            "a pattern outside the common subset answers UNAVAILABLE naming ripgrep",
            "search/test_search_python.py::test_a_pattern_that_only_ripgrep_knows_is_unavailable_and_says_why_there_is_none",
            "search/test_search_expressions.py::test_what_only_ripgrep_knows_is_refused_and_says_so",
        ),
    ),
    "T-12": (
        clause(
            "default depth 1, bounded, truncation reported",
            "tools/test_ls.py::test_one_level_is_the_default_and_depth_shows_more_under_each_folder",
            "tools/test_ls.py::test_a_folder_of_twenty_thousand_names_is_cut_and_counted",
            "tools/test_ls.py::test_memory_is_bounded_by_what_is_shown",
        ),
        clause(
            "directories first, sizes",
            "tools/test_ls.py::test_directories_come_first_and_names_are_sorted",
            "tools/test_ls.py::test_sizes_are_for_people_in_the_text_and_exact_in_the_data",
        ),
    ),
    "T-13": (
        clause(
            "one shell command; cwd inside the workspace; timeoutMs",
            "tools/test_exec.py::test_it_runs_in_the_folder_it_is_told",
            "tools/test_exec.py::test_a_folder_that_it_cannot_run_in_is_refused",
            "tools/test_exec.py::test_time_is_limited_and_what_there_was_is_told",
            "cli/test_cli_policy_explain.py::test_a_call_that_is_wrong_before_policy_is_asked_is_exit_2",
        ),
        clause(
            "one pipe gives the true order; the restricted profile has two",
            "must_hold/test_exec_output.py::test_both_streams_come_in_their_order",
            "tools/test_exec.py::test_the_restricted_profile_runs_what_it_lists_with_little_time_and_room",
        ),
        clause(
            "head and tail kept, bounded memory whatever the output",
            "must_hold/test_exec_output.py::test_ten_gigabytes_take_little_memory_and_end_exactly",
            "must_hold/test_exec_output.py::test_pages_joined_are_what_was_printed",
            "tools/test_exec.py::test_long_output_shows_both_ends_and_can_be_read_whole",
        ),
        clause(
            "exit code and what it means",
            "tools/test_exec.py::test_a_command_that_fails_is_a_result_with_its_code_and_what_it_means",
            "process/test_process_exit_codes.py::test_a_code_is_explained_where_it_says_something",
        ),
        clause(
            "a background child that holds the pipe never hangs the call",
            "must_hold/test_exec_output.py::test_a_child_that_holds_the_pipe_does_not_hold_the_call",
        ),
        clause(
            "on timeout, cancel or the runtime's end the whole process tree is gone",
            "must_hold/test_exec_trees.py::test_nothing_is_left_when_a_command_takes_too_long",
            "must_hold/test_exec_trees.py::test_nothing_is_left_when_a_command_is_cancelled",
            "must_hold/test_exec_trees.py::test_nothing_is_left_when_the_runtime_is_killed",
        ),
        clause(
            "background returns at once; yieldMs waits, then hands the running command over as a process session",
            "tools/test_exec_background.py::test_it_returns_at_once_with_the_id_and_what_to_do_next",
            "tools/test_exec_background.py::test_the_session_goes_on_beside_it",
            "tools/test_exec_background.py::test_what_ends_in_time_is_an_ordinary_result",
            "tools/test_exec_background.py::test_what_takes_longer_goes_on_with_what_it_has_printed",
            "tools/test_exec_background.py::test_a_time_limit_that_comes_first_ends_it",
            "tools/test_exec_background.py::test_cancelling_the_call_ends_it",
            "must_hold/test_hold_background.py::test_the_end_of_a_session_leaves_nothing",
        ),
        clause(
            "what yieldMs hands over keeps its layer, and its changes are kept once, when it ends",
            "tools/test_exec_yield_layers.py::test_what_ends_in_time_is_kept_like_any_other",
            "tools/test_exec_yield_layers.py::test_what_goes_on_changes_nothing_until_it_ends",
            "tools/test_exec_yield_layers.py::test_the_result_says_where_its_changes_are",
            "tools/test_exec_yield_layers.py::test_what_needs_a_yes_waits_for_it",
            "tools/test_exec_yield_layers.py::test_whoever_opens_the_session_next_keeps_what_ended_meanwhile",
            "tools/test_exec_yield_layers.py::test_it_is_kept_once_whoever_is_killed_on_the_way",
        ),
        clause(
            "a time limit, a cancellation and a stop drop what the command had changed",
            "tools/test_exec_layered.py::test_what_a_stopped_command_had_changed_is_dropped",
            "tools/test_exec_layered.py::test_what_a_cancelled_command_had_changed_is_dropped",
            "tools/test_exec_layered.py::test_an_interrupt_leaves_no_layer_no_process_and_no_change",
            "tools/test_exec_yield_layers.py::test_what_was_stopped_is_dropped",
            "tools/test_exec_yield_layers.py::test_what_is_removed_takes_its_layer_along",
        ),
    ),
    "T-14": (
        clause(
            "list poll log write kill clear remove",
            "tools/test_process.py::test_a_list_says_what_runs_since_when_and_what_it_said_last",
            "tools/test_process.py::test_what_does_not_go_together_is_refused_all_at_once",
            "tools/test_process.py::test_killed_is_gone_and_its_log_stays_until_it_is_removed",
            "tools/test_process.py::test_a_cleared_log_is_empty_and_counted_and_goes_on",
            "tools/test_process.py::test_removing_ends_what_runs",
        ),
        clause(
            "a person, and nobody else, opens a port of one on this machine, until Ctrl-C or its end",
            "cli/test_cli_forward.py::test_connections_at_once_are_kept_apart_and_either_side_may_end_its_own",
            "cli/test_cli_forward.py::test_more_than_may_be_at_a_time_wait_until_one_has_ended",
            "cli/test_cli_forward.py::test_one_that_is_killed_leaves_nobody_in_the_network",
            "cli/test_cli_forward.py::test_where_nobody_listens_the_connection_is_closed_and_it_goes_on",
            "cli/test_cli_forward.py::test_an_ordinary_user_reaches_their_own",
            "cli/test_cli_forward.py::test_in_the_network_of_the_machine_there_is_nothing_to_forward",
            "cli/test_cli_forward.py::test_the_way_to_the_proxy_is_not_opened",
        ),
        clause(
            "ids of 96 random bits and more, any unique beginning, scoped to a session",
            "tools/test_exec_background.py::test_it_returns_at_once_with_the_id_and_what_to_do_next",
            "tools/test_process.py::test_any_beginning_of_an_id_that_no_other_has_will_do",
            "tools/test_process.py::test_one_sessions_processes_are_not_anothers",
            "cli/test_cli_processes.py::test_the_beginning_that_is_listed_is_enough_to_type",
        ),
        clause(
            "poll gives what is new since the last poll; log pages by line",
            "tools/test_process_pages.py::test_polls_joined_give_every_character_once",
            "tools/test_process_pages.py::test_polls_go_on_where_the_last_one_ended_whatever_is_printed",
            "tools/test_process_pages.py::test_pages_joined_give_the_log_back",
            "tools/test_process_pages.py::test_what_is_not_kept_has_a_line_in_its_place",
            "tools/test_process.py::test_pages_of_a_log_go_from_either_end",
        ),
        clause(
            "write with eof: interactive programs, and one that asks for a password",
            "tools/test_process.py::test_a_program_that_copies_is_written_to_polled_and_told_the_end",
            "tools/test_process.py::test_an_interactive_interpreter_answers_line_by_line",
            "tools/test_process.py::test_a_program_that_asks_for_a_password_gets_it_and_shows_it_nowhere",
        ),
        clause(
            "completion is an event, told once",
            "runtime/test_background_work.py::test_a_live_runtime_tells_the_end_without_being_asked",
            "runtime/test_background_work.py::test_two_runtimes_tell_it_once",
            "runtime/test_background_work.py::test_who_is_killed_while_telling_is_made_up_for_exactly",
        ),
        clause(
            "sessions survive a restart of the runtime and can be re-attached",
            "must_hold/test_hold_background.py::test_after_kill_9_everything_is_found_again_and_can_be_used",
            "runtime/test_background_work.py::"
            "test_what_ended_while_nobody_was_there_is_told_when_the_session_is_opened",
        ),
        clause(
            "many at once, in bounded memory and disk; what they listen on is seen; nothing is left of them",
            "must_hold/test_hold_keeper.py::test_many_at_once_are_listed_written_to_and_stopped",
            "must_hold/test_hold_keeper.py::test_a_server_that_prints_much_is_kept_in_bounded_memory_and_disk",
            "must_hold/test_hold_keeper.py::test_keepers_that_are_killed_leave_nothing_but_the_log",
            "must_hold/test_hold_keeper.py::test_nothing_is_left_of_trees_that_are_stopped",
            "process/test_keeper_ending.py::test_its_ports_are_seen",
        ),
        clause(
            "writing to a shell or interpreter is execution",
            "policy/judging/test_process_calls.py::test_writing_to_a_program_is_running_something",
            "tools/test_process.py::test_writing_asks_with_the_program_and_what_it_is_sent",
            "tools/test_process.py::test_a_yes_to_one_process_session_is_none_to_another",
        ),
    ),
    "T-15": (
        clause(
            "mutating calls of one session run one at a time, in order",
            "runtime/test_runtime_locks.py::test_writes_of_one_session_run_one_at_a_time",
        ),
        clause(
            "between sessions and processes a lock per file; waiting is bounded and ends in CONFLICT",
            "runtime/test_runtime_locks.py::test_a_file_that_another_session_holds_is_a_conflict_after_a_bounded_wait",
            "runtime/test_runtime_locks.py::test_a_killed_holder_frees_its_lock",
            "must_hold/test_hold_crowd.py::test_no_update_is_lost_no_file_torn_and_the_chain_is_one",
        ),
        clause("reads never wait", "runtime/test_runtime_locks.py::test_reads_never_wait"),
    ),
    # Companions and the gain layer
    "X-1": (
        clause(
            "companions are off or on by configuration, never part of the eight",
            "tools/companions/test_display.py::test_it_is_off_until_it_is_switched_on",
            "tools/companions/test_skill_tools.py::test_they_are_off_until_they_are_switched_on",
            "runtime/test_questions.py::test_a_question_that_is_not_switched_on_is_unknown",
        ),
    ),
    "X-2": (
        clause(
            "content, level, title, thought, evidence; at most 10,000 characters",
            "tools/companions/test_display.py::test_what_is_shown_is_an_event_and_the_result_says_so",
            "tools/companions/test_display.py::test_what_cannot_be_shown_is_refused_and_not_shown",
            "tools/companions/test_display.py::test_ten_thousand_characters_are_shown_whole",
        ),
        clause(
            "no confirmation; the loop may emit it too",
            "tools/companions/test_display.py::test_nobody_has_to_confirm_it_wherever_it_is",
            "tools/companions/test_display.py::test_the_loop_may_show_something_too",
        ),
        clause(
            "degrades to one log line, never a crash source",
            "tools/companions/test_display.py::test_its_line_is_always_one_line_that_steers_no_terminal",
            "tools/companions/test_display.py::test_a_listener_that_fails_at_it_does_not_fail_the_call",
            "cli/test_cli_questions.py::test_the_log_has_one_line_of_what_was_shown_and_of_what_was_asked",
        ),
    ),
    "X-3": (
        clause(
            "ends the turn; the answer resumes it",
            "runtime/test_questions.py::test_a_question_waits_without_a_result_and_the_reply_is_the_result",
            "runtime/test_questions.py::test_the_batch_again_waits_again_and_after_the_reply_has_its_result",
            "cli/test_run_asking.py::test_a_question_takes_a_number_and_enter_alone_is_no_answer",
        ),
        clause(
            "must be the only call of its message",
            "runtime/test_questions.py::test_a_question_among_other_calls_is_refused_and_the_others_run",
            "runtime/test_questions.py::test_a_question_beside_a_call_that_needs_a_yes_is_refused_too",
        ),
        clause(
            "survives kill -9; replied to exactly once",
            "runtime/test_questions.py::test_a_question_outlives_the_process_that_asked_it",
            "runtime/test_questions.py::test_of_several_processes_that_reply_at_once_exactly_one_does",
            "runtime/test_questions.py::test_who_replies_and_is_killed_has_replied",
        ),
    ),
    "X-4": (
        clause(
            "apply_patch takes the *** Begin Patch envelope and unified diffs",
            "edit/test_patch_parsing.py::test_a_patch_says_what_is_done_to_which_file",
            "edit/test_patch_parsing.py::test_what_models_get_wrong_is_passed_over_where_that_is_safe",
            "edit/test_patch_parsing.py::test_a_patch_that_cannot_be_read_is_refused_with_its_line",
            "tools/test_patch_property.py::test_a_git_diff_makes_the_second_tree_and_undo_the_first",
        ),
        clause(
            "a hunk is put where it says or where edit finds it, and nowhere else",
            "edit/test_patch_fitting.py::test_an_anchor_says_which_of_them",
            "edit/test_patch_fitting.py::test_lines_that_are_there_twice_are_refused_with_their_lines",
            "edit/test_patch_fitting.py::test_a_diff_is_taken_at_its_word_where_the_lines_are_there_several_times",
            "tools/test_patch_property.py::test_lines_that_a_patch_does_not_name_are_not_touched",
            "tools/test_apply_patch.py::test_bytes_outside_the_hunks_stay",
        ),
        clause(
            "multi_edit: in order, each sees the one before, all or nothing; unique, first or all",
            "tools/test_multi_edit.py::test_each_edit_sees_what_the_one_before_made_and_one_undo_takes_all_back",
            "tools/test_multi_edit.py::test_an_edit_takes_the_only_place_the_first_or_all",
            "tools/test_multi_edit.py::test_a_refusal_names_the_edit_and_nothing_is_changed",
            "tools/test_multi_edit.py::test_edits_do_what_str_replace_does_one_after_the_other",
        ),
        clause(
            "delete is a deletion, and undo brings the file or the link back",
            "tools/test_delete.py::test_a_file_goes_and_undo_brings_it_back_with_its_bytes_and_its_mode",
            "tools/test_delete.py::test_a_link_goes_and_what_it_leads_to_stays",
            "tools/test_delete.py::test_a_deletion_is_judged_as_one",
        ),
        clause(
            "optional tools, offered where the settings enable them",
            "cli/test_cli_optional_tools.py::test_they_are_not_offered_unless_they_are_enabled",
            "runtime/test_exports.py::test_every_optional_tool_has_exactly_its_parameters",
        ),
        clause(
            "all files are verified before the first is written; all or nothing, also when killed",
            "tools/test_apply_patch.py::test_one_hunk_that_does_not_fit_keeps_every_file_as_it_is",
            "tools/test_apply_patch.py::test_a_full_disk_in_the_middle_leaves_every_file_as_it_was",
            "must_hold/test_hold_patch_kill.py::test_a_kill_leaves_a_patch_made_or_not_made_and_never_between",
            "changes/test_patch_cut_off.py::test_a_kill_at_any_point_leaves_all_or_nothing_and_that_is_told",
            "changes/test_patch_cut_off.py::test_patches_of_two_processes_never_mix",
        ),
        clause(
            "one undo step",
            "tools/test_apply_patch.py::test_several_files_change_in_one_step_and_one_undo_takes_it_back",
            "tools/test_apply_patch.py::test_two_files_can_change_names",
        ),
    ),
    "X-5": (clause("code tools", *planned),),
    "X-6": (clause("LSP tools", *planned),),
    "X-7": (clause("new diagnostics after a change", *planned),),
    "X-8": (clause("codebase_search", *planned),),
    "X-9": (
        clause(
            "a tool of a higher layer does not do what a lower one does",
            "agent/test_tool_guide.py::test_every_tool_says_what_it_is_for_and_no_two_say_the_same",
            "agent/test_tool_guide.py::test_no_two_tools_want_the_same_for_the_same",
            "agent/test_tool_guide.py::test_the_base_layer_is_the_eight",
        ),
        clause(
            "a selection guide is generated from the specs",
            "agent/test_tool_guide.py::test_the_guide_has_every_tool_once_and_its_layers_in_order",
            "cli/test_cli_listings.py::test_the_guide_says_which_of_the_offered_tools_to_take_for_what",
        ),
    ),
    "X-10": (
        clause(
            "memory: per workspace in the state folder, bounded",
            "tools/companions/test_memory.py::test_a_note_is_there_for_every_later_session_of_the_workspace_and_no_other",
            "tools/companions/test_memory.py::test_there_is_room_for_so_many_notes",
            "tools/companions/test_memory.py::test_processes_that_note_at_once_lose_nothing_and_do_not_pass_the_bound",
            "tools/companions/test_memory.py::test_who_may_note_something",
        ),
        clause(
            "memory: listed and deletable by the person",
            "cli/test_cli_memory.py::test_notes_are_listed_shown_and_removed",
        ),
        clause(
            "memory: never of higher rank than the user's words",
            "agent/test_prompt.py::test_notes_rank_below_the_persons_words_and_are_bounded",
        ),
        clause(
            "todo replaces the list",
            "tools/companions/test_todo.py::test_the_list_is_what_the_last_call_said_also_for_who_comes_later",
            "tools/companions/test_todo.py::test_every_list_comes_back_as_it_was_given",
        ),
        clause(
            "skill_list, skill_control",
            "tools/companions/test_skill_tools.py::test_the_list_tells_what_each_is_for_where_it_is_from_and_what_is_wrong",
            "tools/companions/test_skill_tools.py::test_activating_tells_the_text_and_the_tools",
            "tools/companions/test_skill_tools.py::test_what_cannot_be_done_is_told_with_what_can",
        ),
    ),
    # Definition, registry, dialects
    "D-1": (
        clause(
            "one spec drives schema, validation, policy and docs",
            "runtime/test_custom_tools.py::test_a_function_is_a_tool_its_signature_the_schema",
            "runtime/test_custom_tools.py::test_arguments_of_a_custom_tool_are_checked_like_all_others",
            "policy/test_verdict.py::test_a_tool_without_paths_is_judged_by_its_permissions",
            "protocol/test_protocol_contract.py::test_a_fresh_run_gives_what_is_stored",
        ),
        clause(
            "additionalProperties is false everywhere",
            "protocol/test_protocol_schemas.py::test_a_schema_allows_no_field_it_does_not_name",
            "protocol/test_protocol_schemas.py::test_the_schemas_of_a_tool_allow_no_field_they_do_not_name",
        ),
        clause(
            "one spec drives the prompt",
            "agent/test_prompt.py::test_every_offered_tool_is_named_with_its_parameters_and_no_other_is",
            "agent/test_tool_guide.py::test_what_is_written_down_of_prompts_and_guide_is_what_the_specs_give",
        ),
    ),
    "D-2": (
        clause(
            "the context holds ids, workspace, cancellation, limits, metadata and nothing else",
            "runtime/test_custom_tools.py::test_a_parameter_called_context_gets_the_calls_own_and_nothing_else",
        ),
    ),
    "D-3": (
        clause(
            "tools by decorator, entry point or file in a tool folder",
            "runtime/test_custom_tools.py::test_a_function_is_a_tool_its_signature_the_schema",
            "runtime/test_custom_tools.py::test_a_file_dropped_in_a_tool_folder_is_a_tool",
            "runtime/test_custom_tools.py::test_an_installed_package_announces_tools_by_entry_point",
        ),
        clause(
            "a custom tool never shadows a base tool",
            "runtime/test_runtime_offer.py::test_a_custom_tool_cannot_take_the_name_of_a_base_tool",
            "runtime/test_runtime_offer.py::test_a_custom_tool_cannot_pass_for_a_builtin",
        ),
        clause(
            "a plain definition with a handler registers too",
            "runtime/test_custom_tools.py::test_a_definition_with_a_handler_is_a_tool",
        ),
        clause(
            "the project's own tool folder, for a host that trusts the project",
            "runtime/test_custom_tools.py::test_a_file_dropped_in_the_projects_tool_folder_is_a_tool_once_the_project_is_trusted",
        ),
        clause("the same from the command line, by handrail trust", *planned),
    ),
    "D-4": (
        clause(
            "a request for another major version is answered with a clear error",
            "runtime/test_runtime_offer.py::test_another_major_version_is_answered_with_what_is_there",
        ),
    ),
    "D-5": (clause("dialects", *planned),),
    "D-6": (
        clause(
            "OpenAI and Anthropic tool lists",
            "runtime/test_exports.py::test_openai_and_anthropic_lists_come_from_the_same_spec",
            "cli/test_cli_listings.py::test_tools_come_in_the_two_vendors_forms",
        ),
        clause(
            "JSON Schema files",
            "cli/test_cli_listings.py::test_schema_out_writes_a_schema_and_a_valid_sample_of_every_type",
        ),
        clause("MCP tools, pydantic-ai toolset, LangChain tools", *planned),
    ),
    "D-7": (
        clause(
            "offered = registered ∩ configuration ∩ agent permissions",
            "runtime/test_runtime_offer.py::test_a_disabled_tool_is_not_offered",
            "runtime/test_runtime_offer.py::test_a_base_tool_can_be_disabled",
            "runtime/test_runtime_offer.py::test_a_tool_that_needs_a_denied_permission_is_not_offered",
        ),
        clause(
            "a tool not offered is in no list or schema; calling it is UNKNOWN_TOOL",
            "runtime/test_runtime_offer.py::test_a_disabled_tool_is_not_offered",
        ),
        clause(
            "∩ active skills' allowed-tools",
            "skills/test_skill_sessions.py::test_only_what_the_skill_names_is_offered_and_the_rest_is_unknown",
            "skills/test_skill_sessions.py::test_of_two_active_skills_each_can_do_its_work",
            "skills/test_skill_narrowing.py::test_a_further_skill_takes_nothing_from_the_others",
        ),
    ),
    "D-8": (
        clause(
            "faces open no workspace file and start no process themselves",
            "test_house.py::test_this_tree_has_no_faults",
        ),
    ),
    # Results, errors, limits
    "R-1": (
        clause(
            "every call has exactly one result of one shape",
            "must_hold/test_hold_any_input.py::test_any_call_has_one_result",
            "must_hold/test_hold_any_input.py::test_any_call_of_a_batch_has_one_result",
        ),
        clause(
            "envelope snake_case, inside data and meta camelCase",
            "protocol/test_protocol_samples.py::test_a_sample_is_valid_by_its_schema",
            "cli/test_cli_call.py::test_json_prints_the_result_as_it_is",
        ),
    ),
    "R-2": (
        clause(
            "error codes are one closed, documented list",
            "protocol/test_protocol_errors.py::test_the_error_codes_are_those_of_the_contract",
            "protocol/test_protocol_contract.py::test_the_page_has_every_error_code_with_its_meaning",
        ),
        clause(
            "a failure of the infrastructure is a result; only a store that cannot be written raises",
            "must_hold/test_hold_broken_store.py::test_a_write_whose_start_cannot_be_journaled_touches_no_file",
            "must_hold/test_hold_broken_store.py::test_a_read_only_state_folder_is_refused_before_anything_runs",
        ),
        clause(
            "a command that exits non-zero is ok",
            "tools/test_exec.py::test_a_command_that_fails_is_a_result_with_its_code_and_what_it_means",
        ),
    ),
    "R-3": (
        clause(
            "content over the budget becomes a preview plus a reference that read can page, complete",
            "runtime/test_runtime_outputs.py::test_content_over_the_budget_is_a_preview_of_both_ends_with_a_reference",
            "tools/test_read_output.py::test_the_text_is_complete_and_its_hash_is_of_all_of_it",
        ),
        clause(
            "pages of @output joined give the text back; this session only",
            "runtime/test_runtime_outputs.py::test_pages_joined_give_the_text_back",
            "tools/test_read_output.py::test_pages_of_any_size_joined_are_exactly_the_text",
            "tools/test_read_output.py::test_the_output_of_another_session_is_not_found",
        ),
        clause(
            "read never offloads: whole lines up to the budget and nextOffset",
            "runtime/test_runtime_outputs.py::test_read_itself_is_never_offloaded",
            "tools/test_read.py::test_the_budget_holds_whole_lines_and_says_where_to_go_on",
        ),
        clause(
            "nothing is offloaded in a session that cannot read it back",
            "runtime/test_runtime_outputs.py::test_nothing_is_offloaded_in_a_session_that_cannot_read_it_back",
        ),
        clause(
            "a batch has a budget of its own", "runtime/test_runtime_outputs.py::test_a_batch_has_a_budget_of_its_own"
        ),
        clause("grep accepts the reference", "tools/test_grep.py::test_a_kept_output_is_searched_like_a_file"),
    ),
    "R-4": (
        clause(
            "one call shape; requested_permissions may only narrow",
            "runtime/test_runtime_offer.py::test_requested_permissions_only_narrow",
            "runtime/test_runtime_repeats.py::test_the_providers_id_and_the_other_fields_are_kept_beside_it",
        ),
        clause(
            "the same tool_call_id again returns the first result and runs nothing",
            "runtime/test_runtime_repeats.py::test_the_first_result_comes_back_and_nothing_runs",
            "runtime/test_runtime_repeats.py::test_at_the_same_time_from_many_threads_it_runs_once",
        ),
    ),
    "R-5": (clause("the result in each source's shape", *planned),),
    # Policy, permissions
    "P-1": (
        clause(
            "policy is a pure function that names the deciding rule",
            "policy/test_verdict.py::test_deciding_touches_no_file_no_clock_no_network_and_no_chance",
            "policy/test_verdict.py::test_the_same_input_gives_the_same_answer_also_from_the_record",
        ),
        clause(
            "calls of the journal are judged again under the rules of today, by what was known then",
            "runtime/test_replaying.py::test_under_the_same_rules_nothing_differs",
            "runtime/test_replaying.py::test_a_rule_of_today_counts_for_calls_of_before",
            "runtime/test_replaying.py::test_only_the_record_counts_not_what_the_workspace_is_now",
            "cli/test_cli_policy.py::test_replay_with_a_rule_shows_what_the_rule_would_have_done",
        ),
    ),
    "P-2": (
        clause(
            "permissions and the coarse permissionType",
            "protocol/test_protocol_permission.py::test_the_coarse_kind_follows_from_the_permissions",
        ),
        clause(
            "external_directory, bash, edit for S4",
            "protocol/test_protocol_permission.py::test_the_other_name_of_a_request",
            "protocol/test_protocol_permission.py::test_a_request_says_on_the_wire_which_folder_a_yes_opens",
        ),
    ),
    "P-3": (
        clause(
            "built-in denies first: no rule, no grant, no mode lifts them",
            "policy/judging/test_commands.py::test_no_rule_and_no_grant_lifts_what_is_built_in",
            "policy/test_verdict.py::test_no_mode_lifts_a_built_in_refusal",
        ),
        clause(
            "then the strictest of all rules of all layers: deny, ask, allow",
            "policy/judging/test_commands.py::test_a_rule_outranks_the_mode_and_the_strictest_rule_wins",
            "policy/rules/test_book_commands.py::test_the_strictest_decides_whatever_the_order_and_the_layer",
            "policy/rules/test_book_paths.py::test_the_strictest_decides_over_all_names_and_layers",
            "settings/test_settings_rules.py::test_rules_of_all_layers_count_the_managed_ones_first",
        ),
        clause(
            "then grants, for a default question that may be granted, never for one that a rule asks; then the mode",
            "policy/judging/test_commands.py::test_a_grant_replaces_only_a_default_confirm_of_its_class",
            "policy/rules/test_grant.py::test_nothing_else_is_granted",
        ),
        clause(
            "an allow rule is about its words, then plain options and paths inside the roots; any_args lifts that",
            "policy/judging/test_commands.py::test_an_allow_rule_is_about_plain_words_inside_the_roots_only",
            "policy/rules/test_book_commands.py::test_an_allow_rule_is_not_about",
            "policy/rules/test_book_commands.py::test_any_args_lifts_what_may_follow_and_nothing_else",
            "policy/rules/test_book_commands.py::test_of_what_runs_other_code_just_the_command_itself_is_allowed",
        ),
        clause(
            "nothing in the workspace loosens policy: an untrusted project only tightens, trust ends with one byte",
            "settings/test_settings_untrusted_property.py::test_an_untrusted_project_loosens_nothing",
            "settings/test_settings_untrusted_property.py::test_nothing_is_looser_than_the_managed_file",
            "settings/test_settings_trust.py::test_one_byte_more_ends_the_trust_and_that_is_told",
            "settings/test_settings_layers.py::test_a_user_file_in_the_workspace_cannot_loosen",
            "cli/test_cli_trust.py::test_until_then_a_call_is_asked_for_and_then_it_is_not",
        ),
        clause(
            "a command that runs cannot write policy, audit or state either",
            "tools/test_exec.py::test_what_decides_about_commands_cannot_be_changed_by_one",
            "sandbox/test_bubblewrap.py::test_what_is_sealed_can_be_read_and_not_changed_moved_or_replaced",
            "sandbox/test_bubblewrap.py::test_the_state_folder_is_hidden_in_a_workspace_but_for_a_root_in_it",
        ),
        clause(
            "rules that never match, or are shadowed, are reported",
            "policy/rules/test_review.py::test_a_covered_rule_is_reported_and_the_covering_one_is_not",
            "policy/rules/test_review.py::test_a_rule_about_what_is_never_done_is_reported",
            "settings/test_settings_review.py::test_a_rule_that_another_one_shadows_is_told",
        ),
        clause(
            "the examples of rules are checked at load",
            "policy/rules/test_review.py::test_a_rule_that_cannot_be_used_is_an_error",
            "settings/test_settings_review.py::test_rules_that_cannot_be_used_stop_everything_with_file_and_line",
        ),
    ),
    "P-4": (
        clause(
            "what the lexer accepts bash reads the same; what runs is written anew from the parse",
            "policy/shell/test_shell_bash.py::"
            "test_bash_does_with_the_text_and_with_what_is_written_for_it_what_the_lexer_read",
            "policy/shell/test_shell_bash.py::test_so_it_is_with_every_short_text",
            "policy/shell/test_shell_rewrite.py::test_what_is_written_reads_as_what_it_was_written_from",
            "policy/shell/test_shell_globs.py::test_only_names_that_match_get_through_and_none_is_an_option_or_hidden",
            "policy/shell/test_shell_lexer.py::test_all_else_is_refused_with_the_reason_and_the_place",
        ),
        clause(
            "every simple command is judged by program and by option; the strictest decides",
            "policy/judging/test_commands.py::test_a_command_gets_the_verdict_of_what_it_does",
            "policy/judging/test_commands.py::test_the_strictest_part_of_a_chain_decides_and_every_part_is_shown",
            "policy/tables/test_table_examples.py::test_a_table_has_examples_and_they_come_out",
            "policy/tables/test_table_examples.py::test_an_unknown_option_makes_a_proven_command_unproven",
            "policy/tables/test_table_traps.py::test_a_trap_is_never_proven",
            "policy/tables/test_git_reads.py::test_what_may_write_or_run_a_program_asks",
        ),
        clause(
            "what is proven changes nothing, tried with the real programs; everyday commands are proven",
            "policy/corpus/test_proven_is_harmless.py::test_nothing_that_is_proven_has_an_effect",
            "policy/corpus/test_attacks.py::test_no_attack_is_proven_but_in_a_form_that_does_nothing",
            "policy/corpus/test_everyday.py::test_at_least_95_of_100_everyday_commands_are_proven",
            "policy/tables/test_real_programs.py::test_no_proven_example_changes_anything",
            "policy/tables/test_git_against_git.py::test_what_a_table_accepts_changes_nothing",
        ),
        clause(
            "cd is followed, redirections are writes",
            "policy/judging/test_commands.py::test_cd_is_followed_into_every_folder_that_it_may_lead_to",
            "runtime/test_command_facts.py::test_paths_are_those_of_the_folder_that_the_command_is_in",
            "policy/shell/test_shell_lexer.py::test_redirections_are_read_in_their_order",
        ),
        clause(
            "wrappers, interpreters and what is outside the subset are unproven; what is seen inside is only stricter",
            "policy/tables/test_groups.py::test_what_runs_any_code_or_reaches_the_network_is_never_granted_for_good",
            "policy/commands/test_wrapped.py::test_no_wrapping_hides_a_command",
            "policy/judging/test_commands.py::test_what_a_wrapper_starts_is_refused_as_if_it_stood_alone",
            "policy/judging/test_commands.py::test_no_length_turns_a_no_into_a_question",
            "code/test_shell_commands.py::test_no_disguise_hides_a_command",
            "runtime/test_command_facts.py::test_the_display_parser_looks_only_where_ours_cannot",
        ),
        clause(
            "programs that write have tables: outside is refused, inside is a write or a deletion by mode",
            "policy/tables/test_writing_tables.py::test_what_is_read_written_and_deleted",
            "policy/tables/test_writing_tables.py::test_what_the_words_do_not_tell_asks",
            "policy/judging/test_commands.py::test_a_command_gets_the_verdict_of_what_it_does",
        ),
        clause(
            "a proven command runs as it was written anew",
            "tools/test_exec.py::test_what_bash_gets_is_what_was_read",
            "tools/test_exec.py::test_a_proven_command_cannot_write_whatever_it_runs",
        ),
        clause(
            "an unproven one in auto runs in a layer, unasked, and what it changed can be taken back",
            "policy/judging/test_commands.py::test_in_auto_what_a_layer_can_take_back_runs_unasked",
            "tools/test_exec_layered.py::test_a_result_says_what_was_changed_and_how_to_take_it_back",
            "sandbox/test_layer.py::test_what_a_command_changes_lies_in_the_layer_and_the_workspace_is_as_it_was",
            "sandbox/test_layer.py::test_a_layer_is_not_left_out_where_the_sandbox_has_none",
        ),
    ),
    "P-5": (
        clause(
            "containment is race-free: links, .., hard links, /proc, prefix siblings do not escape",
            "workspace/test_race.py::test_a_swap_by_another_process_leaks_nothing",
            "workspace/test_race.py::test_the_race_is_real_since_a_reader_that_checks_first_loses_it",
            "workspace/test_search_race.py::test_a_swap_by_another_process_leaks_nothing",
            "workspace/test_search_race.py::test_the_race_is_real_since_bare_ripgrep_loses_it",
            "workspace/test_search_verify.py::test_a_line_that_changed_is_dropped_and_the_others_stay",
            "workspace/test_search_verify.py::test_a_file_replaced_by_a_link_is_dropped_though_the_same_is_in_it",
            "workspace/test_search_verify.py::test_a_folder_replaced_by_a_link_is_dropped_with_all_that_is_in_it",
            "workspace/test_containment.py::test_a_spelling_that_leaves_the_workspace_is_refused",
            "workspace/test_containment.py::test_an_absolute_path_counts_by_whole_names_never_by_its_beginning",
            "workspace/test_containment.py::test_a_magic_link_of_an_open_descriptor_leads_nowhere",
            "workspace/test_containment.py::test_a_hard_link_to_an_outside_file_is_a_file_of_the_workspace",
        ),
        clause(
            "several roots, read-only or writable, and the session's own folder; another session's is outside",
            "workspace/test_roots.py::test_nothing_in_a_read_only_root_is_written",
            "workspace/test_roots.py::test_a_writable_extra_root_is_written",
            "workspace/test_roots.py::test_the_folder_of_another_session_is_outside",
        ),
        clause(
            "credentials are denied for reading and writing",
            "workspace/test_protected.py::test_a_credential_is_neither_read_nor_written_nor_listed",
            "workspace/test_protected.py::test_what_counts_is_the_name_of_what_was_opened",
        ),
        clause(
            ".git/hooks, .git/config, tool and CI configuration are confirmed",
            "workspace/test_protected.py::test_what_steers_tools_asks_before_a_change_and_is_read_freely",
        ),
        clause(
            "a new .git with only sample hooks and core keys is an ordinary change",
            "policy/test_changes.py::test_a_new_repository_that_steers_nothing_is_an_ordinary_change",
            "policy/test_new_repository.py::test_what_git_makes_is_ordinary_and_what_it_makes_with_more_is_not",
            "workspace/test_repository.py::test_the_write_that_makes_a_folder_a_repository",
        ),
        clause(
            "one boundary for file tools and shell: the paths of a command are judged as those of a file tool",
            "runtime/test_command_facts.py::test_every_path_that_a_command_names_is_looked_at",
            "runtime/test_command_facts.py::test_a_path_that_leads_outside_is_a_fact",
            "runtime/test_command_facts.py::test_a_path_in_another_root_is_what_it_is",
        ),
        clause(
            "and the sandbox holds a command that runs to it",
            "sandbox/test_bubblewrap.py::test_the_rest_of_the_disk_is_not_there",
            "sandbox/test_links_in_roots.py::test_a_link_in_a_root_shows_no_other_folder",
            "tools/test_exec.py::test_credentials_are_empty_to_what_nobody_approved_and_there_for_what_somebody_did",
        ),
    ),
    "P-6": (
        clause(
            "once and deny with a reason; a once-approval is bound to arguments and files",
            "runtime/test_runtime_latch.py::test_a_refusal_says_so_with_the_persons_reason",
            "runtime/test_runtime_latch.py::test_a_file_that_changed_meanwhile_voids_the_answer",
        ),
        clause(
            "a once-approval is consumed once and void when a file, the folder, a variable, a host or the tier changed",
            "tools/test_exec_answers.py::test_a_yes_is_used_up_by_the_call_it_was_for",
            "tools/test_exec_answers.py::test_a_yes_does_not_count_when_a_file_that_the_command_names_has_changed",
            "tools/test_exec_answers.py::test_a_yes_does_not_count_in_another_folder_that_took_the_name",
            "tools/test_exec_answers.py::test_a_yes_does_not_count_with_other_variables",
            "tools/test_exec_answers.py::test_a_yes_does_not_count_for_other_hosts",
            "tools/test_exec_answers.py::test_a_yes_does_not_count_in_a_weaker_sandbox",
        ),
        clause(
            "session and workspace grants by class, part by part; a literal * is no wildcard",
            "runtime/test_grants.py::test_a_session_grant_ends_the_asking_in_its_session_alone",
            "runtime/test_grants.py::test_a_workspace_grant_ends_it_in_every_session_of_the_workspace",
            "runtime/test_grants.py::test_a_grant_for_one_command_covers_no_other",
            "runtime/test_grants.py::test_nothing_in_a_class_is_a_wildcard",
        ),
        clause(
            "never for interpreters or wrappers as a whole",
            "policy/judging/test_granting.py::test_no_interpreter_wrapper_or_client_is_of_a_class",
            "policy/judging/test_granting.py::test_no_grant_of_any_name_lets_one_run",
        ),
        clause(
            "persisted, listed, revocable, in every process and while a request waits",
            "runtime/test_grants.py::test_grants_are_listed_with_their_scope",
            "runtime/test_grants.py::test_another_process_lists_and_revokes_it",
            "runtime/test_grants.py::test_a_grant_revoked_while_the_batch_waits_does_not_count_when_it_runs",
            "must_hold/test_hold_permissions.py::"
            "test_a_grant_is_there_exactly_when_its_yes_is_whenever_the_one_who_answers_is_killed",
        ),
        clause(
            "asked at a terminal, deliberately: no key typed ahead, no Enter, no paste; all shown, nothing hidden",
            "terminal/test_terminal_prompt.py::test_one_key_is_a_yes",
            "terminal/test_terminal_prompt.py::test_keys_that_were_typed_before_are_no_answer",
            "terminal/test_terminal_prompt.py::test_it_takes_no_key_in_its_first_moments",
            "terminal/test_terminal_prompt.py::test_enter_is_no_answer",
            "terminal/test_terminal_prompt.py::test_a_pasted_text_is_no_answer",
            "terminal/test_terminal_prompt.py::test_what_is_longer_than_the_screen_must_be_seen_to_its_end",
            "terminal/test_terminal_text.py::test_no_text_of_a_request_reaches_a_terminal_raw",
            "terminal/test_terminal_library.py::test_without_on_permission_the_person_at_the_terminal_is_asked",
        ),
        clause(
            "answered, listed and revoked from the shell, whatever the session; one of two answers counts",
            "cli/test_cli_approvals.py::test_what_waits_is_listed_with_a_short_id_over_all_sessions",
            "cli/test_cli_approvals.py::test_a_grant_is_listed_and_revoked_at_once",
            "cli/test_cli_approvals.py::test_deny_says_why_to_the_model_and_is_no_failure",
            "cli/test_cli_asking.py::test_of_two_who_answer_one_wins_and_the_other_is_told",
        ),
        clause(
            "output only: the model gets the output, the changes are dropped",
            "runtime/test_trying.py::test_output_only_gives_the_output_and_drops_the_changes",
            "runtime/test_trying_batches.py::test_what_it_printed_on_top_of_what_is_not_kept_can_be_had",
            "runtime/test_late_parking.py::test_only_the_output_can_be_taken",
            "tools/test_exec_layered.py::test_only_the_output_is_told_as_such",
            "cli/test_cli_trials.py::test_output_only_keeps_no_change",
            "terminal/test_terminal_trying_again.py::test_output_only_counts_also_where_it_is_out_of_date",
        ),
    ),
    "P-7": (
        clause(
            "if any call of a batch needs permission none runs; all requests are emitted",
            "runtime/test_runtime_latch.py::test_if_one_call_needs_permission_none_runs",
        ),
        clause(
            "resumes exactly once, survives a restart; denied calls get a uniform result",
            "runtime/test_runtime_latch.py::test_exactly_one_of_two_answers_wins",
            "runtime/test_runtime_latch.py::test_of_two_processes_that_answer_one_runs_it",
            "runtime/test_runtime_latch.py::test_a_parked_batch_survives_that_the_session_is_closed",
        ),
        clause(
            "kill -9 in between, every mix and order, from two processes: one result, asked once, resumed once",
            "must_hold/test_hold_permissions.py::"
            "test_every_mix_is_asked_once_and_run_once_whoever_answers_and_whoever_is_killed",
            "runtime/test_resuming.py::test_what_was_answered_and_not_begun_is_run_once_by_whoever_asks_for_it",
            "runtime/test_resuming.py::test_of_several_who_go_on_with_it_at_once_one_does",
            "runtime/test_resuming.py::test_the_last_answer_runs_the_batch_in_whatever_order_they_come",
        ),
    ),
    "P-8": (
        clause(
            "plan, ask, auto, full for file tools",
            "runtime/test_runtime_latch.py::test_what_a_write_comes_to_in_each_mode",
            "policy/test_verdict.py::test_each_cell_of_the_table",
        ),
        clause(
            "unattended denies instead of waiting; call parks without a terminal",
            "runtime/test_runtime_latch.py::test_unattended_denies_instead_of_waiting",
            "cli/test_cli_call.py::test_where_nobody_can_answer_the_call_is_refused_instead_of_parked",
            "cli/test_cli_call.py::test_what_needs_permission_is_exit_3_with_the_request_and_its_diff",
            "cli/test_cli_asking.py::test_where_it_does_not_ask",
            "cli/test_cli_asking.py::test_what_goes_into_a_pipe_is_not_interrupted_by_a_question",
            "terminal/test_terminal_library.py::test_where_nobody_is_to_be_asked_the_call_waits",
            "terminal/test_terminal_library.py::test_unattended_refuses_at_a_terminal_too",
        ),
        clause(
            "modes for commands, network, deletions; without a sandbox commands ask in every mode",
            "policy/judging/test_commands.py::test_a_command_gets_the_verdict_of_what_it_does",
            "policy/judging/test_commands.py::test_in_auto_what_a_layer_can_take_back_runs_unasked",
            "policy/judging/test_commands.py::test_without_a_sandbox_nothing_runs_unasked",
            "policy/judging/test_commands.py::test_what_goes_on_after_the_call_asks",
            "policy/judging/test_commands.py::test_nobody_to_ask_means_no",
        ),
        clause(
            "full comes from a flag or the user file, never from project or environment",
            "settings/test_settings_layers.py::test_the_nearest_layer_decides_the_mode_but_never_past_the_managed_one",
            "settings/test_settings_load.py::test_the_environment_only_tightens_the_mode_and_the_flag_decides",
        ),
        clause(
            "auto: commands whose changes can be undone run unasked, by layer or by snapshot; without either they ask",
            "tools/test_exec_layered.py::test_deletions_are_unasked_in_auto_since_undo_covers_them",
            "tools/test_snapshotting.py::test_in_auto_mode_a_command_runs_unasked_and_can_be_taken_back",
            "tools/test_snapshotting.py::test_unasked_nothing_is_written_that_undo_would_not_cover",
            "tools/test_snapshotting.py::test_where_the_snapshot_fails_nothing_runs_before_somebody_says_yes",
            "tools/test_snapshotting.py::test_without_git_auto_mode_asks_and_what_a_yes_changed_is_listed_only",
            "tools/test_snapshotting.py::test_below_namespaces_auto_mode_asks_and_a_yes_is_covered",
        ),
        clause(
            "run --park exits 3 and is resumable",
            "cli/test_run.py::test_parked_work_goes_on_once_somebody_has_answered",
            "cli/test_run_asking.py::test_going_on_asks_again",
        ),
        clause(
            "run: CI, --unattended and no terminal deny instead of waiting",
            "cli/test_run.py::test_nobody_there_means_no_and_the_model_is_told",
            "cli/test_run.py::test_unattended_and_ci_deny",
        ),
    ),
    "P-9": (
        clause(
            "policy explain shows the parse, the rule and the reason, and runs nothing",
            "cli/test_cli_policy_explain.py::test_the_answer_has_the_rule_the_reason_and_every_part",
            "cli/test_cli_policy_explain.py::test_a_person_reads_a_tree",
            "cli/test_cli_policy_explain.py::test_a_tool_call_is_judged_with_the_facts_of_its_paths",
            "cli/test_cli_policy_explain.py::test_nothing_is_made_and_nothing_is_run",
        ),
        clause(
            "one answer for every line of stdin, in order",
            "cli/test_cli_policy_explain.py::test_every_line_gets_one_answer_in_order",
            "cli/test_cli_policy_explain.py::test_a_bad_line_is_answered_in_its_place_and_the_rest_goes_on",
        ),
        clause(
            "policy test runs the examples of rules and tables; policy modes shows the table that decides",
            "cli/test_cli_policy.py::test_without_rules_the_built_in_examples_come_out",
            "cli/test_cli_policy.py::test_the_examples_of_the_rules_in_force_are_counted_too",
            "cli/test_cli_policy.py::test_an_example_that_does_not_come_out_is_told_with_what_did",
            "cli/test_cli_policy.py::test_the_table_of_modes_is_the_one_that_decides",
        ),
    ),
    "P-10": (
        clause(
            "/, a home folder, a root as a whole and what is outside are neither deleted, overwritten nor given away",
            "policy/commands/test_denies.py::test_the_root_is_neither_deleted_nor_given_away",
            "policy/commands/test_denies.py::test_a_home_folder_is_neither_deleted_nor_given_away",
            "policy/commands/test_denies.py::test_what_is_below_a_home_folder_is_outside",
            "policy/commands/test_denies.py::test_the_workspace_as_a_whole_is_neither_deleted_nor_given_away",
        ),
        clause(
            "devices, mkfs, shutdown, fork bombs, PowerShell downloads",
            "policy/commands/test_denies.py::test_devices_are_not_written_to",
            "policy/commands/test_denies.py::test_only_null_stdout_and_stderr_are_written_to",
            "policy/commands/test_denies.py::test_no_file_system_is_made",
            "policy/commands/test_denies.py::test_the_machine_is_not_stopped",
            "policy/commands/test_denies.py::test_fork_bombs_are_not_started",
            "policy/commands/test_denies.py::test_powershell_downloads_nothing",
        ),
        clause(
            "exact by parsed words; no mode, rule or grant lifts them, no wrapper hides them",
            "policy/commands/test_denies.py::test_what_only_looks_like_it_is_left_to_the_rest",
            "policy/judging/test_commands.py::test_no_rule_and_no_grant_lifts_what_is_built_in",
            "policy/judging/test_commands.py::test_what_a_wrapper_starts_is_refused_as_if_it_stood_alone",
        ),
        clause(
            "each is a result with its rule id and a warning event",
            "tools/test_exec.py::test_what_is_never_done_is_refused_with_a_warning_event",
        ),
    ),
    "P-11": (
        clause(
            "deletions are a class of their own, judged on the declared call",
            "tools/test_delete.py::test_a_deletion_is_judged_as_one",
            "tools/test_apply_patch.py::test_a_deletion_and_a_move_are_judged_as_deletions",
        ),
        clause(
            "bulk changes are a class of their own too, their limits settings",
            "tools/test_apply_patch.py::test_very_many_deletions_at_once_ask_though_each_could_be_undone",
            "policy/judging/test_commands.py::test_many_deletions_in_one_command_are_bulk",
            "policy/test_changes.py::test_how_many_are_very_many_is_a_setting",
        ),
        clause(
            "the change set is judged again, by mode and by rules; in auto what undo does not cover asks",
            "policy/test_changes.py::test_by_mode",
            "policy/test_changes.py::test_very_many_at_once_ask_in_auto",
            "policy/test_changes.py::test_what_undo_does_not_cover_asks_in_auto",
            "policy/test_changes.py::test_a_call_that_was_allowed_still_asks_for_what_nobody_spoke_of",
            "policy/test_changes.py::test_stricter_rules_about_paths_hold_for_what_came_of_a_command",
        ),
        clause(
            "what a command changed is judged before it is kept, whether it lies in a layer or is told by a snapshot",
            "runtime/test_late_parking.py::test_what_an_allowed_command_changed_is_asked_about_and_a_yes_keeps_exactly_that",
            "runtime/test_late_parking.py::test_very_many_changes_ask_in_auto_although_undo_covers_them",
            "runtime/test_late_parking.py::test_where_nobody_is_there_it_is_dropped_and_what_it_printed_is_told",
            "runtime/test_late_parking.py::test_in_full_mode_nothing_asks",
            "runtime/test_trying.py::test_what_a_trial_changed_that_no_yes_can_allow_is_refused_before_anybody_is_asked",
            "tools/test_exec_layered.py::test_credentials_that_a_command_wrote_are_dropped_with_all_that_it_changed",
            "tools/test_exec_layered.py::test_deletions_are_unasked_in_auto_since_undo_covers_them",
            "tools/test_snapshotting.py::test_what_becomes_of_a_protected_name_is_taken_back_and_asked_about",
            "tools/test_snapshotting.py::test_a_new_credential_is_taken_back_and_refused",
            "must_hold/test_hold_late_parking.py::test_a_killed_runtime_kept_nothing_of_a_call_that_nobody_said_yes_to",
        ),
    ),
    "P-12": (
        clause(
            "a path outside the roots: OUTSIDE_WORKSPACE",
            "workspace/test_containment.py::test_a_spelling_that_leaves_the_workspace_is_refused",
        ),
        clause(
            'paths.outside="ask" asks with the folder and what it is opened for; only managed or user layer say so',
            "runtime/test_outside.py::test_the_question_names_the_folder_and_what_it_is_opened_for",
            "runtime/test_outside.py::test_where_nobody_is_there_it_is_refused",
            "settings/test_settings_layers.py::test_some_values_are_nobodys_but_the_persons",
            "policy/judging/test_commands.py::test_a_command_opens_no_folder_outside_though_file_tools_may_ask_for_one",
        ),
        clause(
            "the answer opens that folder for once, for the session or for the workspace",
            "runtime/test_outside.py::test_once_is_for_that_call_only",
            "runtime/test_outside.py::test_for_the_session_it_stays_open_also_when_the_session_is_opened_again",
            "runtime/test_outside.py::test_for_the_workspace_it_is_open_to_every_session_of_it",
            "runtime/test_outside.py::test_what_is_opened_for_reading_is_written_only_after_another_yes",
        ),
        clause(
            "credentials and handrail's own state stay denied",
            "runtime/test_outside.py::test_credentials_are_refused_without_a_question_and_in_an_opened_folder",
            "runtime/test_outside.py::test_what_handrail_keeps_for_itself_is_never_opened",
        ),
        clause(
            "opened folders are listed and closed by the library",
            "runtime/test_outside.py::test_a_closed_folder_is_closed_at_once_in_every_session_and_process",
            "runtime/test_outside.py::test_the_async_library_lists_and_closes_too",
        ),
        clause(
            "opened folders are listed and closed from the command line",
            "cli/test_cli_approvals.py::test_an_opened_folder_is_listed_and_closed_by_its_path",
        ),
    ),
    # Sandbox
    "B-1": (
        clause(
            "workspace writable, the rest read-only, credentials hidden, no network, no new privileges, own processes",
            "sandbox/test_bubblewrap.py::test_nothing_outside_the_workspace_can_be_written",
            "sandbox/test_bubblewrap.py::test_there_is_no_network_and_no_loopback_to_the_outside",
            "sandbox/test_bubblewrap.py::test_a_command_has_no_privileges_and_no_way_to_new_ones",
            "sandbox/test_bubblewrap.py::test_a_command_sees_only_its_own_processes_and_not_the_machines_name",
            "sandbox/test_bubblewrap.py::test_hidden_files_and_folders_are_empty_and_stay_so",
        ),
        clause(
            "a ladder of backends with the one used reported in every result",
            "tools/test_exec.py::test_every_result_says_how_the_command_was_confined",
            "sandbox/test_sandbox.py::test_without_bubblewrap_a_weaker_tier_is_in_use_and_says_why",
            "sandbox/test_probe.py::test_a_tier_that_is_made_otherwise_is_found_out",
        ),
        clause(
            "a clear error or an explicit opt-out when none works",
            "tools/test_exec.py::test_a_sandbox_that_is_not_good_enough_runs_nothing",
            "tools/test_exec.py::test_without_a_sandbox_everything_asks",
        ),
        clause(
            "the top of the ladder is a layer over the workspace, for root and ordinary users; where none can be, why",
            "sandbox/test_layer.py::test_what_a_command_changes_lies_in_the_layer_and_the_workspace_is_as_it_was",
            "sandbox/test_layer.py::test_nothing_that_mounts_the_layer_is_left_open_to_the_command",
            "sandbox/test_layer_ordinary.py::test_layers_of_an_ordinary_user_hold_as_those_of_root_do",
            "sandbox/test_layer_forged.py::test_no_whiteout_can_be_made_but_by_removing_something",
            "sandbox/test_layer_fitness.py::test_the_report_of_roots_shows_tier_3_or_why_not",
            "sandbox/test_layer_fitness.py::test_a_layer_that_cannot_be_mounted_after_all_runs_nothing_and_is_remembered",
            "cli/test_cli_doctor_sandbox.py::test_why_there_is_no_layer_is_a_row_and_so_is_that_settings_ask_for_one",
            "escape/test_escape.py::test_a_tier_contains_what_it_is_to_contain_and_has_the_documented_gaps",
        ),
    ),
    "B-2": (
        clause(
            "none by default, and never for what is proven",
            "tools/test_exec_network.py::test_it_is_shut_again_for_the_next_call",
            "tools/test_exec_network.py::test_proven_commands_never_have_any",
            "tools/test_exec_network.py::test_the_restricted_profile_has_no_network",
        ),
        clause(
            "an allow-list of domains, addresses and ranges with ports, through a proxy",
            "settings/test_settings_network.py::test_a_project_can_narrow_the_list_and_never_widen_it",
            "settings/test_settings_network.py::test_a_wrong_entry_is_told_with_its_line_its_key_and_what_is_right",
            "tools/test_exec_network.py::test_what_settings_list_is_open_to_every_command_that_is_not_proven",
            "must_hold/test_hold_network.py::test_pip_downloads_from_a_listed_index",
            "must_hold/test_hold_network.py::test_npm_looks_at_a_package_of_a_listed_registry",
            "must_hold/test_hold_network.py::test_git_lists_a_remote_that_is_listed",
            "must_hold/test_hold_network.py::test_curl_fetches_by_http_and_by_https",
            "sandbox/test_proxy_inside.py::test_all_else_of_the_network_is_as_empty_as_without",
        ),
        clause(
            "private ranges only when listed as addresses",
            "policy/network/test_network_listed.py::test_a_listed_name_leads_to_no_private_or_special_address",
            "sandbox/test_proxy.py::test_a_listed_name_that_leads_to_a_private_address_is_refused_as_such",
            "must_hold/test_hold_network.py::"
            "test_a_name_that_comes_to_lead_to_a_private_address_is_refused_from_then_on",
        ),
        clause(
            "every connection attempt is an event",
            "tools/test_exec_network.py::test_what_is_not_listed_is_refused_told_and_an_event",
            "tools/test_exec_network.py::"
            "test_of_very_many_blocked_attempts_the_first_are_events_and_what_is_let_through_always_is",
            "must_hold/test_hold_network.py::test_every_other_spelling_and_every_other_host_is_refused_as_one_attempt",
            "must_hold/test_hold_network.py::test_each_of_them_is_an_event_of_the_call",
            "must_hold/test_hold_network.py::test_no_bytes_whatever_reach_a_server_that_is_not_listed",
        ),
        clause(
            "a request says which hosts its command needs",
            "policy/network/test_network_needs.py::"
            "test_the_hosts_of_a_command_are_those_that_it_names_or_is_known_to_reach",
            "policy/network/test_network_told.py::test_who_is_asked_is_told_what_a_yes_opens",
            "runtime/test_network_facts.py::test_a_remote_is_looked_up_in_the_repository_around",
        ),
        clause(
            "yes opens, for that call, the hosts named in the request",
            "tools/test_exec_network.py::test_a_yes_opens_the_host_and_port_that_the_request_names_for_that_call",
            "tools/test_exec_network.py::test_the_same_yes_opens_no_other_port_and_no_other_host",
        ),
    ),
    "B-3": (
        clause(
            "an allow-list plus filters, never the parent's whole environment",
            "sandbox/test_environment.py::"
            "test_whatever_the_runtime_was_started_with_a_command_gets_what_is_listed_and_no_secret",
            "sandbox/test_environment.py::test_bash_starts_nothing_and_knows_nothing_of_the_parents_environment",
            "tools/test_exec.py::test_the_environment_is_clean",
        ),
    ),
    "B-4": (
        clause(
            "time, output, memory, processes and file size, each reported when it fires",
            "tools/test_exec.py::test_time_is_limited_and_what_there_was_is_told",
            "must_hold/test_exec_output.py::test_what_is_kept_has_a_note_where_some_is_missing",
            "process/test_process_watching.py::test_a_tree_that_takes_too_much_memory_is_ended_and_the_limit_named",
            "process/test_process_watching.py::test_a_tree_of_too_many_processes_is_ended_and_the_limit_named",
            "process/test_process_running.py::test_a_file_over_its_limit_is_named",
        ),
        clause(
            "the defaults",
            "sandbox/test_limits.py::test_without_any_setting_the_limits_are_the_defaults",
        ),
        clause(
            "process sessions end after 30 min without use",
            "settings/test_settings_model.py::test_the_defaults_are_the_documented_ones",
            "tools/test_exec_background.py::test_one_that_prints_nothing_and_that_nobody_asks_about_ends",
        ),
    ),
    "B-5": (
        clause(
            "a command that asks is run first in a layer; the request shows what it printed and would change",
            "runtime/test_trying.py::test_a_command_that_asks_is_tried_and_nothing_is_changed",
            "cli/test_cli_trials.py::test_a_call_that_asks_prints_what_it_would_change_and_how_to_answer",
            "cli/test_cli_trials.py::test_a_request_can_be_looked_at_with_its_difference_and_its_output",
            "terminal/test_terminal_trials.py::test_a_trial_says_how_it_went_what_it_would_change_and_what_it_printed",
            "changes/test_layered_listing.py::test_files_are_created_modified_and_deleted",
            "changes/test_layered_diffs.py::test_lines_are_counted_and_shown",
        ),
        clause(
            "approving commits that very result and runs nothing again",
            "runtime/test_trying.py::test_a_yes_keeps_what_was_seen_and_runs_nothing_again",
            "runtime/test_trying.py::test_a_trial_waits_for_whoever_comes_back_to_its_session",
            "runtime/test_retrying.py::test_a_yes_to_what_was_shown_before_is_no_yes_to_what_is_shown_now",
            "runtime/test_retrying.py::test_an_answer_and_a_retry_at_once_leave_one_truth",
            "tools/test_exec_layered.py::test_a_trial_that_is_kept_answers_what_a_run_would_have",
            "changes/test_layered_sealing.py::test_a_trial_comes_back_as_it_was_with_every_content",
            "must_hold/test_hold_layer_scripts.py::test_a_script_leaves_the_same_through_a_layer_and_undo_takes_it_back",
            "must_hold/test_hold_layer_kill.py::test_a_kill_leaves_what_a_command_changed_kept_or_not_kept_and_says_which",
        ),
        clause(
            "denying drops it",
            "runtime/test_trying.py::test_a_no_drops_the_trial",
            "runtime/test_trying.py::test_a_no_drops_the_trial_at_once_also_while_others_of_its_batch_wait",
            "changes/test_layered_sealing.py::test_one_that_was_dropped_is_gone_with_all_that_was_printed",
        ),
        clause(
            "what cannot be tried says why, and the question is asked without it",
            "runtime/test_trying.py::test_a_command_that_cannot_be_tried_says_why",
            "runtime/test_trying.py::test_where_no_layer_can_lie_the_question_says_why",
            "runtime/test_trying.py::test_a_trial_that_cannot_be_made_is_no_failure_of_the_call",
            "terminal/test_terminal_trials.py::test_what_was_not_tried_says_why_and_what_a_yes_does",
        ),
        clause(
            "commands of one batch are tried on top of one another",
            "runtime/test_trying_batches.py::test_a_command_is_tried_on_top_of_those_before_it",
            "runtime/test_trying_batches.py::test_a_command_is_tried_on_top_of_what_file_tools_before_it_would_write",
            "runtime/test_trying_batches.py::test_a_command_that_was_tried_on_what_is_not_kept_is_not_kept_either",
        ),
        clause(
            "a person has it tried again, as it is or as another command",
            "runtime/test_retrying.py::test_a_command_is_tried_again_over_what_is_there_now",
            "runtime/test_retrying.py::test_the_command_that_a_person_wrote_is_the_one_that_is_kept_and_the_model_is_told",
            "cli/test_cli_trials.py::test_a_trial_can_be_made_again_as_it_is_or_as_another_command",
            "terminal/test_terminal_trying_again.py::test_the_command_can_be_changed_and_is_tried_anew",
        ),
    ),
    "B-6": (
        clause(
            "every change made by a file tool can be listed, diffed and undone, without git",
            "changes/test_undo.py::test_any_writes_taken_back_give_the_tree_of_before",
            "changes/test_undo.py::test_whatever_a_file_held_comes_back_byte_for_byte",
            "changes/test_undo.py::test_diff_shows_what_a_change_did",
            "cli/test_cli_undo.py::test_the_changes_are_listed_the_latest_first",
            "cli/test_cli_undo.py::test_undo_shows_what_it_changed",
        ),
        clause(
            "undo of undo; of a turn, of a session",
            "changes/test_undo.py::test_undo_walks_back_and_redo_walks_forward",
            "changes/test_undo.py::test_an_undo_is_listed_and_can_be_undone_by_its_number",
            "changes/test_undo.py::test_a_whole_turn_is_taken_back_at_once",
            "changes/test_undo.py::test_a_whole_session_is_taken_back_at_once",
        ),
        clause(
            "undo never overwrites what others changed since, and names the choices",
            "changes/test_undo_conflicts.py::test_what_others_did_to_a_file_stays",
            "changes/test_undo_conflicts.py::test_a_later_change_is_named_and_can_be_taken_back_too",
            "changes/test_undo_conflicts.py::test_only_the_lines_that_are_as_they_were_left_are_taken_back",
            "changes/test_undo_conflicts.py::test_a_file_that_became_a_folder_is_not_touched_even_by_lines",
        ),
        clause(
            "kill -9 during commit or undo: before or after, never between, and reported so",
            "must_hold/test_hold_undo_kill.py::test_a_kill_leaves_every_change_made_or_not_made_and_says_which",
            "changes/test_history.py::test_another_session_settles_what_was_cut_off_between_two_files",
            "changes/test_history.py::test_a_file_that_was_half_written_in_place_is_mended",
        ),
        clause(
            "contents are kept packed, once, and for as long as the setting says",
            "changes/test_history.py::test_equal_contents_are_kept_once_and_packed",
            "changes/test_history.py::test_changes_are_kept_for_a_time_and_listed_for_ever",
        ),
        clause(
            "every change made by a command too, through a layer or a snapshot",
            "must_hold/test_hold_layer_scripts.py::test_a_script_leaves_the_same_through_a_layer_and_undo_takes_it_back",
            "must_hold/test_hold_layer_kill.py::test_a_kill_leaves_what_a_command_changed_kept_or_not_kept_and_says_which",
            "must_hold/test_hold_snapshot_kill.py::test_whatever_a_killed_command_had_changed_can_be_taken_back",
            "changes/test_layered_commit.py::test_it_is_kept_taken_back_and_brought_back",
            "changes/test_layered_settling.py::test_it_settles_to_before_or_after_and_says_which",
            "tools/test_exec_layered.py::test_a_result_says_what_was_changed_and_how_to_take_it_back",
            "tools/test_snapshotting.py::test_undo_brings_back_what_a_script_changed",
            "tools/test_snapshotting.py::test_an_ordinary_user_has_the_same_undo",
        ),
        clause(
            "log --line: which call made a line, and what led there",
            "changes/test_line_origin.py::test_a_line_is_followed_through_what_was_changed_around_it",
            "changes/test_line_origin.py::test_what_others_changed_is_told_apart_and_told",
            "cli/test_cli_log_line.py::test_a_line_that_a_tool_made_says_which_call_and_which_rule",
            "cli/test_cli_log_line.py::test_a_line_that_a_command_made_says_who_kept_it",
            "cli/test_cli_log_line.py::test_a_line_that_handrail_never_touched",
        ),
        clause(
            "what is not covered is always said",
            "tools/test_snapshotting.py::test_the_result_names_what_undo_does_not_cover",
            "tools/test_snapshotting.py::test_a_command_that_may_go_on_is_not_covered",
            "tools/test_exec_layered.py::test_what_was_sent_to_a_host_is_said_not_to_be_covered",
            "cli/test_cli_coverage.py::test_the_end_of_a_command_says_it",
            "cli/test_cli_coverage.py::test_a_command_that_goes_on_says_it_in_its_own_words",
            "cli/test_cli_coverage.py::test_the_log_the_difference_and_the_undo_say_it",
            "cli/test_cli_trials.py::test_a_command_without_undo_says_so_at_its_end",
        ),
    ),
    "B-7": (
        clause(
            "only the listed commands, nothing asks",
            "policy/judging/test_commands.py::test_the_restricted_profile_runs_its_list_and_asks_nobody",
            "settings/test_settings_rail.py::test_what_policy_gets_is_what_the_settings_say",
        ),
        clause(
            "content that should parse and does not is not written",
            "tools/test_restricted_content.py::test_data_that_does_not_parse_is_not_written",
            "tools/test_restricted_content.py::test_no_tool_leaves_broken_data",
        ),
        clause(
            "files in the named folders only; a refusal comes at once, with a warning event",
            "runtime/test_restricted.py::test_files_of_the_named_folders_are_read_and_written_unasked",
            "runtime/test_restricted.py::test_all_else_is_refused_at_once_with_a_warning_event",
            "runtime/test_restricted.py::test_a_custom_tool_with_effects_is_refused",
        ),
        clause(
            "3 s, 256 KB, no network, clean environment",
            "tools/test_exec.py::test_the_restricted_profile_runs_what_it_lists_with_little_time_and_room",
            "tools/test_exec.py::test_the_restricted_profile_has_three_seconds_and_no_way_out",
        ),
    ),
    # Events, audit, memory
    "E-1": (
        clause(
            "one typed stream; every event has eventId, seq, session, time",
            "protocol/test_protocol_schemas.py::test_an_event_always_has_its_kind_id_number_session_and_time",
            "protocol/test_protocol_events.py::test_the_kinds_are_those_of_the_contract",
        ),
        clause(
            "every kind is emitted by something real, on its channel, and every event of a session is valid",
            "golden/test_golden_sessions.py::test_every_kind_of_event_was_emitted_by_something_real",
            "golden/test_golden_sessions.py::test_events_have_their_channel_and_all_that_they_must_have",
            "test_journals.py::test_all_events_of_a_session_are_looked_at_in_a_deep_run_and_some_every_day",
        ),
        clause(
            "tool events name their call; permission events carry the request",
            "protocol/test_protocol_schemas.py::test_an_event_about_a_call_always_names_it",
            "protocol/test_protocol_schemas.py::test_a_permission_event_always_has_the_whole_request",
        ),
    ),
    "E-2": (
        clause(
            "schema of every event and message, with a validated sample",
            "protocol/test_protocol_schemas.py::test_every_message_and_every_event_has_a_schema",
            "protocol/test_protocol_samples.py::test_a_sample_is_valid_by_its_schema",
        ),
        clause(
            "samples of what is emitted come from a real run",
            "protocol/test_protocol_contract.py::test_a_fresh_run_gives_what_is_stored",
            "protocol/test_protocol_samples.py::test_no_sample_is_made_by_hand",
        ),
        clause(
            "docs/protocol.md is generated and checked",
            "protocol/test_protocol_contract.py::test_a_fresh_run_gives_what_is_stored",
            "protocol/test_protocol_contract.py::test_the_page_describes_every_wire_type_and_says_where_its_sample_is_from",
        ),
        clause(
            "old recorded sessions load, go on and can be answered",
            "golden/test_golden_sessions.py::test_every_event_reads_back_as_it_was_stored_and_is_valid",
            "golden/test_golden_sessions.py::test_results_and_talk_read_back_as_they_were",
            "golden/test_golden_sessions.py::test_it_goes_on_from_where_it_was",
            "golden/test_golden_sessions.py::test_what_waited_for_a_yes_can_still_be_answered",
            "golden/test_golden_sessions.py::test_what_waited_for_a_reply_gets_it",
            "protocol/test_protocol_events.py::test_a_recorded_event_loads_and_loses_nothing",
            "store/test_store_migrations.py::test_a_session_of_the_first_version_goes_on",
        ),
    ),
    "E-3": (
        clause(
            "append-only; every event readable again after a seq",
            "store/test_store_journal.py::test_events_come_back_in_order_after_any_number",
        ),
        clause(
            "log export and live JSONL",
            "cli/test_cli_log.py::test_export_writes_every_event_to_the_file_of_its_day",
            "runtime/test_runtime_events.py::test_the_live_copy_has_every_event_and_its_failure_breaks_no_call",
        ),
        clause(
            "broken lines are reported, not fatal",
            "store/test_store_journal.py::test_a_stored_event_that_cannot_be_read_is_reported_and_the_rest_goes_on",
            "cli/test_cli_log.py::test_export_leaves_out_what_is_broken_and_says_so",
        ),
    ),
    "E-4": (
        clause(
            "DeepChat's RESPONSE, ERROR and END",
            "dialects/test_event_adapters.py::test_deepchat_is_told_on_three_channels_always_with_an_event_id",
            "dialects/test_event_adapters.py::test_deepchats_calls_go_through_the_states_it_knows",
            "dialects/test_event_adapters.py::test_deepchats_permission_events_have_what_resumes_them",
        ),
        clause(
            "DevMinds' agent.run events",
            "dialects/test_event_adapters.py::test_the_pieces_that_devminds_is_told_are_its_output",
            "dialects/test_event_adapters.py::test_devminds_is_told_what_each_operation_came_to",
            "dialects/test_event_adapters.py::test_devminds_is_told_how_a_run_ended",
        ),
        clause(
            "golden files for each",
            "golden/test_golden_renderings.py::test_a_recorded_session_is_rendered_as_it_always_was",
        ),
        clause(
            "one-thing's STEP_UPDATED",
            "dialects/test_event_adapters.py::test_onething_is_told_of_every_step_of_a_message",
        ),
    ),
    "E-5": (
        clause(
            "exactly one audit record per call, refusals included, with redacted arguments",
            "store/test_store_audit.py::test_one_record_a_call_refusals_included",
            "store/test_store_folder.py::test_the_audit_keeps_what_a_tool_calls_plain_and_hides_other_texts",
        ),
        clause(
            "started stands before the side effect; after a crash the call gets its record, INTERRUPTED",
            "must_hold/test_hold_broken_store.py::test_a_write_whose_start_cannot_be_journaled_touches_no_file",
            "must_hold/test_hold_kill.py::test_a_killed_writer_loses_nothing_that_it_reported",
        ),
        clause(
            "hash-chained: any change, cut or insertion is found, a cut tail too",
            "store/test_store_audit.py::test_any_change_of_one_byte_is_found",
            "store/test_store_audit.py::test_lines_that_were_moved_are_found",
            "store/test_store_audit.py::test_a_cut_end_is_found_by_the_journals",
        ),
    ),
    "E-6": (
        clause(
            "a session is re-run against its start, every result compared",
            "agent/test_replay.py::test_a_session_that_changed_files_comes_out_the_same",
            "agent/test_replay.py::test_commands_that_change_files_are_played_on_what_they_were",
            "agent/test_replay.py::test_what_differs_is_shown",
            "agent/test_replay.py::test_a_refusal_of_the_person_is_given_again",
            "cli/test_cli_replay.py::test_a_session_that_comes_out_the_same_says_so_call_by_call",
        ),
        clause(
            "files changed from outside are named, not guessed",
            "agent/test_replay.py::test_a_file_that_others_changed_since_is_named_and_not_guessed",
            "agent/test_replay.py::test_a_file_that_was_only_read_and_others_changed_since_is_named",
            "agent/test_replay.py::test_changes_of_later_sessions_to_the_same_files_are_taken_back_too",
        ),
    ),
    "E-7": (
        clause(
            "logs, crash reports and the audit hold no contents, whole arguments or environment values",
            "runtime/test_what_the_model_sees.py::test_no_secret_is_in_anything_written_but_the_journal_and_its_blobs",
        ),
        clause(
            "nothing shown to the model names paths outside the roots",
            "runtime/test_what_the_model_sees.py::test_no_result_names_a_path_outside_the_roots_that_the_call_did_not_name",
        ),
    ),
    # Main loop
    "L-1": (
        clause(
            "model, batch, permission, execute, persist, model; streaming",
            "agent/test_loop.py::test_every_call_is_written_down_before_it_runs_and_every_result_after",
            "agent/test_loop.py::test_the_first_words_are_told_while_the_model_is_still_speaking",
            "agent/test_loop.py::test_a_fast_model_does_not_cost_an_event_a_word_and_nothing_is_lost",
            "models/test_models_loop.py::test_a_task_is_done_over_a_wire",
        ),
        clause(
            "read-only calls of a batch run side by side, writes in order",
            "runtime/test_side_by_side.py::test_the_results_are_those_of_one_by_one",
            "runtime/test_side_by_side.py::test_they_really_run_side_by_side_and_no_more_than_so_many",
            "runtime/test_side_by_side.py::test_a_read_behind_a_write_sees_what_was_written",
        ),
        clause(
            "permissions and questions: the turn waits, and goes on with the answer",
            "agent/test_waiting_for_a_person.py::test_a_person_is_asked_and_the_turn_goes_on",
            "agent/test_waiting_for_a_person.py::test_without_a_person_the_turn_ends_and_goes_on_when_all_is_answered",
            "agent/test_waiting_for_a_person.py::test_a_prompt_to_a_question_is_the_reply",
        ),
        clause(
            "cancel at any moment leaves no process and a consistent log",
            "agent/test_cancel.py::test_while_the_model_speaks",
            "agent/test_cancel.py::test_while_a_command_runs",
            "agent/test_cancel.py::test_while_it_waits_for_the_provider",
            "agent/test_cancel.py::test_while_a_person_is_asked",
            "cli/test_run.py::test_a_signal_ends_the_turn_and_what_it_started",
        ),
        clause(
            "several sessions side by side; a fork goes its own way",
            "agent/test_crowd.py::test_sessions_side_by_side_do_not_disturb_each_other",
            "agent/test_session_fork.py::test_a_fork_knows_what_was_said_and_goes_its_own_way",
        ),
    ),
    "L-2": (
        clause(
            "any OpenAI-compatible endpoint",
            "models/test_models_servers.py::test_a_talk_with_calls_and_thoughts",
            "models/test_models_loop.py::test_a_task_is_done_over_a_wire",
        ),
        clause(
            "Anthropic",
            "models/test_models_answers.py::test_wherever_the_bytes_are_cut_the_answer_is_the_same",
            "models/test_models_questions.py::test_a_provider_gets_back_what_it_gave",
        ),
        clause(
            "Gemini",
            "models/test_models_gemini.py::test_an_answer_comes_through",
        ),
        clause(
            "local servers",
            "models/test_models_finding.py::test_local_servers_need_no_key",
        ),
        clause(
            "keys only from the environment, shown nowhere",
            "models/test_models_finding.py::test_without_a_key_the_variable_is_named",
            "models/test_models_finding.py::test_a_key_is_shown_nowhere",
            "models/test_models_failures.py::test_a_key_that_is_refused_is_named_by_its_variable",
        ),
        clause(
            "a scripted provider for tests and the demo",
            "models/test_models_scripted.py::test_it_goes_by_the_talk_so_that_another_one_goes_on_after_a_restart",
            "test_demo.py::test_what_there_is_to_see_is_shown",
        ),
        clause(
            "retries with back-off, told; every failure one line with a code",
            "agent/test_patience.py::test_it_is_asked_again_after_as_long_as_it_said",
            "agent/test_patience.py::test_after_the_last_attempt_the_turn_fails_and_can_go_on_later",
            "models/test_models_failures.py::test_what_passes_may_be_tried_again_and_the_wire_is_asked_only_once",
            "models/test_models_connections.py::test_an_answer_that_breaks_off_anywhere_is_no_answer",
            "cli/test_run_providers.py::test_a_model_over_a_wire_works_with_the_tools",
        ),
        clause(
            "valid on both wires, cache-stable",
            "models/test_models_talks.py::test_any_talk_is_valid_and_more_of_it_leaves_the_beginning_as_it_was",
        ),
    ),
    "L-3": (
        clause(
            "call cap",
            "agent/test_guards.py::test_a_turn_makes_so_many_calls_and_no_more",
        ),
        clause(
            "no-progress guard",
            "agent/test_guards.py::test_a_model_that_gets_nowhere_is_told_and_then_stopped",
            "agent/test_guards.py::test_the_same_call_with_another_result_is_progress",
        ),
        clause(
            "truncated tool calls are never executed",
            "agent/test_guards.py::test_a_call_that_was_cut_off_is_none",
            "agent/test_loop.py::test_arguments_that_are_no_json_run_nothing",
            "models/test_models_connections.py::test_an_answer_that_breaks_off_anywhere_is_no_answer",
        ),
        clause(
            "token budget",
            "agent/test_guards.py::test_a_turn_uses_so_many_tokens_and_no_more",
        ),
        clause(
            "compaction: valid on both wires, keeps task, files and undo numbers; the journal keeps all",
            "agent/test_compaction.py::test_a_full_one_is_summed_up_and_the_newest_stays_as_it_was",
            "agent/test_compaction.py::test_the_journal_keeps_all_of_it",
            "agent/test_compaction.py::test_killed_while_it_is_summed_up_nothing_has_happened_yet",
            "agent/test_compaction_property.py::test_after_a_summary_the_talk_is_valid_and_nothing_that_counts_is_lost",
            "agent/test_compaction_wires.py::test_the_next_question_after_a_refusal_is_valid",
        ),
        clause(
            "per-batch output budget",
            "runtime/test_side_by_side.py::test_the_results_are_those_of_one_by_one",
        ),
    ),
    "L-4": (
        clause(
            "fixed order, no live state, cacheable",
            "agent/test_prompt.py::test_the_same_tools_give_the_same_bytes_in_whatever_order_they_are_registered",
            "agent/test_prompt.py::test_nothing_of_this_moment_or_this_machine_is_in_it",
            "agent/test_prompting.py::test_it_is_written_down_once_and_stays_in_a_later_process",
        ),
        clause(
            "only the active tools, with their parameters",
            "agent/test_prompt.py::test_every_offered_tool_is_named_with_its_parameters_and_no_other_is",
            "agent/test_prompt.py::test_a_tool_that_is_not_offered_is_not_even_mentioned",
        ),
        clause(
            "rules of choice by intent, call strategy",
            "agent/test_prompt.py::test_the_order_of_work_names_only_what_there_is",
            "agent/test_tool_guide.py::test_what_a_tool_is_not_for_another_one_is",
        ),
        clause(
            "where display is active, one at the start of each step",
            "agent/test_prompt.py::test_a_companion_that_is_offered_brings_its_rule",
        ),
        clause(
            "no retired name and no alias",
            "agent/test_prompt.py::test_no_retired_name_and_no_alias_is_in_any_prompt",
            "agent/test_prompt.py::test_no_parameter_of_a_base_tool_is_an_alias",
        ),
        clause(
            "AGENTS.md, else CLAUDE.md",
            "runtime/test_instructions.py::test_agents_md_goes_before_claude_md",
            "runtime/test_instructions.py::test_what_is_no_file_of_the_workspace_is_not_read",
            "agent/test_prompt.py::test_the_projects_instructions_are_fenced_and_ranked",
        ),
    ),
    "L-5": (
        clause(
            "kill -9 at any point, start again, the session goes on; nothing is done twice",
            "agent/test_resume.py::test_killed_behind_any_event_it_goes_on_and_nothing_is_done_twice",
            "must_hold/test_hold_loop_kill.py::test_killed_at_any_moment_the_session_goes_on_to_the_same_end",
            "must_hold/test_hold_loop_kill.py::test_killed_again_while_it_recovers_it_goes_on_all_the_same",
            "must_hold/test_hold_loop_kill.py::test_a_command_that_runs_when_its_loop_is_killed_ends_and_leaves_nothing",
            "agent/test_resume.py::test_results_that_are_done_but_not_in_the_talk_are_taken_from_the_journal",
            "cli/test_run.py::test_what_kill_9_cut_off_goes_on_without_a_prompt",
        ),
        clause(
            "one runner of a session at a time",
            "agent/test_resume.py::test_a_second_agent_on_a_session_fails_at_once",
            "agent/test_resume.py::test_another_process_at_work_is_named",
        ),
    ),
    "L-6": (
        clause(
            "SKILL.md folders: project, user, Claude Code's own places",
            "skills/test_skill_finding.py::test_every_usual_place_is_looked_into",
            "skills/test_skill_finding.py::test_of_two_with_one_name_the_persons_counts_and_the_other_is_told",
            "skills/test_skill_finding.py::test_no_link_leads_a_skill_elsewhere",
            "skills/test_skill_finding.py::test_credentials_pipes_and_folders_are_not_read",
        ),
        clause(
            "allowed-tools mapped; unknown names kept and warned about",
            "skills/test_skill_allowed.py::test_names_are_mapped_and_others_stay",
            "skills/test_skill_finding.py::test_the_samples_are_understood",
        ),
        clause(
            "Bash(git:*) become policy rules, which only narrow",
            "policy/judging/test_narrowing.py::test_a_command_outside_the_patterns_is_refused_whatever_the_mode",
            "policy/judging/test_narrowing.py::test_no_skill_makes_a_decision_about_a_command_any_looser",
        ),
        clause(
            "enforced while active",
            "skills/test_skill_sessions.py::test_what_is_active_outlives_a_restart_and_what_becomes_of_its_file",
            "skills/test_skill_sessions.py::test_what_comes_behind_an_activation_in_its_batch_is_held_to_it",
        ),
    ),
    # Faces
    "F-1": (
        clause(
            "library: a few names at the root, async and sync, typed",
            "test_public_names.py::test_the_root_exports_exactly_these_names",
            "runtime/test_async_rail.py::test_the_async_face_has_the_same_tool_and_wire_methods",
        ),
    ),
    "F-2": (
        clause(
            "call tools schema log audit doctor config, with the settled exit codes",
            "cli/test_cli_usage.py::test_every_command_runs_as_a_process_of_its_own",
            "cli/test_cli_call.py::test_wrong_usage_is_exit_2_and_nothing_runs",
            "cli/test_cli_call.py::test_a_state_folder_that_cannot_be_made_is_exit_4",
            "cli/test_cli_call.py::test_a_limit_that_ends_the_call_is_exit_5",
        ),
        clause(
            "fast to start: nothing heavy is imported",
            "cli/test_cli_usage.py::test_a_read_imports_nothing_that_is_slow_to_start",
        ),
        clause(
            "processes: list, log, write, forward, stop, remove",
            "cli/test_cli_processes.py::test_a_table_has_what_runs_and_what_did",
            "cli/test_cli_processes.py::test_a_log_is_printed_followed_and_given_raw",
            "cli/test_cli_processes.py::test_what_a_person_writes_reaches_the_program_and_no_record",
            "cli/test_cli_processes.py::test_one_is_stopped_and_removed_and_that_is_on_the_record",
            "cli/test_cli_processes.py::test_all_of_a_session_and_all_there_are_are_stopped",
            "cli/test_cli_forward.py::test_a_server_in_the_background_is_fetched_until_ctrl_c",
            "cli/test_cli_forward.py::test_it_ends_with_the_process_session",
            "cli/test_cli_forward.py::test_what_cannot_be_is_told_in_one_line",
        ),
        clause(
            "approvals: list, allow, deny, revoke, watch, with the exit codes of call",
            "cli/test_cli_approvals.py::test_allow_runs_it_and_prints_the_result_as_call_does",
            "cli/test_cli_approvals.py::test_the_exit_code_is_that_of_the_call",
            "cli/test_cli_approvals.py::test_an_id_that_is_wrong_short_or_used_is_one_clear_line",
            "cli/test_cli_approvals.py::test_watch_tells_every_change_on_a_line_until_it_is_interrupted",
            "cli/test_cli_asking.py::test_watch_asks_about_what_comes_and_shows_what_came_of_it",
        ),
        clause(
            "run, demo, replay, skills, memory",
            "cli/test_run.py::test_json_is_one_event_a_line_and_the_end_is_the_last",
            "test_demo.py::test_what_there_is_to_see_is_shown",
            "cli/test_cli_replay.py::test_a_session_that_comes_out_the_same_says_so_call_by_call",
            "cli/test_cli_skills.py::test_the_list_is_a_table",
            "cli/test_cli_memory.py::test_notes_are_listed_shown_and_removed",
        ),
        clause("chat, mcp, acp, serve, completion, audit receipt", *planned),
    ),
    "F-3": (clause("MCP both ways", *planned),),
    "F-4": (clause("ACP agent for editors", *planned),),
    "F-5": (clause("HTTP and WebSocket", *planned),),
    "F-6": (clause("web console", *planned),),
    "F-7": (clause("fleet", *planned),),
}
