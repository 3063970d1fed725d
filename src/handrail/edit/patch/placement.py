"""Places of hunks in the lines of a file, and errors about them."""

import re
from bisect import bisect_left, bisect_right
from collections.abc import Hashable, Iterator, Mapping, Sequence
from functools import cached_property
from itertools import accumulate
from typing import Any, NamedTuple, TypeVar

import msgspec

from handrail.edit.lines import Replacement, Span, format_line_range
from handrail.edit.omission import find_placeholder
from handrail.edit.patch.model import Hunk, Sign
from handrail.protocol.errors import ErrorCode, ToolError
from handrail.protocol.text import quote_text

# § [edit.patch.blocks] Which lines belong to a line: those that are further in, up to what closes them.

_CLOSERS = ("}", ")", "]", "end")
_OPENERS = ("{", "(", "[", ":", "=>", "do", "then")


class IndentBlock(NamedTuple):
    """What belongs to a line."""

    end: int
    """Behind its last line; where nothing belongs to the line, behind the last one that is beside it."""
    alone: bool
    """Whether nothing belongs to the line."""


def parse_indent_blocks(lines: Sequence[str]) -> list[IndentBlock]:
    """The block of every line. Each is looked at once."""
    groups: list[_BlockGroup] = [_BlockGroup(-1, len(lines))] * len(lines)
    still_open: list[_BlockGroup] = [_BlockGroup(-1, len(lines))]  # the outermost first
    for number, line in enumerate(lines):
        words = line.strip()
        if words:
            groups[number] = _placed(still_open, number, words, _indentation(line))
    for group in still_open:
        group.end = len(lines)
    return [_block(group) for group in groups]


class _BlockGroup(msgspec.Struct):
    """A line, and those at its depth that go on with what it opened."""

    depth: int
    end: int
    around: "_BlockGroup | None" = None
    opens: bool = False


def _placed(still_open: list[_BlockGroup], number: int, words: str, depth: int) -> _BlockGroup:
    """The group of the next line. What it ends is open no more."""
    outer = bisect_left(still_open, depth, key=lambda group: group.depth)
    around = still_open[outer - 1]
    if words.startswith("#"):  # a comment, or what a preprocessor reads, may stand anywhere and ends nothing
        return _BlockGroup(depth, number + 1, around)
    beside = next((group for group in still_open[outer:] if group.depth == depth), None)
    closes = words.startswith(_CLOSERS) or words == "{"
    for ended in still_open[outer:]:
        ended.end = number + (closes and ended is beside)
    del still_open[outer:]
    if beside is None or not (closes and words.endswith(_OPENERS)):
        beside = _BlockGroup(depth, number + 1, around)
    else:
        beside.opens = True
    around.opens = True
    still_open.append(beside)
    return beside


def _block(group: _BlockGroup) -> IndentBlock:
    if group.opens or group.around is None:
        return IndentBlock(group.end, alone=False)
    return IndentBlock(group.around.end, alone=True)


def _indentation(line: str) -> int:
    return len(line[: len(line) - len(line.lstrip())].expandtabs(8))


# § [edit.patch.text_lines] The lines of a text, and where in it some lines are that follow each other.

Key = TypeVar("Key", bound=Hashable)
_MAX_TRIED_PLACES = 50
"""Places of a line that are looked at one by one."""
_CHARACTERS = 0x110000
_MAX_PASSED_LINES = 2_000_000_000
"""Lines of a text that are passed in search of lines that are in it often."""


