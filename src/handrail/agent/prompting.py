"""The system prompt of a session: made once, written down, and made anew only when other tools are offered."""

from handrail.agent.talk import Talk
from handrail.async_rail import AsyncHandrail
from handrail.protocol.message import SystemMessage


async def prepare_system(rail: AsyncHandrail, talk: Talk) -> None:
    """Writes the system prompt down where the one that there is does not speak of the tools that are offered now."""
    names = tuple(spec.name for spec in rail.specs())
    if talk.system is None or talk.system.tools != names:
        talk.add(SystemMessage(text="You work in a folder of files with the tools you are given.", tools=names))
