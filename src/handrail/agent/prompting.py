"""The system prompt of a session: made once and written down. It stays as it is, also in a later process, so that the
provider's cache holds; only when other tools are offered, or other skills are active, is it made anew."""

from collections.abc import Callable, Sequence

import msgspec

from handrail.agent.prompt.memory import Note
from handrail.agent.prompt.project import instructions_section
from handrail.agent.prompt.skills import ListedSkill
from handrail.agent.prompt.system import system_prompt
from handrail.agent.talk import Talk
from handrail.async_rail import AsyncHandrail
from handrail.protocol.event import Notice
from handrail.protocol.message import SystemMessage
from handrail.runtime.instructions import Instructions
from handrail.store.journal import Draft


class Told(msgspec.Struct, frozen=True, kw_only=True):
    """What the prompt tells besides the tools and the project's instructions."""

    notes: Sequence[Note] = ()
    skills: Sequence[ListedSkill] = ()

    @property
    def active(self) -> tuple[str, ...]:
        """The skills that are active."""
        return tuple(sorted(skill.name for skill in self.skills if skill.active))


def nothing_more() -> Told:
    """What a session tells that has no notes and no skills."""
    return Told()


async def prepare_system(rail: AsyncHandrail, talk: Talk, told: Callable[[], Told] = nothing_more) -> None:
    """Writes a system prompt down where there is none yet that speaks of the tools and skills of now."""
    specs, now, before = rail.specs(), told(), talk.system
    names = tuple(spec.name for spec in specs)
    if before is not None and (before.tools, before.skills) == (names, now.active):
        return
    instructions = await rail.in_pool(rail.conversation.instructions)
    text = system_prompt(specs, instructions, now.notes, now.skills)
    message = SystemMessage(text=text, tools=names, skills=now.active)
    talk.add(message, *_changed(before, instructions))


def _changed(before: SystemMessage | None, instructions: Instructions | None) -> tuple[Draft, ...]:
    """Tells the person where the instructions are others than those the session began with."""
    section = instructions_section(instructions)
    had = before is not None and "<project-instructions " in before.text
    if before is None or (section in before.text if section else not had):
        return ()
    what = f"{instructions.name} as it is now is" if instructions else "The project's instructions are no longer"
    return ((Notice, {"text": f"{what} part of the system prompt: it was made anew, since the tools changed."}),)