class TextLines:
    """A text with plain newlines, line by line; the last one counts as ended, whether it is or not."""

    def __init__(self, text: str) -> None:
        self.ended = not text or text.endswith("\n")
        """Whether the last line has its newline."""
        self.text = text if self.ended else f"{text}\n"
        self.lines = self.text.split("\n")[:-1]
        self.starts = [0, *accumulate(len(line) + 1 for line in self.lines)]
        """Where each line begins, and where the text ends."""
        self._passed = 0
        self._named: dict[str, list[int]] = {}

    def __len__(self) -> int:
        return len(self.lines)

    def line_at(self, position: int) -> int:
        """The line, from 0, that begins at a position or is the next to begin behind it."""
        return bisect_left(self.starts, position)

    def part(self, low: int, high: int) -> str:
        """Lines as text."""
        return self.text[self.starts[low] : self.starts[high]]

    def are_at(self, at: int, wanted: Sequence[str]) -> bool:
        """Whether lines are exactly there."""
        return at >= 0 and self.lines[at : at + len(wanted)] == wanted

    def places(self, wanted: Sequence[str], low: int, high: int) -> Iterator[int]:
        """Where lines are exactly that begin between two others. `wanted` is not empty."""
        rarest = min(range(len(wanted)), key=lambda number: len(self._where.get(wanted[number], ())))
        known = self._where.get(wanted[rarest], [])
        few = len(known) <= _MAX_TRIED_PLACES
        found = _numbers_between(known, low + rarest, high + rarest) if few else self._often(wanted, low, high)
        return (at for at in ((each - rarest if few else each) for each in found) if self.are_at(at, wanted))

    def _often(self, wanted: Sequence[str], low: int, high: int) -> Iterator[int]:
        """Where lines may be, of which each is there often. Lines are compared as characters, one for each kind."""
        kinds = "".join(chr(self._kinds[line]) for line in wanted)
        last = min(high - 1 + len(kinds), len(self))
        at = self._as_kinds.find(kinds, low, last)
        while at >= 0:
            self._count(at + 1 - low)
            yield at
            low = at + 1
            at = self._as_kinds.find(kinds, low, last)
        self._count(last - low)

    def _count(self, lines: int) -> None:
        self._passed += max(lines, 0)
        if self._passed > _MAX_PASSED_LINES:
            message = "the lines of its hunks are in the file too often to look for all of them. Send fewer hunks."
            raise ToolError("LIMIT_EXCEEDED", message)

    def block(self, at: int) -> IndentBlock:
        """What belongs to a line."""
        return self._blocks[at]

    def alike(self, wanted: str) -> list[int]:
        """The lines that are the same but for the white space around them."""
        return self._stripped.get(wanted.strip(), [])

    def beginning(self, wanted: str) -> list[int]:
        """The lines that begin with whole words, whatever white space is between them."""
        words = " ".join(wanted.split())
        if words not in self._named:
            self._named[words] = sorted(self._begin(words)) if re.search(r"\w", words) else []
        return self._named[words]

    def _begin(self, words: str) -> Iterator[int]:
        """Those that begin alike stand together in the order of the alphabet."""
        spaced, order = self._in_order
        for at in range(bisect_left(order, words, key=spaced.__getitem__), len(order)):
            line = spaced[order[at]]
            if not line.startswith(words):
                return
            if not re.match(r"\w\w", line[len(words) - 1 : len(words) + 1]):
                yield order[at]

    @cached_property
    def _in_order(self) -> tuple[list[str], list[int]]:
        spaced = [" ".join(line.split()) for line in self.lines]
        return spaced, sorted(range(len(spaced)), key=spaced.__getitem__)

    @cached_property
    def _blocks(self) -> list[IndentBlock]:
        return parse_indent_blocks(self.lines)

    @cached_property
    def _where(self) -> dict[str, list[int]]:
        return _numbers(self.lines)

    @cached_property
    def _stripped(self) -> dict[str, list[int]]:
        return _numbers([line.strip() for line in self.lines])

    @cached_property
    def _kinds(self) -> dict[str, int]:
        return {line: kind % _CHARACTERS for kind, line in enumerate(self._where)}

    @cached_property
    def _as_kinds(self) -> str:
        return "".join(chr(self._kinds[line]) for line in self.lines)


def _numbers_between(numbers: Sequence[int], low: int, high: int) -> Iterator[int]:
    return (numbers[at] for at in range(bisect_left(numbers, low), bisect_left(numbers, high)))


def _numbers(keys: Sequence[Key]) -> dict[Key, list[int]]:
    found: dict[Key, list[int]] = {}
    for number, key in enumerate(keys):
        found.setdefault(key, []).append(number)
    return found


# § [edit.patch.signed_parts] What a hunk changes, line by line, as its signs say it: so lines that stay are known
# § among others like them.


def split_signed_parts(
    signs: Sequence[Sign], old: Sequence[str], new: Sequence[str]
) -> list[tuple[int, int, list[str]]] | None:
    """Ranges of the old lines, and the new ones that take their place. None where the two are not as signs say."""
    parts: list[tuple[int, int, list[str]]] = []
    start = at = seen = 0
    added: list[str] = []
    for sign in (*signs, " "):
        if sign == " ":
            if added or start < at:
                parts.append((start, at, added))
            start, added = at + 1, []
            if at < len(old) and old[at : at + 1] != new[seen : seen + 1]:
                return None
        elif sign == "+":
            added += new[seen : seen + 1]
        at += sign != "+"
        seen += sign != "-"
    return parts if (at - 1, seen - 1) == (len(old), len(new)) else None


def strip_blank_edges(signs: Sequence[Sign], lines: Sequence[str], count: int) -> Iterator[Sequence[Sign]]:
    """The signs of a hunk for a place with so many lines: without blank lines that stay, at either end of it."""
    missing = sum(sign != "+" for sign in signs) - count
    lead = next((n for n, (sign, line) in enumerate(zip(signs, lines, strict=True)) if sign != " " or line.strip()), 0)
    tail = next((n for n, sign in enumerate(reversed(signs)) if sign != " " or lines[-1 - n].strip()), 0)
    for first in range(max(0, missing - tail), min(lead, missing) + 1):
        yield signs[first : len(signs) - (missing - first)]


