"""skill_list: which skills there are, and which are active."""

from collections.abc import Callable

from handrail.protocol.records import SkillEntry
from handrail.protocol.tool_spec import Arguments, ToolSpec
from handrail.protocol.wire import Wire
from handrail.tools.contract import Context, Output, Tool

_SOURCES = {"settings": "the person's settings", "user": "the person", "project": "this project", "gone": "gone"}


class SkillListArguments(Arguments, frozen=True):
    """The arguments of skill_list: none."""


class SkillListData(Wire, frozen=True, omit_defaults=False):
    """The skills, by their names."""

    skills: tuple[SkillEntry, ...]


SKILL_LIST = ToolSpec(
    name="skill_list",
    title="Skills",
    description=(
        "List the skills: written instructions for particular tasks, each with its name, its purpose, where it comes "
        "from and whether it is active. Look here before a task that one may be about; skill_control activates it."
    ),
    arguments=SkillListArguments,
    data=SkillListData,
    permissions=("fs.read",),
    auto_execute=True,
    enabled=False,
    layer="companion",
    intent="see which written instructions there are for particular tasks",
)


def build_skill_list_tool(entries: Callable[[], tuple[SkillEntry, ...]]) -> Tool:
    """The tool skill_list for one session."""

    def run(_: Context, __: SkillListArguments) -> Output:
        # Of one that is there by its name only, the model is to know where it is active.
        listed = tuple(entry for entry in entries() if entry.active or not entry.by_name_only)
        active = sum(entry.active for entry in listed)
        summary = f"{len(listed)} skill{'' if len(listed) == 1 else 's'}, {active} active"
        content = "\n".join(map(_line, listed)) or "There are no skills here."
        return Output(summary=summary, content=content, data=SkillListData(skills=listed))

    return Tool(SKILL_LIST, run)


def _line(entry: SkillEntry) -> str:
    state = "active" if entry.active else "" if entry.usable else "cannot be used"
    where = ", ".join(filter(None, (f"from {_SOURCES[entry.source]}", state)))
    told = entry.description if entry.usable else entry.problem
    return f"{entry.name} ({where}): {told}"
