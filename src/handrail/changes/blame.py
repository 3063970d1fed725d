"""The origin of a line."""

import hashlib
import os
from collections.abc import Callable
from typing import Literal

import msgspec

from handrail.edit.diff import parse_diff
from handrail.edit.sequences import diff_lines
from handrail.protocol.wire import escape_surrogates
from handrail.store.change_log import ChangeLog, LoggedChangeSet, Step
from handrail.workspace.text import decode_text

# § [changes.line_ways] Lines on their way from one text to another.


def split_text_lines(data: bytes) -> list[str] | None:
    """The lines of a text without their ends; None of what is no text."""
    text = decode_text(data)
    if text is None:
        return None
    lines = text.text.split("\n")
    return lines[:-1] if lines[-1] == "" else lines


def find_old_line(old: list[str], new: list[str], line: int) -> int | None:
    """Where a line of the new text was in the old one; None where it was not, as it is."""
    moved = 0
    for _, b, c, d in diff_lines(old, new):
        if line < c:
            break
        if line < d:
            return None
        moved = b - d
    return line + moved


def apply_diff(old: list[str], diff: str) -> list[str] | None:
    """Apply one of our own diffs to lines without their ends. None if the diff is truncated."""
    hunks, is_complete = parse_diff(diff)
    result: list[str] = []
    at = 0
    for hunk in hunks:
        result += (*old[at : hunk.old_start], *(line.removesuffix("\n") for line in hunk.new))
        at = hunk.old_start + len(hunk.old)
    return [*result, *old[at:]] if is_complete else None


# § [changes.line_origin] Where a line of a file comes from: its change sets are walked backwards, and the line is
# § followed through each. What others changed in between is found by comparing what a set left with what the next
# § one found.

Content = Callable[[str], bytes | None]
"""What was kept under a hash; None where nothing is any more."""


class LineOrigin(msgspec.Struct, frozen=True, kw_only=True):
    """Where a line comes from, as far as that is known."""

    kind: Literal["made", "outside", "before", "lost"]
    """`made`: by `entry`. `outside`: others changed it after `entry`. `before`: it is older than all that is known.
    `lost`: what `entry` changed is not kept any more, so nobody can tell."""
    entry: LoggedChangeSet | None = None
    path: bytes
    """What the file was called then."""
    line: int
    """Which line it was then."""
    outside: tuple[int, ...] = ()
    """After these sets others changed the file, but not the line."""
    brought_back: tuple[int, ...] = ()
    """These sets took a change of the line back, so it is what it was before."""


class _TracedLine(msgspec.Struct, frozen=True):
    """A line in one state of a file."""

    path: bytes
    hash: str
    lines: list[str]
    line: int
    """From 0."""


def trace_line(log: ChangeLog, content: Content, path: bytes, data: bytes, line: int) -> LineOrigin:
    """Follows a line, counted from 1, of a text file that holds these bytes now."""
    return _Tracing(log, content).traced(
        _TracedLine(path, hashlib.sha256(data).hexdigest(), split_text_lines(data) or [], line - 1)
    )


