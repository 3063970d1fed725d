"""What a session would offer, for who only wants to know: no session is opened."""

from collections.abc import Collection, Iterable
from typing import TYPE_CHECKING, Any

from handrail.policy.config import TrustedServer, is_mcp_tool_excluded
from handrail.protocol.errors import ToolError
from handrail.protocol.tool_spec import ToolSpec
from handrail.runtime.discovery import load_configured_tools
from handrail.runtime.own_tools import ToolServices, list_builtin_tools
from handrail.runtime.registry import ToolRegistry, ToolSet
from handrail.settings import Settings
from handrail.tools.commands import CommandEnvironment

if TYPE_CHECKING:
    from handrail.runtime.sources import ToolSource


def build_tool_set(settings: Settings) -> ToolSet:
    """The tools that a session with these settings offers. They describe themselves; without a session none can run."""
    nothing: Any = _NoSession()
    parts = ToolServices(
        seen=nothing,
        outputs=nothing,
        records=nothing,
        recorder=nothing.recorder,
        commands=CommandEnvironment(settings, "", {}),
        background=nothing,
        settings=settings,
        notes="",
        skills=nothing,
    )
    tools = settings.tools
    registry = ToolRegistry(list_builtin_tools(parts), load_configured_tools(settings))
    return ToolSet(registry, enable=tools.enable, disable=tools.disable, deny=tools.deny)


def list_foreign_specs(
    sources: "Iterable[ToolSource]", vouched: tuple[TrustedServer, ...], disable: Collection[str] = ()
) -> list[ToolSpec]:
    """What other servers offer, as a session would have it; they are started for that."""
    from handrail.policy.decide import is_read_only_tool  # noqa: PLC0415  few have other servers
    from handrail.protocol.decisions import ForeignFact  # noqa: PLC0415
    from handrail.runtime.foreign.accepting import find_tool_problem  # noqa: PLC0415
    from handrail.runtime.foreign.fitting import select_fitting  # noqa: PLC0415
    from handrail.runtime.foreign.known import PinStore  # noqa: PLC0415
    from handrail.runtime.foreign.tools import build_foreign_tool  # noqa: PLC0415
    from handrail.store.grants import KnownTools  # noqa: PLC0415

    nothing = PinStore(KnownTools(""))  # what is only described was met by nobody
    specs: list[ToolSpec] = []
    for source in sources:
        for one in source.listed():
            fact = ForeignFact(server=source.server, tool=one.name, read_only=one.read_only)
            if not find_tool_problem(one):
                specs.append(build_foreign_tool(source, one, nothing, looks=is_read_only_tool(fact, vouched)).spec)
    specs = [spec for spec in specs if not is_mcp_tool_excluded(disable, spec.name)]
    fits = select_fitting(specs)
    return [spec for spec in specs if spec.name in fits]


class _NoSession:
    """What the tools need of a session, where there is none."""

    def __getattr__(self, name: str) -> Any:
        return self

    def __call__(self, *_: object, **__: object) -> Any:
        raise ToolError("UNAVAILABLE", "Without a session nothing runs.")
