"""What edit does: looks at the file, finds the place, saves the new bytes, tells what changed."""

import msgspec

from handrail.edit.diff import Diff
from handrail.edit.lines import format_line_range, normalize_newlines
from handrail.edit.omission import refuse_omission
from handrail.protocol.errors import ToolError
from handrail.protocol.permissions import Preview
from handrail.tools.contract import MAX_TEXT_BYTES, Context, Output, ReadMarks
from handrail.tools.edit import EditArguments, EditData
from handrail.tools.looking import FileState, build_too_large_error, check_file_size, open_target, read_file_state
from handrail.tools.marks import WholeFileMark, encode_mark
from handrail.tools.parses import find_parse_warning
from handrail.tools.records import Records
from handrail.tools.replacing import TextReplacement, replace_text
from handrail.tools.saving import CommitResult, FileWrite, check_hard_links, commit_file
from handrail.tools.shown import describe_tolerance, render_diff_body
from handrail.workspace.errors import clip_path
from handrail.workspace.file_state import FileSnapshot
from handrail.workspace.resolve import ResolvedParent

_MAX_LISTED_PLACES = 100
"""Places whose lines the result names."""


def edit(context: Context, arguments: EditArguments, seen: ReadMarks, records: Records) -> Output:
    """Replaces the text."""
    with open_target(context, arguments.path) as (landing, real):
        plan = _plan(context, landing, real, arguments, seen, records)
        diff = plan.made.diff(real)
        saved = commit_file(
            records, context, landing, FileWrite("edit", arguments.path, real, plan.before, plan.made.data, diff)
        )
    seen.set_mark(real, encode_mark(WholeFileMark(saved.written.hash)))
    return _output(arguments.path, real, plan, saved, diff)


def preview_edit(context: Context, arguments: EditArguments, seen: ReadMarks, records: Records) -> Preview:
    """What would change."""
    with open_target(context, arguments.path) as (landing, real):
        plan = _plan(context, landing, real, arguments, seen, records)
    diff = plan.made.diff(real)
    return Preview(kind="diff", text=diff.text, truncated=diff.truncated)


class _EditPlan(msgspec.Struct, frozen=True):
    """Everything about an edit but the doing."""

    before: FileSnapshot
    made: TextReplacement
    unread: bool


def _plan(
    context: Context, landing: ResolvedParent, real: str, arguments: EditArguments, seen: ReadMarks, records: Records
) -> _EditPlan:
    if normalize_newlines(arguments.old_text) == normalize_newlines(arguments.new_text):
        raise ToolError("NO_CHANGE", _nothing_new(arguments))
    refuse_omission(normalize_newlines(arguments.old_text), normalize_newlines(arguments.new_text), arguments.path)
    check_file_size(landing, arguments.path)
    found = read_file_state(landing, real, arguments.path, seen, records, keep=MAX_TEXT_BYTES, doing="editing")
    before, data = _there(context, found, arguments)
    old, new, path = arguments.old_text, arguments.new_text, clip_path(arguments.path)
    try:
        check_hard_links(before, data, arguments.path)  # before a place is looked for that could not be used
        made = replace_text(data, old, new, path, every=arguments.replace_all)
        check_hard_links(before, made.data, arguments.path)
    finally:
        found.refuse_stale()  # what is said of a file that changed comes first; until here it was hashed
    return _EditPlan(before, made, found.unread)


def _nothing_new(arguments: EditArguments) -> str:
    if arguments.old_text == arguments.new_text:
        return "oldText and newText are the same. Nothing was changed."
    return "oldText and newText differ in line endings only, and those stay as the file has them. Nothing was changed."


def _there(context: Context, found: FileState, arguments: EditArguments) -> tuple[FileSnapshot, bytes]:
    """What there is to edit."""
    if found.before is None:
        missing = context.workspace.not_found(arguments.path, "file")
        advice = " Use write to create it." if not arguments.old_text else ""
        raise ToolError(missing.code, f"{missing.message}{advice}", details=missing.details)
    if found.before.data is None:
        raise build_too_large_error(arguments.path)
    return found.before, found.before.data


def _output(path: str, real: str, plan: _EditPlan, saved: CommitResult, diff: Diff) -> Output:
    made, count, written = plan.made, len(plan.made.spans), saved.written
    lines = made.lines(_MAX_LISTED_PLACES)
    summary = _summary(clip_path(path), diff, count)
    said = (_where(lines, count), describe_tolerance(made.strategy))
    broken = find_parse_warning(real, plan.before.data, made.data)
    return Output(
        summary=summary,
        content=f"{summary}, {', '.join(filter(None, said))}.\n{render_diff_body(diff)}",
        data=EditData(
            path=real,
            size=written.size,
            hash=written.hash,
            before=plan.before.hash,
            encoding=made.encoding,
            line_ending=made.line_ending,
            replacements=count,
            first_line=made.first_line,
            diff=diff.text,
        ),
        meta={
            "unread": plan.unread,
            "in_place": written.in_place,
            "strategy": made.strategy,
            "occurrences": count,
            "matched_lines": lines,
        },
        files_changed=(real,) if saved.changes else (),
        warnings=(*made.warnings, *filter(None, (broken,)), *saved.warnings),
        changes=saved.changes,
    )


def _summary(path: str, diff: Diff, count: int) -> str:
    places = f" in {count} places" if count > 1 else ""
    return f"Edited {path}{places} +{diff.added} −{diff.removed}"


def _where(lines: tuple[tuple[int, int], ...], count: int) -> str:
    if count == 1:
        return format_line_range(*lines[0])
    return f"the first in {format_line_range(*lines[0])}"
