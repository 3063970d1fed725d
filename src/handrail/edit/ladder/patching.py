"""An edit is a small patch: what changes from oldText to newText. It is applied to the lines that oldText means.

Lines that the patch keeps are not touched: they stay as the file has them. Lines that it removes must be there. Lines
that it adds are changed the way the match needed: moved to the file's indentation, with the file's characters.
"""

from bisect import bisect_left
from collections.abc import Iterable, Iterator, Sequence
from itertools import accumulate
from typing import NamedTuple

import msgspec

from handrail.edit.hunks import LineChange
from handrail.edit.ladder.errors import UnsafeError
from handrail.edit.ladder.fitting import Candidate, Tolerance, find_tolerance
from handrail.edit.ladder.indentation import Indentation, is_at_file_depth, is_same_line, learn_indentation
from handrail.edit.ladder.keeping import list_line_changes, settle_blank_lines
from handrail.edit.ladder.looks import CharacterMap, normalize_spaces
from handrail.edit.ladder.merging_lines import has_file_words, has_only_renames, merge_line
from handrail.edit.ladder.tokens import extract_indent
from handrail.edit.ladder.typography import squash_spaces
from handrail.edit.newlines import Replacement


class _LinePart(NamedTuple):
    """Lines of a place, from `first` to before `end`, and what comes in their place."""

    first: int
    end: int
    new: list[str]


class Patch:
    """What an edit changes at one place. `lines` are those of the whole text."""

    def __init__(self, fit: Candidate, lines: Sequence[str]) -> None:
        self._fit = fit = settle_blank_lines(_at_file_depth(normalize_spaces(fit)))
        self._own = {i: j for i, j in fit.pairs if i is not None and j is not None}
        self._meant = sorted(self._own)
        self._old = fit.reading.old
        self._new = fit.reading.new
        self._full_old, self._full_new = _full(self._old), _full(self._new)
        self._starts = list(accumulate((len(line) + 1 for line in fit.lines), initial=fit.span.start))
        self._looks = CharacterMap((self._old[i], fit.lines[j]) for i, j in self._own.items())
        gone = {i for a, b, _, _ in list_line_changes(fit) for i in range(a, b) if i in self._own and self._needs(i)}
        self._moved = {self._old[i].strip(): fit.lines[self._own[i]].lstrip() for i in gone}
        self.indentation = self._learn_indentation(lines)

    def replacements(self) -> list[Replacement]:
        """What is to be replaced in the text, in order; nothing where it is as the patch would make it.

        UnsafeError where that cannot be told.
        """
        parts = _joined(map(self._part, list_line_changes(self._fit)))
        return [made for part in parts if (made := self._replacement(part)) is not None]

    @property
    def removes_other_words(self) -> bool:
        """Whether a line that goes has other words in the file."""
        return any(self._is_other(i) for a, b, _, _ in list_line_changes(self._fit) for i in range(a, b))

    @property
    def keeps_other_words(self) -> bool:
        """Whether lines with other words in the file stay, or are among the new ones as the file has them."""
        changes = list_line_changes(self._fit)
        gone = ((self._own[i], self._new[c:d]) for a, b, c, d in changes for i in range(a, b) if self._is_other(i))
        return all(self._fit.lines[j].strip() in map(str.strip, new) for j, new in gone)

    @property
    def is_anchored(self) -> bool:
        """Whether the first and the last line say what they say in the file."""
        edges = (self._full_old[0], self._full_old[-1])
        return all(i in self._own and self._needs(i) is not Tolerance.TOKENS for i in edges)

    def _is_other(self, i: int) -> bool:
        """Whether a line is there in other words."""
        return i in self._own and self._needs(i) is Tolerance.TOKENS

    def _needs(self, i: int) -> Tolerance:
        return find_tolerance(self._old[i], self._fit.lines[self._own[i]])

    def _learn_indentation(self, lines: Sequence[str]) -> Indentation:
        full = [(i, j) for i, j in self._own.items() if self._old[i].strip()]
        if self._fit.inside_line:
            full = full[1:]
        return learn_indentation(
            [(extract_indent(self._old[i]), extract_indent(self._fit.lines[j])) for i, j in full], lines
        )

    def _part(self, change: LineChange) -> _LinePart:
        a, b, _, _ = change
        before, after = bisect_left(self._meant, a), bisect_left(self._meant, b)
        low = self._own[self._meant[before - 1]] + 1 if before else 0
        high = self._own[self._meant[after]] if after < len(self._meant) else len(self._fit.lines)
        gone = [self._own[i] for i in self._meant[before:after]]
        if any(squash_spaces(self._old[i]) and i not in self._own for i in range(a, b)):
            raise UnsafeError("a line that is to go is not there")
        new = list(self._mapped(change))
        first, end = (gone[0], gone[-1] + 1) if gone else (high, high)
        if any(squash_spaces(self._fit.lines[n]) for n in set(range(low, high)) - set(gone)):
            raise UnsafeError("there are lines beside what changes that {old} does not have")
        return _LinePart(first, end, new)

    def _mapped(self, change: LineChange) -> Iterator[str]:
        """The new lines, changed the way the match needed."""
        a, b, c, d = change
        paired = b - a == d - c
        for i in range(a, b):
            if not paired and self._is_other(i):
                self._check_known(i, self._new[c:d])
        for n in range(d - c):
            yield self._line(a + n if paired and a + n in self._own else None, c + n, change)

    def _check_known(self, i: int, new: Sequence[str]) -> None:
        own = self._fit.lines[self._own[i]]
        if not any(has_file_words(self._old[i], own, line) for line in new):
            raise UnsafeError("a line that is to go has other words")

    def _line(self, i: int | None, k: int, change: LineChange) -> str:
        new = self._new[k]
        if not new.strip():
            own = self.indentation.shift(new) if new and new in map(extract_indent, self._old) else None
            return own if own and ("\t" in own) != ("\t" in new) else new
        body = self._body(i, new)
        if k == 0 and self._fit.inside_line:
            return f"{extract_indent(new)}{body}"
        return f"{self._indent(i, k, change)}{body}"

    def _body(self, i: int | None, new: str) -> str:
        """A new line without its indentation. What it leaves as the old one has it stays as the file has it; so does a
        line that moves."""
        body = new.lstrip()
        if i is None:
            return self._moved.get(body.rstrip()) or self._looks.to_file(body)
        if self._needs(i) <= Tolerance.BOTH_SIDES:
            own = self._fit.lines[self._own[i]]
            return self._looks.to_file(body.rstrip()) + _end(own if _end(new) == _end(self._old[i]) else new)
        old, own = self._old[i].lstrip(), self._fit.lines[self._own[i]].lstrip()
        if self._needs(i) is Tolerance.TOKENS and has_file_words(old, own, body):
            return body
        if self._needs(i) is Tolerance.TOKENS and not has_only_renames(old, own):
            raise UnsafeError("a line that is to change has more or fewer words")
        both = merge_line(old, own, self._looks.to_file(body))
        if both is not None:
            return both
        if self._needs(i) is Tolerance.TOKENS:
            raise UnsafeError("a line that is to change has other words where it changes")
        return self._looks.to_file(body)

    def _indent(self, i: int | None, k: int, change: LineChange) -> str:
        own = self._edge_indent(extract_indent(self._new[k]), k, change)
        if own is None and i is not None and is_same_line(self._old[i], self._new[k]):
            own = extract_indent(self._fit.lines[self._own[i]])
        if own is None:
            raise UnsafeError("the indentation of the lines that {new} adds cannot be told")
        return own

    def _edge_indent(self, indent: str, k: int, change: LineChange) -> str | None:
        """Where only the first or the last line is out of line, the new first or last line is so too, and no other; of
        a line beside it nobody can tell."""
        first, last = self.indentation.first, self.indentation.last
        old, new = self._full_old, self._full_new
        if first and change.a <= old[0] < change.b and k == new[0]:
            return first[1] if indent == first[0] else None
        if last and change.a <= old[-1] < change.b and k == new[-1]:
            return last[1] if indent == last[0] else None
        if first and indent == first[0] and change.a <= old[0] + 1:
            return None
        if last and indent == last[0] and change.b >= old[-1]:
            return None
        return self.indentation.shift(indent)

    def _replacement(self, part: _LinePart) -> Replacement | None:
        lines, span, starts = self._fit.lines, self._fit.span, self._starts
        if part.first == part.end:
            return _insertion(starts, part, len(lines)) if part.new else None
        start, end = starts[part.first], starts[part.end] - 1
        if part.new:
            text = "\n".join(part.new)
            return Replacement(start, end, text) if part.new != lines[part.first : part.end] else None
        if part.end < len(lines):
            return Replacement(start, end + 1, "")
        return Replacement(start - 1, end, "") if part.first else Replacement(span.start, span.end, "")


