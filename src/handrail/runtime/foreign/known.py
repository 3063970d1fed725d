"""As what the tools of other servers were met before: what is another now is asked about again."""

import threading
from collections.abc import Sequence
from typing import Any, NamedTuple

from handrail.protocol.wire import encode
from handrail.runtime.foreign.describing import compute_fingerprint, list_changed_parts, render_difference
from handrail.store.grants import KnownTool, KnownTools

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
        found = {**self._tools.get(server, {}), **self._store.of(server)}
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
