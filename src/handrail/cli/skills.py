"""skills: the skills that a session in this place finds."""

import os
from argparse import Namespace

from handrail.cli.exits import OK
from handrail.cli.output import answer, answer_json, cut, note, table, warn
from handrail.cli.place import workspace_of
from handrail.cli.preferences import settings_for
from handrail.protocol.skill import SkillEntry
from handrail.protocol.wire import encode
from handrail.runtime.skill_search import skills_in
from handrail.runtime.skills import entry_of

SCHEMA = "handrail.skills/1"


def run(options: Namespace) -> int:
    """Lists the skills; what is odd about one goes to stderr."""
    workspace = workspace_of(options)
    found = skills_in(workspace, settings_for(options, workspace=workspace), os.environ)
    entries = [entry_of(skill, active=False) for skill in found.skills]
    if options.json:
        answer_json(
            encode({"schema": SCHEMA, "skills": [listed(entry) for entry in entries], "warnings": found.warnings})
        )
        return OK
    if entries:
        answer(table([("skill", "from", "tools", "description"), *map(_row, entries)]))
    else:
        answer("No skills here. A skill is a folder with a SKILL.md, such as .claude/skills/NAME/SKILL.md.\n")
    for text in found.warnings:
        warn(text)
    odd = [entry.name for entry in entries if entry.warnings]
    if odd:
        note(f"{len(odd)} with warnings: {', '.join(odd[:5])}; handrail skills show {odd[0]} says which")
    return OK


def listed(entry: SkillEntry) -> dict[str, object]:
    """An entry without what only a session knows."""
    from msgspec import to_builtins  # noqa: PLC0415  only for JSON

    return {name: value for name, value in to_builtins(entry).items() if name != "active"}


def _row(entry: SkillEntry) -> tuple[str, str, str, str]:
    tools = "all" if entry.allowed_tools is None else cut(" ".join(entry.allowed_tools), 40) or "none"
    told = entry.description if entry.usable else f"cannot be used: {entry.problem}"
    return entry.name, entry.path, tools, cut(told)