def _at_file_depth(fit: Candidate) -> Candidate:
    """The fit with the old lines at the file's depth, if the new ones are: then new lines come in as they are."""
    first = int(fit.inside_line)
    own = {i: fit.lines[j] for i, j in fit.pairs if i is not None and j is not None and i >= first}
    old, new = fit.reading.old, fit.reading.new
    if not is_at_file_depth(old, ["", *new[1:]] if first else new, own):
        return fit
    old = [f"{extract_indent(own[i])}{line.lstrip()}" if i in own else line for i, line in enumerate(old)]
    return msgspec.structs.replace(fit, reading=fit.reading._replace(old=old))


def _joined(parts: Iterable[_LinePart]) -> Iterator[_LinePart]:
    """Parts that touch are one."""
    last: _LinePart | None = None
    for part in parts:
        if last is not None and part.first <= last.end:
            last = _LinePart(last.first, max(last.end, part.end), last.new + part.new)
            continue
        if last is not None:
            yield last
        last = part
    if last is not None:
        yield last


def _end(line: str) -> str:
    """The white space that a line ends with."""
    return line[len(line.rstrip()) :]


def _insertion(starts: list[int], part: _LinePart, count: int) -> Replacement:
    text = "\n".join(part.new)
    if part.first < count:
        return Replacement(starts[part.first], starts[part.first], f"{text}\n")
    end = starts[count] - 1
    return Replacement(end, end, f"\n{text}")


def _full(lines: Sequence[str]) -> list[int]:
    return [number for number, line in enumerate(lines) if line.strip()]
