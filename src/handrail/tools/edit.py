"""The tool edit."""

from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING, Annotated, Literal

import msgspec
from msgspec import Meta

from handrail.edit.diff import Diff, build_edit_diff, narrow_replacements
from handrail.edit.fuzzy.candidates import OF_EDIT, Wording
from handrail.edit.lines import (
    Replacement,
    Span,
    count_common_start,
    format_line_range,
    list_line_ranges,
    normalize_newlines,
)
from handrail.edit.match import EditMatch, find_unique_match, list_edge_slips, match_edit
from handrail.protocol.errors import ToolError
from handrail.protocol.tool_spec import Arguments, ToolSpec
from handrail.protocol.wire import Wire
from handrail.tools.file_tool import FileTarget, FileView, build_file_tool
from handrail.tools.tool import MAX_TEXT_BYTES, Output, ReadMarks, Tool, Touches
from handrail.workspace.roots import clip_path
from handrail.workspace.text import (
    Encoding,
    LineEnding,
    LosslessText,
    decode_lossless,
    predict_line_ending,
    replace_surrogates,
    restore_newlines,
    splice_bytes,
)

if TYPE_CHECKING:
    from handrail.changes.recorder import Recorder
    from handrail.tools.file_commit import CommitResult, FilePlan


# Replaces text in the bytes of a file

Occurrence = Literal["unique", "first", "all"]

_PDF = b"%PDF-"
_MAX_CHECKED_PLACES = 20
"""Places that are checked for slips."""
_MAX_DIFF_CHARS = 3_000
"""Characters of a diff that the model is shown."""


class FileRewrite(msgspec.Struct, frozen=True):
    """What the bytes of a file become."""

    data: bytes
    encoding: Encoding
    line_ending: LineEnding


class TextReplacement(FileRewrite, frozen=True, kw_only=True):
    """What is replaced in the text of a file, and the bytes that makes."""

    text: str
    """The readable text before, with plain newlines. It may be only the lines that are replaced."""
    lines_before: int = 0
    """Lines before the text."""
    spans: Sequence[Span]
    """The places, in order."""
    replacements: Sequence[Replacement]
    """What changes in the places, in order."""
    strategy: str

    def build_diff(self, path: str) -> Diff:
        return build_edit_diff(self.text, self.replacements, path, lines_before=self.lines_before)

    def list_lines(self, most: int) -> tuple[tuple[int, int], ...]:
        """The first and the last line of each place, as they were before."""
        ranges = list_line_ranges(self.text, self.spans[:most])
        return tuple((self.lines_before + a, self.lines_before + b) for a, b in ranges)

    @property
    def warnings(self) -> tuple[str, ...]:
        """Slips at the edges of an exact match: the first line of each kind."""
        slips: dict[str, str] = {}
        exact = self.replacements[:_MAX_CHECKED_PLACES] if self.strategy == "exact" else ()
        for (start, end, new), lines in zip(exact, self.list_lines(len(exact)), strict=True):
            for slip in list_edge_slips(self.text, Span(start, end), new):
                slips.setdefault(slip, f"Line {lines[0]} {slip}")
        return tuple(slips.values())

    @property
    def first_line(self) -> int:
        """The first line that changes. The replaced text may begin with lines that stay."""
        start, end, new = self.replacements[0]
        same = count_common_start(self.text[start:end], new)
        at = start + same
        # Text that is inserted behind the end of a line begins with the newline that ends the line.
        behind = at == end and new[same : same + 1] == "\n" and self.text[at : at + 1] in {"", "\n"}
        return self.lines_before + self.text.count("\n", 0, at) + 1 + behind


def replace_text(
    data: bytes, old: str, new: str, path: str, occurrence: Occurrence = "unique", wording: Wording = OF_EDIT
) -> TextReplacement:
    """Replaces the only place, the first or every place of a text. ToolError says why if that is not possible."""
    replaced = _replace_in_bytes(data, old, new) if old and occurrence == "unique" else None
    if replaced is not None:
        return replaced
    file = decode_text_file(data, path)
    readable, new_text = file.readable, normalize_newlines(new)
    if old:
        match = match_edit(
            file.text,
            normalize_newlines(old),
            new_text,
            path,
            every=occurrence == "all",
            first=occurrence == "first",
            readable=readable,
            wording=wording,
        )
    else:
        match = _match_empty_file(file.text, new_text, path)
    rewrite = file.rewrite(match.replacements, new, path)
    return TextReplacement(
        rewrite.data,
        rewrite.encoding,
        rewrite.line_ending,
        text=readable,
        spans=match.spans,
        replacements=match.replacements,
        strategy=match.strategy,
    )


def _replace_in_bytes(data: bytes, old: str, new: str) -> TextReplacement | None:
    """The fast way for most edits. None if the edit needs the text."""
    found = find_unique_match(data, old) if "\r" not in new and not data.startswith(_PDF) else None
    if found is None or len(data) + len(new) * 4 > MAX_TEXT_BYTES:
        return None
    start, end, view = found.start - found.text_start, found.end - found.text_start, memoryview(data)
    has_lines = data.find(b"\n", 0, found.start) >= 0 or data.find(b"\n", found.end) >= 0
    return TextReplacement(
        b"".join((view[: found.start], new.encode(), view[found.end :])),
        "utf-8",
        "lf" if has_lines or "\n" in new else "none",
        text=found.text,
        lines_before=found.lines_before,
        spans=[Span(start, end)],
        replacements=[Replacement(start, end, new)],
        strategy="exact",
    )


