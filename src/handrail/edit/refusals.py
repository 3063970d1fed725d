"""Messages for edits that match nowhere, or in several places."""

import re
from collections.abc import Iterator
from itertools import islice
from typing import Any, NamedTuple
from unicodedata import normalize

import msgspec

from handrail.edit.closest import Region, find_closest_region, find_similar_piece
from handrail.edit.fuzzy.candidates import RefusedError
from handrail.edit.fuzzy.normalize import has_numbers, strip_line_numbers
from handrail.edit.fuzzy.strategies import FORGIVEN
from handrail.edit.lines import (
    Span,
    build_exact_finder,
    count_common_end,
    count_common_start,
    count_lines,
    find_line_end,
    find_line_start,
    format_line_range,
    list_line_ranges,
)
from handrail.edit.omission_grammar import is_mark
from handrail.protocol.errors import ToolError
from handrail.protocol.text import truncate

# § [edit.refusals.wording] What the two texts of an edit are called, where a refusal speaks of them.


class Wording(NamedTuple):
    """The words of the call that is refused."""

    old: str = "oldText"
    new: str = "newText"
    every: str = "set replaceAll"
    """How to ask for all places."""


OF_EDIT = Wording()


# § [edit.refusals.visible] Text as it can be told apart by eye: spaces, tabs and characters that look like others.

_SEEN = {" ": "·", "\t": "→", "\r": "␍", "\n": "␤"}


def escape_white_space(text: str, most: int = 80) -> str:
    """A short text with its white space made visible."""
    return truncate("".join(map(_character, text[: most + 1])), most)


def format_code_points(text: str, other: str) -> str:
    """The characters beyond ASCII that only the first of two texts has, by their numbers: they may look like others."""
    odd = dict.fromkeys(character for character in text if not character.isascii() and character not in other)
    names = [f"U+{ord(character):04X}" for character in odd if character.isprintable()]
    return f" ({', '.join(names[:3])})" if names else ""


def _character(character: str) -> str:
    if character in _SEEN:
        return _SEEN[character]
    return character if character.isprintable() else f"<U+{ord(character):04X}>"


# § [edit.refusals.differences] What exactly differs between the lines that were looked for and those that are
# § there.

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


# § [edit.refusals.refusals] Refusals that teach: what is there instead, where, and what to do next.

_MAX_SHOWN_PLACES = 3
_MAX_TOLD_DIFFERENCES = 2
"""Differences in the message; the details have some more."""
_MAX_LISTED_DIFFERENCES = 8
_CONTEXT_LINES = 2
"""Lines to read before and after a region."""
_MAX_LINE_CHARS = 120
_MAX_SEARCHED_LINES = 2_000
"""Lines of a text in which marks are looked for."""


def build_ambiguous_error(
    text: str, strategy: str, found: list[Span], wording: Wording = OF_EDIT, *, all_of_them: bool = True
) -> ToolError:
    """There is more than one place."""
    count = f"{len(found)} times" if all_of_them else f"more than {len(found)} times"
    first = {line: span for (line, _), span in zip(list_line_ranges(text, found), found, strict=True)}
    shown = [{"line": line, "context": _context(text, span)} for line, span in islice(first.items(), _MAX_SHOWN_PLACES)]
    where = ", ".join(str(place["line"]) for place in shown)
    more = ", …" if len(first) > _MAX_SHOWN_PLACES or not all_of_them else ""
    noun = "line" if where.isdigit() and not more else "lines"
    but = "" if strategy == "exact" else f" but for {FORGIVEN[strategy]}"
    context = "\n".join(f"line {place['line']}:\n{place['context']}" for place in shown)
    advice = (
        "Send the lines that were left out" if strategy == "elision" else f"Add a line around it, or {wording.every}"
    )
    message = f"{_start(wording.old)} occurs {count}{but}: {noun} {where}{more} (context below). {advice}.\n{context}"
    details = {"count": len(found), "all": all_of_them, "strategy": strategy, "places": shown}
    return ToolError("AMBIGUOUS_MATCH", message, details=details)


def _start(words: str) -> str:
    """Words as they begin a sentence; names stay as they are."""
    return words if words.isidentifier() else words[:1].upper() + words[1:]


def build_too_many_error(strategy: str, path: str, wording: Wording = OF_EDIT) -> ToolError:
    """There are more places than are replaced at once."""
    occurs = f"{_start(wording.old)} occurs in {path}"
    message = f"{occurs} but for {FORGIVEN[strategy]}, and too often to be replaced everywhere at once."
    return ToolError("LIMIT_EXCEEDED", f"{message} Copy it as read shows it, or write the whole file.")


def build_no_match_error(
    text: str, old: str, new: str, path: str, refused: RefusedError | None = None, wording: Wording = OF_EDIT
) -> ToolError:
    """There is no place, or none where the edit could be made without a guess."""
    details: dict[str, Any] = {}
    hints = (
        f"{_start(wording.old)} is not in {path}.",
        _numbered(old, new, wording),
        _elided(text, old, new, wording),
        _applied(text, new, wording, details),
        _unsafe(text, refused, wording, details),
        _closest(text, old, path, wording, details),
    )
    return ToolError("NO_MATCH", " ".join(filter(None, hints)), details=details or None)


