"""The file that a patch is applied to."""

import re
from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property
from itertools import accumulate
from typing import Any

import msgspec

from handrail.edit.fuzzy.normalize import extract_indent
from handrail.edit.lines import Replacement, Span, format_line_range
from handrail.edit.patch.hunks import Hunk
from handrail.protocol.errors import ErrorCode, ToolError

_MAX_TRIED_PLACES = 50
"""Places of a line that are tried one by one."""
_MAX_PASSED_LINES = 2_000_000_000
"""Lines that are passed in search of common lines."""
_CHARACTERS = 0x110000
_CLOSERS = ("}", ")", "]", "end")
_OPENERS = ("{", "(", "[", ":", "=>", "do", "then")
_NOTHING = "Nothing was changed."
_MORE_CONTEXT = "Add lines around it, or an @@ line that names the function or class it is in."


class PlacedHunk(msgspec.Struct, frozen=True):
    """The lines of a hunk, from 0, with its replacements."""

    start: int
    end: int
    strategy: str
    replacements: tuple[Replacement, ...]


class PatchTarget:
    """A file with the hunks that are placed in it so far, in order."""

    def __init__(self, text: str, path: str, readable: str | None = None) -> None:
        self.lines = TextLines(text)
        self.path = path
        self._readable = None if readable is None or readable == text else readable
        self.placed: list[PlacedHunk] = []
        self._offset = 0
        """The offset of the last hunk from its stated line."""

    @property
    def low(self) -> int:
        """The first line, from 0, where the next hunk can start."""
        return self.placed[-1].end if self.placed else 0

    def add(self, hunk: Hunk, placed: PlacedHunk) -> None:
        if hunk.stated is not None:
            self._offset = placed.start - _find_stated_start(hunk)
        self.placed.append(placed)

    def find_stated(self, hunk: Hunk) -> int | None:
        """Return the line, from 0, where a hunk says it starts, shifted as far as the hunk before was off."""
        return None if hunk.stated is None else _find_stated_start(hunk) + self._offset

    def is_taken(self, start: int, end: int) -> bool:
        number = bisect_right(self.placed, start, key=lambda placed: placed.end)
        return number < bisect_left(self.placed, end, key=lambda placed: placed.start)

    def cut(self, low: int, high: int) -> tuple[str, str]:
        """Return lines as text, and as people see them."""
        text, starts = self.lines.cut(low, high), self.lines.starts
        return text, text if self._readable is None else self._readable[starts[low] : starts[high]]

    def build_error(self, code: ErrorCode, hunk: Hunk, message: str, details: Mapping[str, Any]) -> ToolError:
        named = {"path": self.path, "hunk": hunk.number, "patchLine": hunk.line}
        if hunk.unsigned is not None and code == "NO_MATCH":
            message = f"{message} Line {hunk.unsigned} of the patch must begin with a space, - or +."
        prefix = f"Hunk {hunk.number} of {self.path} (line {hunk.line} of the patch)"
        return ToolError(code, f"{prefix}: {message} {_NOTHING}", details={**details, **named})

    def build_displaced_error(self, hunk: Hunk, start: int, end: int) -> ToolError:
        if hunk.at_end:
            reason = "not at the end of the file, as *** End of File says"
        elif hunk.anchors:
            reason = "not inside the block of its @@ line. Correct or remove the @@ line"
        else:
            reason = f"not behind hunk {hunk.number - 1}, and hunks go in the order of the file"
        message = f"its old lines are in {format_line_range(start + 1, end)}, which is {reason}."
        return self.build_error("NO_MATCH", hunk, message, {"elsewhere": {"first": start + 1, "last": end}})

    def build_repeated_error(self, hunk: Hunk, places: Sequence[int], *, all_of_them: bool) -> ToolError:
        from handrail.edit.refusals import build_ambiguous_error  # noqa: PLC0415  most hunks are not refused

        starts, length = self.lines.starts, len(hunk.old)
        spans = [Span(starts[at], starts[min(at + length, len(starts) - 1)]) for at in places]
        _, readable = self.cut(0, len(self.lines))
        return self.build_match_error(hunk, build_ambiguous_error(readable, "exact", spans, all_of_them=all_of_them))

    def build_match_error(self, hunk: Hunk, error: ToolError) -> ToolError:
        """Build the error of a hunk from that of its edit. An ambiguous place is named in few words."""
        if error.code == "AMBIGUOUS_MATCH":
            message = _describe_places(error.named_details)
        else:
            message = f"{error.message[:1].lower()}{error.message[1:]}".replace(f" {_NOTHING}", "")
        return self.build_error(error.code, hunk, message, error.named_details)


