"""What exactly differs between the lines that were looked for and those that are there."""

import re
from collections.abc import Iterator

import msgspec

from handrail.edit.refusals.closest import Region, find_similar_piece
from handrail.edit.refusals.visible import escape_white_space, format_code_points
from handrail.edit.trimming import count_common_end, count_common_start

_MAX_COMPARED_CHARS = 400
_WORD = re.compile(r"\w+|[^\w\s]")


class LineDifference(msgspec.Struct, frozen=True):
    """What a line of the file has, and what stands in its place in the text that was looked for."""

    line: int | None
    """None: no line of the file is there for it."""
    file: str
    old: str | None
    """None: no line of the text is there for it."""

    @property
    def only_space(self) -> bool:
        """Whether nothing but white space differs."""
        if self.line is None or self.old is None:
            return not (self.file.strip() or (self.old or "").strip())
        return self.file.split() == self.old.split()

    def __str__(self) -> str:
        return self.describe()

    def describe(self, name: str = "oldText") -> str:
        """The difference in words; the text that was looked for by its name."""
        old = escape_white_space(self.old or "")
        if self.line is None:
            return f"the file has no line {old} there" if self.old else f"the file has no blank line there, {name} has"
        file = escape_white_space(self.file)
        if self.old is None:
            what = f"line {self.line} ({file})" if self.file else f"line {self.line}, which is blank,"
            return f"{what} is not in {name}"
        marks = format_code_points(self.file, self.old), format_code_points(self.old, self.file)
        return f"line {self.line} has {file or 'nothing'}{marks[0]}, {name} has {old or 'nothing'}{marks[1]}"


def list_line_differences(region: Region) -> Iterator[LineDifference]:
    """The lines that differ, in order."""
    edge = len(region.wanted) - 1
    for i, j in region.pairs:
        if j is None:
            yield LineDifference(None, "", region.wanted[i or 0])
        elif i is None:
            yield LineDifference(region.first + j, region.lines[j], None)
        else:
            bits = _bits(region.lines[j], region.wanted[i], opens=i == 0, closes=i == edge)
            if bits[0] != bits[1]:
                yield LineDifference(region.first + j, *bits)


def _bits(line: str, wanted: str, *, opens: bool, closes: bool) -> tuple[str, str]:
    """The parts of two lines that differ, out to whole words and whole white space.

    The first and the last line that are looked for may be parts of lines.
    """
    wanted = wanted[:_MAX_COMPARED_CHARS]
    line = _overlap(find_similar_piece(line, wanted), wanted, opens=opens, closes=closes)
    head = count_common_start(line, wanted)
    tail = count_common_end(line[head:], wanted[head:])
    while head and (_inside(line, head) or _inside(wanted, head)):
        head -= 1
    while tail and (_inside(line, len(line) - tail) or _inside(wanted, len(wanted) - tail)):
        tail -= 1
    return line[head : len(line) - tail], wanted[head : len(wanted) - tail]


def _inside(text: str, at: int) -> bool:
    """Whether a position is inside a word, or inside white space."""
    return 0 < at < len(text) and re.match(r"\w\w|\s\s", text[at - 1 : at + 1]) is not None


def _overlap(line: str, wanted: str, *, opens: bool, closes: bool) -> str:
    """The part of a line that `wanted` is about, where it need not be all of it."""
    words = list(_WORD.finditer(wanted))
    if not words or line.endswith(wanted):
        return wanted if words and opens else line
    offset = _offset(line, words)
    start = _find_start(line, wanted, words[0], offset) if opens else 0
    end = len(line) - _find_start(line[::-1], wanted[::-1], _reversed(wanted), len(line) - len(wanted) - offset)
    return line[start:end] if closes else line[start:]


def _offset(line: str, words: list[re.Match[str]]) -> int:
    """How much further on in the line the word is that both have and the line has least often; the longest of them."""
    there = ((word, _places(line, word[0])) for word in words)
    known = [(len(places), -len(word[0]), places[0] - word.start()) for word, places in there if places]
    return min(known)[2] if known else 0


def _find_start(line: str, wanted: str, first: re.Match[str], offset: int) -> int:
    """Where in the line `wanted` begins, by the place of its first word that fits best."""
    places = _places(line, first[0])
    if not places:
        at = max(0, offset)
        while _inside(line, at):
            at -= 1
        return at
    place = min(places, key=lambda place: abs(place - first.start() - offset))
    # White space before the first word belongs to it, however much there is.
    indented = wanted[:1].isspace() and not line[:place].strip()
    return 0 if indented else max(0, place - first.start())


def _reversed(wanted: str) -> re.Match[str]:
    """The last word, seen from the end."""
    found = _WORD.search(wanted[::-1])
    if found is None:
        raise AssertionError("a text with a first word has a last one")
    return found


def _places(line: str, word: str) -> list[int]:
    """Where a word is, not as a part of another."""
    return [found.start() for found in re.finditer(rf"(?<!\w){re.escape(word)}(?!\w)|{re.escape(word)}(?<!\w)", line)]
