"""Applies an edit to a candidate as a small patch."""

from bisect import bisect_left
from collections.abc import Iterable, Iterator, Sequence
from itertools import accumulate, pairwise
from typing import NamedTuple

import msgspec

from handrail.edit.diff import LineChange, diff_sequences
from handrail.edit.fuzzy.candidates import Candidate, Tolerance, UnsafeError, find_tolerance
from handrail.edit.fuzzy.indentation import Indentation, is_at_file_depth, is_same_line, learn_indentation
from handrail.edit.fuzzy.merge import (
    has_file_words,
    has_only_renames,
    list_line_changes,
    merge_line,
    settle_blank_lines,
)
from handrail.edit.fuzzy.normalize import PLAIN_CHARACTERS, extract_indent, fold_typography, squash_spaces
from handrail.edit.lines import Replacement, apply_replacements

# § [edit.ladder.looks] The file's characters for those of a text that look like them: curly quotes that were meant
# § straight, and such.

_TOGETHER = ({"'", '"'}, {",", "(", ")", ":", ";"})
"""Who curled some quotes curled them all, and who typed one sign in full width typed all of them so."""
_ODD_SPACES = [odd for odd, plain in PLAIN_CHARACTERS.items() if plain == " "]
_UNCLEAR = "the file has now one character, now another for U+{:04X} of {{old}}"


def normalize_spaces(fit: Candidate) -> Candidate:
    """The fit with plain spaces for no-break ones and such that both texts have and the place does not."""
    sent, wanted, there = ("".join(lines) for lines in (fit.reading.old, fit.reading.new, fit.lines))
    slips = [odd for odd in _ODD_SPACES if odd in wanted and sent.count(odd) not in {0, there.count(odd)}]
    for odd in slips:
        if odd in there:
            raise UnsafeError(_UNCLEAR.format(ord(odd)))
    plain = str.maketrans(dict.fromkeys(slips, " "))
    old, new = ([line.translate(plain) for line in lines] for lines in (fit.reading.old, fit.reading.new))
    return msgspec.structs.replace(fit, reading=fit.reading._replace(old=old, new=new)) if slips else fit


class CharacterMap:
    """What lines of an old text, beside the file's own, teach about odd characters."""

    def __init__(self, pairs: Iterable[tuple[str, str]]) -> None:
        self._known: dict[str, str | None] = {}
        for old, own in pairs:
            if not old.isascii():
                self._learn("".join(old.split()), "".join(own.split()))
        for signs in _TOGETHER:
            if not signs.isdisjoint(self._known.values()):
                self._known = {odd: plain for odd, plain in PLAIN_CHARACTERS.items() if plain in signs} | self._known

    def _learn(self, one: str, other: str) -> None:
        """Learns only of lines that say the same; None where the file has now this character, now that."""
        self._known |= {odd: "" for odd in set(one) - set(other) if PLAIN_CHARACTERS.get(odd) == ""}
        if len(one) != len(other) or fold_typography(one) != fold_typography(other):
            return
        for odd, own in zip(one, other, strict=True):
            if odd in PLAIN_CHARACTERS:
                self._known[odd] = own if self._known.get(odd, own) == own else None

    def to_file(self, text: str) -> str:
        """The text with the file's characters."""
        for odd, own in self._known.items():
            if odd in text and own is None:
                raise UnsafeError(_UNCLEAR.format(ord(odd)))
            text = text.replace(odd, own or "")
        return text


# § [edit.ladder.patching] An edit is a small patch: what changes from oldText to newText. It is applied to the
# § lines that oldText means.  Lines that the patch keeps are not touched: they stay as the file has them. Lines
# § that it removes must be there. Lines that it adds are changed the way the match needed: moved to the file's
# § indentation, with the file's characters.


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


# § [edit.ladder.made_before] Edits that were made before: to make them once more would do harm, or nothing.

_MIN_TELLING_CHARS = 6
"""Characters, without white space, of lines that come in above which their being there already is no chance."""
_MIN_NEW_TEXT_CHARS = 20
"""The same for the whole new text."""


def refuse_applied_edit(text: str, fit: Candidate, replacements: Sequence[Replacement]) -> None:
    """UnsafeError where a place that had to be forgiven something is as the edit would make it, or newText is in the
    file already."""
    _check_order(fit, replacements)
    if (
        not replacements
        or apply_replacements(text, replacements, fit.span.start, fit.span.end) == text[fit.span.start : fit.span.end]
    ):
        raise UnsafeError("it is there already as {new} has it")
    old, new = "\n".join(fit.reading.old), "\n".join(fit.reading.new)
    start, end = replacements[0].start, replacements[-1].end
    if _said(apply_replacements(text, replacements, start, end)) == _said(text[start:end]) and _said(old) != _said(new):
        raise UnsafeError("it is there already as {new} has it, but for white space")
    if len(_said(new)) >= _MIN_NEW_TEXT_CHARS and _is_there(text, new.strip("\n"), fit):
        raise UnsafeError("{new} is in the file already, and the edit may have been made before")
    gone = _said("\n".join(text[start:end] for start, end, _ in replacements))
    for start, end, come in replacements:
        said = _come(_said(text[start:end]), _said(come))
        if len(said) >= _MIN_TELLING_CHARS and said not in gone and _is_beside(text, start, end, said, len(come)):
            raise UnsafeError("the lines that {new} adds are there already")


def _come(old: str, new: str) -> str:
    """What comes in before or behind what stays; nothing where something is replaced."""
    if new.startswith(old):
        return new[len(old) :]
    return new[: len(new) - len(old)] if new.endswith(old) else ""


def _check_order(fit: Candidate, replacements: Sequence[Replacement]) -> None:
    """What is replaced is within the place, and in order: whatever went wrong before, no other byte is touched."""
    apart = all(one.end <= other.start for one, other in pairwise(replacements))
    inside = all(fit.span.start <= start <= end <= fit.span.end for start, end, _ in replacements)
    if not apart or not inside:
        raise UnsafeError("what would change cannot be told apart")


def _is_there(text: str, new: str, fit: Candidate) -> bool:
    """Whether the new text is somewhere else, or at the place itself although the edit adds something."""
    elsewhere = text.find(new, 0, fit.span.start) >= 0 or text.find(new, fit.span.end) >= 0
    return elsewhere or (new in text and (_adds(fit) or _only_space(fit)))


def _only_space(fit: Candidate) -> bool:
    """Whether the edit is about white space alone."""
    return _said("\n".join(fit.reading.old)) == _said("\n".join(fit.reading.new))


def _adds(fit: Candidate) -> bool:
    """Whether the edit does more than take lines away."""
    old, new = ([squash_spaces(line) for line in lines] for lines in (fit.reading.old, fit.reading.new))
    return any(d > c for _, _, c, d in diff_sequences(old, new))


def _is_beside(text: str, start: int, end: int, said: str, length: int) -> bool:
    around = 2 * length + 100
    before, after = text[max(0, start - around) : start], text[end : end + around]
    return _said(after).startswith(said) or _said(before).endswith(said)


def _said(text: str) -> str:
    return squash_spaces(text).replace("\n", "")
