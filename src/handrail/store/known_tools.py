"""The tools of other servers as this workspace knows them: as a person last said yes to them, or first met them.

One small file a server. Who adds a tool writes what it read with it; where two processes do so at once, one of them may
be lost, and a person is asked once more.
"""

import hashlib
from typing import Any

import msgspec

from handrail.protocol.error import StoreError
from handrail.store.small_files import SmallFiles


class KnownTool(msgspec.Struct, frozen=True):
    """One of them."""

    fingerprint: str
    described: dict[str, Any]
    """What its server said of it."""


class KnownServer(msgspec.Struct, frozen=True):
    """All of one server, by the server's own names."""

    server: str
    tools: dict[str, KnownTool]


class KnownTools:
    """Those of one workspace."""

    def __init__(self, path: str) -> None:
        self._files = SmallFiles(path, KnownServer, "tools of other servers that were met")

    def place(self, server: str) -> str:
        """The file about a server."""
        return self._files.place(_server_name(server))

    def of(self, server: str) -> dict[str, KnownTool]:
        """What is known of a server; nothing where that cannot be read."""
        kept = self._files.read(_server_name(server))
        return kept.tools if kept is not None and kept.server == server else {}

    def keep(self, server: str, tools: dict[str, KnownTool]) -> bool:
        """Adds tools to what is known, in the place of those of their names; whether that could be written down."""
        try:
            self._files.write(_server_name(server), KnownServer(server=server, tools={**self.of(server), **tools}))
        except StoreError:
            return False
        return True


def _server_name(server: str) -> str:
    return hashlib.sha256(server.encode("utf-8", "surrogatepass")).hexdigest()[:16]
