"""Errors for edits that match nowhere, or in several places. They name the place, the difference and the next step."""

import re
from collections.abc import Iterator
from itertools import islice
from typing import Any
from unicodedata import normalize

import msgspec

from handrail.edit.closest import MAX_COMPARED_CHARS, Region, find_closest_region, find_similar_piece
from handrail.edit.fuzzy.candidates import OF_EDIT, RefusedError, Wording
from handrail.edit.fuzzy.normalize import has_numbers, strip_line_numbers
from handrail.edit.fuzzy.strategies import FORGIVEN, FuzzyMatch, find_match
from handrail.edit.lines import (
    Span,
    count_common_end,
    count_common_start,
    count_lines,
    find_line_end,
    find_line_start,
    format_line_range,
    list_line_ranges,
)
from handrail.edit.omission import is_mark
from handrail.protocol.errors import ToolError
from handrail.protocol.text import truncate

_MAX_SHOWN_PLACES = 3
_MAX_SHOWN_DIFFERENCES = 2
"""Differences in the message. The details have some more."""
_MAX_LISTED_DIFFERENCES = 8
_CONTEXT_LINES = 2
"""Lines to read before and after a region."""
_MAX_LINE_CHARS = 120
_MAX_SEARCHED_LINES = 2_000
"""Lines of a text that are searched for placeholders."""
_VISIBLE = {" ": "·", "\t": "→", "\r": "␍", "\n": "␤"}
_WORD = re.compile(r"\w+|[^\w\s]")


def match_or_refuse(
    text: str, old: str, new: str, path: str, *, every: bool, readable: str, wording: Wording
) -> FuzzyMatch:
    """Find an old text that does not match exactly. ToolError if its place is not certain."""
    if text is not readable and old in readable:
        raise _build_undecodable_error(readable, old, path, wording)
    try:
        found = find_match(text, old, new, every=every)
    except RefusedError as refused:
        raise build_no_match_error(readable, old, new, path, refused, wording) from None
    if found is None:
        raise build_no_match_error(readable, old, new, path, None, wording)
    if every and not found.all_of_them:
        occurs = f"{_capitalize(wording.old)} occurs in {path} but for {FORGIVEN[found.strategy]}"
        advice = "Copy the text as read shows it, or write the whole file."
        raise ToolError("LIMIT_EXCEEDED", f"{occurs}, too often to be replaced in one call. {advice}")
    if len(found.places) > 1 and not every:
        spans = [place.span for place in found.places]
        raise build_ambiguous_error(readable, found.strategy, spans, wording, all_of_them=found.all_of_them)
    return found


def build_ambiguous_error(
    text: str, strategy: str, found: list[Span], wording: Wording = OF_EDIT, *, all_of_them: bool = True
) -> ToolError:
    count = f"{len(found)} times" if all_of_them else f"more than {len(found)} times"
    first = {line: span for (line, _), span in zip(list_line_ranges(text, found), found, strict=True)}
    shown = [
        {"line": line, "context": _quote_place(text, span)} for line, span in islice(first.items(), _MAX_SHOWN_PLACES)
    ]
    where = ", ".join(str(place["line"]) for place in shown)
    more = ", …" if len(first) > _MAX_SHOWN_PLACES or not all_of_them else ""
    noun = "line" if where.isdigit() and not more else "lines"
    but = "" if strategy == "exact" else f" but for {FORGIVEN[strategy]}"
    context = "\n".join(f"line {place['line']}:\n{place['context']}" for place in shown)
    elided = "Send the lines that were left out"
    advice = elided if strategy == "elision" else f"Add a line around it, or {wording.every}"
    occurs = f"{_capitalize(wording.old)} occurs {count}{but}"
    message = f"{occurs}: {noun} {where}{more} (context below). {advice}.\n{context}"
    details = {"count": len(found), "all": all_of_them, "strategy": strategy, "places": shown}
    return ToolError("AMBIGUOUS_MATCH", message, details=details)


def build_no_match_error(
    text: str, old: str, new: str, path: str, refused: RefusedError | None = None, wording: Wording = OF_EDIT
) -> ToolError:
    """Build the error for no place, or for one that was refused as a guess."""
    details: dict[str, Any] = {}
    hints = (
        f"{_capitalize(wording.old)} is not in {path}.",
        _hint_line_numbers(old, new, wording),
        _hint_placeholder(text, old, new, wording),
        _hint_applied(text, new, wording, details),
        _hint_refused(text, refused, wording, details),
        _hint_closest(text, old, path, wording, details),
    )
    return ToolError("NO_MATCH", " ".join(filter(None, hints)), details=details or None)


def _build_undecodable_error(text: str, old: str, path: str, wording: Wording) -> ToolError:
    """Build the error for an old text with U+FFFD, which `read` shows for bytes that are no text."""
    start = text.find(old)
    first, last = next(list_line_ranges(text, [(start, start + len(old))]))
    message = (
        f"{_capitalize(wording.old)} holds U+FFFD, which replaces bytes of {path} that are not text "
        f"({format_line_range(first, last)}). Leave these characters out: the file keeps its bytes."
    )
    return ToolError("NO_MATCH", message, details={"damaged": {"first": first, "last": last}})


