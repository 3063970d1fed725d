"""Finds the tools, servers or skills that a session here would have, without opening one."""

from collections.abc import Iterator
from typing import TYPE_CHECKING, NamedTuple

from handrail.protocol.tool_spec import ToolSpec
from handrail.runtime.registry import build_tool_set
from handrail.runtime.skills import build_skill_entry, find_skill, has_usable_skill, load_skills
from handrail.settings import LoadedSettings, Settings
from handrail.settings.rules import list_trusted_servers

if TYPE_CHECKING:
    from handrail.runtime.foreign.source import ToolSource

__all__ = [
    "ServerStatus",
    "build_skill_entry",
    "check_servers",
    "find_skill",
    "has_usable_skill",
    "list_server_specs",
    "list_tool_names",
    "list_tool_remarks",
    "list_tool_specs",
    "load_skills",
]


def list_tool_specs(settings: Settings) -> list[ToolSpec]:
    """The tools that a session with these settings offers. UsageError if the settings name tools that do not exist."""
    return [tool.spec for tool in build_tool_set(settings).tools]


def list_tool_names(settings: Settings) -> tuple[str, ...]:
    """The names of all registered tools, offered or not."""
    return build_tool_set(settings).registered


def list_tool_remarks(settings: Settings) -> tuple[str, ...]:
    """Warnings about enabled or disabled tools that do not exist here."""
    return build_tool_set(settings).unmatched()


class ServerStatus(NamedTuple):
    """A server after it was asked for its tools."""

    server: str
    tools: int
    problems: tuple[str, ...]


def check_servers(sources: "tuple[ToolSource, ...]") -> Iterator[ServerStatus]:
    """Starts servers, asks for their tools, and ends them."""
    from handrail.runtime.foreign.catalog import close_sources  # noqa: PLC0415  few have other servers

    try:
        for source in sources:
            tools = source.listed()
            yield ServerStatus(source.server, len(tools), source.problems())
    finally:
        close_sources(sources)


def list_server_specs(
    sources: "tuple[ToolSource, ...]", loaded: LoadedSettings
) -> tuple[list[ToolSpec], list[ServerStatus]]:
    """The tools of servers that a session would offer. The servers are started for that, and ended."""
    from handrail.runtime.foreign.catalog import close_sources, list_foreign_specs  # noqa: PLC0415  as above

    try:
        specs = list_foreign_specs(sources, list_trusted_servers(loaded), loaded.settings.tools.disable)
        return specs, [ServerStatus(source.server, 0, source.problems()) for source in sources]
    finally:
        close_sources(sources)
