"""Defines a skill."""

from typing import Literal

import msgspec

Origin = Literal["settings", "user", "project"]
"""A folder of the user's settings, one of the user's own folders, or the workspace."""


class SkillFolder(msgspec.Struct, frozen=True):
    """A folder with one folder for each skill."""

    origin: Origin
    path: str
    """Relative to the workspace for a project's, else absolute."""
    shown: str
    """The path for people: `~/.claude/skills`."""


class Skill(msgspec.Struct, frozen=True, kw_only=True):
    """A skill with a problem is listed, but cannot be used."""

    name: str
    description: str = ""
    origin: Origin
    shown: str
    """The path for people."""
    folder: str
    """Relative to the workspace, or absolute outside."""
    problem: str = ""
    """Why it cannot be used."""
    warnings: tuple[str, ...] = ()
    tools: tuple[str, ...] | None = None
    """The tools that it names, in our names. None: it restricts nothing."""
    patterns: dict[str, tuple[str, ...]] = {}
    """The patterns that restrict some of the tools."""
    by_name_only: bool = False
    """Whether it is used only on explicit request."""
    version: str = ""
    license: str = ""
    compatibility: str = ""
    metadata: dict[str, str] = {}
    body: str = ""
    files: tuple[str, ...] = ()
    """Its other files, relative to its folder. `add_files` fills them in."""
