"""Rewrites an edit for the candidate that it was found at.

An edit is a small patch from its old to its new text. Lines that the patch keeps stay as the file has them. Lines
that it removes must be there. Lines that it adds take the file's indentation and typography.
"""

import re
from bisect import bisect_left
from collections.abc import Iterable, Iterator, Sequence
from itertools import accumulate, pairwise
from typing import NamedTuple

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

_MIN_TELLING_CHARS = 6
"""Fewer characters that an edit adds may be there by chance. White space does not count."""
_MIN_NEW_TEXT_CHARS = 20
"""The same for the whole new text."""
_TYPED_TOGETHER = ({"'", '"'}, {",", "(", ")", ":", ";"})
"""Curly quotes come together, and so do full-width signs."""
_ODD_SPACES = [odd for odd, plain in PLAIN_CHARACTERS.items() if plain == " "]
_BLANK_STRING = re.compile(r"""(["'`])([ \t]+)\1""")
_UNCLEAR = "the file has different characters for U+{:04X} of {{old}}"


class _LinePart(NamedTuple):
    """Lines of a candidate, from `first` to before `end`, with the lines that replace them."""

    first: int
    end: int
    new: list[str]


class Rewrite:
    """The changes of an edit at a candidate. `lines` are those of the whole text."""

    def __init__(self, candidate: Candidate, lines: Sequence[str]) -> None:
        candidate = settle_blank_lines(_move_to_file_depth(_normalize_spaces(candidate)))
        self._candidate = candidate
        self._own = candidate.own_lines
        self._paired = sorted(self._own)
        self._old, self._new = candidate.reading.old, candidate.reading.new
        self._full_old, self._full_new = _list_full(self._old), _list_full(self._new)
        self._starts = list(accumulate((len(line) + 1 for line in candidate.lines), initial=candidate.span.start))
        self._characters = _CharacterMap((self._old[i], candidate.lines[j]) for i, j in self._own.items())
        self._changes = list_line_changes(candidate)
        removed = {i for a, b, _, _ in self._changes for i in range(a, b) if i in self._own and self._find_tolerance(i)}
        worded = [i for i in removed if any(map(str.isalnum, self._old[i]))]  # a bracket is not moved, but another one
        self._moved = {self._old[i].strip(): self._own_line(i).lstrip() for i in worded}
        self.indentation = self._learn_indentation(lines)

    def list_replacements(self) -> list[Replacement]:
        """Return the replacements, none if the edit is there already. UnsafeError if they are a guess."""
        parts = _join_touching(map(self._build_part, self._changes))
        return [replacement for part in parts if (replacement := self._replace(part)) is not None]

    @property
    def removes_other_words(self) -> bool:
        """Whether a removed line has other words in the file."""
        return any(self._has_other_words(i) for a, b, _, _ in self._changes for i in range(a, b))

    @property
    def keeps_other_words(self) -> bool:
        """Whether lines with other words in the file stay, or are among the new ones as the file has them."""
        return all(
            self._own_line(i).strip() in map(str.strip, self._new[c:d])
            for a, b, c, d in self._changes
            for i in range(a, b)
            if self._has_other_words(i)
        )

    @property
    def is_anchored(self) -> bool:
        """Whether the first and the last line have the same words in the file."""
        edges = (self._full_old[0], self._full_old[-1])
        return all(i in self._own and self._find_tolerance(i) is not Tolerance.TOKENS for i in edges)

    def _own_line(self, i: int) -> str:
        return self._candidate.lines[self._own[i]]

    def _find_tolerance(self, i: int) -> Tolerance:
        return find_tolerance(self._old[i], self._own_line(i))

    def _has_other_words(self, i: int) -> bool:
        return i in self._own and self._find_tolerance(i) is Tolerance.TOKENS

    def _learn_indentation(self, lines: Sequence[str]) -> Indentation:
        full = [i for i in self._own if self._old[i].strip()]
        if self._candidate.inside_line:
            full = full[1:]
        seen = [(extract_indent(self._old[i]), extract_indent(self._own_line(i))) for i in full]
        return learn_indentation(seen, lines)

    def _build_part(self, change: LineChange) -> _LinePart:
        a, b, _, _ = change
        lines = self._candidate.lines
        before, after = bisect_left(self._paired, a), bisect_left(self._paired, b)
        low = self._own[self._paired[before - 1]] + 1 if before else 0
        high = self._own[self._paired[after]] if after < len(self._paired) else len(lines)
        removed = [self._own[i] for i in self._paired[before:after]]
        if any(squash_spaces(self._old[i]) and i not in self._own for i in range(a, b)):
            raise UnsafeError("a line to remove is missing")
        new = list(self._adapt_lines(change))
        first, end = (removed[0], removed[-1] + 1) if removed else (high, high)
        if any(squash_spaces(lines[n]) for n in set(range(low, high)) - set(removed)):
            raise UnsafeError("the file has lines next to the change that {old} lacks")
        return _LinePart(first, end, new)

    def _adapt_lines(self, change: LineChange) -> Iterator[str]:
        a, b, c, d = change
        paired = b - a == d - c
        for i in range(a, b):
            if i in self._own and _has_other_blanks(self._old[i], self._own_line(i)):
                raise UnsafeError("a line to remove has other white space in a string")
            if not paired and self._has_other_words(i):
                own = self._own_line(i)
                if not any(has_file_words(self._old[i], own, line) for line in self._new[c:d]):
                    raise UnsafeError("a line to remove has other words")
        for n in range(d - c):
            yield self._adapt_line(a + n if paired and a + n in self._own else None, c + n, change)

    def _adapt_line(self, i: int | None, k: int, change: LineChange) -> str:
        new = self._new[k]
        if not new.strip():
            own = self.indentation.shift(new) if new and new in map(extract_indent, self._old) else None
            return own if own and ("\t" in own) != ("\t" in new) else new
        body = self._adapt_body(i, new)
        if k == 0 and self._candidate.inside_line:
            return f"{extract_indent(new)}{body}"
        return f"{self._adapt_indent(i, k, change)}{body}"

    def _adapt_body(self, i: int | None, new: str) -> str:
        """Adapt a new line without its indentation. Unchanged words and moved lines stay as the file has them."""
        body = new.lstrip()
        if i is None:
            return self._moved.get(body.rstrip()) or self._characters.to_file(body)
        old, own, needs = self._old[i], self._own_line(i), self._find_tolerance(i)
        if needs <= Tolerance.BOTH_SIDES:
            return self._characters.to_file(body.rstrip()) + _extract_trailing(
                own if _extract_trailing(new) == _extract_trailing(old) else new
            )
        old, own = old.lstrip(), own.lstrip()
        if needs is Tolerance.TOKENS and has_file_words(old, own, body):
            return body
        if needs is Tolerance.TOKENS and not has_only_renames(old, own):
            raise UnsafeError("a line to change has more or fewer words")
        merged = merge_line(old, own, self._characters.to_file(body))
        if merged is not None:
            return merged
        if needs is Tolerance.TOKENS:
            raise UnsafeError("a line to change has other words at the change")
        return self._characters.to_file(body)

    def _adapt_indent(self, i: int | None, k: int, change: LineChange) -> str:
        own = self._shift_indent(extract_indent(self._new[k]), k, change)
        if own is None and i is not None and is_same_line(self._old[i], self._new[k]):
            own = extract_indent(self._own_line(i))
        if own is None:
            raise UnsafeError("the indentation of the lines that {new} adds is not clear")
        return own

    def _shift_indent(self, indent: str, k: int, change: LineChange) -> str | None:
        """Shift an indentation to the file's. If only an edge line is off, the lines beside it are uncertain."""
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

    def _replace(self, part: _LinePart) -> Replacement | None:
        lines, span, starts = self._candidate.lines, self._candidate.span, self._starts
        text = "\n".join(part.new)
        start, end = starts[part.first], starts[part.end] - 1
        if part.first == part.end:
            if not part.new:
                return None
            at_end = part.first == len(lines)
            return Replacement(end, end, f"\n{text}") if at_end else Replacement(start, start, f"{text}\n")
        if part.new:
            return Replacement(start, end, text) if part.new != lines[part.first : part.end] else None
        if part.end < len(lines):
            return Replacement(start, end + 1, "")
        return Replacement(start - 1, end, "") if part.first else Replacement(span.start, span.end, "")


