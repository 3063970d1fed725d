"""What a server says of a tool: all of it in one form, its digest, and what became another."""

import hashlib
import re
from collections.abc import Iterable, Iterator
from itertools import groupby, takewhile
from typing import Any

import msgspec

from handrail.runtime.sources import ForeignTool

_MAX_REMOVED_LINES = 20
_MAX_COMPARED_LINES = 1_000
"""Lines, each with each."""
_MAX_LINE_CHARS = 200
_SENTENCE = re.compile(r"(?<=[.!?;]) +")
_ORDERED = msgspec.json.Encoder(order="sorted")


def to_description(tool: ForeignTool) -> dict[str, Any]:
    """All that the model, the person or policy may go by."""
    return {
        "name": tool.name,
        "title": tool.title,
        "description": tool.description,
        "inputSchema": tool.input_schema,
        "outputSchema": tool.output_schema,
        "readOnlyHint": tool.read_only,
        "destructiveHint": tool.destructive,
        "idempotentHint": tool.idempotent,
        "openWorldHint": tool.open_world,
    }


def compute_fingerprint(told: dict[str, Any]) -> str:
    """Its digest. The order of names in an object says nothing."""
    return hashlib.sha256(_ORDERED.encode(told)).hexdigest()[:32]


def list_changed_parts(before: dict[str, Any], after: dict[str, Any]) -> str:
    """The parts that are others now: `description, inputSchema`."""
    return ", ".join(name for name in after if _ordered(before.get(name)) != _ordered(after[name]))


def render_difference(before: dict[str, Any], after: dict[str, Any]) -> str:
    """The same in full, line by line; of what a server says no more, so much that what it says now is seen."""
    from difflib import unified_diff  # noqa: PLC0415  hardly ever needed

    old, new = _lines(before), _lines(after)
    if max(len(old), len(new)) > _MAX_COMPARED_LINES:
        lines = _coarsely(old, new)
    else:
        lines = unified_diff(old, new, "as it was approved", "as it is now", lineterm="", n=2)
    return "\n".join(_with_less_removed(lines)) + "\n"


def _coarsely(old: list[str], new: list[str]) -> Iterator[str]:
    """Without a look for what stayed in between: that could take long, and a server chooses how long."""
    same = _alike(old, new)
    ends = _alike(old[same:][::-1], new[same:][::-1])
    yield from (f" {line}" for line in new[max(0, same - 2) : same])
    yield from (f"-{line}" for line in old[same : len(old) - ends])
    yield from (f"+{line}" for line in new[same : len(new) - ends])


def _alike(one: list[str], other: list[str]) -> int:
    """How many lines both begin with."""
    return sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], zip(one, other, strict=False)))


def _with_less_removed(lines: Iterable[str]) -> Iterator[str]:
    """Who is shown only the beginning must not see old words alone."""
    for removed, run in groupby(lines, lambda line: line.startswith("-") and not line.startswith("---")):
        found = [*run]
        shown = found[:_MAX_REMOVED_LINES] if removed else found
        yield from shown
        if more := len(found) - len(shown):
            yield f"-… and {more:,} lines more that it does not say now"


def _lines(told: dict[str, Any]) -> list[str]:
    """A long text is shown line by line too, or one word of it would be told as all of it."""
    lines: list[str] = []
    for name, value in told.items():
        text = value if isinstance(value, str) else msgspec.json.format(_ordered(value), indent=2).decode()
        first, *more = (piece for line in text.split("\n") for piece in _pieces(line))
        lines += [f"{name}: {first}", *(f"  {line}" for line in more)]
    return lines


def _pieces(line: str) -> Iterator[str]:
    """A long line by its sentences."""
    for sentence in _SENTENCE.split(line) if len(line) > _MAX_LINE_CHARS else (line,):
        yield from (sentence[at : at + _MAX_LINE_CHARS] for at in range(0, max(1, len(sentence)), _MAX_LINE_CHARS))


def _ordered(value: Any) -> bytes:
    return _ORDERED.encode(value)
