"""The tool write."""

from typing import Annotated

import msgspec
from msgspec import Meta

from handrail.edit.diff import Diff, build_unified_diff
from handrail.edit.lines import normalize_newlines
from handrail.edit.omission import refuse_omission_in_file
from handrail.protocol.permissions import Preview
from handrail.protocol.tool_spec import Arguments, ToolSpec
from handrail.protocol.wire import Wire
from handrail.tools.file_commit import CommitResult, FileWrite, check_hard_links, commit_file, find_parse_warning
from handrail.tools.file_state import Records, WholeFileMark, encode_mark, open_target, read_file_state
from handrail.tools.tool import Context, Output, ReadMarks, Tool, Touches
from handrail.workspace.errors import clip_path
from handrail.workspace.file_state import FileSnapshot
from handrail.workspace.resolve import ResolvedParent
from handrail.workspace.text import (
    DecodedText,
    Encoding,
    LineEnding,
    decode_text,
    detect_line_ending,
    encode_text,
    trim_cut_character,
)

# § [tools.write] write: a whole file, new or in the place of the old one.

MAX_CONTENT_CHARS = 32 * 1024 * 1024
"""Characters that one write may carry: several copies of them are in memory and in the journal."""


class WriteArguments(Arguments, frozen=True):
    """The arguments of write."""

    path: Annotated[str, Meta(description="File to write, relative to the workspace. Parents are created.")]
    content: Annotated[str, Meta(max_length=MAX_CONTENT_CHARS, description="The whole new content.")]


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


def build_write_tool(seen: ReadMarks, records: "Records") -> Tool:
    """The tool write for one session. What it is done with is loaded when it is first used: many sessions only look."""

    def run(context: Context, arguments: WriteArguments) -> Output:

        return write(context, arguments, seen, records)

    def preview(context: Context, arguments: WriteArguments) -> Preview:

        return preview_write(context, arguments, seen, records)

    return Tool(WRITE, run, lambda arguments: Touches(writes=(arguments.path,)), preview)


# § [tools.writing] What write does: looks at the file, saves the new bytes, tells what changed.

MAX_DIFF_BYTES = 8 * 1024 * 1024
"""Old contents above this size are replaced without a diff."""


def write(context: Context, arguments: WriteArguments, seen: ReadMarks, records: Records) -> Output:
    """Writes the file."""
    with open_target(context, arguments.path) as (landing, real):
        plan = _plan(landing, real, arguments, seen, records)
        diff = _diff(plan, arguments.content, real)
        saving = FileWrite("write", arguments.path, real, plan.before, plan.data, diff, _is_binary(plan))
        saved = commit_file(records, context, landing, saving)
    seen.set_mark(real, encode_mark(WholeFileMark(saved.written.hash)))
    return _output(arguments, real, plan, saved, diff)


def preview_write(context: Context, arguments: WriteArguments, seen: ReadMarks, records: Records) -> Preview:
    """What would change."""
    with open_target(context, arguments.path) as (landing, real):
        plan = _plan(landing, real, arguments, seen, records)
    diff = _diff(plan, arguments.content, real)
    return Preview(kind="diff", text=diff.text or "(no change)\n", truncated=diff.truncated)


class _WritePlan(msgspec.Struct, frozen=True):
    """Everything about a write but the doing."""

    before: FileSnapshot | None
    text_before: DecodedText | None
    data: bytes
    encoding: str
    line_ending: str
    unread: bool
    warnings: tuple[str, ...]

    @property
    def old(self) -> str | None:
        return self.text_before.text if self.text_before else None


def _plan(
    landing: ResolvedParent, real: str, arguments: WriteArguments, seen: ReadMarks, records: Records
) -> _WritePlan:
    found = read_file_state(landing, real, arguments.path, seen, records, keep=MAX_DIFF_BYTES, doing="writing")
    found.refuse_stale()
    path, before = clip_path(arguments.path), found.before
    text = decode_text(before.data) if before and before.data is not None else None
    if text is not None:
        refuse_omission_in_file(text.text, normalize_newlines(arguments.content), real)
    data, encoding, ending, warnings = _bytes(arguments.content, *_format(before, text), path)
    check_hard_links(before, data, arguments.path)
    if found.seen and before is None:
        warnings = (*warnings, f"{path} was removed since you read it; it is a new file now.")
    return _WritePlan(before, text, data, encoding, ending, found.unread, warnings)


def _format(before: FileSnapshot | None, text: DecodedText | None) -> tuple[Encoding, LineEnding]:
    """The encoding and line endings to keep: those of the file, by its first bytes where it is large."""
    if before is not None and before.data is None:
        text = decode_text(trim_cut_character(before.start))
    return (text.encoding, text.line_ending) if text else ("utf-8", "lf")


def _bytes(
    content: str, encoding: Encoding, ending: LineEnding, path: str
) -> tuple[bytes, str, LineEnding, tuple[str, ...]]:
    """The content as the file has it, and what encoding and line endings that makes."""
    becomes: LineEnding = "crlf" if ending == "crlf" and "\n" in content else detect_line_ending(content)
    try:
        return encode_text(content, encoding, ending), encoding, becomes, ()
    except UnicodeEncodeError as error:
        warning = f"{path} was {encoding}, which has no {content[error.start]!r}; it is UTF-8 now."
        return encode_text(content, "utf-8", ending), "utf-8", becomes, (warning,)


def _diff(plan: _WritePlan, content: str, real: str) -> Diff:
    if plan.before is not None and plan.text_before is None:
        return Diff("(the old content is binary or over 8 MiB: no diff)\n", content.count("\n"), 0)
    diff = build_unified_diff(plan.old, content.replace("\r\n", "\n"), real)
    if diff.text or plan.before is None or plan.before.data == plan.data:
        return diff
    before = plan.text_before.line_ending if plan.text_before else "none"
    if before != plan.line_ending:
        return Diff(f"(only line endings change: {before} becomes {plan.line_ending})\n", 0, 0)
    return Diff("(only bytes that are no text change)\n", 0, 0)


def _is_binary(plan: _WritePlan) -> bool:
    return plan.before is not None and plan.before.data is not None and plan.text_before is None


def _output(arguments: WriteArguments, real: str, plan: _WritePlan, saved: CommitResult, diff: Diff) -> Output:
    before, written, changes = plan.before, saved.written, saved.changes
    broken = find_parse_warning(real, before.data if before else None, plan.data)
    summary = _summary(clip_path(arguments.path), diff, created=before is None, unchanged=changes is None)
    return Output(
        summary=summary,
        content=f"{summary}.\n",
        data=WriteData(
            path=real,
            created=before is None,
            size=written.size,
            hash=written.hash,
            before=before.hash if before else None,
            encoding=plan.encoding,
            line_ending=plan.line_ending,
            diff=diff.text,
        ),
        meta={"unread": plan.unread, "in_place": written.in_place},
        files_changed=(real,) if changes else (),
        warnings=(*plan.warnings, *((broken,) if broken else ()), *saved.warnings),
        changes=changes,
    )


def _summary(path: str, diff: Diff, *, created: bool, unchanged: bool) -> str:
    if unchanged:
        return f"{path} has this content already; nothing was written"
    return f"{'Created' if created else 'Wrote'} {path} +{diff.added} −{diff.removed}"
