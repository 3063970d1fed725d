"""What of a call's events a client is told, in the protocol's words."""

from typing import Literal, NamedTuple

from handrail.protocol.event import Display, Event, Notice, ToolCallUpdate, Warning  # noqa: A004  the wire calls it so

Level = Literal["debug", "info", "notice", "warning", "error", "critical", "alert", "emergency"]
LEVELS: tuple[Level, ...] = ("debug", "info", "notice", "warning", "error", "critical", "alert", "emergency")
_LONGEST = 500
_OF_DISPLAY: dict[str, Level] = {"warning": "warning", "error": "error"}


class News(NamedTuple):
    """Something to be told."""

    level: Level
    text: str
    progress: bool = False
    """Whether it says how far the call is."""

    def reaches(self, least: Level) -> bool:
        """Whether somebody hears of it who wants nothing below a level."""
        return LEVELS.index(self.level) >= LEVELS.index(least)


def news_of(event: Event) -> News | None:
    """What an event says to who called; None where it says nothing."""
    match event:
        case ToolCallUpdate():
            return _of_update(event)
        case Warning():
            return News("warning", event.text)
        case Notice():
            return News("notice", event.text)
        case Display():
            return News(_OF_DISPLAY.get(event.level, "info"), event.content)
        case _:
            return None


def _of_update(event: ToolCallUpdate) -> News | None:
    """What it is doing; else the last line of what it printed, which is what people look at."""
    if event.title:
        return News("info", event.title[:_LONGEST], progress=True)
    lines = (event.output or "").split("\n")
    last = next((line for line in reversed(lines) if line.strip()), "")
    return News("debug", last[-_LONGEST:], progress=True) if last else None