# § [edit.patch.fit] Hunks that have their place, and the text that they are put into.


class PlacedHunk(msgspec.Struct, frozen=True):
    """Where a hunk is, in lines from 0, and what it replaces there."""

    start: int
    end: int
    strategy: str
    replacements: tuple[Replacement, ...]


class PatchTarget:
    """A file that hunks are put into, one behind the other."""

    def __init__(self, text: str, path: str, readable: str | None = None) -> None:
        self.lines = TextLines(text)
        self.path = path
        self._readable = None if readable is None or readable == text else readable
        self.fits: list[PlacedHunk] = []
        self._offset = 0
        """How far the last hunk that stated its line was off."""

    @property
    def low(self) -> int:
        """The first line, from 0, that the next hunk can begin with."""
        return self.fits[-1].end if self.fits else 0

    def add(self, hunk: Hunk, fit: PlacedHunk) -> None:
        """The next hunk has its place."""
        if hunk.stated is not None:
            self._offset = fit.start - _stated(hunk)
        self.fits.append(fit)

    def stated(self, hunk: Hunk) -> int | None:
        """The line, from 0, that a hunk says it begins with, or that it pushes down."""
        return None if hunk.stated is None else _stated(hunk) + self._offset

    def taken(self, start: int, end: int) -> bool:
        """Whether lines are those of a hunk before."""
        number = bisect_right(self.fits, start, key=lambda fit: fit.end)
        return number < bisect_left(self.fits, end, key=lambda fit: fit.start)

    def part(self, low: int, high: int) -> tuple[str, str]:
        """Lines as text, and as they can be shown."""
        text = self.lines.part(low, high)
        shown = self._readable
        return text, text if shown is None else shown[self.lines.starts[low] : self.lines.starts[high]]


def _stated(hunk: Hunk) -> int:
    return (hunk.stated or 0) - bool(hunk.old)


# § [edit.patch.refusing] Why a hunk does not fit, in words that help: which one, what is there instead, what to do
# § next.

_NOTHING = "Nothing was changed."
_MORE_CONTEXT = "Add lines around it, or an @@ line that names the function or class it is in."


def build_displaced_error(target: PatchTarget, hunk: Hunk, start: int, end: int) -> ToolError:
    """Old lines that are not where the hunk says."""
    if hunk.at_end:
        reason = "not at the end of the file, as *** End of File says"
    elif hunk.anchors:
        reason = "not in what belongs to its @@ line. Name what they are in, or leave that line out"
    else:
        reason = f"not behind hunk {hunk.number - 1}, and hunks go in the order of the file"
    message = f"its old lines are in {format_line_range(start + 1, end)}, which is {reason}."
    return _refusal("NO_MATCH", hunk, target.path, message, {"elsewhere": {"first": start + 1, "last": end}})


def build_repeated_error(target: PatchTarget, hunk: Hunk, places: Sequence[int], *, all_of_them: bool) -> ToolError:
    """Old lines that are there several times."""
    from handrail.edit.refusals import build_ambiguous_error  # noqa: PLC0415  as said

    starts, length = target.lines.starts, len(hunk.old)
    spans = [Span(starts[at], starts[min(at + length, len(starts) - 1)]) for at in places]
    _, readable = target.part(0, len(target.lines))
    return build_hunk_error(target, hunk, build_ambiguous_error(readable, "exact", spans, all_of_them=all_of_them))


def build_hunk_error(target: PatchTarget, hunk: Hunk, error: ToolError) -> ToolError:
    """What the engine of edit says of a hunk. The lines of an unclear place are named in few words."""
    if error.code == "AMBIGUOUS_MATCH":
        return _refusal(error.code, hunk, target.path, _places(error.named_details), error.named_details)
    return _refusal(error.code, hunk, target.path, _inner(error.message), error.named_details)


def refuse_placeholder(hunk: Hunk, path: str) -> None:
    """OMITTED_TEXT where real lines would go for one that says that they are left out."""
    found = find_placeholder(hunk.old_text, hunk.new_text, path)
    if found is None:
        return
    lost = "a line" if found.lost == 1 else f"{found.lost} lines"
    message = f"Line {found.line} of its new text is a placeholder ({found.text!r}): {lost} of the file would be lost."
    advice = "Send the real lines in its place. If the file is to have this one, add it in a hunk that removes none."
    details = {"line": found.line, "placeholder": found.text, "lost": found.lost}
    raise _refusal("OMITTED_TEXT", hunk, path, f"{message} {advice}", details)


