"""display: something to show the person, no answer expected."""

from typing import Literal

from handrail.protocol.event.header import Event

Level = Literal["info", "success", "warning", "error", "progress"]


class Display(Event, frozen=True, kw_only=True, tag="display"):
    """Markdown for every live view."""

    content: str
    level: Level = "info"
    title: str | None = None
    thought: str | None = None
    evidence: tuple[str, ...] = ()
