"""What of a call's events a client is told, in the protocol's words."""

from typing import NamedTuple

from handrail.mcp.caller import LEVELS, Level
from handrail.protocol.events import Event, Notice, ToolCallUpdate, Warning  # noqa: A004  the wire calls it so

KINDS = (ToolCallUpdate, Warning, Notice)
"""The events that say something to who called."""
_MAX_LINE_CHARS = 500
"""Characters of a line about how far a call is."""


class ServerNotification(NamedTuple):
    """Something to be told."""

    level: Level
    text: str
    code: str | None = None
    """The error code or rule that it comes from."""
    progress: bool = False
    """Whether it says how far the call is."""

    @property
    def data(self) -> dict[str, str]:
        """As a log message carries it."""
        return {"text": self.text} if self.code is None else {"code": self.code, "text": self.text}

    def reaches(self, least: Level) -> bool:
        """Whether somebody hears of it who wants nothing below a level."""
        return LEVELS.index(self.level) >= LEVELS.index(least)


def build_notification(event: Event) -> ServerNotification | None:
    """What an event says to who called; None where it says nothing."""
    match event:
        case ToolCallUpdate():
            line = _line(event)
            return ServerNotification("info", line[:_MAX_LINE_CHARS], progress=True) if line else None
        case Warning():
            return ServerNotification("warning", event.text, event.code)
        case Notice():
            return ServerNotification("notice", event.text)
        case _:
            return None


def _line(event: ToolCallUpdate) -> str:
    """What an update says, in one line: the last that was printed, else what the call does now."""
    printed = [line for line in (event.output or "").splitlines() if line.strip()]
    return printed[-1].strip() if printed else event.title or ""
