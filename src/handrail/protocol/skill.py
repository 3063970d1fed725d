"""A skill as it is listed: what it is for, where it comes from, and what it would leave of the tools."""

from typing import Literal

from handrail.protocol.wire import Wire


class SkillEntry(Wire, frozen=True, omit_defaults=False):
    """One skill that was found, or that is active although it is gone."""

    name: str
    description: str
    source: Literal["settings", "user", "project", "gone"]
    """A folder that the settings name, the person's own places, the workspace; gone: its file is not there any more."""
    path: str
    """Its folder, as a person writes it."""
    active: bool
    usable: bool
    problem: str | None
    """Why it cannot be used, in words."""
    by_name_only: bool
    """Whether its author wants it to be used only where somebody asks for it: prompts do not tell of it."""
    allowed_tools: tuple[str, ...] | None
    """The tools that it leaves while it is active, in our names, `exec(git:*)`; None where it leaves all."""
    warnings: tuple[str, ...]
