"""The tool append, for dialects: adds text to the end of a file."""

from functools import partial
from typing import TYPE_CHECKING, Annotated

from msgspec import Meta

from handrail.edit.diff import build_unified_diff
from handrail.protocol.errors import ToolError
from handrail.protocol.text import format_count
from handrail.protocol.tool_spec import Arguments, ToolSpec
from handrail.protocol.wire import Wire
from handrail.tools.file_commit import CommitResult, FilePlan, build_file_plan, check_hard_links
from handrail.tools.file_tool import FileView, build_file_tool
from handrail.tools.text import MAX_TEXT_BYTES
from handrail.tools.tool import Output, ReadMarks, Tool
from handrail.workspace.roots import clip_path
from handrail.workspace.text import decode_text, encode_text

if TYPE_CHECKING:
    from handrail.changes.recorder import Recorder


class AppendArguments(Arguments, frozen=True):
    """The arguments of append."""

    path: Annotated[str, Meta(description="File to append to. It is created if it does not exist.")]
    content: Annotated[str, Meta(max_length=MAX_TEXT_BYTES, description="The text to add.")]


class AppendData(Wire, frozen=True, omit_defaults=False):
    """What was added."""

    path: str
    created: bool
    bytes: int
    """Bytes that were added."""
    lines: int
    size: int
    diff: str


APPEND = ToolSpec(
    name="append",
    title="Append",
    description="Add text to the end of a file, or create the file with it.",
    arguments=AppendArguments,
    data=AppendData,
    permissions=("fs.read", "fs.write"),
    side_effects=("files",),
    plain_arguments=("path",),
    stage="change",
    intent="add text to the end of a file",
)


def build_append_tool(seen: ReadMarks, records: "Recorder") -> Tool:
    return build_file_tool(APPEND, _plan, seen, records, doing="appending")


def _plan(view: FileView, arguments: AppendArguments) -> FilePlan:
    target = view.open_target(arguments.path, MAX_TEXT_BYTES)
    shown = clip_path(arguments.path)
    if target.exists and target.data is None:
        raise ToolError("LIMIT_EXCEEDED", f"{shown} is too large to append to.")
    view.refuse_stale(target)
    old = decode_text(target.data) if target.data is not None else None
    if target.data is not None and old is None:
        raise ToolError("BINARY_FILE", f"{shown} is not text. Nothing was appended.")
    ending = "crlf" if old is not None and old.line_ending == "crlf" else "lf"
    try:
        added = encode_text(arguments.content, old.encoding if old else "utf-8", ending)
    except UnicodeEncodeError as error:
        encoding = old.encoding if old else "utf-8"
        raise ToolError("INVALID_ARGUMENT", f"{shown} is {encoding}, which has no {error.object!r}.") from None
    data = (target.data or b"") + added.removeprefix(b"\xef\xbb\xbf" if target.data else b"")
    if not added and target.exists:
        raise ToolError("NO_CHANGE", "content is empty. Nothing was appended.")
    check_hard_links(target, data)
    new = decode_text(data)
    diff = build_unified_diff(old.text if old else None, new.text if new else "", target.real)
    lines = arguments.content.count("\n") + (bool(arguments.content) and not arguments.content.endswith("\n"))
    return build_file_plan(target, data, diff, partial(_describe, target.real, len(added), lines, diff.text))


def _describe(path: str, size: int, lines: int, diff: str, committed: CommitResult) -> Output:
    summary = f"{format_count(lines, 'line')} added"
    written = committed.written_state
    created = diff.startswith("--- /dev/null")
    data = AppendData(path=path, created=created, bytes=size, lines=lines, size=written.size, diff=diff)
    return Output(summary=summary, content=f"{summary} to {clip_path(path)}.\n", data=data)
