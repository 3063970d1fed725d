"""The skills that there are, and how one is taken up."""

from collections.abc import Sequence

import msgspec

from handrail.agent.prompt.words import clipped
from handrail.protocol.tool import ToolSpec

_SWITCH = "skill_control"
_LONG = 240
_MOST = 50
_HEAD = """\
# Skills
Instructions for particular kinds of work, each in a text of its own. Where one fits the task, take it up before you \
begin: call skill_control with its name and the action activate. The result holds its text. While a skill is active, \
it may narrow the tools you have; deactivate it when its part is done."""


class ListedSkill(msgspec.Struct, frozen=True, kw_only=True):
    """A skill as the prompt names it."""

    name: str
    description: str
    active: bool = False


def skills_section(specs: Sequence[ToolSpec], skills: Sequence[ListedSkill]) -> str:
    """The skills by name; nothing where none can be activated."""
    if not skills or _SWITCH not in {spec.name for spec in specs}:
        return ""
    shown = sorted(skills, key=lambda skill: (not skill.active, skill.name))
    more = [f"- … and {len(shown) - _MOST} more."] if len(shown) > _MOST else []
    return "\n".join((_HEAD, *map(_line, shown[:_MOST]), *more))


def _line(skill: ListedSkill) -> str:
    mark = " (active)" if skill.active else ""
    return f"- {clipped(skill.name, 80)}{mark}: {clipped(skill.description, _LONG)}"
