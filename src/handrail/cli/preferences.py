"""The settings a command works with."""

import os
from argparse import Namespace
from collections.abc import Mapping
from contextlib import suppress
from typing import TYPE_CHECKING

import msgspec

from handrail.cli.exits import Stop
from handrail.cli.output import note, warn
from handrail.protocol.error import UsageError
from handrail.settings import Loaded, Settings, load

if TYPE_CHECKING:
    from handrail.runtime.sources import ToolSource


def loaded_for(
    options: Namespace,
    mode: str | None = None,
    workspace: str | None = None,
    *,
    flags: Mapping[str, object] | None = None,
    review: bool = True,
) -> Loaded:
    """What all layers say, the project's too where a workspace is named; what a person should know goes to stderr."""
    loaded = load(os.environ, {"mode": mode, **(flags or {})}, workspace, review=review)
    if not options.quiet:
        for text in loaded.notes:
            note(text)
    if loaded.settings.tools.disable:  # one that does nothing leaves a tool there that somebody wanted gone
        from handrail.runtime.offering import offered  # noqa: PLC0415  few disable any

        with suppress(UsageError):  # whoever opens a session is told
            for text in offered(loaded.settings).unmatched():
                warn(f"warning: {text}")
    return loaded


def with_unknown_tools(loaded: Loaded) -> Loaded:
    """The same, with a remark on settings about tools that are not here: a program may bring its own."""
    tools = loaded.settings.tools
    if not tools.enable and not tools.disable and all(rule.tool == "exec" for rule in loaded.rules):
        return loaded
    from handrail.runtime.offering import offered  # noqa: PLC0415  few settings are about other tools
    from handrail.settings.policy import unknown_tools  # noqa: PLC0415

    try:
        offer = offered(loaded.settings)
    except UsageError:
        return loaded
    notes = (*loaded.notes, *unknown_tools(loaded, offer.registered), *offer.unmatched())
    return msgspec.structs.replace(loaded, notes=notes)


def has_servers(loaded: Loaded, workspace: str) -> bool:
    """Whether other MCP servers may be had here: else nothing of them is even loaded."""
    return bool(loaded.servers) or (not loaded.servers_fixed and os.path.lexists(os.path.join(workspace, ".mcp.json")))


def sources_of(options: Namespace, loaded: Loaded, workspace: str) -> "tuple[ToolSource, ...]":
    """The other MCP servers of a session in this workspace; none is started before somebody asks for tools."""
    if not has_servers(loaded, workspace):
        return ()
    from handrail.cli.servers import sources_for  # noqa: PLC0415  few have other servers

    return sources_for(options, loaded, workspace)


def settings_for(options: Namespace, mode: str | None = None, workspace: str | None = None) -> Settings:
    """The same, without where it comes from and without rules."""
    return loaded_for(options, mode, workspace).settings


def project_folder(options: Namespace) -> str | None:
    """The folder whose project is meant, said or not; None where the current folder cannot be a workspace."""
    if options.workspace:
        return options.workspace
    try:
        folder = os.getcwd()
    except OSError:
        return None
    return None if folder in {"/", os.path.realpath(os.path.expanduser("~"))} else folder


def folder_to_look_at(options: Namespace) -> str | None:
    """The same for commands that only look: one that somebody named and that is not there is a mistake."""
    folder = project_folder(options)
    if folder is not None and not os.path.isdir(folder):
        raise Stop(f"the workspace {folder} is no folder. Name one that is there.")
    return folder
