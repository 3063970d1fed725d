"""The skills that there are, and how one is taken up."""

from collections.abc import Iterable, Sequence

import msgspec

from handrail.agent.prompt.fences import fence_text
from handrail.agent.prompt.words import truncate_line
from handrail.protocol.records import SkillEntry
from handrail.protocol.tool_spec import ToolSpec

SKILL_SWITCH = "skill_control"
"""The tool that activates a skill."""
_MAX_SKILL_CHARS = 240
_MAX_SHOWN_SKILLS = 50
_SKILLS_HEAD = """\
# Skills
Instructions for particular kinds of work, each in a text of its own. Where one fits the task, take it up before you \
begin: call skill_control with its name and the action activate. The result holds its text. While a skill is active, \
it may narrow the tools you have; deactivate it when its part is done."""


class ListedSkill(msgspec.Struct, frozen=True, kw_only=True):
    """A skill as the prompt names it."""

    name: str
    description: str
    active: bool = False


def list_prompt_skills(entries: Iterable[SkillEntry]) -> list[ListedSkill]:
    """Those that the prompt tells of: they can be used, and nobody wants them to be used only where they are named."""
    told = (entry for entry in entries if entry.active or (entry.usable and not entry.by_name_only))
    return [ListedSkill(name=one.name, description=one.description, active=one.active) for one in told]


def render_skills(specs: Sequence[ToolSpec], skills: Sequence[ListedSkill]) -> str:
    """The skills by name; nothing where none can be activated."""
    if not skills or SKILL_SWITCH not in {spec.name for spec in specs}:
        return ""
    shown = sorted(skills, key=lambda skill: (not skill.active, skill.name))
    more = [f"- … and {len(shown) - _MAX_SHOWN_SKILLS} more."] if len(shown) > _MAX_SHOWN_SKILLS else []
    lines = (*map(_render_skill, shown[:_MAX_SHOWN_SKILLS]), *more)
    return "\n".join((_SKILLS_HEAD, fence_text("skills", "\n".join(lines))))


def _render_skill(skill: ListedSkill) -> str:
    mark = " (active)" if skill.active else ""
    return f"- {truncate_line(skill.name, 80)}{mark}: {truncate_line(skill.description, _MAX_SKILL_CHARS)}"
