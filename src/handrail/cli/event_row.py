"""One event as a row of a table."""

from datetime import datetime

from handrail.cli.output import can_show
from handrail.protocol.events import (
    BrokenEvent,
    ChangeEvent,
    Display,
    Event,
    Network,
    PermissionEvent,
    Process,
    ToolCallEnd,
    ToolCallError,
    ToolCallQuestionRequired,
    ToolEvent,
    get_event_kind,
)
from handrail.protocol.text import truncate
from handrail.terminal.display_line import ICONS, render_display_line


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
