"""The MCP servers that an editor gives to `acp`: to be used like those that the person wrote into the settings."""

import os
import re
from collections.abc import Iterable
from typing import Any

import msgspec

from handrail import ToolSource
from handrail.acp.host import EditorServer
from handrail.cli.output import warn
from handrail.mcp.client.sources import find_sources
from handrail.protocol.wire import convert
from handrail.settings import LoadedSettings
from handrail.settings.mcp_json import merge_server_tables
from handrail.settings.mcp_servers import ServerTable, list_server_problems

_OTHER = re.compile(r"[^A-Za-z0-9-]+")
_MAX_NAME_CHARS = 48


def build_editor_sources(
    loaded: LoadedSettings, workspace: str, servers: tuple[EditorServer, ...]
) -> tuple[ToolSource, ...]:
    """The sources of a session. What is wrong with a server is told, and keeps no session from being opened."""
    found = find_sources(_with(loaded, servers), workspace, os.environ)
    _tell(found.notes)
    return found.sources


def _with(loaded: LoadedSettings, servers: tuple[EditorServer, ...]) -> LoadedSettings:
    """The settings with the editor's servers: those of the settings go first, and whoever manages the machine may have
    said that there are no others."""
    if loaded.servers_fixed and servers:
        _tell(["the managed file says which MCP servers there are, so those of the editor are not used"])
        return loaded
    tables: dict[str, ServerTable] = {}
    for server in servers:
        name, table = _name(server.name), _table(server)
        if problems := list(list_server_problems(name, table)) or _also_wrong(name, table, tables):
            _tell(f"the MCP server {name} of the editor is not used: {problem}" for problem in problems)
        else:
            tables[name] = convert(table, ServerTable)
    for name, ours in loaded.servers.items():
        tables[name] = merge_server_tables(tables[name], ours) if ours.is_extension and name in tables else ours
    return msgspec.structs.replace(loaded, servers=tables)


def _also_wrong(name: str, table: dict[str, Any], before: dict[str, ServerTable]) -> list[str]:
    if not table:
        return ["it is neither started nor reached over HTTP"]
    return [f"another one is called {name}, too"] if name in before else []


def _name(given: str) -> str:
    """A name that can be a part of what its tools are called."""
    return _OTHER.sub("_", given).strip("_-")[:_MAX_NAME_CHARS].strip("_-") or "server"


def _table(server: EditorServer) -> dict[str, Any]:
    if server.url is not None:
        return {"url": server.url, "headers": server.headers}
    return (
        {"command": server.command, "args": server.args, "env": server.variables} if server.command is not None else {}
    )


def _tell(notes: Iterable[str]) -> None:
    for text in notes:
        warn(f"handrail: {text}")
