"""Fingerprints of foreign tools."""

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

# § [runtime.foreign.describing] What a server says of a tool: all of it in one form, its digest, and what became
# § another.

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


# § [runtime.foreign.known] As what the tools of other servers were met before: what is another now is asked about
# § again.

_MAX_KEPT_BYTES = 8_000_000
"""Bytes of all tools of one server. None is ever dropped for others: it could come back as another one then."""


class PinObservation(NamedTuple):
    """What came of a listing."""

    changed: dict[str, str]
    """Those that are others than they were, and what of them is."""
    not_stored: set[str]
    """New ones that there is no room for: whether they change, nobody would know."""


class PinStore:
    """What this workspace knows. Other processes approve too: before a tool is called another one, it is looked up."""

    def __init__(self, store: KnownTools) -> None:
        self._store = store
        self._lock = threading.Lock()
        self._tools: dict[str, dict[str, KnownTool]] = {}

    def observe(self, server: str, tools: Sequence[dict[str, Any]]) -> PinObservation:
        """Keeps the tools that are new as they are."""
        with self._lock:
            known = self._looked_up(server)
            new = {told["name"]: _known(told) for told in tools if told["name"] not in known}
            if fresh := _with_room(known, new):
                self._store.keep(server, fresh)
                self._tools[server] = known = {**known, **fresh}
            changed = {
                told["name"]: list_changed_parts(before.described, told)
                for told in tools
                if (before := known.get(told["name"])) is not None and before.fingerprint != compute_fingerprint(told)
            }
            return PinObservation(changed, new.keys() - fresh.keys())

    def place(self, server: str) -> str:
        """The file that a server's tools are kept in."""
        return self._store.path_of(server)

    def difference(self, server: str, told: dict[str, Any]) -> str | None:
        """What a server says otherwise of a tool than before; None where it says the same."""
        before = self._before(server, told)
        return None if before is None else render_difference(before.described, told)

    def is_changed(self, server: str, told: dict[str, Any]) -> bool:
        """Whether a server says something else of a tool than before."""
        return self._before(server, told) is not None

    def _before(self, server: str, told: dict[str, Any]) -> KnownTool | None:
        """As what a tool that is another now was known."""
        now = compute_fingerprint(told)
        with self._lock:
            known = self._tools.get(server, {}).get(told["name"])
            if known is not None and known.fingerprint != now:
                known = self._looked_up(server).get(told["name"])
        return None if known is None or known.fingerprint == now else known

    def approve(self, server: str, told: dict[str, Any]) -> None:
        """Somebody said yes to the tool as it is now. Where that cannot be kept, it is asked again another time."""
        with self._lock:
            known = self._tools.get(server, {})
            if (one := known.get(told["name"])) is not None and one.fingerprint == compute_fingerprint(told):
                return
            fresh = {told["name"]: _known(told)}
            self._store.keep(server, fresh)
            self._tools[server] = {**known, **fresh}

    def _looked_up(self, server: str) -> dict[str, KnownTool]:
        """What is on the disk counts more than what this process remembers."""
        found = {**self._tools.get(server, {}), **self._store.list_tools(server)}
        self._tools[server] = found
        return found


def _with_room(known: dict[str, KnownTool], new: dict[str, KnownTool]) -> dict[str, KnownTool]:
    """Those of the new that can be kept, too."""
    room = _MAX_KEPT_BYTES - len(encode(known)) if new else 0
    fresh: dict[str, KnownTool] = {}
    for name, tool in new.items():
        room -= len(encode(tool)) + len(encode(name))
        if room >= 0:
            fresh[name] = tool
    return fresh


def _known(told: dict[str, Any]) -> KnownTool:
    return KnownTool(fingerprint=compute_fingerprint(told), described=told)
