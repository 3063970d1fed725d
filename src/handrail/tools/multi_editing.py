"""What multi_edit does: makes the edits one after the other in memory, and saves what comes of them."""

from collections.abc import Sequence

import msgspec

from handrail.edit.diff import Diff, build_unified_diff
from handrail.edit.fuzzy.candidates import Wording
from handrail.edit.lines import normalize_newlines
from handrail.edit.match import match_edit
from handrail.edit.omission import refuse_omission
from handrail.protocol.errors import ToolError
from handrail.protocol.permissions import Preview
from handrail.tools.contract import MAX_TEXT_BYTES, Context, Output, ReadMarks
from handrail.tools.looking import build_too_large_error, check_file_size, open_target, read_file_state
from handrail.tools.marks import WholeFileMark, encode_mark
from handrail.tools.multi_edit import Edited, MultiEditArguments, MultiEditData, OneEdit
from handrail.tools.parses import find_parse_warning
from handrail.tools.records import Records
from handrail.tools.replacing import TextReplacement, replace_text
from handrail.tools.saving import CommitResult, FileWrite, check_hard_links, commit_file
from handrail.tools.shown import describe_tolerance, format_count, render_diff_body
from handrail.tools.text_file import FileRewrite, decode_text_file
from handrail.workspace.errors import clip_path
from handrail.workspace.file_state import FileSnapshot
from handrail.workspace.resolve import ResolvedParent
from handrail.workspace.text import decode_text

_MAX_LISTED_EDITS = 20
"""Edits that the model is told of one by one."""
_WORDING = Wording(every='give it occurrence "all" or "first"')


def multi_edit(context: Context, arguments: MultiEditArguments, seen: ReadMarks, records: Records) -> Output:
    """Makes the edits."""
    with open_target(context, arguments.path) as (landing, real):
        plan = _plan(context, landing, real, arguments, seen, records)
        saving = FileWrite("multi_edit", arguments.path, real, plan.before, plan.made.data, plan.diff)
        saved = commit_file(records, context, landing, saving)
    seen.set_mark(real, encode_mark(WholeFileMark(saved.written.hash)))
    return _output(arguments.path, real, plan, saved)


def preview_multi_edit(context: Context, arguments: MultiEditArguments, seen: ReadMarks, records: Records) -> Preview:
    """What would change."""
    with open_target(context, arguments.path) as (landing, real):
        diff = _plan(context, landing, real, arguments, seen, records).diff
    return Preview(kind="diff", text=diff.text, truncated=diff.truncated)


class _MultiEditPlan(msgspec.Struct, frozen=True):
    """Everything about the edits but the doing."""

    before: FileSnapshot
    made: FileRewrite
    edits: tuple[Edited, ...]
    warnings: tuple[str, ...]
    diff: Diff
    unread: bool


def _plan(
    context: Context,
    landing: ResolvedParent,
    real: str,
    arguments: MultiEditArguments,
    seen: ReadMarks,
    records: Records,
) -> _MultiEditPlan:
    path = arguments.path
    check_file_size(landing, path)
    found = read_file_state(landing, real, path, seen, records, keep=MAX_TEXT_BYTES, doing="editing")
    found.refuse_stale()
    before = found.before
    if before is None:
        raise context.workspace.not_found(path, "file")
    if before.data is None:
        raise build_too_large_error(path)
    made, edits, warnings = _edited(context, before.data, arguments)
    check_hard_links(before, made.data, path)
    old, new = decode_text(before.data), decode_text(made.data)
    diff = build_unified_diff(old.text if old else "", new.text if new else "", real)
    if made.data == before.data:
        raise ToolError("NO_CHANGE", f"After all edits {clip_path(path)} is what it was. Nothing was changed.")
    return _MultiEditPlan(before, made, tuple(edits), tuple(warnings), diff, found.unread)


def _edited(
    context: Context, data: bytes, arguments: MultiEditArguments
) -> tuple[FileRewrite, list[Edited], list[str]]:
    """The bytes after all edits, each of what the one before made."""
    becomes = FileRewrite(data, "utf-8", "none")
    edits: list[Edited] = []
    warnings: list[str] = []
    for number, one in enumerate(arguments.edits):
        context.check_cancelled()
        try:
            made = _one(becomes.data, one, clip_path(arguments.path))
        except ToolError as error:
            raise _numbered(error, number) from None
        edits.append(Edited(strategy=made.strategy, replacements=len(made.spans), first_line=made.first_line))
        warnings += (f"edits[{number}]: {warning}" for warning in made.warnings)
        becomes = FileRewrite(made.data, made.encoding, made.line_ending)
    return becomes, edits, warnings


def _one(data: bytes, one: OneEdit, path: str) -> TextReplacement:
    """One edit."""
    if normalize_newlines(one.old_text) == normalize_newlines(one.new_text):
        raise ToolError("NO_CHANGE", "oldText and newText are the same, but for line endings at most.")
    refuse_omission(normalize_newlines(one.old_text), normalize_newlines(one.new_text), path)
    if one.occurrence == "first" and one.old_text:
        return _first(data, one, path)
    return replace_text(data, one.old_text, one.new_text, path, every=one.occurrence == "all", wording=_WORDING)


def _first(data: bytes, one: OneEdit, path: str) -> TextReplacement:
    """The first of the places."""
    file = decode_text_file(data, path)
    readable = file.readable
    placed = match_edit(
        file.text,
        normalize_newlines(one.old_text),
        normalize_newlines(one.new_text),
        path,
        first=True,
        readable=readable,
        wording=_WORDING,
    )
    becomes = file.rewritten(placed.replacements, one.new_text, path)
    return TextReplacement(
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


def _output(path: str, real: str, plan: _MultiEditPlan, saved: CommitResult) -> Output:
    written, diff = saved.written, plan.diff
    summary = f"Edited {clip_path(path)} by {format_count(len(plan.edits), 'edit')} +{diff.added} −{diff.removed}"
    broken = find_parse_warning(real, plan.before.data, plan.made.data)
    return Output(
        summary=summary,
        content=f"{summary}: {_where(plan.edits)}.\n{render_diff_body(diff)}",
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
    more = [f"{len(edits) - _MAX_LISTED_EDITS} more"] if len(edits) > _MAX_LISTED_EDITS else []
    return ", ".join((*(_told(number, each) for number, each in enumerate(edits[:_MAX_LISTED_EDITS])), *more))


def _told(number: int, edited: Edited) -> str:
    places = "" if edited.replacements == 1 else f"{edited.replacements} places, the first in "
    but = describe_tolerance(edited.strategy)
    return f"edits[{number}] in {places}line {edited.first_line}{f' ({but})' if but else ''}"
