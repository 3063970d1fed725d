"""The tool edit."""

from functools import partial
from typing import TYPE_CHECKING, Annotated

from msgspec import Meta

from handrail.edit.lines import format_line_range, normalize_newlines
from handrail.protocol.errors import ToolError
from handrail.protocol.tool_spec import Arguments, ToolSpec
from handrail.protocol.wire import Wire
from handrail.tools.file_tool import FileTarget, FileView, build_file_tool
from handrail.tools.text import MAX_TEXT_BYTES
from handrail.tools.tool import Output, ReadMarks, Tool
from handrail.workspace.roots import clip_path

if TYPE_CHECKING:
    from handrail.changes.recorder import Recorder
    from handrail.edit.diff import Diff
    from handrail.tools.file_commit import CommitResult, FilePlan
    from handrail.tools.text_edit import TextReplacement

_MAX_LISTED_PLACES = 100


class EditArguments(Arguments, frozen=True):
    """The arguments of edit."""

    path: Annotated[str, Meta(description="File to edit, relative to the workspace.")]
    old_text: Annotated[
        str,
        Meta(max_length=MAX_TEXT_BYTES, description="Text to replace, as read shows it; it must be in the file once."),
    ]
    new_text: Annotated[str, Meta(max_length=MAX_TEXT_BYTES, description="The new text.")]
    replace_all: Annotated[bool, Meta(description="Replace every occurrence.")] = False


class EditData(Wire, frozen=True, omit_defaults=False):
    """What was changed."""

    path: str
    size: int
    hash: str
    before: str
    encoding: str
    line_ending: str
    replacements: int
    first_line: int
    diff: str


EDIT = ToolSpec(
    name="edit",
    title="Edit",
    description=(
        "Replace a text in a file by another: exactly that text and nothing around it. It must be in the file once, "
        "unless replaceAll is set. Refused when the file changed since this session read it."
    ),
    arguments=EditArguments,
    data=EditData,
    permissions=("fs.read", "fs.write"),  # what it refuses it explains, with lines of the file
    side_effects=("files",),
    plain_arguments=("path",),
    layer="base",
    stage="change",
    intent="replace an exact text in a file",
    not_for=(("a new file", "write"),),
)


def build_edit_tool(seen: ReadMarks, records: "Recorder") -> Tool:
    return build_file_tool(EDIT, _plan, seen, records, doing="editing")


def _plan(view: FileView, arguments: EditArguments) -> "FilePlan":
    from handrail.edit.omission import refuse_omission  # noqa: PLC0415  engine room
    from handrail.tools.file_commit import build_file_plan, check_hard_links  # noqa: PLC0415  engine room
    from handrail.tools.text_edit import replace_text  # noqa: PLC0415  engine room

    path, old, new = arguments.path, arguments.old_text, arguments.new_text
    _refuse_same(old, new)
    refuse_omission(normalize_newlines(old), normalize_newlines(new), path)
    target, data = view.open_text(path, advice="" if old else " Use write to create it.")
    try:
        check_hard_links(target, data)
        edit = replace_text(data, old, new, clip_path(path), "all" if arguments.replace_all else "unique")
        check_hard_links(target, edit.data)
    finally:
        view.refuse_stale(target)  # it precedes all other errors, and waits for the hash, which ran in a thread
    diff = edit.build_diff(target.real)
    return build_file_plan(target, edit.data, diff, partial(_describe, target, edit, diff))


def _refuse_same(old: str, new: str) -> None:
    if old == new:
        raise ToolError("NO_CHANGE", "oldText and newText are the same. Nothing was changed.")
    if normalize_newlines(old) == normalize_newlines(new):
        message = "oldText and newText differ in line endings only, and the file keeps its line endings."
        raise ToolError("NO_CHANGE", f"{message} Nothing was changed.")


def _describe(target: FileTarget, edit: "TextReplacement", diff: "Diff", committed: "CommitResult") -> Output:
    from handrail.tools.text_edit import describe_tolerance, render_diff_body  # noqa: PLC0415  engine room

    count, lines = len(edit.spans), edit.list_lines(_MAX_LISTED_PLACES)
    places = f" in {count} places" if count > 1 else ""
    summary = f"Edited {clip_path(target.path)}{places} +{diff.added} −{diff.removed}"
    first = f"{'the first in ' if count > 1 else ''}{format_line_range(*lines[0])}"
    notes = ", ".join(filter(None, (first, describe_tolerance(edit.strategy))))
    state = committed.written_state
    return Output(
        summary=summary,
        content=f"{summary}, {notes}.\n{render_diff_body(diff)}",
        data=EditData(
            path=target.real,
            size=state.size,
            hash=state.hash,
            before=target.snapshot.hash if target.snapshot else "",
            encoding=edit.encoding,
            line_ending=edit.line_ending,
            replacements=count,
            first_line=edit.first_line,
            diff=diff.text,
        ),
        meta={"strategy": edit.strategy, "occurrences": count, "matched_lines": lines},
        warnings=edit.warnings,
    )
