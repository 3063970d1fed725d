"""What a session would offer, for who only wants to know: no session is opened."""

from collections.abc import Callable, Collection, Iterable
from typing import TYPE_CHECKING

from handrail.policy.configuration import Vouching
from handrail.protocol.error import ToolError
from handrail.protocol.tool import ToolSpec
from handrail.runtime.discovery import tools_of_settings
from handrail.runtime.own_tools import Parts, own_tools
from handrail.runtime.registry import Offer, Registry
from handrail.settings import Settings
from handrail.tools.commands import Commands

if TYPE_CHECKING:
    from handrail.changes.planned import Planned
    from handrail.changes.recorder import Recorded, Recorder
    from handrail.process.sessions.session import ProcessSession
    from handrail.process.sessions.sessions import ProcessSessions
    from handrail.protocol.skill import SkillEntry
    from handrail.runtime.sources import ToolSource
    from handrail.skills.finding import Found
    from handrail.skills.skill import Skill
    from handrail.store.change_log import Step
    from handrail.workspace.current import Current
    from handrail.workspace.walk import Landing


def offered(settings: Settings) -> Offer:
    """The tools that a session with these settings offers. They describe themselves; without a session none can run."""
    nothing = _NoSession()
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

    durable = False
    idle_seconds = 0.0
    folder = ""

    @property
    def awaited(self) -> dict[str, str]:
        return {}

    @property
    def sessions(self) -> "ProcessSessions":
        raise ToolError("UNAVAILABLE", "Without a session nothing runs.")

    def recorder(self) -> "Recorder":
        raise ToolError("UNAVAILABLE", "Without a session nothing is changed.")

    def make_room(self) -> None:
        pass

    def entries(self) -> "tuple[SkillEntry, ...]":
        return ()

    def found(self) -> "Found":
        raise ToolError("UNAVAILABLE", "Without a session no skill is active.")

    def skill(self, name: str) -> "Skill | None":  # noqa: ARG002  the protocol names it
        return None

    def activate(self, skill: "Skill") -> object:  # noqa: ARG002  the protocol names it
        return self.found()

    def deactivate(self, name: str) -> bool:  # noqa: ARG002  as above
        return False

    def active_names(self) -> tuple[str, ...]:
        return ()

    def reaches(self, folder: str) -> bool:  # noqa: ARG002  as above
        return False

    def told_begun(self, process: "ProcessSession") -> None:
        pass

    def told_ended(self, process: "ProcessSession") -> None:
        pass

    def forget(self, process: "ProcessSession") -> None:
        pass

    def seen(self, path: str) -> bytes | None:  # noqa: ARG002  the protocol names it
        return None

    def mark_seen(self, path: str, mark: bytes) -> None:
        pass

    def open(self, call_id: str) -> int:
        raise ToolError("NOT_FOUND", f"There is no kept output {call_id[:80]!r}.")

    def content(self, digest: str) -> bytes | None:  # noqa: ARG002  the protocol names it
        return None

    def keep(self, before: "Current", landing: "Landing") -> None:
        pass

    def keep_bytes(self, digest: str, data: bytes) -> None:
        pass

    def keep_link(self, landing: "Landing") -> None:
        pass

    def carry_out(self, temporary: str, steps: "tuple[Step, ...]") -> "list[Step]":  # noqa: ARG002  as above
        return []

    def record(self, call_id: str, planned: "Planned", work: "Callable[[], tuple[Step, ...]]") -> "Recorded":  # noqa: ARG002
        raise ToolError("UNAVAILABLE", "Without a session nothing is changed.")
