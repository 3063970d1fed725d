"""skills show: a skill as it is understood."""

import os
from argparse import Namespace

from handrail.cli.exits import FAILED, OK, CommandFailed
from handrail.cli.output import print_json, print_out, warn
from handrail.cli.place import resolve_workspace
from handrail.cli.preferences import load_effective_settings
from handrail.cli.skills import SCHEMA, build_skill_row
from handrail.protocol.text import to_one_line
from handrail.protocol.wire import encode
from handrail.runtime.skills import build_skill_entry, find_skill, load_skills
from handrail.skills.allowed_tools import ALWAYS, format_allowed_tools
from handrail.skills.skill import Skill


def run(options: Namespace) -> int:
    """Shows the front matter, what its tools are here, the rules that count while it is active, and its text."""
    skill = _skill(options)
    if options.json:
        entry = build_skill_row(build_skill_entry(skill, active=False))
        more = {"version": skill.version, "license": skill.license, "compatibility": skill.compatibility}
        more |= {"metadata": skill.metadata, "files": skill.files, "body": skill.body}
        print_json(encode({"schema": SCHEMA, "skill": entry | more, "rules": _rules(skill)}))
    else:
        print_out("".join(f"{name:<14}{to_one_line(value)}\n" for name, value in _lines(skill) if value))
        if skill.body:
            print_out(f"\n{skill.body}\n")
        for text in skill.warnings:
            warn(f"warning: {text}")
    return FAILED if skill.problem else OK


def _skill(options: Namespace) -> Skill:
    workspace = resolve_workspace(options)
    settings = load_effective_settings(options, workspace=workspace)
    skill = find_skill(workspace, settings, os.environ, options.name)
    if skill is None:
        found = load_skills(workspace, settings, os.environ)
        names = ", ".join(one.name for one in found.skills[:20])
        there = (
            f"There are: {names}." if names else "There is none here; handrail skills says where they are looked for."
        )
        raise CommandFailed(f"there is no skill {options.name[:80]!r}. {there}", FAILED)
    return skill


def _lines(skill: Skill) -> list[tuple[str, str]]:
    tools = format_allowed_tools(skill.tools, skill.patterns)
    return [
        ("skill", skill.name),
        ("from", f"{skill.shown} ({skill.origin})"),
        ("problem", skill.problem),
        ("description", skill.description),
        ("tools", "all (it names none)" if tools is None else ", ".join(tools) or "none"),
        *(("rule", text) for text in _rules(skill)),
        ("told", "only where somebody asks for it by its name" if skill.by_name_only else ""),
        ("version", skill.version),
        ("license", skill.license),
        ("compatibility", skill.compatibility),
        *(("metadata", f"{name}: {value}") for name, value in skill.metadata.items()),
        ("files", ", ".join(skill.files)),
    ]


def _rules(skill: Skill) -> tuple[str, ...]:
    """What policy says while it is active, in words."""
    if skill.tools is None:
        return ()
    limited = [f"{tool}: deny all but {', '.join(patterns)}" for tool, patterns in skill.patterns.items()]
    if skill.files and ("read" in skill.patterns or "read" not in skill.tools):
        limited.append("read: also its own folder" if "read" in skill.patterns else "read: its own folder only")
    others = f"no other tools are offered but {', '.join(sorted(ALWAYS))}, if enabled"
    return (f"skill.{skill.name}: {others}", *(f"skill.{skill.name}: {text}" for text in limited))
