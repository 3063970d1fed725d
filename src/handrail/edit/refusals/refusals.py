"""Refusals that teach: what is there instead, where, and what to do next."""

import re
from typing import Any

from handrail.edit.ladder.errors import RefusedError
from handrail.edit.ladder.strategies import FORGIVEN
from handrail.edit.lines import end_of_line, line_count, line_ranges, start_of_line, worded
from handrail.edit.matching import Span, exact
from handrail.edit.refusals.closest import closest
from handrail.edit.refusals.differences import Difference, differences
from handrail.protocol.error import ToolError

_PLACES = 3
_TOLD = 2
"""Differences in the message; the details have some more."""
_LISTED = 8
_AROUND = 2
"""Lines to read before and after a region."""
_WIDTH = 120
_NUMBERED = re.compile(r"[ \t]*(\d{1,9})(?:→|\t|: ?| ?\| ?)")


def ambiguous(text: str, strategy: str, found: list[Span], *, all_of_them: bool = True) -> ToolError:
    """There is more than one place."""
    count = f"{len(found)} times" if all_of_them else f"more than {len(found)} times"
    first = found[:_PLACES]
    lines = (line for line, _ in line_ranges(text, first))
    shown = [{"line": line, "context": _context(text, span)} for line, span in zip(lines, first, strict=True)]
    where = ", ".join(dict.fromkeys(str(place["line"]) for place in shown))
    more = ", …" if len(found) > _PLACES else ""
    noun = "line" if where.isdigit() and not more else "lines"
    but = "" if strategy == "exact" else f" but for {FORGIVEN[strategy]}"
    context = "\n".join(f"line {place['line']}:\n{place['context']}" for place in shown)
    message = f"oldText occurs {count}{but}: {noun} {where}{more} (context below). {_advice(strategy)}\n{context}"
    details = {"count": len(found), "all": all_of_them, "strategy": strategy, "places": shown}
    return ToolError("AMBIGUOUS_MATCH", message, details=details)


def _advice(strategy: str) -> str:
    if strategy == "elision":
        return "Send the lines that were left out."
    return "Add a line around it, or set replaceAll."


def too_often(strategy: str, path: str) -> ToolError:
    """There are more places than are replaced at once."""
    message = f"oldText occurs in {path} but for {FORGIVEN[strategy]}, and too often to be replaced everywhere at once."
    return ToolError("LIMIT_EXCEEDED", f"{message} Copy it as read shows it, or write the whole file.")


def no_match(text: str, old: str, new: str, path: str, refused: RefusedError | None = None) -> ToolError:
    """There is no place, or none where the edit could be made without a guess."""
    details: dict[str, Any] = {}
    hints = [_numbered(text, old), _applied(text, new, details), _unsafe(text, refused, details)]
    hints.append(_closest(text, old, details))
    hints = [hint for hint in hints if hint]
    return ToolError("NO_MATCH", f"oldText is not in {path}. {' '.join(hints)}", details=details or None)


def _unsafe(text: str, refused: RefusedError | None, details: dict[str, Any]) -> str:
    if refused is None:
        return ""
    first, last = next(line_ranges(text, [refused.span]))
    details["refused"] = {"first": first, "last": last, "reason": str(refused)}
    return f"{worded(first, last).capitalize()} may be meant, but {refused}."


def undecodable(text: str, old: str, path: str) -> ToolError:
    """The place is there, but holds bytes that are no text, which `read` can only show as U+FFFD."""
    first, last = next(line_ranges(text, [exact(text, old)(0) or Span(0, 0)]))
    message = (
        f"oldText holds U+FFFD, which stands for bytes of {path} that are no text ({worded(first, last)}). "
        "Leave them out of oldText: they stay as they are."
    )
    return ToolError("NO_MATCH", message, details={"damaged": {"first": first, "last": last}})


def _context(text: str, span: Span) -> str:
    """The line before a place, its first line, and the line after it: one of them may tell it from the others."""
    start = start_of_line(text, span.start)
    before = text[start_of_line(text, span.start, 1) : start]
    first = text[start : end_of_line(text, span.start)]
    last = end_of_line(text, max(span.start, span.end - 1))
    after = text[last : end_of_line(text, last)]
    middle = "…\n" if start + len(first) < last else ""
    return "".join((_short(before), _short(first), middle, _short(after))).removesuffix("\n")


def _short(line: str) -> str:
    return line if len(line) <= _WIDTH else f"{line[: _WIDTH - 1].rstrip()}…\n"


def _closest(text: str, old: str, details: dict[str, Any]) -> str:
    region = closest(text, old)
    if region is None:
        return "Nothing in it comes close. Read it, then retry."
    found = list(differences(region))
    first, last = region.first, region.last
    low, high = max(1, first - _AROUND), min(line_count(text), last + _AROUND)
    details["closest"] = {"first": first, "last": last, "differences": [_plain(each) for each in found[:_LISTED]]}
    if not found:
        return f"Closest is {worded(first, last)}: only what is around it differs. Read {low}–{high}, then retry."
    space = ", only white space differs" if all(each.only_space for each in found) else ""
    told = "; ".join(map(str, found[:_TOLD]))
    more = f"; and {len(found) - _TOLD} more" if len(found) > _TOLD else ""
    return f"Closest is {worded(first, last)}{space}: {told}{more}. Read {low}–{high}, then retry."


def _plain(difference: Difference) -> dict[str, Any]:
    return {"line": difference.line, "file": difference.file[:200], "oldText": (difference.old or "")[:200]}


def _applied(text: str, new: str, details: dict[str, Any]) -> str:
    """Says that newText is there already, where that can hardly be chance."""
    if len(new.strip()) < 4:
        return ""
    find = exact(text, new)
    found = find(0)
    if found is None or find(found.start + 1) is not None:
        return ""
    first, last = next(line_ranges(text, [found]))
    details["applied"] = {"first": first, "last": last}
    return f"newText is there already, in {worded(first, last)}: this edit may have been made before."


def _numbered(text: str, old: str) -> str:
    """Says that line numbers, as listings show them, were taken for a part of the text."""
    lines = [line for line in old.split("\n") if line.strip()]
    found = [_NUMBERED.match(line) for line in lines[:50]]
    numbers = [int(each[1]) for each in found if each]
    if not lines or len(numbers) < len(found) or numbers != list(range(numbers[0], numbers[0] + len(numbers))):
        return ""
    bare = re.sub(rf"(?m)^{_NUMBERED.pattern}", "", old)
    return "oldText begins its lines with line numbers; leave them out." if bare.strip() and bare in text else ""
