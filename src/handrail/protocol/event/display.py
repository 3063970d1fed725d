"""display: something to show the person, no answer expected."""

from typing import Literal

from handrail.protocol.event.header import Event

Level = Literal["info", "success", "warning", "error", "progress"]


class Display(Event, frozen=True, kw_only=True, tag="display"):
    """Markdown for every live view."""

    content: str
    """Markdown, at most 10,000 characters."""
    level: Level = "info"
    title: str | None = None
    thought: str | None = None
    """Why it is shown."""
    evidence: tuple[str, ...] = ()
    """What it rests on: places, commands, links."""
