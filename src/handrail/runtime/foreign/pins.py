"""Pins of foreign tools: a tool that its server describes differently needs a new approval."""

import hashlib
import re
import threading
from collections.abc import Iterable, Iterator, Sequence
from itertools import groupby, takewhile
from typing import Any, NamedTuple

import msgspec

from handrail.protocol.wire import encode
from handrail.runtime.foreign.source import ForeignTool
from handrail.store.grants import KnownTool, KnownTools

_MAX_KEPT_BYTES = 8_000_000
"""Bytes of all pinned tools of one server. No pin is dropped for another: the tool could come back changed."""
_MAX_REMOVED_LINES = 20
_MAX_COMPARED_LINES = 1_000
_MAX_LINE_CHARS = 200
_SENTENCE = re.compile(r"(?<=[.!?;]) +")
_SORTED = msgspec.json.Encoder(order="sorted")


class PinObservation(NamedTuple):
    """The tools of a listing that are not as they were pinned."""

    changed: dict[str, str]
    """Names of changed tools, each with the parts that changed."""
    not_stored: set[str]
    """Names of new tools that there is no room for: a later change of them would go unnoticed."""


class PinStore:
    """The pinned tools of a workspace. Other processes write them too, so a change is verified on the disk."""

    def __init__(self, store: KnownTools) -> None:
        self._store = store
        self._lock = threading.Lock()
        self._tools: dict[str, dict[str, KnownTool]] = {}

    def observe(self, server: str, tools: Sequence[dict[str, Any]]) -> PinObservation:
        """Pins the descriptions of new tools, and compares the others."""
        with self._lock:
            known = self._reload(server)
            new = {tool["name"]: _build_pin(tool) for tool in tools if tool["name"] not in known}
            if added := _select_fitting(known, new):
                self._store.keep(server, added)
                self._tools[server] = known = {**known, **added}
            changed = {
                tool["name"]: ", ".join(
                    name for name in tool if _SORTED.encode(pin.described.get(name)) != _SORTED.encode(tool[name])
                )
                for tool in tools
                if (pin := known.get(tool["name"])) is not None and pin.fingerprint != compute_fingerprint(tool)
            }
            return PinObservation(changed, new.keys() - added.keys())

    def approve(self, server: str, tool: dict[str, Any]) -> None:
        """Pins the present description of a tool, because a person approved it."""
        with self._lock:
            known = self._tools.get(server, {})
            if (pin := known.get(tool["name"])) is not None and pin.fingerprint == compute_fingerprint(tool):
                return
            added = {tool["name"]: _build_pin(tool)}
            self._store.keep(server, added)
            self._tools[server] = {**known, **added}

    def is_changed(self, server: str, tool: dict[str, Any]) -> bool:
        return self._find_other_pin(server, tool) is not None

    def difference(self, server: str, tool: dict[str, Any]) -> str | None:
        """The diff between the pinned description of a tool and the present one. None if they are equal."""
        pin = self._find_other_pin(server, tool)
        return None if pin is None else render_difference(pin.described, tool)

    def path(self, server: str) -> str:
        return self._store.path_of(server)

    def _find_other_pin(self, server: str, tool: dict[str, Any]) -> KnownTool | None:
        """The pin of a tool, if it differs from the present description."""
        fingerprint = compute_fingerprint(tool)
        with self._lock:
            pin = self._tools.get(server, {}).get(tool["name"])
            if pin is not None and pin.fingerprint != fingerprint:
                pin = self._reload(server).get(tool["name"])
        return None if pin is None or pin.fingerprint == fingerprint else pin

    def _reload(self, server: str) -> dict[str, KnownTool]:
        """The pins of a server. Those on the disk come before those that this process remembers."""
        self._tools[server] = {**self._tools.get(server, {}), **self._store.list_tools(server)}
        return self._tools[server]


def to_description(tool: ForeignTool) -> dict[str, Any]:
    """Everything that a model, a person or the policy may rely on."""
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


def compute_fingerprint(description: dict[str, Any]) -> str:
    """A digest that does not depend on the order of names."""
    return hashlib.sha256(_SORTED.encode(description)).hexdigest()[:32]


def render_difference(before: dict[str, Any], after: dict[str, Any]) -> str:
    """A diff of two descriptions. Removed text is shortened, so that the present text is always shown."""
    from difflib import unified_diff  # noqa: PLC0415  hardly ever needed

    old, new = _split_description(before), _split_description(after)
    if max(len(old), len(new)) > _MAX_COMPARED_LINES:
        lines = _compare_ends(old, new)
    else:
        lines = unified_diff(old, new, "as it was approved", "as it is now", lineterm="", n=2)
    return "\n".join(_shorten_removed(lines)) + "\n"


def _build_pin(description: dict[str, Any]) -> KnownTool:
    return KnownTool(fingerprint=compute_fingerprint(description), described=description)


def _select_fitting(known: dict[str, KnownTool], new: dict[str, KnownTool]) -> dict[str, KnownTool]:
    room = _MAX_KEPT_BYTES - len(encode(known)) if new else 0
    fitting: dict[str, KnownTool] = {}
    for name, pin in new.items():
        room -= len(encode(pin)) + len(encode(name))
        if room >= 0:
            fitting[name] = pin
    return fitting


def _compare_ends(old: list[str], new: list[str]) -> Iterator[str]:
    """A diff in linear time: a server chooses the texts, and so how long a full diff takes."""
    start = _count_equal(old, new)
    end = _count_equal(old[start:][::-1], new[start:][::-1])
    yield from (f" {line}" for line in new[max(0, start - 2) : start])
    yield from (f"-{line}" for line in old[start : len(old) - end])
    yield from (f"+{line}" for line in new[start : len(new) - end])


def _count_equal(one: list[str], other: list[str]) -> int:
    return sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], zip(one, other, strict=False)))


def _shorten_removed(lines: Iterable[str]) -> Iterator[str]:
    """Cuts long runs of removed lines: a reader of the beginning must see new text too."""
    for is_removed, run in groupby(lines, lambda line: line.startswith("-") and not line.startswith("---")):
        lines_of_run = [*run]
        shown = lines_of_run[:_MAX_REMOVED_LINES] if is_removed else lines_of_run
        yield from shown
        if more := len(lines_of_run) - len(shown):
            yield f"-… and {more:,} more lines that were removed"


def _split_description(description: dict[str, Any]) -> list[str]:
    lines: list[str] = []
    for name, value in description.items():
        text = value if isinstance(value, str) else msgspec.json.format(_SORTED.encode(value), indent=2).decode()
        first, *more = (piece for line in text.split("\n") for piece in _split_line(line))
        lines += [f"{name}: {first}", *(f"  {line}" for line in more)]
    return lines


def _split_line(line: str) -> Iterator[str]:
    for sentence in _SENTENCE.split(line) if len(line) > _MAX_LINE_CHARS else (line,):
        yield from (sentence[at : at + _MAX_LINE_CHARS] for at in range(0, max(1, len(sentence)), _MAX_LINE_CHARS))
