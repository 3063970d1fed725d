"""Finds the origin of a line.

The change sets of a file are walked backwards, and the line is followed through each. Changes by others show as a
difference between the result of one set and the start of the next.
"""

import hashlib
import os
from collections.abc import Callable

import msgspec

from handrail.edit.diff import diff_lines
from handrail.edit.diff_parser import parse_diff
from handrail.protocol.changes import ChangeOrigin, LineOrigin, LineOriginKind
from handrail.protocol.wire import escape_surrogates
from handrail.store.change_log import ChangeLog, LoggedChangeSet, Step
from handrail.workspace.text import decode_text

Content = Callable[[str], bytes | None]
"""Reads a kept content by its hash. None if it is no longer kept."""


class _TracedLine(msgspec.Struct, frozen=True):
    path: bytes
    hash: str
    lines: list[str]
    line: int
    """From 0."""


def trace_line(log: ChangeLog, content: Content, path: bytes, data: bytes, line: int) -> LineOrigin:
    """Traces a line, counted from 1, of a text file with these bytes."""
    digest = hashlib.sha256(data).hexdigest()
    return _Tracer(log, content).trace(_TracedLine(path, digest, split_text_lines(data) or [], line - 1))


def split_text_lines(data: bytes) -> list[str] | None:
    """The lines of a text without their ends. None if it is no text."""
    text = decode_text(data)
    if text is None:
        return None
    lines = text.text.split("\n")
    return lines[:-1] if lines[-1] == "" else lines


def find_old_line(old: list[str], new: list[str], line: int) -> int | None:
    """The number of a new line in the old text. None if the line changed."""
    moved = 0
    for _, b, c, d in diff_lines(old, new):
        if line < c:
            break
        if line < d:
            return None
        moved = b - d
    return line + moved


def apply_diff(old: list[str], diff: str) -> list[str] | None:
    """Applies one of our own diffs to lines without their ends. None if the diff is truncated."""
    hunks, is_complete = parse_diff(diff)
    result: list[str] = []
    at = 0
    for hunk in hunks:
        result += (*old[at : hunk.old_start], *(line.removesuffix("\n") for line in hunk.new))
        at = hunk.old_start + len(hunk.old)
    return [*result, *old[at:]] if is_complete else None


class _Tracer:
    def __init__(self, log: ChangeLog, content: Content) -> None:
        self._log = log
        self._content = content
        self._numbers: dict[bytes, list[int]] = {}
        """The sets of each path that are not visited yet. The last is visited next."""
        self._outside: list[int] = []
        self._brought_back: list[int] = []

    def trace(self, at: _TracedLine) -> LineOrigin:
        """Follows the line back to the first set that it cannot be followed through."""
        before: int | None = None
        while (visited := self._find_last(at.path, before)) is not None:
            entry, step = visited
            before = entry.number
            result = self._find_in_result(at, entry, step)
            if not isinstance(result, _TracedLine):
                return self._build_origin(result, at, entry)
            if (older := self._find_undone(entry, step)) is not None:
                at, before = result, older
                self._brought_back.append(entry.number)
                continue
            start = self._find_in_start(result, entry, step)
            if not isinstance(start, _TracedLine):
                return self._build_origin(start, result, entry)
            at = start
        return self._build_origin("before", at, None)

    def _find_last(self, path: bytes, before: int | None) -> tuple[LoggedChangeSet, Step] | None:
        """The last set before a number that changed a path, and its step."""
        if path not in self._numbers:
            self._numbers[path] = self._log.list_numbers(path, 0)
        numbers = self._numbers[path]
        while numbers:
            number = numbers.pop()
            entry = self._log.entry(number) if before is None or number < before else None
            if entry is not None and entry.state == "done":
                return next(((entry, step) for step in entry.body.steps if step.path == path), None)
        return None

    def _find_in_result(self, at: _TracedLine, entry: LoggedChangeSet, step: Step) -> _TracedLine | LineOriginKind:
        """The line in the result of a set. Others may have changed the file since."""
        if step.after is None or step.after.kind != "file":
            return "outside"
        if step.after.hash == at.hash:
            return at
        lines = self._read_lines(step.after.hash) or self._rebuild_lines(entry, step)
        if lines is None:
            return "lost"
        line = find_old_line(lines, at.lines, at.line)
        if line is None:
            return "outside"
        self._outside.append(entry.number)
        return _TracedLine(at.path, step.after.hash, lines, line)

    def _find_in_start(self, at: _TracedLine, entry: LoggedChangeSet, step: Step) -> _TracedLine | LineOriginKind:
        """The line before a set, under the path that the file had then."""
        source = step if step.before is not None else _find_rename_source(entry, step)
        if source is None or source.before is None or source.before.kind != "file":
            return "made"
        if source.before.hash == at.hash:
            return _TracedLine(source.path, at.hash, at.lines, at.line)
        lines = self._read_lines(source.before.hash)
        if lines is None:
            return "lost"
        line = find_old_line(lines, at.lines, at.line)
        return "made" if line is None else _TracedLine(source.path, source.before.hash, lines, line)

    def _find_undone(self, entry: LoggedChangeSet, step: Step) -> int | None:
        """The first set that an undo undid, if the file is then as before that set."""
        undone = [self._log.entry(number) for number in entry.body.undoes]
        touched = [one for one in undone if one is not None and any(each.path == step.path for each in one.body.steps)]
        if not touched:
            return None
        first = min(touched, key=lambda one: one.number)
        before = next(each.before for each in first.body.steps if each.path == step.path)
        is_restored = before is not None and step.after is not None and before.hash == step.after.hash
        return first.number if is_restored else None

    def _read_lines(self, digest: str) -> list[str] | None:
        data = self._content(digest)
        return split_text_lines(data) if data is not None else None

    def _rebuild_lines(self, entry: LoggedChangeSet, step: Step) -> list[str] | None:
        """The result of a set, from its start and its diff."""
        diffs = self._log.diffs(entry.number)
        old = self._read_lines(step.before.hash) if step.before is not None else []
        at = entry.body.steps.index(step)
        return apply_diff(old, diffs[at]) if old is not None and diffs is not None and at < len(diffs) else None

    def _build_origin(self, kind: LineOriginKind, at: _TracedLine, entry: LoggedChangeSet | None) -> LineOrigin:
        outside, back = tuple(self._outside), tuple(self._brought_back)
        change = entry and ChangeOrigin(
            number=entry.number,
            time=entry.time,
            session_id=entry.session,
            tool_call_id=entry.call_id,
            tool=entry.body.tool,
            summary=entry.body.summary,
            undoable=entry.body.undoable,
        )
        return LineOrigin(kind=kind, entry=change, path=at.path, line=at.line + 1, outside=outside, brought_back=back)


def _find_rename_source(entry: LoggedChangeSet, step: Step) -> Step | None:
    """The step of the old path, if the set renamed a file to this path."""
    shown = escape_surrogates(os.fsdecode(step.path))
    old = next((one.renamed_from for one in entry.body.changes if one.path == shown and one.renamed_from), None)
    return next(
        (one for one in entry.body.steps if old is not None and escape_surrogates(os.fsdecode(one.path)) == old), None
    )
