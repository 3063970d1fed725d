"""One event as a row of a table."""

from datetime import datetime

from handrail.cli.output import can_show, cut
from handrail.protocol.event import (
    Change,
    Display,
    Event,
    Network,
    PermissionEvent,
    Process,
    ToolCallEnd,
    ToolCallError,
    ToolCallQuestionRequired,
    ToolEvent,
    kind_of,
)
from handrail.store.journal import Broken
from handrail.terminal.display_line import ICONS, display_line


def event_row(event: Event | Broken) -> tuple[str, str, str, str]:
    """Number, time, kind, and what it was about."""
    if isinstance(event, Broken):
        return str(event.seq), "–", event.kind, cut(f"cannot be read: {event.problem}")
    return str(event.seq), when(event.time), kind_of(event), cut(_what(event))


def when(time: datetime) -> str:
    """A time as people here read it."""
    return f"{time.astimezone():%Y-%m-%d %H:%M:%S}"


def _what(event: Event) -> str:
    if isinstance(event, ToolEvent):
        return f"{event.label}{_about_call(event)}"
    if isinstance(event, Display):
        return display_line(event, plain=not can_show(ICONS))
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
        case Change():
            number = f" (undo {event.change.number})" if event.change.number is not None else ""
            return f": {', '.join(f'{one.action} {one.path}' for one in event.change.changes)}{number}"
        case _:
            return ""
