"""Other MCP servers, for the commands whose sessions have them."""

import os
from argparse import Namespace
from collections.abc import Iterable

from handrail.cli.output import print_note
from handrail.mcp.client.sources import find_sources
from handrail.protocol.text import to_one_line
from handrail.protocol.tool_spec import ToolSpec
from handrail.runtime.foreign.catalog import close_sources, list_foreign_specs
from handrail.runtime.foreign.source import ToolSource, split_tool_name
from handrail.settings import LoadedSettings
from handrail.settings.rules import list_trusted_servers


def build_server_sources(
    options: Namespace, loaded: LoadedSettings, workspace: str, called: str | None = None
) -> tuple[ToolSource, ...]:
    """The servers of a session in this workspace; what a person should know goes to stderr. `called`: the one tool that
    is called, so that no other server is started."""
    server = split_tool_name(called) if called is not None else None
    found = find_sources(loaded, workspace, os.environ, only=server[0] if server else None)
    _say(options, found.notes)
    return found.sources


def list_server_tools(options: Namespace, loaded: LoadedSettings, workspace: str) -> list[ToolSpec]:
    """What the servers offer: they are started for that, and ended."""
    found = find_sources(loaded, workspace, os.environ)
    sources, told = found.sources, "\n".join(found.notes)
    _say(options, found.notes)
    try:
        specs = list_foreign_specs(sources, list_trusted_servers(loaded), loaded.settings.tools.disable)
        problems = [f"{source.server}: {one}" for source in sources for one in source.problems() if one not in told]
        _say(options, problems)
    finally:
        close_sources(sources)
    return specs


def _say(options: Namespace, texts: Iterable[str]) -> None:
    if not options.quiet:
        for text in texts:
            print_note(to_one_line(text))