class _Tracing:
    """Follows one line."""

    def __init__(self, log: ChangeLog, content: Content) -> None:
        self._log = log
        self._content = content
        self._numbers: dict[bytes, list[int]] = {}
        """The sets that touched a path and were not looked at yet: they are walked once, backwards."""
        self._outside: list[int] = []
        self._brought_back: list[int] = []

    def traced(self, at: _TracedLine) -> LineOrigin:
        """The first set, going backwards, that the line cannot be followed through."""
        before: int | None = None
        while (found := self._last(at.path, before)) is not None:
            entry, step = found
            before = entry.number
            left = self._as_left(at, entry, step)
            if not isinstance(left, _TracedLine):
                return self._told(left, at, entry)
            if (older := self._taken_back(entry, step)) is not None:
                at, before = left, older
                self._brought_back.append(entry.number)
                continue
            came = self._as_found(left, entry, step)
            if not isinstance(came, _TracedLine):
                return self._told(came, left, entry)
            at = came
        return self._told("before", at, None)

    def _last(self, path: bytes, before: int | None) -> tuple[LoggedChangeSet, Step] | None:
        """The last set before a number that changed a path, and how."""
        if path not in self._numbers:
            self._numbers[path] = self._log.numbers_touching(path, 0)
        numbers = self._numbers[path]
        while numbers:
            number = numbers.pop()
            entry = self._log.entry(number) if before is None or number < before else None
            if entry is not None and entry.state == "done":
                return next(((entry, step) for step in entry.body.steps if step.path == path), None)
        return None

    def _as_left(
        self, at: _TracedLine, entry: LoggedChangeSet, step: Step
    ) -> "_TracedLine | Literal['outside', 'lost']":
        """The line in what the set left; others may have changed the file since."""
        if step.after is None or step.after.kind != "file":
            return "outside"
        if step.after.hash == at.hash:
            return at
        lines = self._lines(step.after.hash) or self._rebuilt(entry, step)
        if lines is None:
            return "lost"
        line = find_old_line(lines, at.lines, at.line)
        if line is None:
            return "outside"
        self._outside.append(entry.number)
        return _TracedLine(at.path, step.after.hash, lines, line)

    def _as_found(self, at: _TracedLine, entry: LoggedChangeSet, step: Step) -> "_TracedLine | Literal['made', 'lost']":
        """The line in what the set found, under the name that it had then."""
        source = step if step.before is not None else _renamed(entry, step)
        if source is None or source.before is None or source.before.kind != "file":
            return "made"
        if source.before.hash == at.hash:
            return _TracedLine(source.path, at.hash, at.lines, at.line)
        lines = self._lines(source.before.hash)
        if lines is None:
            return "lost"
        line = find_old_line(lines, at.lines, at.line)
        return "made" if line is None else _TracedLine(source.path, source.before.hash, lines, line)

    def _taken_back(self, entry: LoggedChangeSet, step: Step) -> int | None:
        """Of a set that undid others, so that the file is what it was before them: the number of the first one."""
        undone = [self._log.entry(number) for number in entry.body.undoes]
        touched = [one for one in undone if one is not None and any(way.path == step.path for way in one.body.steps)]
        if not touched:
            return None
        first = min(touched, key=lambda one: one.number)
        was = next(way.before for way in first.body.steps if way.path == step.path)
        return first.number if was is not None and step.after is not None and was.hash == step.after.hash else None

    def _lines(self, digest: str) -> list[str] | None:
        data = self._content(digest)
        return split_text_lines(data) if data is not None else None

    def _rebuilt(self, entry: LoggedChangeSet, step: Step) -> list[str] | None:
        """What the set left, from what it found and the difference it made."""
        diffs = self._log.diffs(entry.number)
        old = self._lines(step.before.hash) if step.before is not None else []
        at = entry.body.steps.index(step)
        return apply_diff(old, diffs[at]) if old is not None and diffs is not None and at < len(diffs) else None

    def _told(
        self, kind: Literal["made", "outside", "before", "lost"], at: _TracedLine, entry: LoggedChangeSet | None
    ) -> LineOrigin:
        outside, back = tuple(self._outside), tuple(self._brought_back)
        return LineOrigin(kind=kind, entry=entry, path=at.path, line=at.line + 1, outside=outside, brought_back=back)


def _renamed(entry: LoggedChangeSet, step: Step) -> Step | None:
    """The way of the path that a new file had before, where it was renamed."""
    spelled = escape_surrogates(os.fsdecode(step.path))
    old = next((one.renamed_from for one in entry.body.changes if one.path == spelled and one.renamed_from), None)
    return next(
        (one for one in entry.body.steps if old is not None and escape_surrogates(os.fsdecode(one.path)) == old), None
    )
