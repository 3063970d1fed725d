"""The system prompt: its sections in their order."""

from collections.abc import Sequence

from handrail.agent.prompt.beginning import render_introduction
from handrail.agent.prompt.companions import render_companions
from handrail.agent.prompt.memory import Note, render_notes
from handrail.agent.prompt.project import render_instructions
from handrail.agent.prompt.skills import ListedSkill, render_skills
from handrail.agent.prompt.tools import render_tools
from handrail.agent.prompt.working import render_work_rules
from handrail.protocol.tool_spec import ToolSpec
from handrail.runtime.instructions import Instructions


def render_system_prompt(
    specs: Sequence[ToolSpec],
    instructions: Instructions | None = None,
    notes: Sequence[Note] = (),
    skills: Sequence[ListedSkill] = (),
) -> str:
    """The system prompt of a session that offers these tools. It names no other tool, and holds nothing that changes by
    itself: no date, no listing, no name of a person or a machine."""
    sections = (
        render_introduction(),
        render_work_rules(specs),
        render_tools(specs),
        render_companions(specs),
        render_skills(specs, skills),
        render_instructions(instructions),
        render_notes(notes),
    )
    return "\n\n".join(section for section in sections if section) + "\n"
