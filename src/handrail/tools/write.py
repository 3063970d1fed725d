"""The tool write."""

from functools import partial
from typing import TYPE_CHECKING, Annotated

import msgspec
from msgspec import Meta

from handrail.edit.lines import normalize_newlines
from handrail.protocol.tool_spec import Arguments, ToolSpec
from handrail.protocol.wire import Wire
from handrail.tools.file_tool import FileTarget, FileView, build_file_tool
from handrail.tools.text import MAX_TEXT_BYTES
from handrail.tools.tool import Output, ReadMarks, Tool
from handrail.workspace.roots import clip_path
from handrail.workspace.text import (
    DecodedText,
    Encoding,
    LineEnding,
    decode_text,
    detect_line_ending,
    encode_text,
    trim_cut_character,
)

if TYPE_CHECKING:
    from handrail.changes.recorder import Recorder
    from handrail.edit.diff import Diff
    from handrail.tools.file_commit import CommitResult, FilePlan

_MAX_DIFF_BYTES = 8 * 1024 * 1024
"""A larger file is replaced without a diff."""


class WriteArguments(Arguments, frozen=True):
    """The arguments of write."""

    path: Annotated[str, Meta(description="File to write, relative to the workspace. Parents are created.")]
    content: Annotated[str, Meta(max_length=MAX_TEXT_BYTES, description="The whole new content.")]


class WriteData(Wire, frozen=True, omit_defaults=False):
    """What was written."""

    path: str
    created: bool
    size: int
    hash: str
    before: str | None
    encoding: str
    line_ending: str
    diff: str


WRITE = ToolSpec(
    name="write",
    title="Write",
    description=(
        "Write a whole file: creates it with its parents, or replaces all of it in one step. "
        "Refused when the file changed since this session read it."
    ),
    arguments=WriteArguments,
    data=WriteData,
    permissions=("fs.write",),
    side_effects=("files",),
    idempotent=True,
    plain_arguments=("path",),
    layer="base",
    stage="change",
    intent="create a file, or replace all of it",
    not_for=(("a change to part of a file", "edit"),),
)


def build_write_tool(seen: ReadMarks, records: "Recorder") -> Tool:
    return build_file_tool(WRITE, _plan, seen, records, doing="writing")


class _NewContent(msgspec.Struct, frozen=True):
    data: bytes
    encoding: str
    line_ending: LineEnding
    warnings: tuple[str, ...] = ()


def _plan(view: FileView, arguments: WriteArguments) -> "FilePlan":
    from handrail.edit.omission import refuse_omission_in_file  # noqa: PLC0415  engine room
    from handrail.tools.file_commit import build_file_plan, check_hard_links  # noqa: PLC0415  engine room

    target = view.open_target(arguments.path, _MAX_DIFF_BYTES)
    view.refuse_stale(target)
    old = decode_text(target.data) if target.data is not None else None
    if old is not None:
        refuse_omission_in_file(old.text, normalize_newlines(arguments.content), target.real)
    new = _encode(arguments.content, *_find_format(target, old), clip_path(arguments.path))
    check_hard_links(target, new.data)
    diff = _build_diff(target, old, new, arguments.content)
    preview, is_binary = diff.text or "(no change)\n", target.data is not None and old is None
    describe = partial(_describe, target, new, diff)
    return build_file_plan(target, new.data, diff, describe, preview=preview, binary=is_binary)


def _find_format(target: FileTarget, text: DecodedText | None) -> tuple[Encoding, LineEnding]:
    """The encoding and line endings of the file. Those of a large file are found by its first bytes."""
    if target.snapshot is not None and target.snapshot.data is None:
        text = decode_text(trim_cut_character(target.snapshot.start))
    return (text.encoding, text.line_ending) if text else ("utf-8", "lf")


def _encode(content: str, encoding: Encoding, ending: LineEnding, path: str) -> _NewContent:
    new_ending: LineEnding = "crlf" if ending == "crlf" and "\n" in content else detect_line_ending(content)
    try:
        return _NewContent(encode_text(content, encoding, ending), encoding, new_ending)
    except UnicodeEncodeError as error:
        warning = f"{path} was {encoding}, which has no {content[error.start]!r}; it is UTF-8 now."
        return _NewContent(encode_text(content, "utf-8", ending), "utf-8", new_ending, (warning,))


def _build_diff(target: FileTarget, old: DecodedText | None, new: _NewContent, content: str) -> "Diff":
    from handrail.edit.diff import Diff, build_unified_diff  # noqa: PLC0415  engine room

    if target.exists and old is None:
        return Diff("(the old content is binary or over 8 MiB: no diff)\n", content.count("\n"), 0)
    diff = build_unified_diff(old.text if old else None, content.replace("\r\n", "\n"), target.real)
    if diff.text or old is None or target.data == new.data:
        return diff
    if old.line_ending != new.line_ending:
        return Diff(f"(only line endings change: {old.line_ending} becomes {new.line_ending})\n", 0, 0)
    return Diff("(only bytes that are not text change)\n", 0, 0)


def _describe(target: FileTarget, new: _NewContent, diff: "Diff", committed: "CommitResult") -> Output:
    path, before = clip_path(target.path), target.snapshot
    if committed.changes is None:
        summary = f"{path} already has this content; nothing was written"
    else:
        summary = f"{'Wrote' if before else 'Created'} {path} +{diff.added} −{diff.removed}"
    state = committed.written_state
    removed = (f"{path} was removed since you read it; it is a new file now.",) if target.mark and not before else ()
    return Output(
        summary=summary,
        content=f"{summary}.\n",
        data=WriteData(
            path=target.real,
            created=before is None,
            size=state.size,
            hash=state.hash,
            before=before.hash if before else None,
            encoding=new.encoding,
            line_ending=new.line_ending,
            diff=diff.text,
        ),
        warnings=(*new.warnings, *removed),
    )
