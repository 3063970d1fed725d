"""A skill that was found: what its SKILL.md says, as far as that can be used."""

from typing import Literal

import msgspec

Origin = Literal["settings", "user", "project"]
"""Who brings it: a folder that the person's settings name, the person's own places, the workspace."""


class SkillFolder(msgspec.Struct, frozen=True):
    """A folder that may have skills in it, one folder each."""

    origin: Origin
    path: str
    """Relative in the workspace for a project's, absolute for the others."""
    shown: str
    """As a person writes it: `~/.claude/skills`."""


class Skill(msgspec.Struct, frozen=True, kw_only=True):
    """One skill. A skill with a problem is listed, and can do nothing."""

    name: str
    description: str = ""
    origin: Origin
    shown: str
    """Where it is, as a person writes it."""
    folder: str
    """Where it is: relative in the workspace, absolute elsewhere."""
    problem: str = ""
    """Why it cannot be used, in words."""
    warnings: tuple[str, ...] = ()
    tools: tuple[str, ...] | None = None
    """The tools that it names, in our names; None where it names none, and so narrows nothing."""
    patterns: dict[str, tuple[str, ...]] = {}
    """What it names some of them for."""
    by_name_only: bool = False
    """Whether its author wants it to be used only where somebody asks for it."""
    version: str = ""
    license: str = ""
    compatibility: str = ""
    metadata: dict[str, str] = {}
    body: str = ""
    files: tuple[str, ...] = ()
    """Its other files, relative to its folder, where somebody looked for them."""
