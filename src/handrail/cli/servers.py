"""Other MCP servers, for the commands whose sessions have them."""

import os
from argparse import Namespace
from collections.abc import Iterable

from handrail.cli.output import note, one_line
from handrail.mcp.client.sources import found_sources
from handrail.protocol.tool import ToolSpec
from handrail.runtime.foreign.naming import taken_apart
from handrail.runtime.foreign.taking_over import close_all
from handrail.runtime.offering import foreign_specs
from handrail.runtime.sources import ToolSource
from handrail.settings import Loaded
from handrail.settings.policy import vouched


def sources_for(
    options: Namespace, loaded: Loaded, workspace: str, called: str | None = None
) -> tuple[ToolSource, ...]:
    """The servers of a session in this workspace; what a person should know goes to stderr. `called`: the one tool that
    is called, so that no other server is started."""
    server = taken_apart(called) if called is not None else None
    found = found_sources(loaded, workspace, os.environ, only=server[0] if server else None)
    _say(options, found.notes)
    return found.sources


def described_tools(options: Namespace, loaded: Loaded, workspace: str) -> list[ToolSpec]:
    """What the servers offer: they are started for that, and ended."""
    found = found_sources(loaded, workspace, os.environ)
    sources, told = found.sources, "\n".join(found.notes)
    _say(options, found.notes)
    try:
        specs = foreign_specs(sources, vouched(loaded), loaded.settings.tools.disable)
        problems = [f"{source.server}: {one}" for source in sources for one in source.problems() if one not in told]
        _say(options, problems)
    finally:
        close_all(sources)
    return specs


def _say(options: Namespace, texts: Iterable[str]) -> None:
    if not options.quiet:
        for text in texts:
            note(one_line(text))
