"""The system prompts and the guide that are written down, so that a change of their words is seen and read."""

import argparse
from datetime import UTC, datetime
from pathlib import Path

from handrail.agent.prompt import render_guide, render_system_prompt
from handrail.protocol.records import Memory, SkillEntry
from handrail.protocol.tool_spec import ToolSpec
from handrail.runtime.conversation import Instructions
from handrail.runtime.registry import build_tool_set
from handrail.settings import Settings
from handrail.settings.model import Tools

_PROMPTS = "tests/agent/prompts"
_GUIDE = "docs/reference/tools.md"
_BEGIN, _END = "<!-- guide: scripts/prompts --write -->", "<!-- end of the guide -->"
_CHANGING = ("write", "edit", "exec", "process")
_INSTRUCTIONS = Instructions(name="AGENTS.md", text="# Sample\nRun `make test`. Style: @docs/style.md\n")
_NOTES = (
    Memory(
        id="m-1",
        title="tests",
        content="The slow ones are in tests/slow; the person runs them alone.",
        time=datetime(2020, 1, 1, tzinfo=UTC),
        session_id="sample",
    ),
)


def _skill(name: str, description: str, *, active: bool = False) -> SkillEntry:
    return SkillEntry(
        name=name,
        description=description,
        source="project",
        path=name,
        active=active,
        usable=True,
        problem=None,
        by_name_only=False,
        allowed_tools=None,
        warnings=(),
    )


_SKILLS = (
    _skill("release", "How a release of this project is made."),
    _skill("review", "How changes are reviewed here.", active=True),
)


def main(root: Path, description: str) -> int:
    """Runs the command; the exit code."""
    parser = argparse.ArgumentParser(description=description, formatter_class=argparse.RawDescriptionHelpFormatter)
    choice = parser.add_mutually_exclusive_group(required=True)
    choice.add_argument("--write", action="store_true", help="write the files")
    choice.add_argument("--check", action="store_true", help="exit 1 when they are out of date")
    write: bool = parser.parse_args().write
    stale = {path: text for path, text in generated(root).items() if _read(root / path) != text}
    for path, text in stale.items():
        if write:
            (root / path).write_text(text, encoding="utf-8")
        print(f"wrote {path}" if write else f"{path} is out of date; scripts/prompts --write brings it up to date.")
    return 1 if stale and not write else 0


def generated(root: Path) -> dict[str, str]:
    """The text of each file by its path."""
    every = all_tools()
    texts = {
        "base": render_system_prompt(specs_of()),
        "read-only": render_system_prompt(specs_of(disable=_CHANGING)),
        "everything": render_system_prompt(every, _INSTRUCTIONS, _NOTES, _SKILLS),
    }
    head, _, rest = _read(root / _GUIDE).partition(_BEGIN)
    tail = rest.partition(_END)[2]
    pages = {f"{_PROMPTS}/{name}.md": text for name, text in texts.items()}
    return pages | {_GUIDE: f"{head}{_BEGIN}\n{render_guide(every)}{_END}{tail}"}


def all_tools() -> tuple[ToolSpec, ...]:
    """Every tool that comes with handrail, on or off by default."""
    return specs_of(enable=build_tool_set(Settings()).registered)


def specs_of(enable: tuple[str, ...] = (), disable: tuple[str, ...] = ()) -> tuple[ToolSpec, ...]:
    """The tools that a session with these settings offers."""
    settings = Settings(tools=Tools(enable=enable, disable=disable))
    return tuple(tool.spec for tool in build_tool_set(settings).tools)


def _read(path: Path) -> str:
    return path.read_text(encoding="utf-8") if path.exists() else ""
