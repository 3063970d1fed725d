"""The system prompt of a session: made once and written down. It stays as it is, also in a later process, so that the
provider's cache holds; only when other tools are offered, or other skills are active, is it made anew."""

from handrail.agent.prompt.memory import Note
from handrail.agent.prompt.project import render_instructions
from handrail.agent.prompt.skills import SKILL_SWITCH, list_prompt_skills
from handrail.agent.prompt.system import render_system_prompt
from handrail.agent.talk import Transcript
from handrail.async_rail import AsyncHandrail
from handrail.protocol.events import Notice
from handrail.protocol.messages import SystemMessage
from handrail.runtime.instructions import Instructions
from handrail.store.journal import PendingEvent


async def prepare_system(rail: AsyncHandrail, transcript: Transcript) -> None:
    """Writes a system prompt down where there is none yet that speaks of the tools and skills of now."""
    await rail.look_at_servers()
    active = rail.conversation.active_skills()
    specs, before = rail.specs(), transcript.system
    names = tuple(spec.name for spec in specs)
    if before is not None and (before.tools, before.skills) == (names, active):
        return
    instructions = await rail.in_pool(rail.conversation.instructions)
    skills = await rail.skills() if SKILL_SWITCH in names else ()
    notes = [Note(title=one.title, content=one.content) for one in await rail.memories()] if "memory" in names else ()
    text = render_system_prompt(specs, instructions, notes, list_prompt_skills(skills))
    transcript.add(SystemMessage(text=text, tools=names, skills=active), *_changed(before, instructions))


def _changed(before: SystemMessage | None, instructions: Instructions | None) -> tuple[PendingEvent, ...]:
    """Tells the person where the instructions are others than those the session began with."""
    section = render_instructions(instructions)
    had = before is not None and "<project-instructions " in before.text
    if before is None or (section in before.text if section else not had):
        return ()
    what = f"{instructions.name} as it is now is" if instructions else "The project's instructions are no longer"
    return ((Notice, {"text": f"{what} part of the system prompt: it was made anew, since the tools changed."}),)