def _find_stated_start(hunk: Hunk) -> int:
    return (hunk.stated or 0) - bool(hunk.old)


def _describe_places(details: Mapping[str, Any]) -> str:
    places: list[dict[str, Any]] = details.get("places") or []
    count = f"{'' if details.get('all', True) else 'more than '}{details.get('count', len(places))} times"
    where = ", ".join(dict.fromkeys(str(place["line"]) for place in places))
    more = ", …" if details.get("count", 0) > len(places) else ""
    return f"its old lines occur {count} (lines {where}{more}). {_MORE_CONTEXT}"


class IndentBlock(msgspec.Struct):
    """A line with the deeper lines below it, up to the line that closes them. `} else {` shares the block."""

    depth: int
    last: int
    """Behind the last line of the block."""
    parent: "IndentBlock | None" = None
    opens: bool = False

    @property
    def alone(self) -> bool:
        """Whether nothing belongs to the line."""
        return not self.opens and self.parent is not None

    @property
    def end(self) -> int:
        """Behind the last line of the block, or of the block that a line alone is in."""
        return self.last if self.opens or self.parent is None else self.parent.last


class TextLines:
    """The lines of a text with plain newlines. The last line counts as ended, whether it is or not."""

    def __init__(self, text: str) -> None:
        self.ended = not text or text.endswith("\n")
        """Whether the last line has its newline."""
        self.text = text if self.ended else f"{text}\n"
        self.lines = self.text.split("\n")[:-1]
        self.starts = [0, *accumulate(len(line) + 1 for line in self.lines)]
        """The start of each line, and the end of the text."""
        self._passed = 0
        self._prefixed: dict[str, list[int]] = {}

    def __len__(self) -> int:
        return len(self.lines)

    def line_at(self, position: int) -> int:
        """Return the first line, from 0, that starts at a position or behind it."""
        return bisect_left(self.starts, position)

    def cut(self, low: int, high: int) -> str:
        return self.text[self.starts[low] : self.starts[high]]

    def are_at(self, at: int, wanted: Sequence[str]) -> bool:
        return at >= 0 and self.lines[at : at + len(wanted)] == wanted

    def find_lines(self, wanted: Sequence[str], low: int, high: int) -> Iterator[int]:
        """Yield where the wanted lines are that start from `low` to before `high`. There is at least one."""
        rarest = min(range(len(wanted)), key=lambda number: len(self._numbers.get(wanted[number], ())))
        known = self._numbers.get(wanted[rarest], [])
        if len(known) <= _MAX_TRIED_PLACES:
            first, last = bisect_left(known, low + rarest), bisect_left(known, high + rarest)
            starts = (number - rarest for number in known[first:last])
        else:
            starts = self._find_common_lines(wanted, low, high)
        return (at for at in starts if self.are_at(at, wanted))

    def _find_common_lines(self, wanted: Sequence[str], low: int, high: int) -> Iterator[int]:
        """Search lines that are all common. Each distinct line becomes a character, so that `str.find` does it."""
        encoded = "".join(self._codes[line] for line in wanted)
        last = min(high - 1 + len(encoded), len(self))
        at = self._encoded.find(encoded, low, last)
        while at >= 0:
            self._count_passed(at + 1 - low)
            yield at
            low = at + 1
            at = self._encoded.find(encoded, low, last)
        self._count_passed(last - low)

    def _count_passed(self, lines: int) -> None:
        self._passed += max(lines, 0)
        if self._passed > _MAX_PASSED_LINES:
            message = "the lines of its hunks occur too often in the file. Send fewer hunks."
            raise ToolError("LIMIT_EXCEEDED", message)

    def find_stripped(self, wanted: str) -> list[int]:
        """Return the lines that differ at most in the white space around them."""
        return self._stripped.get(wanted.strip(), [])

    def find_prefixed(self, wanted: str) -> list[int]:
        """Return the lines that start with these whole words, with any white space between them."""
        words = " ".join(wanted.split())
        if words not in self._prefixed:
            self._prefixed[words] = sorted(self._search_sorted(words)) if re.search(r"\w", words) else []
        return self._prefixed[words]

    def _search_sorted(self, words: str) -> Iterator[int]:
        spaced, order = self._sorted
        for at in range(bisect_left(order, words, key=spaced.__getitem__), len(order)):
            line = spaced[order[at]]
            if not line.startswith(words):
                return
            if not re.match(r"\w\w", line[len(words) - 1 : len(words) + 1]):
                yield order[at]

    @cached_property
    def _sorted(self) -> tuple[list[str], list[int]]:
        """The lines with single spaces, and their numbers in alphabetical order."""
        spaced = [" ".join(line.split()) for line in self.lines]
        return spaced, sorted(range(len(spaced)), key=spaced.__getitem__)

    @cached_property
    def blocks(self) -> list[IndentBlock]:
        return _parse_blocks(self.lines)

    @cached_property
    def _numbers(self) -> dict[str, list[int]]:
        return _index(self.lines)

    @cached_property
    def _stripped(self) -> dict[str, list[int]]:
        return _index([line.strip() for line in self.lines])

    @cached_property
    def _codes(self) -> dict[str, str]:
        return {line: chr(number % _CHARACTERS) for number, line in enumerate(self._numbers)}

    @cached_property
    def _encoded(self) -> str:
        return "".join(self._codes[line] for line in self.lines)


