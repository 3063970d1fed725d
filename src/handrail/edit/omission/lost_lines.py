"""Where a placeholder comes and real lines go, hunk by hunk."""

from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import islice

from handrail.edit.hunks import LineChange, diff_lines
from handrail.edit.omission.guard import Placeholder
from handrail.edit.omission.marks import OmissionMark, may_be_mark, parse_mark
from handrail.edit.omission.places import is_explicit, is_placeholder_here, may_be_text

_MAX_GAP_LINES = 3
"""Lines without a word between two hunks that are judged as one."""
_MAX_PARSED_LINES = 5_000
"""Lines of each text that are taken apart."""
_MAX_TEXT_LINES = 1
"""Lines whose place dots may take that can be meant as text."""


def list_placeholders(old: str, new: str, path: str, *, certain: bool) -> Iterator[Placeholder]:
    """The placeholders of the new text in whose hunk lines of the old one are lost."""
    before, after = old.split("\n"), new.split("\n")
    marks = _new_marks(before, after, path, certain=certain)
    if not marks:
        return
    gone = Counter(map(str.strip, before)) - Counter(map(str.strip, after))
    all_marks, old_marks = _marks(after), _marks(before)
    for part in _joined(diff_lines(before, after), before):
        inside = [number for number in marks if part.c <= number < part.d]
        if not inside:
            continue
        lost = sum(before[at].strip() in gone for at in _real(before, old_marks, part.a, part.b))
        come = sum(1 for _ in _real(after, all_marks, part.c, part.d))
        for number in inside:
            mark = marks[number]
            meant = _MAX_TEXT_LINES if mark.bare and may_be_text(number, after) else 0
            if lost > come + meant or (lost and is_explicit(mark, path)):
                yield Placeholder(number + 1, after[number].strip(), lost)


def _new_marks(before: Sequence[str], after: Sequence[str], path: str, *, certain: bool) -> dict[int, OmissionMark]:
    """The marks of the new text, by line, that the old one does not have."""
    found = {
        number: mark
        for number, mark in _marks(after, frozenset(before)).items()
        if (mark.certain or not certain) and is_placeholder_here(mark, number, after, path)
    }
    said = {mark.words for mark in _marks(before).values()} if found else ()
    return {number: mark for number, mark in found.items() if mark.words not in said}


def _marks(lines: Sequence[str], known: frozenset[str] = frozenset()) -> dict[int, OmissionMark]:
    """The marks among lines, but for those that are known; of very many that could be one, the first."""
    maybe = (number for number, line in enumerate(lines) if line not in known and may_be_mark(line))
    looked = ((number, parse_mark(lines[number])) for number in islice(maybe, _MAX_PARSED_LINES))
    return {number: mark for number, mark in looked if mark}


def _real(lines: Sequence[str], marks: dict[int, OmissionMark], start: int, end: int) -> Iterator[int]:
    """The lines with which something would be lost."""
    return (number for number in range(start, end) if number not in marks and _has_words(lines[number]))


def _has_words(line: str) -> bool:
    return any(map(str.isalnum, line))


def _joined(parts: Iterator[LineChange], before: Sequence[str]) -> Iterator[LineChange]:
    """Hunks with nothing but brackets and blank lines between them are one: where a diff divides is chance."""
    last: LineChange | None = None
    for part in parts:
        if last and part.a - last.b <= _MAX_GAP_LINES and not any(map(_has_words, before[last.b : part.a])):
            last = LineChange(last.a, part.b, last.c, part.d)
            continue
        if last:
            yield last
        last = part
    if last:
        yield last
