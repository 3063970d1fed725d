"""Texts for people that several commands share: events, times, sizes, gaps of undo, refusals."""

import os
import sys
from collections.abc import Callable, Iterable
from datetime import datetime
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

from handrail.cli.exits import FAILED
from handrail.cli.output import print_error, print_json, print_painted
from handrail.protocol.errors import ToolError
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
    ToolCallPermissionGranted,
    ToolCallQuestionRequired,
    ToolEvent,
    format_display,
    get_event_kind,
)
from handrail.protocol.text import escape_control, to_one_line, truncate
from handrail.protocol.wire import encode
from handrail.terminal.call_lines import describe_to_person, describe_unasked
from handrail.terminal.style import measure_columns, wrap_line

if TYPE_CHECKING:
    from handrail.api import Handrail


def build_event_row(event: Event | BrokenEvent) -> tuple[str, str, str, str]:
    """The number, time, kind and subject of an event."""
    if isinstance(event, BrokenEvent):
        return str(event.seq), "–", event.kind, truncate(f"cannot be read: {event.problem}", 100)
    return str(event.seq), format_time(event.time), get_event_kind(event), truncate(describe_event(event), 100)


def describe_event(event: Event) -> str:
    """The subject of an event, in words."""
    if isinstance(event, ToolEvent):
        return f"{event.label}{_describe_call_event(event)}"
    if isinstance(event, Display):
        return f"{event.level}: {format_display(event.title, event.content)}"
    if isinstance(event, Network):
        return f"{event.host}:{event.port} {'let through' if event.allowed else 'blocked'}: {event.reason}"
    if isinstance(event, Process):
        end = event.reason or event.signal or (None if event.exit_code is None else f"exit {event.exit_code}")
        return f"{event.process} {event.state}{f' ({end})' if end else ''}: {event.command}"
    texts = (getattr(event, name, None) for name in ("text", "content", "message", "mode", "reason", "state", "model"))
    return str(next(filter(None, texts), ""))


def choose_event_renderer(dialect: str | None, workspace: str) -> Callable[[Event], Iterable[Any]]:
    """Renders an event as itself, or as the messages of a dialect that has events of its own."""
    if dialect is not None:
        from handrail.dialects.adapters import ADAPTERS  # noqa: PLC0415  few speak a dialect

        if dialect in ADAPTERS:
            return ADAPTERS[dialect](os.path.realpath(workspace)).render
    return lambda event: (event,)


def _describe_call_event(event: ToolEvent) -> str:
    match event:
        case ToolCallEnd():
            return f": {event.result.summary}"
        case ToolCallError():
            return f": {event.result.error.code if event.result.error else 'failed'}"
        case PermissionEvent():
            request = event.permission_request
            by = event.answer.by if isinstance(event, ToolCallPermissionGranted) else None
            tried = request.preview.tried if request.preview is not None else None
            unasked = f"{describe_unasked(by, changed=bool(tried and tried.changes))}: " if by is not None else ""
            return f": {unasked}{request.description} ({request.rule}, {request.id})"
        case ToolCallQuestionRequired():
            return f": {event.question}"
        case ChangeEvent():
            number = f" (undo {event.change.number})" if event.change.number is not None else ""
            return f": {', '.join(f'{one.action} {one.path}' for one in event.change.changes)}{number}"
        case _:
            return ""


def format_time(time: datetime) -> str:
    """A time in the local time zone."""
    return f"{time.astimezone():%Y-%m-%d %H:%M:%S}"


def shorten_session(session_id: str) -> str:
    """The beginning of a session's id, for a row of a table. Commands take it for the id."""
    return truncate(session_id, 12)


def render_undo_gaps(gaps: tuple[str, ...]) -> str:
    return f"not covered by undo: {'; '.join(map(to_one_line, gaps))}" if gaps else ""


def list_change_gaps(rail: "Handrail", numbers: Iterable[int]) -> list[str]:
    """A line for each change set with effects that undo does not cover."""
    wanted = frozenset(numbers)
    latest = rail.changes(1)
    if not wanted or not latest:
        return []
    records = rail.changes(max(1, latest[0].number - min(wanted) + 1))
    return [
        f"undo {record.number} does not cover: {'; '.join(map(to_one_line, record.not_covered))}"
        for record in records
        if record.number in wanted and record.not_covered
    ]


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


def print_wrapped(text: str, indent: int = 0) -> None:
    """Writes lines to stdout, which break between words on a terminal."""
    if (columns := measure_columns(sys.stdout)) is not None:
        text = "".join(wrap_line(line, columns, indent) for line in escape_control(text).removesuffix("\n").split("\n"))
    print_painted(text)


def print_refusal(options: SimpleNamespace, command: str, error: ToolError, then: str) -> int:
    if options.json:
        print_json(encode({"schema": f"handrail.{command}/1", "error": build_error_data(error)}))
    else:
        print_error(describe_to_person(error), then)
    return FAILED


def build_error_data(error: ToolError) -> dict[str, object]:
    return {"code": error.code, "message": error.message, "details": error.details}