def _capitalize(words: str) -> str:
    """Start a sentence with words. Names stay as they are."""
    return words if words.isidentifier() else words[:1].upper() + words[1:]


def _quote_place(text: str, span: Span) -> str:
    """Quote the first line of a place, with the lines before and after the place to tell it from others."""
    start = find_line_start(text, span.start)
    before = text[find_line_start(text, span.start, 1) : start]
    first = text[start : find_line_end(text, span.start)]
    last = find_line_end(text, max(span.start, span.end - 1))
    after = text[last : find_line_end(text, last)]
    middle = "…\n" if start + len(first) < last else ""
    return "".join((_shorten(before), _shorten(first), middle, _shorten(after))).removesuffix("\n")


def _shorten(line: str) -> str:
    return line if len(line) <= _MAX_LINE_CHARS else f"{line[: _MAX_LINE_CHARS - 1].rstrip()}…\n"


def _hint_line_numbers(old: str, new: str, wording: Wording) -> str:
    if not has_numbers(old) or strip_line_numbers(old, new) is not None:
        return ""
    return f"{_capitalize(wording.old)} begins its lines with line numbers, {wording.new} only some; leave them out."


def _hint_placeholder(text: str, old: str, new: str, wording: Wording) -> str:
    old_lines, new_lines = old.split("\n")[:_MAX_SEARCHED_LINES], new.split("\n")[:_MAX_SEARCHED_LINES]
    mark = next((line.strip() for line in old_lines if is_mark(line) and line.strip() not in text), None)
    if mark is None or any(map(is_mark, new_lines)):
        return ""
    return f"{mark!r} stands for lines in {wording.old} and not in {wording.new}: have it in both, or send the lines."


def _hint_applied(text: str, new: str, wording: Wording, details: dict[str, Any]) -> str:
    """Say that the new text is there already, if that is hardly chance."""
    start = text.find(new) if len(new.strip()) >= 4 else -1
    if start < 0 or text.find(new, start + 1) >= 0:
        return ""
    first, last = next(list_line_ranges(text, [(start, start + len(new))]))
    details["applied"] = {"first": first, "last": last}
    made = "this edit may be done already."
    return f"{_capitalize(wording.new)} already exists, in {format_line_range(first, last)}: {made}"


def _hint_refused(text: str, refused: RefusedError | None, wording: Wording, details: dict[str, Any]) -> str:
    if refused is None:
        return ""
    first, last = next(list_line_ranges(text, [refused.span]))
    reason = str(refused).replace("{old}", wording.old).replace("{new}", wording.new)
    details["refused"] = {"first": first, "last": last, "reason": reason}
    return f"{format_line_range(first, last).capitalize()} may be meant, but {reason}."


def _hint_closest(text: str, old: str, path: str, wording: Wording, details: dict[str, Any]) -> str:
    region, note = find_closest_region(text, old), ""
    if region is None and not old.isascii():
        region = find_closest_region(normalize("NFC", text), normalize("NFC", old))
        note = f" Accents are encoded otherwise in {wording.old} (NFC or NFD): copy them from the file."
    if region is None and "\r" in text and find_closest_region(text.replace("\r", "\n"), old) is not None:
        return f"The lines of {path} end with a carriage return alone (U+000D): write that for newlines in both texts."
    if region is None:
        return "No similar text was found. Read it, then retry."
    differences = list(list_line_differences(region))
    listed = [difference.to_details() for difference in differences[:_MAX_LISTED_DIFFERENCES]]
    details["closest"] = {"first": region.first, "last": region.last, "differences": listed}
    low, high = max(1, region.first - _CONTEXT_LINES), min(count_lines(text), region.last + _CONTEXT_LINES)
    retry = f"Read {low}–{high} before you try again." if "applied" in details else f"Read {low}–{high}, then retry."
    closest = f"Closest is {format_line_range(region.first, region.last)}"
    if differences:
        return f"{closest}{_describe_differences(differences, wording)}.{note} {retry}"
    is_cut = len(region.wanted) < count_lines(old.strip("\n"))
    behind = f"the difference is after its first {len(region.wanted)} lines"
    return f"{closest}: {behind if is_cut else 'only the text around it differs'}.{note} {retry}"


class LineDifference(msgspec.Struct, frozen=True):
    """A line of the file beside a line of the old text."""

    line: int | None
    """None: the file has no line there."""
    file: str
    old: str | None
    """None: the old text has no line there."""

    @property
    def only_space(self) -> bool:
        if self.line is None or self.old is None:
            return not (self.file.strip() or (self.old or "").strip())
        return self.file.split() == self.old.split()

    def describe(self, name: str = "oldText") -> str:
        old = escape_white_space(self.old or "")
        if self.line is None:
            return f"the file has no line {old} there" if self.old else f"the file has no blank line there, {name} has"
        file = escape_white_space(self.file)
        if self.old is None:
            line = f"line {self.line} ({file})" if self.file else f"line {self.line}, which is blank,"
            return f"{line} is not in {name}"
        marks = _format_code_points(self.file, self.old), _format_code_points(self.old, self.file)
        return f"line {self.line} has {file or 'nothing'}{marks[0]}, {name} has {old or 'nothing'}{marks[1]}"

    def to_details(self) -> dict[str, Any]:
        return {"line": self.line, "file": self.file[:200], "oldText": (self.old or "")[:200]}


