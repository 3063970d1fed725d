"""What a session would offer, for who only wants to know: no session is opened."""

from collections.abc import Collection, Iterable
from typing import TYPE_CHECKING, Any

from handrail.policy.configuration import Vouching
from handrail.protocol.error import ToolError
from handrail.protocol.tool import ToolSpec
from handrail.runtime.discovery import tools_of_settings
from handrail.runtime.own_tools import Parts, own_tools
from handrail.runtime.registry import Offer, Registry
from handrail.settings import Settings
from handrail.tools.commands import Commands

if TYPE_CHECKING:
    from handrail.runtime.sources import ToolSource


def offered(settings: Settings) -> Offer:
    """The tools that a session with these settings offers. They describe themselves; without a session none can run."""
    nothing: Any = _NoSession()
    parts = Parts(
        seen=nothing,
        outputs=nothing,
        records=nothing,
        recorder=nothing.recorder,
        commands=Commands(settings, "", {}),
        background=nothing,
        settings=settings,
        notes="",
        skills=nothing,
    )
    tools = settings.tools
    registry = Registry(own_tools(parts), tools_of_settings(settings))
    return Offer(registry, enable=tools.enable, disable=tools.disable, deny=tools.deny)


def foreign_specs(
    sources: "Iterable[ToolSource]", vouched: tuple[Vouching, ...], disable: Collection[str] = ()
) -> list[ToolSpec]:
    """What other servers offer, as a session would have it; they are started for that."""
    from handrail.policy.judging.foreign import only_looks  # noqa: PLC0415  few have other servers
    from handrail.policy.rules.foreign_names import takes_away  # noqa: PLC0415
    from handrail.protocol.decision import ForeignFact  # noqa: PLC0415
    from handrail.runtime.foreign.accepting import why_not  # noqa: PLC0415
    from handrail.runtime.foreign.fitting import fitting  # noqa: PLC0415
    from handrail.runtime.foreign.known import Known  # noqa: PLC0415
    from handrail.runtime.foreign.tools import foreign_tool  # noqa: PLC0415
    from handrail.store.known_tools import KnownTools  # noqa: PLC0415

    nothing = Known(KnownTools(""))  # what is only described was met by nobody
    specs: list[ToolSpec] = []
    for source in sources:
        for one in source.listed():
            fact = ForeignFact(server=source.server, tool=one.name, read_only=one.read_only)
            if not why_not(one):
                specs.append(foreign_tool(source, one, nothing, looks=only_looks(fact, vouched)).spec)
    specs = [spec for spec in specs if not takes_away(disable, spec.name)]
    fits = fitting(specs)
    return [spec for spec in specs if spec.name in fits]


class _NoSession:
    """What the tools need of a session, where there is none."""

    def __getattr__(self, name: str) -> Any:
        return self

    def __call__(self, *_: object, **__: object) -> Any:
        raise ToolError("UNAVAILABLE", "Without a session nothing runs.")
