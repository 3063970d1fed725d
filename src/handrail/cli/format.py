"""Events, times and coverage as text."""

import os
from collections.abc import Iterable
from datetime import datetime
from typing import Any

from handrail.api import Handrail
from handrail.cli.output import can_show
from handrail.protocol.changes import ChangeRecord
from handrail.protocol.events import (
    BrokenEvent,
    ChangeEvent,
    Display,
    Event,
    Level,
    Network,
    PermissionEvent,
    Process,
    ToolCallEnd,
    ToolCallError,
    ToolCallQuestionRequired,
    ToolEvent,
    get_event_kind,
)
from handrail.protocol.results import SandboxUsed, ToolResult
from handrail.protocol.text import to_one_line, truncate

# § [terminal.display_line] What a model shows the person, in one line: for logs, and for views that have room for
# § no more.

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


# § [cli.event_row] One event as a row of a table.


def build_event_row(event: Event | BrokenEvent) -> tuple[str, str, str, str]:
    """Number, time, kind, and what it was about."""
    if isinstance(event, BrokenEvent):
        return str(event.seq), "–", event.kind, truncate(f"cannot be read: {event.problem}", 100)
    return str(event.seq), format_time(event.time), get_event_kind(event), truncate(_what(event), 100)


def format_time(time: datetime) -> str:
    """A time as people here read it."""
    return f"{time.astimezone():%Y-%m-%d %H:%M:%S}"


def _what(event: Event) -> str:
    if isinstance(event, ToolEvent):
        return f"{event.label}{_about_call(event)}"
    if isinstance(event, Display):
        return render_display_line(event, plain=not can_show(ICONS))
    if isinstance(event, Network):
        return f"{event.host}:{event.port} {'let through' if event.allowed else 'blocked'}: {event.reason}"
    if isinstance(event, Process):
        how = event.reason or event.signal or (None if event.exit_code is None else f"exit {event.exit_code}")
        return f"{event.process} {event.state}{f' ({how})' if how else ''}: {event.command}"
    told = (getattr(event, name, None) for name in ("text", "content", "message", "mode", "reason", "state", "model"))
    return str(next(filter(None, told), ""))


def _about_call(event: ToolEvent) -> str:
    match event:
        case ToolCallEnd():
            return f": {event.result.summary}"
        case ToolCallError():
            return f": {event.result.error.code if event.result.error else 'failed'}"
        case PermissionEvent():
            request = event.permission_request
            return f": {request.description} ({request.rule}, {request.id})"
        case ToolCallQuestionRequired():
            return f": {event.question}"
        case ChangeEvent():
            number = f" (undo {event.change.number})" if event.change.number is not None else ""
            return f": {', '.join(f'{one.action} {one.path}' for one in event.change.changes)}{number}"
        case _:
            return ""


# § [cli.coverage] What undo does not cover, said wherever somebody may count on it.


def describe_result_gap(result: ToolResult[Any]) -> str | None:
    """What undo does not cover of a call; None where there is nothing to say."""
    used = result.meta.sandbox
    if used is None or used.undo == "read-only" or getattr(result.data, "session_id", None):
        return None  # it changed nothing; or it goes on, and its own words say what that means
    told = _of_sandbox(used)
    return f"not covered by undo: {told}" if told else None


def describe_record_gap(record: ChangeRecord) -> str:
    """The same of a change in the log; empty where there is nothing to say."""
    return f"not covered by undo: {_joined(record.not_covered)}" if record.not_covered else ""


def list_change_gaps(rail: Handrail, numbers: Iterable[int]) -> list[str]:
    """The same of changes by their numbers, one line each."""
    wanted = frozenset(numbers)
    latest = rail.changes(1)
    if not wanted or not latest:
        return []
    found = rail.changes(max(1, latest[0].number - min(wanted) + 1))
    told = [one for one in found if one.number in wanted and one.not_covered]
    return [f"undo {one.number} does not cover: {_joined(one.not_covered)}" for one in told]


def _of_sandbox(used: SandboxUsed) -> str:
    if used.not_covered:
        return _joined(used.not_covered)
    if used.undo != "none":
        return ""
    why = f" ({to_one_line(used.no_layer)})" if used.no_layer else ""
    return f"what it changed, if anything{why}"


def _joined(told: tuple[str, ...]) -> str:
    return "; ".join(map(to_one_line, told))


# § [cli.rows] What a check of doctor has found, in words that name no user and no folder of theirs.


def format_binary_size(count: int) -> str:
    """A number of bytes in units of 1,024: 1234 → 1.2 KB, 100 → 0.1 KB."""
    unit, divisor = ("GB", 1 << 30) if count >= 1 << 30 else ("MB", 1 << 20) if count >= 1 << 20 else ("KB", 1 << 10)
    return f"{count / divisor:.1f} {unit}"


def replace_home(text: str) -> str:
    """The text with every place that the environment names called by that name."""
    for name in ("HANDRAIL_STATE_DIR", "HANDRAIL_CONFIG", "XDG_STATE_HOME", "XDG_CONFIG_HOME"):
        if value := os.environ.get(name):
            text = text.replace(value, f"${name}")
    home = os.path.expanduser("~")
    return text.replace(home, "~") if home not in {"/", "~", ""} else text
