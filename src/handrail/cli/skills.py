"""skills: the skills that a session in this place finds."""

import os
from argparse import Namespace

from handrail.cli.context import load_effective_settings, resolve_workspace
from handrail.cli.exits import OK
from handrail.cli.output import print_json, print_note, print_out, render_table, warn
from handrail.protocol.records import SkillEntry
from handrail.protocol.text import truncate
from handrail.protocol.wire import encode
from handrail.runtime.skills import build_skill_entry, load_skills

SCHEMA = "handrail.skills/1"


def run(options: Namespace) -> int:
    """Lists the skills; what is odd about one goes to stderr."""
    workspace = resolve_workspace(options)
    found = load_skills(workspace, load_effective_settings(options, workspace=workspace), os.environ)
    entries = [build_skill_entry(skill, active=False) for skill in found.skills]
    if options.json:
        print_json(
            encode(
                {"schema": SCHEMA, "skills": [build_skill_row(entry) for entry in entries], "warnings": found.warnings}
            )
        )
        return OK
    if entries:
        print_out(render_table([("skill", "from", "tools", "description"), *map(_row, entries)]))
    else:
        print_out("No skills here. A skill is a folder with a SKILL.md, such as .claude/skills/NAME/SKILL.md.\n")
    for text in found.warnings:
        warn(text)
    odd = [entry.name for entry in entries if entry.warnings]
    if odd:
        print_note(f"{len(odd)} with warnings: {', '.join(odd[:5])}; handrail skills show {odd[0]} says which")
    return OK


def build_skill_row(entry: SkillEntry) -> dict[str, object]:
    """An entry without what only a session knows."""
    from msgspec import to_builtins  # noqa: PLC0415  only for JSON

    return {name: value for name, value in to_builtins(entry).items() if name != "active"}


def _row(entry: SkillEntry) -> tuple[str, str, str, str]:
    tools = "all" if entry.allowed_tools is None else truncate(" ".join(entry.allowed_tools), 40) or "none"
    told = entry.description if entry.usable else f"cannot be used: {entry.problem}"
    return entry.name, entry.path, tools, truncate(told, 100)