def _index(lines: Sequence[str]) -> dict[str, list[int]]:
    numbers: dict[str, list[int]] = {}
    for number, line in enumerate(lines):
        numbers.setdefault(line, []).append(number)
    return numbers


def _parse_blocks(lines: Sequence[str]) -> list[IndentBlock]:
    blocks = [IndentBlock(-1, len(lines))] * len(lines)
    still_open = [IndentBlock(-1, len(lines))]  # the outermost first
    for number, line in enumerate(lines):
        words = line.strip()
        if words:
            blocks[number] = _parse_block(still_open, number, words, len(extract_indent(line).expandtabs(8)))
    for block in still_open:
        block.last = len(lines)
    return blocks


def _parse_block(still_open: list[IndentBlock], number: int, words: str, depth: int) -> IndentBlock:
    """Return the block of the next line, and close the blocks that it ends."""
    outer = bisect_left(still_open, depth, key=lambda block: block.depth)
    parent = still_open[outer - 1]
    if words.startswith("#"):  # a comment or a preprocessor line may stand anywhere and ends nothing
        return IndentBlock(depth, number + 1, parent)
    beside = next((block for block in still_open[outer:] if block.depth == depth), None)
    closes = words.startswith(_CLOSERS) or words == "{"
    for ended in still_open[outer:]:
        ended.last = number + (closes and ended is beside)
    del still_open[outer:]
    if beside is None or not (closes and words.endswith(_OPENERS)):
        beside = IndentBlock(depth, number + 1, parent)
    else:
        beside.opens = True
    parent.opens = True
    still_open.append(beside)
    return beside
