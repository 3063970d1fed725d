"""Notes of earlier sessions, which rank below everything that is said now."""

from collections.abc import Sequence

import msgspec

from handrail.agent.prompt.fences import fence_text
from handrail.agent.prompt.words import truncate_line

_MAX_NOTE_CHARS = 2_000
_MAX_NOTES_CHARS = 32_000
"""Characters: more than a workspace may have notes of, with what stands around each."""
_MEMORY_HEAD = """\
# Notes of earlier sessions
They may be out of date. What the person says, and the project's own instructions, go before them."""


class Note(msgspec.Struct, frozen=True, kw_only=True):
    """Something that was worth keeping."""

    title: str
    content: str


def render_notes(notes: Sequence[Note]) -> str:
    """The notes in the order they are given, as many as there is room for."""
    lines: list[str] = []
    room = _MAX_NOTES_CHARS
    for note in notes:
        line = f"- {truncate_line(note.title, 120)}: {truncate_line(note.content, _MAX_NOTE_CHARS)}"
        if len(line) > room:
            break
        lines.append(line)
        room -= len(line)
    if not lines:
        return ""
    left = len(notes) - len(lines)
    more = [f"{left} more {'is' if left == 1 else 'are'} not shown here; the memory tool lists all."] if left else []
    return "\n".join((_MEMORY_HEAD, fence_text("notes", "\n".join(lines)), *more))
