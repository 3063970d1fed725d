"""What doctor says of other MCP servers: each is started, and ended."""

import os
import re
from argparse import Namespace
from collections.abc import Iterator

from handrail.cli.preferences import has_servers, project_folder
from handrail.cli.rows import Row, without_home
from handrail.runtime.sources import ToolSource
from handrail.settings import Loaded, SettingsError, load
from handrail.settings.extras import installing

_GROUP = "mcp"
_EXPORT = re.compile(r"export \w+=…")


def servers() -> Iterator[Row]:
    """A row for each server that the settings, or a trusted .mcp.json, name. Where there is none, nothing."""
    folder = project_folder(Namespace(workspace=None))
    try:
        loaded = load(os.environ, {}, folder)
    except SettingsError:  # which the settings' own row tells
        return
    if folder is not None and has_servers(loaded, folder):
        yield from _rows(loaded, folder)


def _rows(loaded: Loaded, folder: str) -> Iterator[Row]:
    from handrail.mcp.client.sources import found_sources  # noqa: PLC0415  few have other servers
    from handrail.runtime.foreign.taking_over import close_all  # noqa: PLC0415  as above

    found = found_sources(loaded, folder, os.environ)
    for text in found.notes:
        yield Row(_GROUP, "warning", without_home(text), _settled_by(text))
    try:
        told = "\n".join(found.notes)
        yield from (_row(source) for source in found.sources if not _is_told(source, told))
    finally:
        close_all(found.sources)


def _settled_by(text: str) -> str | None:
    if "handrail[mcp]" in text:
        return without_home(installing("mcp"))
    if unset := _EXPORT.search(text):
        return unset[0]
    return "handrail trust" if "handrail trust" in text else None


def _is_told(source: ToolSource, told: str) -> bool:
    """Whether a note says already what is wrong with one that cannot be started at all."""
    return any(problem in told for problem in source.problems())


def _row(source: ToolSource) -> Row:
    tools, problems = source.listed(), source.problems()
    if tools:
        text = f"{source.server}: {len(tools)} tool{'s' * (len(tools) != 1)}"
        return Row(_GROUP, "warning" if problems else "ok", without_home("; ".join((text, *problems))))
    if not problems:
        return Row(_GROUP, "warning", f"{source.server}: it offers no tools")
    return Row(_GROUP, "error", without_home(f"{source.server}: {'; '.join(problems)}"))
