"""What edit does: looks at the file, finds the place, saves the new bytes, tells what changed."""

import msgspec

from handrail.edit.diff import Diff
from handrail.edit.lines import worded
from handrail.edit.newlines import plain
from handrail.edit.omission.guard import refuse_omission
from handrail.protocol.error import ToolError
from handrail.protocol.permission import Preview
from handrail.tools.contract import Context, Output, Seen
from handrail.tools.edit import LONGEST, EditArguments, EditData
from handrail.tools.looking import Look, landed, look, refuse_large, too_large
from handrail.tools.marks import Whole, encode_mark
from handrail.tools.parses import parse_warning
from handrail.tools.replacing import Replaced, replaced
from handrail.tools.saving import Records, Saved, Saving, refuse_linked, save
from handrail.tools.shown import changed_lines, found_but_for
from handrail.workspace.current import Current
from handrail.workspace.errors import clipped
from handrail.workspace.walk import Landing

_LISTED = 100
"""Places whose lines the result names."""


def edit(context: Context, arguments: EditArguments, seen: Seen, records: Records) -> Output:
    """Replaces the text."""
    with landed(context, arguments.path) as (landing, real):
        plan = _plan(context, landing, real, arguments, seen, records)
        diff = plan.made.diff(real)
        saved = save(records, context, landing, Saving("edit", arguments.path, real, plan.before, plan.made.data, diff))
    seen.mark_seen(real, encode_mark(Whole(saved.written.hash)))
    return _output(arguments.path, real, plan, saved, diff)


def diff_before(context: Context, arguments: EditArguments, seen: Seen, records: Records) -> Preview:
    """What would change."""
    with landed(context, arguments.path) as (landing, real):
        plan = _plan(context, landing, real, arguments, seen, records)
    diff = plan.made.diff(real)
    return Preview(kind="diff", text=diff.text, truncated=diff.truncated)


class _Plan(msgspec.Struct, frozen=True):
    """Everything about an edit but the doing."""

    before: Current
    made: Replaced
    unread: bool


def _plan(
    context: Context, landing: Landing, real: str, arguments: EditArguments, seen: Seen, records: Records
) -> _Plan:
    if plain(arguments.old_text) == plain(arguments.new_text):
        raise ToolError("NO_CHANGE", _nothing_new(arguments))
    refuse_omission(plain(arguments.old_text), plain(arguments.new_text), arguments.path)
    refuse_large(landing, arguments.path)
    found = look(landing, real, arguments.path, seen, records, keep=LONGEST, doing="editing")
    before, data = _there(context, found, arguments)
    old, new, path = arguments.old_text, arguments.new_text, clipped(arguments.path)
    try:
        refuse_linked(before, data, arguments.path)  # before a place is looked for that could not be used
        made = replaced(data, old, new, path, every=arguments.replace_all)
        refuse_linked(before, made.data, arguments.path)
    finally:
        found.refuse_stale()  # what is said of a file that changed comes first; until here it was hashed
    return _Plan(before, made, found.unread)


def _nothing_new(arguments: EditArguments) -> str:
    if arguments.old_text == arguments.new_text:
        return "oldText and newText are the same. Nothing was changed."
    return "oldText and newText differ in line endings only, and those stay as the file has them. Nothing was changed."


def _there(context: Context, found: Look, arguments: EditArguments) -> tuple[Current, bytes]:
    """What there is to edit."""
    if found.before is None:
        missing = context.workspace.not_found(arguments.path, "file")
        advice = " Use write to create it." if not arguments.old_text else ""
        raise ToolError(missing.code, f"{missing.message}{advice}", details=missing.details)
    if found.before.data is None:
        raise too_large(arguments.path)
    return found.before, found.before.data


def _output(path: str, real: str, plan: _Plan, saved: Saved, diff: Diff) -> Output:
    made, count, written = plan.made, len(plan.made.spans), saved.written
    lines = made.lines(_LISTED)
    summary = _summary(clipped(path), diff, count)
    said = (_where(lines, count), found_but_for(made.strategy))
    broken = parse_warning(real, plan.before.data, made.data)
    return Output(
        summary=summary,
        content=f"{summary}, {', '.join(filter(None, said))}.\n{changed_lines(diff)}",
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
        return worded(*lines[0])
    return f"the first in {worded(*lines[0])}"