def _match_empty_file(text: str, new: str, path: str) -> EditMatch:
    """An empty text has a certain place only in an empty file."""
    if text:
        message = f"oldText is empty and {path} is not. Give the text to replace, or use write for the whole file."
        raise ToolError("INVALID_ARGUMENT", message)
    return EditMatch("exact", (Span(0, 0),), (Replacement(0, 0, new),))


class TextFile(msgspec.Struct, frozen=True):
    """The text of a file. Bytes that are not replaced stay as they are."""

    file: LosslessText
    text: str
    """With plain newlines. Bytes that are no text are lone surrogates."""

    @property
    def readable(self) -> str:
        """The text as `read` shows it, of the same length."""
        return replace_surrogates(self.text) if self.file.damaged else self.text

    def rewrite(self, replacements: Sequence[Replacement], given: str, path: str) -> FileRewrite:
        """Replaces parts of the text, in order. A file without lines takes the line endings of the `given` text. If
        endings are mixed, lines that stay keep theirs."""
        file = self.file
        if file.line_ending == "mixed":
            replacements = list(narrow_replacements(self.text, replacements))
        grown = sum(len(text) - (end - start) for start, end, text in replacements)
        if len(file.text) + grown > MAX_TEXT_BYTES:  # before it is in memory; a character is a byte at least
            raise _build_too_long_error(path)
        own = list(restore_newlines(file.text, self.text, file.line_ending, replacements, given))
        try:
            data = splice_bytes(file, own)
        except UnicodeEncodeError as error:
            raise _build_encoding_error(error, file.encoding, path) from None
        if len(data) > MAX_TEXT_BYTES:
            raise _build_too_long_error(path)
        return FileRewrite(data, file.encoding, predict_line_ending(file.text, file.line_ending, own))


def decode_text_file(data: bytes, path: str) -> TextFile:
    """The text of a file. BINARY_FILE if it is not text."""
    file = None if data.startswith(_PDF) else decode_lossless(data)
    if file is None:
        raise ToolError("BINARY_FILE", f"{path} is not text. Use a program that knows its format.")
    return TextFile(file, normalize_newlines(file.text))


def _build_encoding_error(error: UnicodeEncodeError, encoding: str, path: str) -> ToolError:
    character = error.object[error.start]
    message = f"The new text has {character!r} (U+{ord(character):04X}), which {encoding} does not have: "
    advice = f"that is the encoding of {path}. Use other characters, or write the whole file, which makes it UTF-8."
    return ToolError("INVALID_ARGUMENT", f"{message}{advice}")


def _build_too_long_error(path: str) -> ToolError:
    message = f"{path} would be larger than 32 MiB, the most that is made of a file. Replace less."
    return ToolError("LIMIT_EXCEEDED", message)


def render_diff_body(diff: Diff) -> str:
    """The hunks of the diff of one file, up to a length."""
    hunks = diff.text.partition("\n+++ ")[2].partition("\n")[2] or diff.text
    if len(hunks) <= _MAX_DIFF_CHARS:
        return hunks
    end = hunks.rfind("\n", 0, _MAX_DIFF_CHARS) + 1
    return f"{hunks[:end]}…\n"


def describe_tolerance(strategy: str) -> str:
    """What differed between the given text and the place that was found. Empty if nothing did."""
    if strategy == "exact":
        return ""
    from handrail.edit.fuzzy.strategies import FORGIVEN  # noqa: PLC0415  loaded already by a match that is not exact

    return f"found but for {FORGIVEN[strategy]}"


# The tool


_MAX_LISTED_PLACES = 100
"""Places whose lines the result names."""


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


def build_edit_tool(seen: ReadMarks, records: "Recorder") -> Tool:
    """The tool edit for one session."""
    return build_file_tool(
        EDIT, _plan, lambda arguments: Touches(writes=(arguments.path,)), seen, records, doing="editing"
    )


def _plan(view: FileView, arguments: EditArguments) -> "FilePlan":
    from handrail.edit.omission import refuse_omission  # noqa: PLC0415  engine room
    from handrail.tools.file_commit import FileChange, FilePlan, check_hard_links  # noqa: PLC0415  engine room

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
    return FilePlan(
        subject=target.real,
        changes=(FileChange(target, edit.data, diff, target.mode),),
        preview=diff.text,
        is_truncated=diff.truncated,
        describe=partial(_describe, target, edit, diff),
    )


def _refuse_same(old: str, new: str) -> None:
    if old == new:
        raise ToolError("NO_CHANGE", "oldText and newText are the same. Nothing was changed.")
    if normalize_newlines(old) == normalize_newlines(new):
        message = "oldText and newText differ in line endings only, and those stay as the file has them."
        raise ToolError("NO_CHANGE", f"{message} Nothing was changed.")


def _describe(target: FileTarget, edit: "TextReplacement", diff: "Diff", committed: "CommitResult") -> Output:

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