def _unsafe(text: str, refused: RefusedError | None, wording: Wording, details: dict[str, Any]) -> str:
    if refused is None:
        return ""
    first, last = next(list_line_ranges(text, [refused.span]))
    reason = str(refused).replace("{old}", wording.old).replace("{new}", wording.new)
    details["refused"] = {"first": first, "last": last, "reason": reason}
    return f"{format_line_range(first, last).capitalize()} may be meant, but {reason}."


def build_undecodable_error(text: str, old: str, path: str, wording: Wording = OF_EDIT) -> ToolError:
    """The place is there, but holds bytes that are no text, which `read` can only show as U+FFFD."""
    first, last = next(list_line_ranges(text, [build_exact_finder(text, old)(0) or Span(0, 0)]))
    message = (
        f"{_start(wording.old)} holds U+FFFD, which stands for bytes of {path} that are no text "
        f"({format_line_range(first, last)}). Leave them out of it: they stay as they are."
    )
    return ToolError("NO_MATCH", message, details={"damaged": {"first": first, "last": last}})


def _context(text: str, span: Span) -> str:
    """The line before a place, its first line, and the line after it: one of them may tell it from the others."""
    start = find_line_start(text, span.start)
    before = text[find_line_start(text, span.start, 1) : start]
    first = text[start : find_line_end(text, span.start)]
    last = find_line_end(text, max(span.start, span.end - 1))
    after = text[last : find_line_end(text, last)]
    middle = "…\n" if start + len(first) < last else ""
    return "".join((_short(before), _short(first), middle, _short(after))).removesuffix("\n")


def _short(line: str) -> str:
    return line if len(line) <= _MAX_LINE_CHARS else f"{line[: _MAX_LINE_CHARS - 1].rstrip()}…\n"


def _closest(text: str, old: str, path: str, wording: Wording, details: dict[str, Any]) -> str:
    region, note = find_closest_region(text, old), ""
    if region is None and not old.isascii():
        region = find_closest_region(normalize("NFC", text), normalize("NFC", old))
        note = f" Accents are encoded otherwise in {wording.old} (NFC or NFD): copy them from the file."
    if region is None and "\r" in text and find_closest_region(text.replace("\r", "\n"), old) is not None:
        return f"The lines of {path} end with a carriage return alone (U+000D): write that for newlines in both texts."
    if region is None:
        return "Nothing in it comes close. Read it, then retry."
    found = list(list_line_differences(region))
    first, last = region.first, region.last
    low, high = max(1, first - _CONTEXT_LINES), min(count_lines(text), last + _CONTEXT_LINES)
    details["closest"] = {
        "first": first,
        "last": last,
        "differences": [_plain(each) for each in found[:_MAX_LISTED_DIFFERENCES]],
    }
    then = f"Read {low}–{high} before you try again." if "applied" in details else f"Read {low}–{high}, then retry."
    if not found:
        cut = len(region.wanted) < count_lines(old.strip("\n"))
        what = (
            f"what differs is behind its first {len(region.wanted)} lines" if cut else "only what is around it differs"
        )
        return f"Closest is {format_line_range(first, last)}: {what}.{note} {then}"
    space = ", only white space differs" if all(each.only_space for each in found) else ""
    told = "; ".join(each.describe(wording.old) for each in found[:_MAX_TOLD_DIFFERENCES])
    more = f"; and {len(found) - _MAX_TOLD_DIFFERENCES} more" if len(found) > _MAX_TOLD_DIFFERENCES else ""
    signs = ", ".join(f"{sign} is a {name}" for sign, name in (("·", "space"), ("→", "tab")) if sign in told)
    return f"Closest is {format_line_range(first, last)}{space}: {told}{more}{signs and f' ({signs})'}.{note} {then}"


def _plain(difference: LineDifference) -> dict[str, Any]:
    return {"line": difference.line, "file": difference.file[:200], "oldText": (difference.old or "")[:200]}


def _applied(text: str, new: str, wording: Wording, details: dict[str, Any]) -> str:
    """Says that newText is there already, where that can hardly be chance."""
    if len(new.strip()) < 4:
        return ""
    find = build_exact_finder(text, new)
    found = find(0)
    if found is None or find(found.start + 1) is not None:
        return ""
    first, last = next(list_line_ranges(text, [found]))
    details["applied"] = {"first": first, "last": last}
    made = "this edit may have been made before."
    return f"{_start(wording.new)} is there already, in {format_line_range(first, last)}: {made}"


def _numbered(old: str, new: str, wording: Wording) -> str:
    """Says that line numbers, as listings show them, are in some lines and not in others."""
    if not has_numbers(old) or strip_line_numbers(old, new) is not None:
        return ""
    return f"{_start(wording.old)} begins its lines with line numbers, {wording.new} only some; leave them out."


def _elided(text: str, old: str, new: str, wording: Wording) -> str:
    """Says that a mark for lines that are left out must be in both texts."""
    marks = [
        line.strip() for line in old.split("\n")[:_MAX_SEARCHED_LINES] if is_mark(line) and line.strip() not in text
    ]
    if not marks or any(is_mark(line) for line in new.split("\n")[:_MAX_SEARCHED_LINES]):
        return ""
    return (
        f"{marks[0]!r} stands for lines in {wording.old} and not in {wording.new}: have it in both, or send the lines."
    )
