"""The other MCP servers that `config` lists: those of the settings, and those that the project brings."""

import os

from handrail.settings import LoadedSettings, resolve_state_folder
from handrail.settings.mcp_json import McpJson, load_mcp_json, merge_server_tables
from handrail.settings.mcp_servers import ServerTable, describe_server
from handrail.settings.paths import MCP_FILE


def describe_servers(loaded: LoadedSettings, folder: str | None) -> dict[str, str]:
    """What each is, by name, in words that hold no secret. Nothing is started."""
    brought = load_mcp_json(folder, resolve_state_folder(os.environ)) if folder and not loaded.servers_fixed else None
    theirs = {name: _brought(brought, table) for name, table in brought.servers.items()} if brought else {}
    return theirs | {name: _named(brought, name, table) for name, table in loaded.servers.items()}


def _brought(brought: McpJson, table: ServerTable) -> str:
    return f"{describe_server(table)}; from {MCP_FILE}{'' if brought.trusted else ', not used until you trust it'}"


def _named(brought: McpJson | None, name: str, table: ServerTable) -> str:
    if not table.is_extension:
        return describe_server(table)
    if brought is not None and name in brought.servers:
        return _brought(brought, merge_server_tables(brought.servers[name], table))
    return f"{describe_server(table)}; there is none of that name here"
