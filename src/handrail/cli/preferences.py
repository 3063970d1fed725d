"""The settings a command works with."""

import os
from argparse import Namespace
from collections.abc import Mapping
from contextlib import suppress
from typing import TYPE_CHECKING

import msgspec

from handrail.cli.exits import CommandFailed
from handrail.cli.output import print_note, warn
from handrail.protocol.errors import UsageError
from handrail.settings import LoadedSettings, Settings, load

if TYPE_CHECKING:
    from handrail.runtime.foreign.source import ToolSource


def load_settings(
    options: Namespace,
    mode: str | None = None,
    workspace: str | None = None,
    *,
    flags: Mapping[str, object] | None = None,
    review: bool = True,
) -> LoadedSettings:
    """What all layers say, the project's too where a workspace is named; what a person should know goes to stderr."""
    loaded = load(os.environ, {"mode": mode, **(flags or {})}, workspace, review=review)
    if not options.quiet:
        for text in loaded.notes:
            print_note(text)
    if loaded.settings.tools.disable:  # one that does nothing leaves a tool there that somebody wanted gone
        from handrail.runtime.registry import build_tool_set  # noqa: PLC0415  few disable any

        with suppress(UsageError):  # whoever opens a session is told
            for text in build_tool_set(loaded.settings).unmatched():
                warn(f"warning: {text}")
    return loaded


def add_unknown_tool_notes(loaded: LoadedSettings) -> LoadedSettings:
    """The same, with a remark on settings about tools that are not here: a program may bring its own."""
    tools = loaded.settings.tools
    if not tools.enable and not tools.disable and all(rule.tool == "exec" for rule in loaded.rules):
        return loaded
    from handrail.runtime.registry import build_tool_set  # noqa: PLC0415  few settings are about other tools
    from handrail.settings.rules import list_unknown_tools  # noqa: PLC0415

    try:
        offer = build_tool_set(loaded.settings)
    except UsageError:
        return loaded
    notes = (*loaded.notes, *list_unknown_tools(loaded, offer.registered), *offer.unmatched())
    return msgspec.structs.replace(loaded, notes=notes)


def has_servers(loaded: LoadedSettings, workspace: str) -> bool:
    """Whether other MCP servers may be had here: else nothing of them is even loaded."""
    return bool(loaded.servers) or (not loaded.servers_fixed and os.path.lexists(os.path.join(workspace, ".mcp.json")))


def find_server_sources(options: Namespace, loaded: LoadedSettings, workspace: str) -> "tuple[ToolSource, ...]":
    """The other MCP servers of a session in this workspace; none is started before somebody asks for tools."""
    if not has_servers(loaded, workspace):
        return ()
    from handrail.cli.servers import build_server_sources  # noqa: PLC0415  few have other servers

    return build_server_sources(options, loaded, workspace)


def load_effective_settings(options: Namespace, mode: str | None = None, workspace: str | None = None) -> Settings:
    """The same, without where it comes from and without rules."""
    return load_settings(options, mode, workspace).settings


def find_project_folder(options: Namespace) -> str | None:
    """The folder whose project is meant, said or not; None where the current folder cannot be a workspace."""
    if options.workspace:
        return options.workspace
    try:
        folder = os.getcwd()
    except OSError:
        return None
    return None if folder in {"/", os.path.realpath(os.path.expanduser("~"))} else folder


def resolve_project_folder(options: Namespace) -> str | None:
    """The same for commands that only look: one that somebody named and that is not there is a mistake."""
    folder = find_project_folder(options)
    if folder is not None and not os.path.isdir(folder):
        raise CommandFailed(f"the workspace {folder} is no folder. Name one that is there.")
    return folder
