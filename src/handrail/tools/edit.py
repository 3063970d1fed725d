"""The tool edit."""

from typing import Annotated

import msgspec
from msgspec import Meta

from handrail.edit.diff import Diff, build_edit_diff
from handrail.edit.fuzzy.candidates import OF_EDIT, Wording
from handrail.edit.lines import (
    LineEnding,
    Replacement,
    Span,
    count_common_start,
    format_line_range,
    list_line_ranges,
    normalize_newlines,
)
from handrail.edit.match import EditMatch, find_unique_match, list_edge_slips, match_edit
from handrail.edit.omission import refuse_omission
from handrail.protocol.errors import ToolError
from handrail.protocol.permissions import Preview
from handrail.protocol.tool_spec import Arguments, ToolSpec
from handrail.protocol.wire import Wire
from handrail.tools.file_commit import CommitResult, FileWrite, check_hard_links, commit_file, find_parse_warning
from handrail.tools.file_state import (
    PDF,
    FileState,
    Records,
    WholeFileMark,
    build_too_large_error,
    check_file_size,
    decode_text_file,
    encode_mark,
    open_target,
    read_file_state,
)
from handrail.tools.text import describe_tolerance, render_diff_body
from handrail.tools.tool import MAX_TEXT_BYTES, Context, Output, ReadMarks, Tool, Touches
from handrail.workspace.errors import clip_path
from handrail.workspace.file_state import FileSnapshot
from handrail.workspace.resolve import ResolvedParent
from handrail.workspace.text import Encoding

# § [tools.edit] edit: one text of a file in the place of another, and not a byte besides.


class EditArguments(Arguments, frozen=True):
    """The arguments of edit."""

    path: Annotated[str, Meta(description="File to edit, relative to the workspace.")]
    old_text: Annotated[
        str,
        Meta(max_length=MAX_TEXT_BYTES, description="Text to replace, as read shows it; it must be in the file once."),
    ]
    new_text: Annotated[str, Meta(max_length=MAX_TEXT_BYTES, description="Text to put in its place.")]
    replace_all: Annotated[bool, Meta(description="Replace it wherever it is.")] = False


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


def build_edit_tool(seen: ReadMarks, records: "Records") -> Tool:
    """The tool edit for one session. What it is done with is loaded when it is first used: many sessions only look."""

    def run(context: Context, arguments: EditArguments) -> Output:

        return edit(context, arguments, seen, records)

    def preview(context: Context, arguments: EditArguments) -> Preview:

        return preview_edit(context, arguments, seen, records)

    return Tool(EDIT, run, lambda arguments: Touches(writes=(arguments.path,)), preview)


# § [tools.replacing] One text of a file in the place of another: what the bytes become, or why not. Nothing is
# § written here.

_MAX_CHECKED_PLACES = 20
"""Places that are looked at for slips."""


class TextReplacement(msgspec.Struct, frozen=True, kw_only=True):
    """What is replaced in the text of a file, and the bytes that makes."""

    text: str
    """The text before, with plain newlines, as it can be shown; whole lines of it, with all that is replaced."""
    lines_before: int = 0
    """How many lines come before it."""
    spans: list[Span]
    """The places, in order."""
    replacements: list[Replacement]
    """What changes in them, in order."""
    strategy: str
    data: bytes
    encoding: Encoding
    line_ending: LineEnding
    """How the lines end then."""

    def diff(self, path: str) -> Diff:
        """What changes."""
        return build_edit_diff(self.text, self.replacements, path, lines_before=self.lines_before)

    def lines(self, most: int) -> tuple[tuple[int, int], ...]:
        """The first and the last line of each place, as they were before."""
        ranges = list_line_ranges(self.text, self.spans[:most])
        return tuple((self.lines_before + a, self.lines_before + b) for a, b in ranges)

    @property
    def warnings(self) -> tuple[str, ...]:
        """Slips at the edges of an exact match: the first line of each kind."""
        found: dict[str, str] = {}
        exact = self.replacements[:_MAX_CHECKED_PLACES] if self.strategy == "exact" else ()
        for (start, end, new), lines in zip(exact, self.lines(len(exact)), strict=True):
            for slip in list_edge_slips(self.text, Span(start, end), new):
                found.setdefault(slip, f"Line {lines[0]} {slip}")
        return tuple(found.values())

    @property
    def first_line(self) -> int:
        """The first line that is another one now; what is replaced may begin with lines that stay."""
        start, end, new = self.replacements[0]
        same = count_common_start(self.text[start:end], new)
        at = start + same
        # What comes in behind the end of a line begins with the newline that ends it.
        behind = at == end and new[same : same + 1] == "\n" and self.text[at : at + 1] in {"", "\n"}
        return self.lines_before + self.text.count("\n", 0, at) + 1 + behind


def replace_text(
    data: bytes, old: str, new: str, path: str, *, every: bool, wording: Wording = OF_EDIT
) -> TextReplacement:
    """Replaces the only place that `old` means, or every place; ToolError with a reason to learn from otherwise."""
    plainly = _in_plain_bytes(data, old, new) if old and not every else None
    if plainly is not None:
        return plainly
    file = decode_text_file(data, path)
    readable = file.readable
    if old:
        placed = match_edit(
            file.text,
            normalize_newlines(old),
            normalize_newlines(new),
            path,
            every=every,
            readable=readable,
            wording=wording,
        )
    else:
        placed = _all_of_nothing(file.text, normalize_newlines(new), path)
    becomes = file.rewritten(placed.replacements, new, path)
    return TextReplacement(
        text=readable,
        spans=list(placed.spans),
        replacements=list(placed.replacements),
        strategy=placed.strategy,
        data=becomes.data,
        encoding=becomes.encoding,
        line_ending=becomes.line_ending,
    )


def _in_plain_bytes(data: bytes, old: str, new: str) -> TextReplacement | None:
    """Most edits, several times as fast as by the way that leads to every other end."""
    found = find_unique_match(data, old) if "\r" not in new and not data.startswith(PDF) else None
    if found is None or len(data) + len(new) * 4 > MAX_TEXT_BYTES:
        return None
    start, end, view = found.start - found.text_start, found.end - found.text_start, memoryview(data)
    stays = data.find(b"\n", 0, found.start) >= 0 or data.find(b"\n", found.end) >= 0
    return TextReplacement(
        text=found.text,
        lines_before=found.lines_before,
        spans=[Span(start, end)],
        replacements=[Replacement(start, end, new)],
        strategy="exact",
        data=b"".join((view[: found.start], new.encode(), view[found.end :])),
        encoding="utf-8",
        line_ending="lf" if stays or "\n" in new else "none",
    )


def _all_of_nothing(text: str, new: str, path: str) -> EditMatch:
    """An empty text is at no certain place, but in an empty file."""
    if text:
        message = f"oldText is empty and {path} is not. Give the text to replace, or use write for the whole file."
        raise ToolError("INVALID_ARGUMENT", message)
    return EditMatch("exact", (Span(0, 0),), (Replacement(0, 0, new),))


# § [tools.editing] What edit does: looks at the file, finds the place, saves the new bytes, tells what changed.

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