def refuse_endings(hunk: Hunk, path: str) -> None:
    """INVALID_ARGUMENT for lines that are to end otherwise than those around them: they would end alike, unsaid."""
    around, gone, new = hunk.endings(" ", "-"), hunk.endings("-"), hunk.endings("+")
    only_endings = gone and new and gone != new and hunk.old == hunk.new
    if only_endings or (around and new - around):
        change = f"{'/'.join(sorted(gone or around))} to {'/'.join(sorted(new))}"
        message = f"it changes line endings ({change}), and a patch leaves those as the file has them."
        advice = "Use the file's own endings in it; to change them, write the whole file."
        raise _refusal("INVALID_ARGUMENT", hunk, path, f"{message} {advice}", {})


def build_unknown_anchor_error(target: PatchTarget, hunk: Hunk, anchor: str) -> ToolError:
    """An `@@` line that names nothing."""
    inside = f" in what belongs to {quote_text(hunk.anchors[0].strip())}" if anchor is not hunk.anchors[0] else ""
    behind = f" behind line {target.low}, where hunk {hunk.number - 1} ends" if target.low else ""
    near = _nearest(target.lines, anchor)
    hint = f" Near: line {near + 1}, {quote_text(target.lines.lines[near].strip())}." if near is not None else ""
    message = f"there is no line {quote_text(anchor.strip())}{inside}{behind}, which its @@ line names.{hint}"
    message = f"{message} Give a line of the file as it is."
    return _refusal("NO_MATCH", hunk, target.path, message, {"anchor": anchor[:200]})


def build_ambiguous_anchor_error(hunk: Hunk, path: str, places: Sequence[int]) -> ToolError:
    """An `@@` line that names several places."""
    numbers = ", ".join(str(at + 1) for at in places[:3]) + (", …" if len(places) > 3 else "")
    message = f"its @@ line is there {len(places)} times: lines {numbers}. Add lines around what it adds."
    return _refusal("AMBIGUOUS_MATCH", hunk, path, message, {"count": len(places)})


def build_passed_anchor_error(hunk: Hunk, path: str, anchor: int) -> ToolError:
    """An `@@` line that new lines cannot go behind any more."""
    message = f"its @@ line is line {anchor + 1}, before hunk {hunk.number - 1}, and hunks go in the order of the file."
    return _refusal("NO_MATCH", hunk, path, f"{message} Add lines around what it adds.", {"anchor": anchor + 1})


def build_missing_position_error(target: PatchTarget, hunk: Hunk) -> ToolError:
    """New lines without any around them."""
    if hunk.stated is not None:
        message = f"it adds lines behind line {hunk.stated}, and {target.path} has {len(target.lines)}."
    else:
        message = "it only adds lines, and nothing says where."
    advice = "Add a line before or after them, an @@ line that they go behind, or *** End of File."
    return _refusal("INVALID_ARGUMENT", hunk, target.path, f"{message} {advice}", {})


def build_inexact_error(hunk: Hunk, path: str, most: int) -> ToolError:
    """Too much of a patch is not as the file is."""
    message = f"{most} hunks before it do not match the file exactly. Read it, and make the patch anew."
    return _refusal("LIMIT_EXCEEDED", hunk, path, message, {})


def _places(details: Mapping[str, Any]) -> str:
    places: list[dict[str, Any]] = details.get("places") or []
    count = f"{'' if details.get('all', True) else 'more than '}{details.get('count', len(places))} times"
    where = ", ".join(dict.fromkeys(str(place["line"]) for place in places))
    more = ", …" if details.get("count", 0) > len(places) else ""
    return f"its old lines are there {count} (lines {where}{more}). {_MORE_CONTEXT}"


def _inner(message: str) -> str:
    """A message as it goes on behind the name of the hunk."""
    return f"{message[:1].lower()}{message[1:]}".replace(f" {_NOTHING}", "")


def _refusal(code: ErrorCode, hunk: Hunk, path: str, message: str, details: Mapping[str, Any]) -> ToolError:
    named = {"path": path, "hunk": hunk.number, "patchLine": hunk.line}
    if hunk.unsigned is not None and code == "NO_MATCH":
        message = f"{message} Line {hunk.unsigned} of the patch begins with none of space, - and +."
    whole = f"Hunk {hunk.number} of {path} (line {hunk.line} of the patch): {message} {_NOTHING}"
    return ToolError(code, whole, details={**details, **named})


def _nearest(lines: TextLines, anchor: str) -> int | None:
    """The first line that has what an anchor has, whatever is around it."""
    wanted = anchor.strip()
    return next((at for at, line in enumerate(lines.lines) if wanted and wanted in line), None)
