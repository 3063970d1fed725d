"""The other MCP servers that `config` lists: those of the settings, and those that the project brings."""

import os

from handrail.settings import Loaded, state_folder
from handrail.settings.mcp_json import MCP_FILE, Brought, brought_by
from handrail.settings.project_servers import added
from handrail.settings.server_words import server_words
from handrail.settings.servers import ServerTable


def listed_servers(loaded: Loaded, folder: str | None) -> dict[str, str]:
    """What each is, by name, in words that hold no secret. Nothing is started."""
    brought = brought_by(folder, state_folder(os.environ)) if folder and not loaded.servers_fixed else None
    theirs = {name: _brought(brought, table) for name, table in brought.servers.items()} if brought else {}
    return theirs | {name: _named(brought, name, table) for name, table in loaded.servers.items()}


def _brought(brought: Brought, table: ServerTable) -> str:
    return f"{server_words(table)}; from {MCP_FILE}{'' if brought.trusted else ', not used until you trust it'}"


def _named(brought: Brought | None, name: str, table: ServerTable) -> str:
    if not table.adds:
        return server_words(table)
    if brought is not None and name in brought.servers:
        return _brought(brought, added(brought.servers[name], table))
    return f"{server_words(table)}; there is none of that name here"
