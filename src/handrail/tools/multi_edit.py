"""The tool multi_edit."""

from collections.abc import Sequence
from functools import partial
from typing import Annotated, Literal

from msgspec import Meta

from handrail.changes.recorder import Recorder
from handrail.edit.diff import Diff, build_unified_diff
from handrail.edit.fuzzy.candidates import Wording
from handrail.edit.lines import normalize_newlines
from handrail.edit.omission import refuse_omission
from handrail.protocol.errors import ToolError
from handrail.protocol.text import format_count
from handrail.protocol.tool_spec import Arguments, ToolSpec
from handrail.protocol.wire import Wire
from handrail.tools.file_commit import CommitResult, FilePlan, build_file_plan, check_hard_links
from handrail.tools.file_tool import FileTarget, FileView, build_file_tool
from handrail.tools.text import MAX_TEXT_BYTES
from handrail.tools.text_edit import TextReplacement, describe_tolerance, render_diff_body, replace_text
from handrail.tools.tool import Output, ReadMarks, Tool
from handrail.workspace.roots import clip_path
from handrail.workspace.text import decode_text

Occurrence = Literal["unique", "first", "all"]
MAX_EDITS = 1_000
"""Edits in one call: each looks through the file."""


class OneEdit(Wire, frozen=True):
    """One of the edits."""

    old_text: Annotated[str, Meta(max_length=MAX_TEXT_BYTES, description="Text to replace, after the edits before it.")]
    new_text: Annotated[str, Meta(max_length=MAX_TEXT_BYTES, description="The new text.")]
    occurrence: Annotated[
        Occurrence, Meta(description="Which occurrence: the only one (unique), the first, or all.")
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
        "Make several edits of one file in one step. They run in order, each on the text that the one before left. "
        "All happen or none. Refused when the file changed since this session read it."
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

_MAX_LISTED_EDITS = 20


def build_multi_edit_tool(seen: ReadMarks, records: Recorder) -> Tool:
    return build_file_tool(MULTI_EDIT, _plan, seen, records, doing="editing")


def _plan(view: FileView, arguments: MultiEditArguments) -> FilePlan:
    path = arguments.path
    target, data = view.open_text(path)
    view.refuse_stale(target)
    edits = _replace_all(view, data, arguments)
    last = edits[-1]
    check_hard_links(target, last.data)
    old, new = decode_text(data), decode_text(last.data)
    diff = build_unified_diff(old.text if old else "", new.text if new else "", target.real)
    if last.data == data:
        raise ToolError("NO_CHANGE", f"After all edits {clip_path(path)} has its old content. Nothing was changed.")
    return build_file_plan(target, last.data, diff, partial(_describe, target, edits, diff))


def _replace_all(view: FileView, data: bytes, arguments: MultiEditArguments) -> list[TextReplacement]:
    """Makes the edits, each in the bytes that the one before left."""
    edits: list[TextReplacement] = []
    for number, one in enumerate(arguments.edits):
        view.context.check_cancelled()
        try:
            edits.append(_replace_one(data, one, clip_path(arguments.path)))
        except ToolError as error:
            raise _add_number(error, number) from None
        data = edits[-1].data
    return edits


def _replace_one(data: bytes, one: OneEdit, path: str) -> TextReplacement:
    old, new = normalize_newlines(one.old_text), normalize_newlines(one.new_text)
    if old == new:
        raise ToolError("NO_CHANGE", "oldText and newText are the same, except for line endings.")
    refuse_omission(old, new, path)
    wording = Wording(every='give it occurrence "all" or "first"')
    return replace_text(data, one.old_text, one.new_text, path, one.occurrence, wording)


def _add_number(error: ToolError, number: int) -> ToolError:
    """The error with the number of its edit, as the call counts them, and with the fact that none was made."""
    lines = " Its line numbers are those after the edits before it." if number and error.details else ""
    first, newline, rest = error.message.partition("\n")
    numbered = f"edits[{number}]: {first.replace(' Nothing was changed.', '')}{lines} Nothing was changed."
    return ToolError(error.code, f"{numbered}{newline}{rest}", details={**error.named_details, "edit": number})


def _describe(target: FileTarget, made: Sequence[TextReplacement], diff: Diff, committed: CommitResult) -> Output:
    edits = tuple(
        Edited(strategy=edit.strategy, replacements=len(edit.spans), first_line=edit.first_line) for edit in made
    )
    counts = f"{format_count(len(edits), 'edit')} +{diff.added} −{diff.removed}"
    summary = f"Edited {clip_path(target.path)} by {counts}"
    state = committed.written_state
    return Output(
        summary=summary,
        content=f"{summary}: {_list_edits(edits)}.\n{render_diff_body(diff)}",
        data=MultiEditData(
            path=target.real,
            size=state.size,
            hash=state.hash,
            before=target.snapshot.hash if target.snapshot else "",
            encoding=made[-1].encoding,
            line_ending=made[-1].line_ending,
            edits=edits,
            diff=diff.text,
        ),
        meta={"occurrences": sum(edit.replacements for edit in edits)},
        warnings=tuple(f"edits[{number}]: {warning}" for number, edit in enumerate(made) for warning in edit.warnings),
    )


def _list_edits(edits: Sequence[Edited]) -> str:
    rows = [_render_edit(number, edit) for number, edit in enumerate(edits[:_MAX_LISTED_EDITS])]
    if len(edits) > _MAX_LISTED_EDITS:
        rows.append(f"{len(edits) - _MAX_LISTED_EDITS} more")
    return ", ".join(rows)


def _render_edit(number: int, edit: Edited) -> str:
    places = "" if edit.replacements == 1 else f"{edit.replacements} places, the first in "
    tolerance = describe_tolerance(edit.strategy)
    return f"edits[{number}] in {places}line {edit.first_line}{f' ({tolerance})' if tolerance else ''}"
