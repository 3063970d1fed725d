"""handrail acp: an agent for editors that support the Agent Client Protocol."""

import os
import re
import sys
from argparse import ArgumentParser
from collections.abc import Iterable, Mapping
from contextlib import suppress
from importlib.util import find_spec
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import msgspec

from handrail.cli.commands.mcp import build_missing_error
from handrail.cli.commands.run_setup import build_turn_limits, enable_companion_tools, open_named_model
from handrail.cli.context import is_whole_home, load_settings
from handrail.cli.exits import OK
from handrail.cli.output import print_error, print_note
from handrail.cli.parser import Command, add_mode_option
from handrail.protocol.errors import UsageError
from handrail.protocol.wire import convert
from handrail.settings import LoadedSettings
from handrail.settings.mcp_json import merge_server_tables
from handrail.settings.mcp_servers import ServerTable, list_server_problems

if TYPE_CHECKING:
    from handrail import ToolSource
    from handrail.acp.session import EditorServer
    from handrail.agent.turn import TurnLimits
    from handrail.mcp.client.sources import ServerSources
    from handrail.models.base import Model

_INVALID_NAME_CHARS = re.compile(r"[^A-Za-z0-9-]+")
_MAX_NAME_CHARS = 48


def run(options: SimpleNamespace) -> int:
    """Serves until the editor closes."""
    try:
        from handrail.acp.agent import serve  # noqa: PLC0415  an optional dependency
    except ImportError as error:
        if (error.name or "").partition(".")[0] not in {"acp", "pydantic"}:
            raise
        raise build_missing_error("the agent for editors", "acp", error) from None
    if sys.stdin is not None and sys.stdin.isatty():
        print_note(
            "An editor starts handrail acp and talks to it here. Ctrl-C ends it."
            "\nTo add it to Zed: handrail mcp --config zed. Any other editor runs: handrail acp"
        )
    sink = os.dup(1)
    with suppress(OSError):
        os.dup2(2, 1)  # stdout carries the protocol, so prints of a library go to stderr
    serve(CommandHost(options), 0, sink)
    return OK


class CommandHost:
    """The host of `handrail acp`: the options of the command decide for all sessions."""

    def __init__(self, options: SimpleNamespace) -> None:
        self._options = options
        self.only_workspace = os.path.abspath(options.workspace) if options.workspace else None
        self.has_http_servers = find_spec("mcp") is not None

    def resolve_workspace(self, cwd: str) -> str:
        """The folder of the option, else that of the editor. Only the option may name a whole home folder."""
        if self.only_workspace is not None:
            return self.only_workspace
        if not os.path.isabs(cwd) or "\0" in cwd:
            raise UsageError(f"cwd must be an absolute path, not {cwd[:200]!r}. Nothing was opened.")
        real = os.path.realpath(cwd)
        if not os.path.isdir(real):
            raise UsageError(f"{cwd[:200]} is not a folder. Nothing was opened.")
        if is_whole_home(real):
            problem = f"{cwd} is a whole home folder"
            raise UsageError(f"{problem}: open a folder in the editor, or start handrail acp --workspace {cwd}")
        return cwd

    def load_settings(self, workspace: str) -> LoadedSettings:
        options = self._options
        first = options.model[0] if options.model else None
        loaded = load_settings(options, options.mode, workspace, flags={"model": first})
        return enable_companion_tools(loaded, workspace)

    def get_limits(self, loaded: LoadedSettings) -> "TurnLimits":
        return build_turn_limits(loaded)

    def list_models(self, loaded: LoadedSettings, last: str | None) -> tuple[str, ...]:
        """The models of the options, else of the settings, else the last one of the session.

        If the last one is among several, it comes first.
        """
        chosen = loaded.settings.model or last
        named = tuple(dict.fromkeys(self._options.model or ([chosen] if chosen else [])))
        return (last, *(name for name in named if name != last)) if last in named and last else named

    def open_model(self, loaded: LoadedSettings, name: str | None) -> "Model":
        return open_named_model(name, loaded)

    def open_sources(
        self, loaded: LoadedSettings, workspace: str, servers: "tuple[EditorServer, ...]"
    ) -> "tuple[ToolSource, ...]":
        return find_editor_sources(loaded, workspace, servers).sources


# MCP servers of the editor


def find_editor_sources(loaded: LoadedSettings, workspace: str, servers: "tuple[EditorServer, ...]") -> "ServerSources":
    """The sources of a session. A server with problems is reported, and the session opens without it."""
    from handrail.mcp.client.sources import find_sources  # noqa: PLC0415  an optional dependency

    found = find_sources(_add_editor_servers(loaded, servers), workspace, os.environ)
    _warn_all(found.notes, found.fixes)
    return found


def _add_editor_servers(loaded: LoadedSettings, servers: "tuple[EditorServer, ...]") -> LoadedSettings:
    """The settings with the servers of the editor. Servers of the settings come first, and may be the only ones."""
    if loaded.servers_fixed and servers:
        _warn_all(["the managed file fixes the MCP servers, so the editor's servers are ignored"])
        return loaded
    tables: dict[str, ServerTable] = {}
    for server in servers:
        # The name becomes a part of the names of its tools.
        name = _INVALID_NAME_CHARS.sub("_", server.name).strip("_-")[:_MAX_NAME_CHARS].strip("_-") or "server"
        table = _build_table(server)
        problems = list(list_server_problems(name, table))
        if not problems and not table:
            problems = ["it has neither a command nor a url"]
        elif not problems and name in tables:
            problems = [f"another one is called {name}, too"]
        _warn_all(f"the MCP server {name} of the editor is not used: {problem}" for problem in problems)
        if not problems:
            tables[name] = convert(table, ServerTable)
    for name, ours in loaded.servers.items():
        tables[name] = merge_server_tables(tables[name], ours) if ours.is_extension and name in tables else ours
    return msgspec.structs.replace(loaded, servers=tables)


def _build_table(server: "EditorServer") -> dict[str, Any]:
    if server.url is not None:
        return {"url": server.url, "headers": server.headers}
    if server.command is not None:
        return {"command": server.command, "args": server.args, "env": server.variables}
    return {}


def _warn_all(notes: Iterable[str], fixes: Mapping[str, str] | None = None) -> None:
    for text in notes:
        print_error(text, (fixes or {}).get(text, "handrail doctor"))


def _add_arguments(parser: ArgumentParser) -> None:
    told = "provider and model, such as anthropic:… or ollama:…; the editor offers several to choose from"
    parser.add_argument("--model", metavar="NAME", action="append", help=told)
    add_mode_option(parser)
    parser.add_argument("--workspace", metavar="DIR", help="the folder to work in (the one that the editor names)")
    parser.set_defaults(json=False, quiet=False)


COMMANDS = {
    "acp": Command(
        run,
        _add_arguments,
        ("handrail acp --model anthropic:claude-sonnet-4-5", "handrail acp --mode auto --workspace ."),
    ),
}
