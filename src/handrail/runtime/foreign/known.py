"""As what the tools of other servers were met before: what is another now is asked about again."""

import threading
from collections.abc import Sequence
from typing import Any

from handrail.runtime.foreign.describing import difference, fingerprint, what_changed
from handrail.store.known_tools import KnownTool, KnownTools


class Known:
    """What this workspace knows. Other processes approve too: before a tool is called another one, it is looked up."""

    def __init__(self, store: KnownTools) -> None:
        self._store = store
        self._lock = threading.Lock()
        self._tools: dict[str, dict[str, KnownTool]] = {}

    def meet(self, server: str, tools: Sequence[dict[str, Any]]) -> list[tuple[str, str]]:
        """Keeps the tools that are new as they are; those that are others than they were, each with what of it is."""
        with self._lock:
            known = self._looked_up(server)
            fresh = {told["name"]: _known(told) for told in tools if told["name"] not in known}
            if fresh:
                self._store.keep(server, fresh)
                self._tools[server] = known = {**known, **fresh}
            return [
                (told["name"], what_changed(known[told["name"]].described, told))
                for told in tools
                if known[told["name"]].fingerprint != fingerprint(told)
            ]

    def difference(self, server: str, told: dict[str, Any]) -> str | None:
        """What a server says otherwise of a tool than before; None where it says the same."""
        with self._lock:
            known = self._tools.get(server, {}).get(told["name"])
            if known is not None and known.fingerprint != fingerprint(told):
                known = self._looked_up(server).get(told["name"])
        if known is None or known.fingerprint == fingerprint(told):
            return None
        return difference(known.described, told)

    def approve(self, server: str, told: dict[str, Any]) -> None:
        """Somebody said yes to the tool as it is now. Where that cannot be kept, it is asked again another time."""
        with self._lock:
            known = self._tools.get(server, {})
            if (one := known.get(told["name"])) is not None and one.fingerprint == fingerprint(told):
                return
            fresh = {told["name"]: _known(told)}
            self._store.keep(server, fresh)
            self._tools[server] = {**known, **fresh}

    def _looked_up(self, server: str) -> dict[str, KnownTool]:
        """What is on the disk counts more than what this process remembers."""
        found = {**self._tools.get(server, {}), **self._store.of(server)}
        self._tools[server] = found
        return found


def _known(told: dict[str, Any]) -> KnownTool:
    return KnownTool(fingerprint=fingerprint(told), described=told)
