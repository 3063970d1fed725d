"""handrail skills: the skills that a session here finds."""

import os
from argparse import ArgumentParser
from types import SimpleNamespace

from msgspec import to_builtins

from handrail.cli.context import load_settings, resolve_workspace
from handrail.cli.exits import FAILED, OK, CommandFailed
from handrail.cli.format import print_wrapped
from handrail.cli.output import print_json, print_note, print_out, render_table, warn
from handrail.cli.parser import Command, add_place_options
from handrail.cli.usage import parse_nonempty_text
from handrail.inspection import find_skill, load_skills
from handrail.protocol.records import SkillEntry
from handrail.protocol.text import to_one_line, truncate
from handrail.protocol.wire import encode
from handrail.skills.allowed_tools import ALWAYS, format_allowed_tools
from handrail.skills.discovery import build_skill_entry
from handrail.skills.skill import Skill

_SCHEMA = "handrail.skills/1"


def run(options: SimpleNamespace) -> int:
    workspace = resolve_workspace(options)
    found = load_skills(workspace, load_settings(options, workspace=workspace), os.environ)
    if options.json:
        skills = [_build_skill_data(skill) for skill in found.skills]
        print_json(encode({"schema": _SCHEMA, "skills": skills, "warnings": found.warnings}))
        return OK
    entries = [build_skill_entry(skill, active=False) for skill in found.skills]
    if entries:
        print_out(render_table([("skill", "from", "tools", "description"), *map(_build_row, entries)]))
    else:
        print_wrapped("No skills here. A skill is a folder with a SKILL.md, such as .claude/skills/NAME/SKILL.md.\n")
    for text in found.warnings:
        warn(text)
    if odd := [entry.name for entry in entries if entry.warnings]:
        print_note(f"{len(odd)} with warnings: {', '.join(odd[:5])}; see: handrail skills show {odd[0]}")
    return OK


def run_show(options: SimpleNamespace) -> int:
    """Shows a skill: front matter, tools here, rules while it is active, text."""
    workspace = resolve_workspace(options)
    loaded = load_settings(options, workspace=workspace)
    skill = find_skill(workspace, loaded, os.environ, options.name)
    if skill is None:
        names = ", ".join(one.name for one in load_skills(workspace, loaded, os.environ).skills[:20])
        there = f" Skills here: {names}." if names else ""
        raise CommandFailed(f"there is no skill {options.name[:80]!r}.{there}", FAILED, then="handrail skills")
    if options.json:
        more = {"version": skill.version, "license": skill.license, "compatibility": skill.compatibility}
        more |= {"metadata": skill.metadata, "files": skill.files, "body": skill.body}
        print_json(encode({"schema": _SCHEMA, "skill": _build_skill_data(skill) | more, "rules": _list_rules(skill)}))
    else:
        print_out("".join(f"{name:<14}{to_one_line(value)}\n" for name, value in _list_fields(skill) if value))
        if skill.body:
            print_out(f"\n{skill.body}\n")
        for text in skill.warnings:
            warn(f"warning: {text}")
    return FAILED if skill.problem else OK


def _build_skill_data(skill: Skill) -> dict[str, object]:
    """The entry of a skill without `active`, which only a session knows."""
    entry = to_builtins(build_skill_entry(skill, active=False))
    return {name: value for name, value in entry.items() if name != "active"}


def _build_row(entry: SkillEntry) -> tuple[str, str, str, str]:
    tools = "all" if entry.allowed_tools is None else truncate(" ".join(entry.allowed_tools), 40) or "none"
    text = entry.description if entry.usable else f"cannot be used: {entry.problem}"
    return entry.name, entry.path, tools, truncate(text, 100)


def _list_fields(skill: Skill) -> list[tuple[str, str]]:
    tools = format_allowed_tools(skill.tools, skill.patterns)
    return [
        ("skill", skill.name),
        ("from", f"{skill.shown} ({skill.origin})"),
        ("problem", skill.problem),
        ("description", skill.description),
        ("tools", "all (the skill names none)" if tools is None else ", ".join(tools) or "none"),
        *(("rule", text) for text in _list_rules(skill)),
        ("told", "only if you ask for it by name" if skill.by_name_only else ""),
        ("version", skill.version),
        ("license", skill.license),
        ("compatibility", skill.compatibility),
        *(("metadata", f"{name}: {value}") for name, value in skill.metadata.items()),
        ("files", ", ".join(skill.files)),
    ]


def _list_rules(skill: Skill) -> tuple[str, ...]:
    """Sentences about the rules that count while a skill is active."""
    if skill.tools is None:
        return ()
    limited = [f"{tool}: deny all but {', '.join(patterns)}" for tool, patterns in skill.patterns.items()]
    if skill.files and ("read" in skill.patterns or "read" not in skill.tools):
        limited.append("read: also its own folder" if "read" in skill.patterns else "read: its own folder only")
    others = f"the skill allows only {', '.join(sorted(ALWAYS))}, if enabled"
    return (f"skill.{skill.name}: {others}", *(f"skill.{skill.name}: {text}" for text in limited))


def _add_show_arguments(parser: ArgumentParser) -> None:
    parser.add_argument("name", metavar="NAME", type=parse_nonempty_text, help="the skill")
    add_place_options(parser)


COMMANDS = {
    "skills": Command(run, add_place_options, ("handrail skills", "handrail skills show commit")),
    "skills show": Command(
        run_show,
        _add_show_arguments,
        ("handrail skills show commit", "handrail skills show commit --json | jq .skill.allowedTools"),
        {FAILED: "there is no such skill, or it cannot be used"},
    ),
}
