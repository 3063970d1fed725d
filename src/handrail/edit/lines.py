"""Lines of a text: their spans, positions and endings."""

import itertools
import re
from bisect import bisect_left
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import AnyStr, Literal, NamedTuple

# § [edit.lines] Where in a text something is, in lines.


def list_line_ranges(text: str, spans: Iterable[tuple[int, int]]) -> Iterator[tuple[int, int]]:
    """The first and the last line (from 1) of each span, in the order of the text. Each part of it is counted once."""
    at = line = 0
    for start, end in spans:
        line += text.count("\n", at, start) if start >= at else -text.count("\n", start, at)
        inner = text.count("\n", start, max(start, end - 1))  # a newline at the end belongs to the line it ends
        yield line + 1, line + 1 + inner
        at = start


def count_lines(text: str) -> int:
    """How many lines a text has."""
    return text.count("\n") + (not text.endswith("\n") and text != "")


def find_line_start(text: str, position: int, back: int = 0) -> int:
    """Where the line of a position begins, or one that is some lines before it."""
    at = text.rfind("\n", 0, position) + 1
    for _ in range(back):
        if at == 0:
            break
        at = text.rfind("\n", 0, at - 1) + 1
    return at


def find_line_end(text: str, position: int, on: int = 0) -> int:
    """Where the line of a position ends, behind its newline, or one that is some lines after it."""
    at = position
    for _ in range(on + 1):
        at = text.find("\n", at) + 1 or len(text)
    return at


def format_line_range(first: int, last: int) -> str:
    """`line 3`, or `lines 3–5`."""
    return f"line {first}" if first == last else f"lines {first}–{last}"


# § [edit.trimming] How much two texts have in common at their ends.


def count_common_start(one: AnyStr, other: AnyStr) -> int:
    """How many characters, or bytes, two texts begin with alike."""
    low, high = 0, min(len(one), len(other))
    while low < high:  # halved, not walked: texts can be megabytes
        middle = (low + high + 1) // 2
        low, high = (middle, high) if one[low:middle] == other[low:middle] else (low, middle - 1)
    return low


def count_common_end(one: str, other: str) -> int:
    """How many characters two texts end with alike."""
    low, high = 0, min(len(one), len(other))
    while low < high:
        middle = (low + high + 1) // 2
        same = one[len(one) - middle : len(one) - low] == other[len(other) - middle : len(other) - low]
        low, high = (middle, high) if same else (low, middle - 1)
    return low


# § [edit.newlines] Plain newlines to think in, and the file's own to write: a change takes its line endings from
# § where it is made.

LineEnding = Literal["lf", "crlf", "mixed", "none"]


class Replacement(NamedTuple):
    """A part of a text, from `start` to before `end`, and what takes its place."""

    start: int
    end: int
    text: str


def detect_line_ending(text: str) -> LineEnding:
    """How the lines end."""
    if "\r" not in text:  # said at once, where counting takes a while
        return "lf" if "\n" in text else "none"
    newlines = text.count("\n")
    if not newlines:
        return "none"
    pairs = text.count("\r\n")
    return "crlf" if pairs == newlines else "mixed" if pairs else "lf"


def normalize_newlines(text: str) -> str:
    """The text with plain newlines."""
    return text.replace("\r\n", "\n") if "\r" in text else text


def restore_newlines(
    raw: str, text: str, ending: LineEnding, replacements: Sequence[Replacement], given: str
) -> Iterator[Replacement]:
    """Replacements in the plain text, in order, as what they are in the `raw` one with the file's own line endings.

    A file without any line takes the endings of the text it is `given`.
    """
    if ending == "crlf":
        yield from _in_pairs(text, replacements)
    elif ending == "mixed":
        yield from _in_mixed(raw, text, replacements)
    elif ending == "none" and detect_line_ending(given) == "crlf":
        yield from (Replacement(start, end, _paired(text)) for start, end, text in replacements)
    else:
        yield from replacements


def predict_line_ending(raw: str, ending: LineEnding, replacements: Sequence[Replacement]) -> LineEnding:
    """How the lines end when parts of a text, in order, are replaced by what `in_file` gave."""
    simple = ending == "crlf" or not ("\r" in raw or any("\r" in text for _, _, text in replacements))
    if not simple:
        return detect_line_ending(apply_replacements(raw, replacements))
    ends = (0, *(end for _, end, _ in replacements))
    starts = (*(start for start, _, _ in replacements), len(raw))
    stays = any(raw.find("\n", end, start) >= 0 for end, start in zip(ends, starts, strict=True))
    if not stays and not any("\n" in text for _, _, text in replacements):
        return "none"
    return "crlf" if ending == "crlf" else "lf"


