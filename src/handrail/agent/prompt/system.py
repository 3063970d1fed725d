"""The system prompt: its sections in their order."""

from collections.abc import Sequence

from handrail.agent.prompt.beginning import beginning
from handrail.agent.prompt.companions import companions
from handrail.agent.prompt.memory import Note, notes_section
from handrail.agent.prompt.project import instructions_section
from handrail.agent.prompt.skills import ListedSkill, skills_section
from handrail.agent.prompt.tools import tools_section
from handrail.agent.prompt.working import working
from handrail.protocol.tool import ToolSpec
from handrail.runtime.instructions import Instructions


def system_prompt(
    specs: Sequence[ToolSpec],
    instructions: Instructions | None = None,
    notes: Sequence[Note] = (),
    skills: Sequence[ListedSkill] = (),
) -> str:
    """The system prompt of a session that offers these tools. It names no other tool, and holds nothing that changes by
    itself: no date, no listing, no name of a person or a machine."""
    sections = (
        beginning(),
        working(specs),
        tools_section(specs),
        companions(specs),
        skills_section(specs, skills),
        instructions_section(instructions),
        notes_section(notes),
    )
    return "\n\n".join(section for section in sections if section) + "\n"
