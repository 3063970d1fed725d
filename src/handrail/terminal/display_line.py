"""What a model shows the person, in one line: for logs, and for views that have room for no more."""

from handrail.protocol.events import Display, Level
from handrail.protocol.text import to_one_line

_ICONS: dict[Level, str] = {"info": "ℹ", "success": "✓", "warning": "⚠", "error": "✗", "progress": "…"}
_WORDS: dict[Level, str] = {
    "info": "info:",
    "success": "ok:",
    "warning": "warning:",
    "error": "error:",
    "progress": "progress:",
}
_MAX_LINE_CHARS = 200
"""Of the title, and of the content's first line."""
ICONS = "".join(_ICONS.values())
"""All of them, for who asks whether they can be shown."""


def render_display_line(display: Display, *, plain: bool = False) -> str:
    """The icon of its level, its title and its first line; nothing in it steers a terminal. `plain`: words in the place
    of icons."""
    content = next((line.strip() for line in display.content.splitlines() if line.strip()), "")
    told = ": ".join(filter(None, ((display.title or "").strip()[:_MAX_LINE_CHARS], content[:_MAX_LINE_CHARS])))
    return to_one_line(f"{(_WORDS if plain else _ICONS)[display.level]} {told}".rstrip())
