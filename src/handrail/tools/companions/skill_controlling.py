"""Activates a skill and tells its text, or ends it."""

from handrail.protocol.errors import ToolError
from handrail.protocol.text import render_value
from handrail.skills.allowed import format_allowed_tools
from handrail.skills.skill import Skill
from handrail.tools.companions.skill_control import SkillBook, SkillControlData
from handrail.tools.contract import Output


def activate(book: SkillBook, name: str) -> Output:
    """Makes a skill count, and tells what it says."""
    skill = _usable(book, name)
    book.activate(skill)
    return _told(book, skill, format_allowed_tools(skill.tools, skill.patterns))


def deactivate(book: SkillBook, name: str) -> Output:
    """Ends a skill. One that is not active is left as it is: a call that was cut off may come a second time."""
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


def _usable(book: SkillBook, name: str) -> Skill:
    skill = book.skill(name)
    if skill is None:
        names = [one.name for one in book.found().skills if not one.problem and not one.by_name_only]
        there = f"There are: {', '.join(names[:20])}." if names else "There are none here."
        raise ToolError("NOT_FOUND", f"No skill {render_value(name)}. {there}", details={"skills": names})
    if skill.problem:
        raise ToolError("UNAVAILABLE", f"The skill {name} cannot be used: {skill.problem}. Go on without it.")
    return skill


def _told(book: SkillBook, skill: Skill, tools: tuple[str, ...] | None) -> Output:
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
        content=f"{_preface(skill, tools, reached=reached)}\n\n{skill.body}",
        data=data,
        warnings=warnings,
    )


def _preface(skill: Skill, tools: tuple[str, ...] | None, *, reached: bool) -> str:
    whose = "this project" if skill.origin == "project" else "the person"
    lines = [f"The skill {skill.name} of {whose} is active. Its instructions rank below what the person says."]
    if tools is not None:
        lines.append(f"While it is active, these are the tools: {', '.join(tools) or 'none'}.")
    if reached:
        more = f" and {len(skill.files) - 30} more" if len(skill.files) > 30 else ""
        lines.append(f"Its files are in {skill.folder}: {', '.join(skill.files[:30])}{more}.")
    return "\n".join((*lines, "Its text follows."))