def refuse_applied_edit(text: str, candidate: Candidate, replacements: Sequence[Replacement]) -> None:
    """Raise UnsafeError if the edit was probably made before."""
    span = candidate.span
    apart = all(one.end <= other.start for one, other in pairwise(replacements))
    if not apart or not all(span.start <= start <= end <= span.end for start, end, _ in replacements):
        raise UnsafeError("the changes cannot be distinguished")  # no other byte may change, even after a defect
    if not replacements or apply_replacements(text, replacements, *span) == text[span.start : span.end]:
        raise UnsafeError("the file already has {new}")
    old, new = "\n".join(candidate.reading.old), "\n".join(candidate.reading.new)
    start, end = replacements[0].start, replacements[-1].end
    result = apply_replacements(text, replacements, start, end)
    if _squash(result) == _squash(text[start:end]) and _squash(old) != _squash(new):
        raise UnsafeError("the file already has {new}, except for white space")
    if len(_squash(new)) >= _MIN_NEW_TEXT_CHARS and _has_new_text(text, new.strip("\n"), candidate):
        raise UnsafeError("the file already has {new}; the edit may be done already")
    removed = _squash("\n".join(text[start:end] for start, end, _ in replacements))
    for start, end, replacement in replacements:
        added = _extract_added(_squash(text[start:end]), _squash(replacement))
        if len(added) < _MIN_TELLING_CHARS or added in removed:
            continue
        around = 2 * len(replacement) + 100
        before, after = text[max(0, start - around) : start], text[end : end + around]
        if _squash(after).startswith(added) or _squash(before).endswith(added):
            raise UnsafeError("the file already has the lines that {new} adds")


