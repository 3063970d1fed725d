"""The sources of tools that a session has: one for each MCP server."""

import threading
import time
from collections.abc import Mapping
from importlib.util import find_spec
from typing import Any

import msgspec

from handrail.mcp.client.source import ServerSource
from handrail.mcp.client.worker import Worker
from handrail.protocol.errors import ToolError, build_install_command
from handrail.protocol.permissions import Permission
from handrail.runtime.foreign.server_process import ServerPrograms
from handrail.runtime.foreign.source import ForeignTool, ToolSource, split_tool_name
from handrail.settings import LoadedSettings, resolve_state_folder
from handrail.settings.mcp_json import ConfiguredServer, resolve_servers
from handrail.settings.mcp_servers import is_server_name
from handrail.settings.units import parse_seconds
from handrail.tools.tool import Context, Output


class ServerSources(msgspec.Struct, frozen=True):
    """The sources, and what a person should be told."""

    sources: tuple[ToolSource, ...] = ()
    notes: tuple[str, ...] = ()
    fixes: Mapping[str, str] = {}
    """The commands that help, by the note."""
    unusable: frozenset[str] = frozenset()
    """The servers whose problem is a note."""


def list_sources(loaded: LoadedSettings, workspace: str, environ: Mapping[str, str]) -> tuple[ToolSource, ...]:
    """The sources of a session in this workspace. Nothing is started before somebody asks for tools."""
    return find_sources(loaded, workspace, environ).sources


def find_sources(
    loaded: LoadedSettings, workspace: str, environ: Mapping[str, str], *, called: str | None = None
) -> ServerSources:
    """The same with notes for a person. `called`: the only tool that is called, so that no other server starts."""
    only = (split_tool_name(called) or (None,))[0] if called is not None else None
    servers = resolve_servers(loaded, workspace, environ)
    usable = [one for one in servers.usable if only in {None, one.name}]
    unusable = {name: why for name, why in servers.unusable.items() if only in {None, name}}
    reasons = {f"The MCP server {name} cannot be used: {why}.": why for name, why in unusable.items()}
    notes, fixes = (*servers.notes, *reasons), dict(servers.fixes)
    fixes |= {note: fixes[why] for note, why in reasons.items() if why in fixes}
    if not usable and not unusable:
        return ServerSources((), notes, fixes)
    if loaded.settings.profile == "restricted":
        return ServerSources((), (*notes, "The restricted profile has no other MCP servers."), fixes)
    if usable and find_spec("mcp") is None:
        fix = build_install_command("mcp")
        note = f"Other MCP servers need an extra that is not installed: {fix}"
        return ServerSources((), (*notes, note), {**fixes, note: fix})
    state = resolve_state_folder(environ)
    group = _ServerGroup(
        usable, ServerPrograms(loaded.settings, workspace, state, environ), parse_seconds(loaded.settings.mcp.wait)
    )
    broken = [_UnusableSource(name, why) for name, why in unusable.items() if is_server_name(name)]
    return ServerSources((*group.sources, *broken), notes, fixes, frozenset(unusable))


class _ServerGroup:
    """Servers that are started side by side, by one thread."""

    def __init__(self, servers: list[ConfiguredServer], programs: ServerPrograms, wait: float) -> None:
        self._programs = programs
        self._worker = Worker()
        self._wait = wait
        self._lock = threading.Lock()
        self._until: float | None = None
        self._left = len(servers)
        self.sources = tuple(
            ServerSource(server, self._worker, programs, self.begin, self._closed) for server in servers
        )

    def begin(self) -> float:
        """Starts all of them; how many seconds are left to wait for what they list."""
        with self._lock:
            if self._until is None:
                self._until = time.monotonic() + self._wait
        for source in self.sources:
            source.start()
        return max(0.0, self._until - time.monotonic())

    def _closed(self) -> None:
        with self._lock:
            self._left -= 1
        if self._left == 0:
            self._worker.close()
            self._programs.close()


class _UnusableSource:
    """A server that cannot be started as it is written: it offers nothing, and says why."""

    revision, reach = 0, tuple[Permission]()

    def __init__(self, server: str, why: str) -> None:
        self.server = server
        self._why = why

    def listed(self) -> tuple[ForeignTool, ...]:
        return ()

    def call(self, context: Context, name: str, arguments: dict[str, Any]) -> Output:  # noqa: ARG002  the protocol's
        raise ToolError("UNAVAILABLE", f"The server {self.server} cannot be used: {self._why}.")

    def problems(self) -> tuple[str, ...]:
        return (self._why,)

    def close(self) -> None:
        pass
