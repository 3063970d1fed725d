"""Refusals that teach: what is there instead, where, and what to do next."""

from itertools import islice
from typing import Any
from unicodedata import normalize

from handrail.edit.ladder.errors import RefusedError
from handrail.edit.ladder.reading import has_numbers, strip_line_numbers
from handrail.edit.ladder.strategies import FORGIVEN
from handrail.edit.lines import count_lines, find_line_end, find_line_start, format_line_range, list_line_ranges
from handrail.edit.matching import Span, build_exact_finder
from handrail.edit.omission.marks import is_mark
from handrail.edit.refusals.closest import find_closest_region
from handrail.edit.refusals.differences import LineDifference, list_line_differences
from handrail.edit.refusals.wording import OF_EDIT, Wording
from handrail.protocol.error import ToolError

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
