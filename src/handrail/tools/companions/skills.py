"""The tools for skills: skill_list, skill_control."""

from collections.abc import Callable
from typing import TYPE_CHECKING, Annotated, Literal, Protocol

from msgspec import Meta

from handrail.protocol.errors import ToolError
from handrail.protocol.records import SkillEntry
from handrail.protocol.text import render_value
from handrail.protocol.tool_spec import Arguments, ToolSpec
from handrail.protocol.wire import Wire
from handrail.skills.allowed_tools import format_allowed_tools
from handrail.skills.skill import Skill
from handrail.tools.tool import Context, Output, Tool, Touches

if TYPE_CHECKING:
    from handrail.skills.discovery import SkillCatalog


_SOURCES = {"settings": "the user's settings", "user": "the user", "project": "this project", "gone": "gone"}


class SkillListArguments(Arguments, frozen=True):
    """The arguments of skill_list: none."""


class SkillListData(Wire, frozen=True, omit_defaults=False):
    """The skills, by their names."""

    skills: tuple[SkillEntry, ...]


SKILL_LIST = ToolSpec(
    name="skill_list",
    title="Skills",
    description=(
        "List the skills, which are instructions for particular tasks, each with its name, purpose, source and state. "
        "Check this list before a task that a skill may cover; skill_control activates a skill."
    ),
    arguments=SkillListArguments,
    data=SkillListData,
    permissions=("fs.read",),
    auto_execute=True,
    enabled=False,
    layer="companion",
    intent="list the skills: instructions for particular tasks",
)


def build_skill_list_tool(entries: Callable[[], tuple[SkillEntry, ...]]) -> Tool:
    def run(_: Context, __: SkillListArguments) -> Output:
        # The model learns of a skill that only people activate once it is active.
        listed = tuple(entry for entry in entries() if entry.active or not entry.by_name_only)
        active = sum(entry.active for entry in listed)
        summary = f"{len(listed)} skill{'' if len(listed) == 1 else 's'}, {active} active"
        content = "\n".join(map(_render_entry, listed)) or "There are no skills here."
        return Output(summary=summary, content=content, data=SkillListData(skills=listed))

    return Tool(SKILL_LIST, run)


def _render_entry(entry: SkillEntry) -> str:
    state = "active" if entry.active else "" if entry.usable else "cannot be used"
    where = ", ".join(filter(None, (f"from {_SOURCES[entry.source]}", state)))
    text = entry.description if entry.usable else entry.problem
    return f"{entry.name} ({where}): {text}"


Action = Literal["activate", "deactivate"]


class SkillControlArguments(Arguments, frozen=True):
    """The arguments of skill_control."""

    name: Annotated[str, Meta(min_length=1, max_length=64, description="The skill, as skill_list names it.")]
    action: Annotated[
        Action, Meta(description="activate: the result has its text, which then applies; deactivate: at the end.")
    ]


class SkillControlData(Wire, frozen=True, omit_defaults=False):
    """The state of the skill."""

    name: str
    action: Action
    active: tuple[str, ...]
    """All skills that are active now."""
    allowed_tools: tuple[str, ...] | None
    """Handrail's names of the tools that it allows. None if it allows all, or was deactivated."""
    folder: str | None
    """The folder of its files, for `read`."""
    files: tuple[str, ...]
    """Its files, relative to the folder."""
    warnings: tuple[str, ...]


class SkillBook(Protocol):
    """The skills of a session."""

    def found(self) -> "SkillCatalog": ...

    def skill(self, name: str) -> Skill | None: ...

    def entries(self) -> tuple[SkillEntry, ...]: ...

    def activate(self, skill: Skill) -> object: ...

    def deactivate(self, name: str) -> bool: ...

    def active_names(self) -> tuple[str, ...]: ...

    def reaches(self, folder: str) -> bool: ...


