"""Events of a call as messages for its client.

Both servers load this module with the first session. A client waits for all that is loaded before.
"""

from typing import NamedTuple

from handrail.mcp.protocol import LEVELS, Level
from handrail.protocol.events import Event, Notice, ToolCallUpdate, Warning  # noqa: A004  the wire calls it so

MESSAGE_EVENTS = (ToolCallUpdate, Warning, Notice)
"""The events that become messages."""
_MAX_LINE_CHARS = 500


class EventMessage(NamedTuple):
    level: Level
    text: str
    code: str | None = None
    """The error code or the rule of a warning."""
    is_progress: bool = False

    @property
    def data(self) -> dict[str, str]:
        """The `data` of a log message."""
        return {"text": self.text} if self.code is None else {"code": self.code, "text": self.text}

    def reaches(self, least: Level) -> bool:
        """Whether it is as severe as this level."""
        return LEVELS.index(self.level) >= LEVELS.index(least)


def build_message(event: Event) -> EventMessage | None:
    match event:
        case ToolCallUpdate():
            line = _find_last_line(event)[:_MAX_LINE_CHARS]
            return EventMessage("info", line, is_progress=True) if line else None
        case Warning():
            return EventMessage("warning", event.text, event.code)
        case Notice():
            return EventMessage("notice", event.text)
        case _:
            return None


def _find_last_line(event: ToolCallUpdate) -> str:
    """The last line that the call printed, or else its title."""
    printed = [line for line in (event.output or "").splitlines() if line.strip()]
    return printed[-1].strip() if printed else event.title or ""