def apply_replacements(text: str, replacements: Sequence[Replacement], start: int = 0, end: int | None = None) -> str:
    """The text, or a part of it, with parts replaced, in order."""
    parts: list[str] = []
    for replacement in replacements:
        parts += (text[start : replacement.start], replacement.text)
        start = replacement.end
    return "".join((*parts, text[start:end]))


def _paired(text: str) -> str:
    return text.replace("\n", "\r\n")


def _in_pairs(text: str, replacements: Sequence[Replacement]) -> Iterator[Replacement]:
    """Every newline is one character longer: they are counted from one replacement to the next."""
    at = longer = 0
    for start, end, new in replacements:
        longer += text.count("\n", at, start)
        within = text.count("\n", start, end)
        yield Replacement(start + longer, end + longer + within, _paired(new))
        at, longer = end, longer + within


def _in_mixed(raw: str, text: str, replacements: Sequence[Replacement]) -> Iterator[Replacement]:
    """Lines that stay keep the ending they have, whichever it is; new ones take it from the lines they replace."""
    pairs = [found.start() - number for number, found in enumerate(re.finditer("\r\n", raw))]
    until, ending = -1, "\n"
    for replacement in replacements:
        start, end, new = _changed_part(text, replacement)
        first, last = start + bisect_left(pairs, start), end + bisect_left(pairs, end)
        if until < last and "\n" in new:  # looked for once in a line, which can be the whole file
            until, ending = _ending_at(raw, last)
        yield Replacement(first, last, _ended_alike(new, raw[first:last], ending))


def _changed_part(text: str, replacement: Replacement) -> Replacement:
    start, end, new = replacement
    old = text[start:end]
    head = count_common_start(old, new)
    tail = count_common_end(old[head:], new[head:])
    return Replacement(start + head, end - tail, new[head : len(new) - tail])


def _ended_alike(new: str, old: str, otherwise: str) -> str:
    """New lines end as those that they replace, or as the line that they are put into."""
    endings: list[str] = re.findall("\r?\n", old) or [otherwise]
    *lines, last = new.split("\n")
    most = len(endings) - 1
    return "".join(f"{line}{endings[min(number, most)]}" for number, line in enumerate(lines)) + last


def _ending_at(raw: str, position: int) -> tuple[int, str]:
    """How far the line goes that a position is in, and its ending, or that of the one before where it is the last."""
    at = raw.find("\n", position)
    last = raw.rfind("\n", 0, position) if at < 0 else at
    return len(raw) if at < 0 else at, "\r\n" if last > 0 and raw[last - 1] == "\r" else "\n"


# § [edit.matching] Finds a text in another, character for character.  A finder says where the first place at or
# § behind a position is. So who needs to know that a place is the only one looks for two, and who wants all of them
# § goes on.


class Span(NamedTuple):
    """A part of a text, from `start` to before `end`."""

    start: int
    end: int


Finder = Callable[[int], Span | None]


def build_exact_finder(text: str, old: str) -> Finder:
    """Character for character."""

    def find(start: int) -> Span | None:
        at = text.find(old, start)
        return None if at < 0 else Span(at, at + len(old))

    return find


MAX_PLACES = 100_000
"""Places that are replaced in one step."""
MAX_COUNTED_PLACES = 1_000
"""Places that are counted where there should be one."""
_MAX_COMPARED_CHARS = 20_000_000
"""Characters that counting may compare: every place costs the length of what is looked for."""


class ExactMatch(NamedTuple):
    """How to find more, and the first place."""

    find: Finder
    first: Span

    @property
    def unique(self) -> bool:
        """Whether there is no other place, not even one that overlaps the first."""
        return self.find(self.first.start + 1) is None

    def separate(self) -> Iterator[Span]:
        """All places that do not overlap one before them."""
        found: Span | None = self.first
        while found is not None:
            yield found
            found = self.find(found.end)

    def overlapping(self) -> Iterator[Span]:
        """All places."""
        found: Span | None = self.first
        while found is not None:
            yield found
            found = self.find(found.start + 1)


def find_exact_match(text: str, old: str) -> ExactMatch | None:
    """Where a text is, which is not empty; None when it is not there."""
    find = build_exact_finder(text, old)
    first = find(0)
    return None if first is None else ExactMatch(find, first)


def list_places(match: ExactMatch, most: int) -> tuple[list[Span], bool]:
    """The places, overlapping ones too, and whether these are all: counting ends where it would take long."""
    length = match.first.end - match.first.start
    enough = max(4, min(most, _MAX_COMPARED_CHARS // (length + 1)))
    found = list(itertools.islice(match.overlapping(), enough + 1))
    return found[:enough], len(found) <= enough