SKILL_CONTROL = ToolSpec(
    name="skill_control",
    title="Skill",
    description=(
        "Activate a skill to get its instructions, or deactivate it when its task is done. A skill may limit the tools "
        "and commands: while it is active, you have only those."
    ),
    arguments=SkillControlArguments,
    data=SkillControlData,
    permissions=("fs.read",),
    side_effects=("conversation",),
    idempotent=True,
    enabled=False,
    layer="companion",
    intent="activate a skill, or deactivate it",
    plain_arguments=("name", "action"),
)


def build_skill_control_tool(book: SkillBook) -> Tool:
    def run(_: Context, arguments: SkillControlArguments) -> Output:
        if arguments.action == "deactivate":
            return _deactivate(book, arguments.name)
        skill = _find_usable(book, arguments.name)
        book.activate(skill)
        return _describe(book, skill, format_allowed_tools(skill.tools, skill.patterns))

    def touches(arguments: SkillControlArguments) -> Touches:
        """Policy judges a skill of the project as a file of the workspace."""
        skill = book.found().get(arguments.name) if arguments.action == "activate" else None
        is_read = skill is not None and skill.origin == "project" and not skill.problem
        return Touches(reads=(f"{skill.folder}/SKILL.md",)) if skill is not None and is_read else Touches()

    return Tool(SKILL_CONTROL, run, touches)


def _deactivate(book: SkillBook, name: str) -> Output:
    """A skill that is not active stays as it is, since an interrupted call may be repeated."""
    ended = book.deactivate(name)
    active = book.active_names()
    if not ended and book.found().get(name) is None:
        there = f"Active: {', '.join(active)}." if active else "None is active."
        raise ToolError("NOT_FOUND", f"No skill {render_value(name)}. {there}", details={"skills": list(active)})
    data = SkillControlData(
        name=name, action="deactivate", active=active, allowed_tools=None, folder=None, files=(), warnings=()
    )
    summary = f"{name} is no longer active" if ended else f"{name} is not active"
    return Output(title=name, summary=summary, content=f"The skill {summary}.", data=data)


def _find_usable(book: SkillBook, name: str) -> Skill:
    skill = book.skill(name)
    if skill is None:
        names = [one.name for one in book.found().skills if not one.problem and not one.by_name_only]
        there = f"There are: {', '.join(names[:20])}." if names else "This session has no skills."
        raise ToolError("NOT_FOUND", f"No skill {render_value(name)}. {there}", details={"skills": names})
    if skill.problem:
        raise ToolError("UNAVAILABLE", f"The skill {name} cannot be used: {skill.problem}. Continue without it.")
    return skill


def _describe(book: SkillBook, skill: Skill, tools: tuple[str, ...] | None) -> Output:
    reached = bool(skill.files) and book.reaches(skill.folder)
    warnings = (
        skill.warnings if reached or not skill.files else (*skill.warnings, "its other files cannot be read here")
    )
    data = SkillControlData(
        name=skill.name,
        action="activate",
        active=book.active_names(),
        allowed_tools=tools,
        folder=skill.folder if reached else None,
        files=skill.files if reached else (),
        warnings=warnings,
    )
    return Output(
        title=skill.name,
        summary=f"{skill.name} is active" + ("" if tools is None else f", with {', '.join(tools) or 'no tools'}"[:200]),
        content=f"{_render_preface(skill, tools, reached=reached)}\n\n{skill.body}",
        data=data,
        warnings=warnings,
    )


def _render_preface(skill: Skill, tools: tuple[str, ...] | None, *, reached: bool) -> str:
    whose = "this project" if skill.origin == "project" else "the user"
    lines = [f"The skill {skill.name} of {whose} is active. Its instructions rank below the user's words."]
    if tools is not None:
        lines.append(f"While it is active, you have these tools: {', '.join(tools) or 'none'}.")
    if reached:
        more = f" and {len(skill.files) - 30} more" if len(skill.files) > 30 else ""
        lines.append(f"Its files are in {skill.folder}: {', '.join(skill.files[:30])}{more}.")
    return "\n".join((*lines, "Its text follows."))
