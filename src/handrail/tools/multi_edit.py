"""The tool multi_edit."""

from collections.abc import Sequence
from typing import Annotated, Literal

import msgspec
from msgspec import Meta

from handrail.edit.diff import Diff, build_unified_diff
from handrail.edit.fuzzy.candidates import Wording
from handrail.edit.lines import normalize_newlines
from handrail.edit.match import match_edit
from handrail.edit.omission import refuse_omission
from handrail.protocol.errors import ToolError
from handrail.protocol.permissions import Preview
from handrail.protocol.tool_spec import Arguments, ToolSpec
from handrail.protocol.wire import Wire
from handrail.tools.edit import TextReplacement, replace_text
from handrail.tools.file_commit import CommitResult, FileWrite, check_hard_links, commit_file, find_parse_warning
from handrail.tools.file_state import (
    FileRewrite,
    Records,
    WholeFileMark,
    build_too_large_error,
    check_file_size,
    decode_text_file,
    encode_mark,
    open_target,
    read_file_state,
)
from handrail.tools.text import describe_tolerance, format_count, render_diff_body
from handrail.tools.tool import MAX_TEXT_BYTES, Context, Output, ReadMarks, Tool, Touches
from handrail.workspace.errors import clip_path
from handrail.workspace.file_state import FileSnapshot
from handrail.workspace.resolve import ResolvedParent
from handrail.workspace.text import decode_text

# § [tools.multi_edit] multi_edit: several edits of one file, each of what the one before made, all of them or none.

MAX_EDITS = 1_000
"""Edits in one call: each looks through the file."""
Occurrence = Literal["unique", "first", "all"]


class OneEdit(Wire, frozen=True):
    """One of the edits."""

    old_text: Annotated[
        str, Meta(max_length=MAX_TEXT_BYTES, description="Text to replace, as the edits before it left it.")
    ]
    new_text: Annotated[str, Meta(max_length=MAX_TEXT_BYTES, description="Text to put in its place.")]
    occurrence: Annotated[
        Occurrence, Meta(description="Which place: the only one (unique), the first, or all of them.")
    ] = "unique"


class MultiEditArguments(Arguments, frozen=True):
    """The arguments of multi_edit."""

    path: Annotated[str, Meta(description="File to edit, relative to the workspace.")]
    edits: Annotated[
        tuple[OneEdit, ...],
        Meta(min_length=1, max_length=MAX_EDITS, description="The edits, in the order they are made."),
    ]


class Edited(Wire, frozen=True, omit_defaults=False):
    """What one of the edits did."""

    strategy: str
    replacements: int
    """Places."""
    first_line: int
    """The first line that is another one now, of the text as the edits before it left it."""


class MultiEditData(Wire, frozen=True, omit_defaults=False):
    """What was changed."""

    path: str
    size: int
    hash: str
    before: str
    encoding: str
    line_ending: str
    edits: tuple[Edited, ...]
    diff: str


MULTI_EDIT = ToolSpec(
    name="multi_edit",
    title="Edit several",
    description=(
        "Make several edits of one file in one step: in order, each in the text that the one before it left, and all "
        "of them or none. Refused when the file changed since this session read it."
    ),
    arguments=MultiEditArguments,
    data=MultiEditData,
    permissions=("fs.read", "fs.write"),  # what it refuses it explains, with lines of the file
    side_effects=("files",),
    enabled=False,
    plain_arguments=("path",),
    stage="change",
    intent="make several changes to one file in one step, all or nothing",
    not_for=(("a single change", "edit"),),
)


def build_multi_edit_tool(seen: ReadMarks, records: "Records") -> Tool:
    """The tool multi_edit for one session. What it is done with is loaded when it is first used."""

    def run(context: Context, arguments: MultiEditArguments) -> Output:

        return multi_edit(context, arguments, seen, records)

    def preview(context: Context, arguments: MultiEditArguments) -> Preview:

        return preview_multi_edit(context, arguments, seen, records)

    return Tool(MULTI_EDIT, run, lambda arguments: Touches(writes=(arguments.path,)), preview)


# § [tools.multi_editing] What multi_edit does: makes the edits one after the other in memory, and saves what comes
# § of them.

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
