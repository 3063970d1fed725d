"""What multi_edit does: makes the edits one after the other in memory, and saves what comes of them."""

from collections.abc import Sequence

import msgspec

from handrail.edit.diff import Diff, unified_diff
from handrail.edit.newlines import plain
from handrail.edit.omission.guard import refuse_omission
from handrail.edit.placing import first_place
from handrail.edit.refusals.wording import Wording
from handrail.protocol.error import ToolError
from handrail.protocol.permission import Preview
from handrail.tools.contract import Context, Output, Seen
from handrail.tools.edit import LONGEST
from handrail.tools.looking import landed, look, refuse_large, too_large
from handrail.tools.marks import Whole, encode_mark
from handrail.tools.multi_edit import Edited, MultiEditArguments, MultiEditData, OneEdit
from handrail.tools.parses import parse_warning
from handrail.tools.replacing import Replaced, replaced
from handrail.tools.saving import Records, Saved, Saving, refuse_linked, save
from handrail.tools.shown import changed_lines, counted, found_but_for
from handrail.tools.text_file import Rewritten, text_file
from handrail.workspace.current import Current
from handrail.workspace.errors import clipped
from handrail.workspace.text import decoded
from handrail.workspace.walk import Landing

_LISTED = 20
"""Edits that the model is told of one by one."""
_WORDING = Wording(every='give it occurrence "all" or "first"')


def multi_edit(context: Context, arguments: MultiEditArguments, seen: Seen, records: Records) -> Output:
    """Makes the edits."""
    with landed(context, arguments.path) as (landing, real):
        plan = _plan(context, landing, real, arguments, seen, records)
        saving = Saving("multi_edit", arguments.path, real, plan.before, plan.made.data, plan.diff)
        saved = save(records, context, landing, saving)
    seen.mark_seen(real, encode_mark(Whole(saved.written.hash)))
    return _output(arguments.path, real, plan, saved)


def diff_before(context: Context, arguments: MultiEditArguments, seen: Seen, records: Records) -> Preview:
    """What would change."""
    with landed(context, arguments.path) as (landing, real):
        diff = _plan(context, landing, real, arguments, seen, records).diff
    return Preview(kind="diff", text=diff.text, truncated=diff.truncated)


class _Plan(msgspec.Struct, frozen=True):
    """Everything about the edits but the doing."""

    before: Current
    made: Rewritten
    edits: tuple[Edited, ...]
    warnings: tuple[str, ...]
    diff: Diff
    unread: bool


def _plan(
    context: Context, landing: Landing, real: str, arguments: MultiEditArguments, seen: Seen, records: Records
) -> _Plan:
    path = arguments.path
    refuse_large(landing, path)
    found = look(landing, real, path, seen, records, keep=LONGEST, doing="editing")
    found.refuse_stale()
    before = found.before
    if before is None:
        raise context.workspace.not_found(path, "file")
    if before.data is None:
        raise too_large(path)
    made, edits, warnings = _edited(context, before.data, arguments)
    refuse_linked(before, made.data, path)
    old, new = decoded(before.data), decoded(made.data)
    diff = unified_diff(old.text if old else "", new.text if new else "", real)
    if made.data == before.data:
        raise ToolError("NO_CHANGE", f"After all edits {clipped(path)} is what it was. Nothing was changed.")
    return _Plan(before, made, tuple(edits), tuple(warnings), diff, found.unread)


def _edited(context: Context, data: bytes, arguments: MultiEditArguments) -> tuple[Rewritten, list[Edited], list[str]]:
    """The bytes after all edits, each of what the one before made."""
    becomes = Rewritten(data, "utf-8", "none")
    edits: list[Edited] = []
    warnings: list[str] = []
    for number, one in enumerate(arguments.edits):
        context.check_cancelled()
        try:
            made = _one(becomes.data, one, clipped(arguments.path))
        except ToolError as error:
            raise _numbered(error, number) from None
        edits.append(Edited(strategy=made.strategy, replacements=len(made.spans), first_line=made.first_line))
        warnings += (f"edits[{number}]: {warning}" for warning in made.warnings)
        becomes = Rewritten(made.data, made.encoding, made.line_ending)
    return becomes, edits, warnings


def _one(data: bytes, one: OneEdit, path: str) -> Replaced:
    """One edit."""
    if plain(one.old_text) == plain(one.new_text):
        raise ToolError("NO_CHANGE", "oldText and newText are the same, but for line endings at most.")
    refuse_omission(plain(one.old_text), plain(one.new_text), path)
    if one.occurrence == "first" and one.old_text:
        return _first(data, one, path)
    return replaced(data, one.old_text, one.new_text, path, every=one.occurrence == "all", wording=_WORDING)


def _first(data: bytes, one: OneEdit, path: str) -> Replaced:
    """The first of the places."""
    file = text_file(data, path)
    readable = file.readable
    placed = first_place(file.text, plain(one.old_text), plain(one.new_text), path, readable=readable, wording=_WORDING)
    becomes = file.rewritten(placed.replacements, one.new_text, path)
    return Replaced(
        text=readable,
        spans=list(placed.spans),
        replacements=list(placed.replacements),
        strategy=placed.strategy,
        data=becomes.data,
        encoding=becomes.encoding,
        line_ending=becomes.line_ending,
    )


def _numbered(error: ToolError, number: int) -> ToolError:
    """A refusal that says which edit it is about, as the call counts them, and that none was made."""
    lines = " Its line numbers count what the edits before it changed." if number and error.details else ""
    first, newline, rest = error.message.partition("\n")
    whole = f"edits[{number}]: {first.replace(' Nothing was changed.', '')}{lines} Nothing was changed."
    return ToolError(error.code, f"{whole}{newline}{rest}", details={**error.named_details, "edit": number})


def _output(path: str, real: str, plan: _Plan, saved: Saved) -> Output:
    written, diff = saved.written, plan.diff
    summary = f"Edited {clipped(path)} by {counted(len(plan.edits), 'edit')} +{diff.added} −{diff.removed}"
    broken = parse_warning(real, plan.before.data, plan.made.data)
    return Output(
        summary=summary,
        content=f"{summary}: {_where(plan.edits)}.\n{changed_lines(diff)}",
        data=MultiEditData(
            path=real,
            size=written.size,
            hash=written.hash,
            before=plan.before.hash,
            encoding=plan.made.encoding,
            line_ending=plan.made.line_ending,
            edits=plan.edits,
            diff=diff.text,
        ),
        meta={
            "unread": plan.unread,
            "in_place": written.in_place,
            "occurrences": sum(edit.replacements for edit in plan.edits),
        },
        files_changed=(real,) if saved.changes else (),
        warnings=(*plan.warnings, *filter(None, (broken,)), *saved.warnings),
        changes=saved.changes,
    )


def _where(edits: Sequence[Edited]) -> str:
    more = [f"{len(edits) - _LISTED} more"] if len(edits) > _LISTED else []
    return ", ".join((*(_told(number, each) for number, each in enumerate(edits[:_LISTED])), *more))


def _told(number: int, edited: Edited) -> str:
    places = "" if edited.replacements == 1 else f"{edited.replacements} places, the first in "
    but = found_but_for(edited.strategy)
    return f"edits[{number}] in {places}line {edited.first_line}{f' ({but})' if but else ''}"
