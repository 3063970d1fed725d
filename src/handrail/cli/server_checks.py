"""What doctor says of other MCP servers: each is started, and ended."""

import os
import re
from argparse import Namespace
from collections.abc import Iterator

from handrail.cli.context import find_project_folder, has_servers
from handrail.cli.format import Finding, replace_home
from handrail.protocol.errors import build_install_command
from handrail.runtime.foreign.source import ToolSource
from handrail.settings import LoadedSettings, SettingsError, load

_GROUP = "mcp"
_EXPORT = re.compile(r"export \w+=…")


def check_servers() -> Iterator[Finding]:
    """A row for each server that the settings, or a trusted .mcp.json, name. Where there is none, nothing."""
    folder = find_project_folder(Namespace(workspace=None))
    try:
        loaded = load(os.environ, {}, folder)
    except SettingsError:  # which the settings' own row tells
        return
    if folder is not None and has_servers(loaded, folder):
        yield from _rows(loaded, folder)


def _rows(loaded: LoadedSettings, folder: str) -> Iterator[Finding]:
    from handrail.mcp.client.sources import find_sources  # noqa: PLC0415  few have other servers
    from handrail.runtime.foreign.catalog import close_sources  # noqa: PLC0415  as above

    found = find_sources(loaded, folder, os.environ)
    for text in found.notes:
        yield Finding(_GROUP, "warning", replace_home(text), _settled_by(text))
    try:
        told = "\n".join(found.notes)
        yield from (_row(source) for source in found.sources if not _is_told(source, told))
    finally:
        close_sources(found.sources)


def _settled_by(text: str) -> str | None:
    if "handrail[mcp]" in text:
        return replace_home(build_install_command("mcp"))
    if unset := _EXPORT.search(text):
        return unset[0]
    return "handrail trust" if "handrail trust" in text else None


def _is_told(source: ToolSource, told: str) -> bool:
    """Whether a note says already what is wrong with one that cannot be started at all."""
    return any(problem in told for problem in source.problems())


def _row(source: ToolSource) -> Finding:
    tools, problems = source.listed(), source.problems()
    if tools:
        text = f"{source.server}: {len(tools)} tool{'s' * (len(tools) != 1)}"
        return Finding(_GROUP, "warning" if problems else "ok", replace_home("; ".join((text, *problems))))
    if not problems:
        return Finding(_GROUP, "warning", f"{source.server}: it offers no tools")
    return Finding(_GROUP, "error", replace_home(f"{source.server}: {'; '.join(problems)}"))