def _describe_differences(differences: list[LineDifference], wording: Wording) -> str:
    space = ", only white space differs" if all(each.only_space for each in differences) else ""
    shown = "; ".join(each.describe(wording.old) for each in differences[:_MAX_SHOWN_DIFFERENCES])
    left = len(differences) - _MAX_SHOWN_DIFFERENCES
    more = f"; and {left} more" if left > 0 else ""
    signs = ", ".join(f"{sign} is a {name}" for sign, name in (("·", "space"), ("→", "tab")) if sign in shown)
    return f"{space}: {shown}{more}{signs and f' ({signs})'}"


def list_line_differences(region: Region) -> Iterator[LineDifference]:
    edge = len(region.wanted) - 1
    for i, j in region.pairs:
        if j is None:
            yield LineDifference(None, "", region.wanted[i or 0])
        elif i is None:
            yield LineDifference(region.first + j, region.lines[j], None)
        else:
            own, old = _cut_difference(region.lines[j], region.wanted[i], opens=i == 0, closes=i == edge)
            if own != old:
                yield LineDifference(region.first + j, own, old)


def escape_white_space(text: str, most: int = 80) -> str:
    """Make the white space of a short text visible."""
    visible = (_VISIBLE.get(sign, sign if sign.isprintable() else f"<U+{ord(sign):04X}>") for sign in text[: most + 1])
    return truncate("".join(visible), most)


def _format_code_points(text: str, other: str) -> str:
    """List the characters beyond ASCII that only the first text has. They may look like others."""
    odd = dict.fromkeys(character for character in text if not character.isascii() and character not in other)
    names = [f"U+{ord(character):04X}" for character in odd if character.isprintable()]
    return f" ({', '.join(names[:3])})" if names else ""


def _cut_difference(line: str, wanted: str, *, opens: bool, closes: bool) -> tuple[str, str]:
    """Return the differing parts of two lines, in whole words. The first and last wanted line may be parts of lines."""
    wanted = wanted[:MAX_COMPARED_CHARS]
    line = _cut_to_wanted(find_similar_piece(line, wanted), wanted, opens=opens, closes=closes)
    head = count_common_start(line, wanted)
    tail = count_common_end(line[head:], wanted[head:])
    while head and (_is_inside_word(line, head) or _is_inside_word(wanted, head)):
        head -= 1
    while tail and (_is_inside_word(line, len(line) - tail) or _is_inside_word(wanted, len(wanted) - tail)):
        tail -= 1
    return line[head : len(line) - tail], wanted[head : len(wanted) - tail]


def _is_inside_word(text: str, at: int) -> bool:
    """Whether a position is inside a word, or inside white space."""
    return 0 < at < len(text) and re.match(r"\w\w|\s\s", text[at - 1 : at + 1]) is not None


def _cut_to_wanted(line: str, wanted: str, *, opens: bool, closes: bool) -> str:
    """Cut a line to the part that corresponds to the wanted text, if that may start or end within it."""
    first, last = _WORD.search(wanted), _WORD.search(wanted[::-1])
    if first is None or last is None or line.endswith(wanted):
        return wanted if first and opens else line
    offset = _find_offset(line, wanted)
    start = _find_start(line, wanted, first, offset) if opens else 0
    end = len(line) - _find_start(line[::-1], wanted[::-1], last, len(line) - len(wanted) - offset)
    return line[start:end] if closes else line[start:]


def _find_offset(line: str, wanted: str) -> int:
    """Return how much further on the line has a word of the wanted text: its rarest there, the longest of them."""
    places = ((word, _find_word(line, word[0])) for word in _WORD.finditer(wanted))
    known = [(len(found), -len(word[0]), found[0] - word.start()) for word, found in places if found]
    return min(known)[2] if known else 0


def _find_start(line: str, wanted: str, first: re.Match[str], offset: int) -> int:
    """Return where the wanted text starts in the line, by the place of its first word nearest to the offset."""
    places = _find_word(line, first[0])
    if not places:
        at = max(0, offset)
        while _is_inside_word(line, at):
            at -= 1
        return at
    place = min(places, key=lambda place: abs(place - first.start() - offset))
    # Indentation before the first word belongs to it, however much there is.
    is_indented = wanted[:1].isspace() and not line[:place].strip()
    return 0 if is_indented else max(0, place - first.start())


def _find_word(line: str, word: str) -> list[int]:
    escaped = re.escape(word)
    return [match.start() for match in re.finditer(rf"(?<!\w){escaped}(?!\w)|{escaped}(?<!\w)", line)]