def _has_new_text(text: str, new: str, candidate: Candidate) -> bool:
    """Whether the new text is elsewhere, or at the place itself although the edit does more than remove lines."""
    if text.find(new, 0, candidate.span.start) >= 0 or text.find(new, candidate.span.end) >= 0:
        return True
    if new not in text:
        return False
    reading = candidate.reading
    old_keys, new_keys = ([squash_spaces(line) for line in lines] for lines in (reading.old, reading.new))
    adds_lines = any(d > c for _, _, c, d in diff_sequences(old_keys, new_keys))
    return adds_lines or "".join(old_keys) == "".join(new_keys)


def _has_other_blanks(old: str, own: str) -> bool:
    """Whether strings of white space differ in two lines that are equal but for white space."""
    one, other = _BLANK_STRING.findall(old), _BLANK_STRING.findall(own)
    return bool(one and other) and one != other


def _extract_added(old: str, new: str) -> str:
    """Return the text that is added before or behind the old text, nothing if the old text is replaced."""
    if new.startswith(old):
        return new[len(old) :]
    return new[: len(new) - len(old)] if new.endswith(old) else ""


def _squash(text: str) -> str:
    return squash_spaces(text).replace("\n", "")


def _normalize_spaces(candidate: Candidate) -> Candidate:
    """Use plain spaces for no-break spaces and such that both texts have and the place does not."""
    old, new = candidate.reading.old, candidate.reading.new
    sent, wanted, own = "".join(old), "".join(new), "".join(candidate.lines)
    slips = [odd for odd in _ODD_SPACES if odd in wanted and sent.count(odd) not in {0, own.count(odd)}]
    for odd in slips:
        if odd in own:
            raise UnsafeError(_UNCLEAR.format(ord(odd)))
    plain = str.maketrans(dict.fromkeys(slips, " "))
    if not slips:
        return candidate
    return candidate.with_texts([line.translate(plain) for line in old], [line.translate(plain) for line in new])


def _move_to_file_depth(candidate: Candidate) -> Candidate:
    """If the new lines have the file's indentation, give it to the old lines too."""
    first = int(candidate.inside_line)
    own = {i: candidate.lines[j] for i, j in candidate.own_lines.items() if i >= first}
    old, new = candidate.reading.old, candidate.reading.new
    if not is_at_file_depth(old, ["", *new[1:]] if first else new, own):
        return candidate
    moved = [f"{extract_indent(own[i])}{line.lstrip()}" if i in own else line for i, line in enumerate(old)]
    return candidate.with_texts(moved, new)


class _CharacterMap:
    """Learns the file's characters for typographic ones from old lines beside the file's lines."""

    def __init__(self, pairs: Iterable[tuple[str, str]]) -> None:
        self._known: dict[str, str | None] = {}
        """None: the file has more than one."""
        for old, own in pairs:
            if not old.isascii():
                self._learn("".join(old.split()), "".join(own.split()))
        for signs in _TYPED_TOGETHER:
            if not signs.isdisjoint(self._known.values()):
                self._known = {odd: plain for odd, plain in PLAIN_CHARACTERS.items() if plain in signs} | self._known

    def _learn(self, one: str, other: str) -> None:
        """Learn from lines that differ in typography only."""
        self._known |= {odd: "" for odd in set(one) - set(other) if PLAIN_CHARACTERS.get(odd) == ""}
        if len(one) != len(other) or fold_typography(one) != fold_typography(other):
            return
        for odd, own in zip(one, other, strict=True):
            if odd in PLAIN_CHARACTERS:
                self._known[odd] = own if self._known.get(odd, own) == own else None

    def to_file(self, text: str) -> str:
        for odd, own in self._known.items():
            if odd in text and own is None:
                raise UnsafeError(_UNCLEAR.format(ord(odd)))
            text = text.replace(odd, own or "")
        return text


def _join_touching(parts: Iterable[_LinePart]) -> list[_LinePart]:
    joined: list[_LinePart] = []
    for part in parts:
        if joined and part.first <= joined[-1].end:
            first, end, new = joined[-1]
            joined[-1] = _LinePart(first, max(end, part.end), new + part.new)
        else:
            joined.append(part)
    return joined


def _extract_trailing(line: str) -> str:
    return line[len(line.rstrip()) :]


def _list_full(lines: Sequence[str]) -> list[int]:
    return [number for number, line in enumerate(lines) if line.strip()]
