"""The lines that show the calls of a turn, in every view."""

import re
from typing import Any, cast

import msgspec

from handrail.protocol.changes import ChangeSet
from handrail.protocol.errors import REFUSAL_ADVICE, ErrorInfo, ToolError
from handrail.protocol.events import (
    Display,
    Event,
    Network,
    Notice,
    Process,
    Warning,  # noqa: A004
)
from handrail.protocol.permissions import Answer, PermissionRequest
from handrail.protocol.results import ToolResult
from handrail.protocol.text import escape_exact_line, to_one_line, truncate
from handrail.terminal.glyphs import Glyphs
from handrail.terminal.screen import format_seconds
from handrail.terminal.style import pad_painted

_REFUSED = frozenset({"POLICY_DENIED", "PERMISSION_DENIED", "OUTSIDE_WORKSPACE", "CANCELLED"})
_MAX_DISPLAY_LINES = 8
_COLUMN = 66
"""Where the outcome of a call begins, if there is room."""
_MIN_SUBJECT = 18
"""The columns that a call keeps beside a long outcome."""
_TIME_COLUMNS = 15
"""The columns beside a running call: its sign, and a time such as `59 min 59 s`."""
_MIN_WIDE = 72
"""On a screen with fewer columns, an outcome that does not fit has a row of its own."""


_FOR_MODELS = re.compile(
    r" (?:Do not repeat this call|Your arguments are not the cause|Continue without (?:it|this call)|Ask the user if"
    r" you need it|(?:Continue without it; )?`handrail doctor` tells the user more|Only the user can repair this:"
    r" handrail doctor|The user has to repair this|Make the call again if you still need it"
    rf"|{REFUSAL_ADVICE[:-1]})\b\.?"
)
_FOR_PEOPLE = {"Ask the user to r": "R", "The user can": "You can", "the user's": "your", "ask the user": "ask you"}


def render_call_lines(
    result: ToolResult[Any], args: object, glyphs: Glyphs, label: str = "", change: ChangeSet | None = None
) -> list[str]:
    """A finished call: subject, outcome, duration. `label`: the name of the tool for people."""
    name = label or result.name
    error = result.error
    if error is not None:
        sign = "denied" if error.code in _REFUSED else "failed"
        line = truncate(f"{_render_call(name, args)}: {_explain_error(error)}", glyphs.width * 2 - 2)
        return [f"{glyphs.sign(sign)} {line}"]
    facts = [_describe_outcome(result, change, glyphs)]
    if result.meta.undo is not None:
        facts.append(f"undo {result.meta.undo}")
    facts.append(format_seconds(result.duration_ms / 1e3))
    subject, indent = _render_call(name, args), len(glyphs.ok) + 1
    has_two_rows = glyphs.width < _MIN_WIDE and len(subject) + len(glyphs.between.join(facts)) > glyphs.width - 6
    others = len(glyphs.between.join(["", *facts[1:]]))
    beside = 0 if has_two_rows else _MIN_SUBJECT
    facts[0] = truncate(facts[0], max(12, min(60, glyphs.width - others - beside - 4)))
    facts = [fact for fact in facts if fact]
    outcome = glyphs.between.join(facts)
    painted = glyphs.between.join([facts[0], *(glyphs.paint(fact, "dim") for fact in facts[1:])])
    room = glyphs.width - 1 if has_two_rows else max(_MIN_SUBJECT, glyphs.width - len(outcome) - 4)
    subject = truncate(subject, room - indent)
    sign = glyphs.sign("failed" if has_failed(result) else "ok")
    if has_two_rows:
        return [f"{sign} {subject}", f"    {painted}"]
    return [f"{sign} {pad_painted(subject, min(_COLUMN, room) - indent)}  {painted}"]


def has_failed(result: ToolResult[Any]) -> bool:
    """Whether a command ended with an exit code that means a failure. The call itself is no error."""
    return bool(getattr(result.data, "exit_code", 0)) and not getattr(result.data, "meaning", None)


def _describe_outcome(result: ToolResult[Any], change: ChangeSet | None, glyphs: Glyphs) -> str:
    """The outcome without the path and the number of the change, which the line has elsewhere."""
    data: Any = msgspec.to_builtins(result.data) if result.name in {"read", "write", "edit", "exec"} else None
    if result.name == "read" and result.meta.returned:
        return _describe_lines(data["firstLine"], result.meta.returned, result.meta.total)
    if result.name == "exec" and change is not None and change.undoable:
        from handrail.tools.exec.result import describe_changes, describe_exit  # noqa: PLC0415  the room of commands

        changed, code = describe_changes(change.changes), data["exitCode"]
        return f"{describe_exit(code, data.get('meaning'))}; {changed}" if code else changed
    if result.name in {"write", "edit"} and change is not None:
        added, removed = (sum(getattr(one, side) or 0 for one in change.changes) for side in ("added", "removed"))
        counts = f"+{added} {glyphs.minus}{removed}"
        if result.name == "write":
            return f"{'Created' if data['created'] else 'Wrote'} {counts}"
        return f"in {data['replacements']} places {counts}" if data["replacements"] > 1 else counts
    return to_one_line(result.summary).replace("−", glyphs.minus)


def _describe_lines(first: int, count: int, total: int | None) -> str:
    if first < 0:
        return f"{count} of the last {-first} lines"
    return f"lines {first}–{first + count - 1}{f' of {total}' if total is not None else ''}"


def _explain_error(error: ErrorInfo) -> str:
    """The rule of a refusal with its reason, else the message."""
    match error.details:
        case {"rule": str(rule), "reason": str(reason)}:
            return f"{to_one_line(reason)} ({to_one_line(rule)})"
        case _:
            return to_one_line(describe_to_person(error))


def render_running_line(name: str, args: object, glyphs: Glyphs) -> str:
    """The line of a call, with room for its time behind it."""
    return f"{glyphs.sign('running')} {truncate(f'{_render_call(name, args)} …', glyphs.width - _TIME_COLUMNS)}"


def render_display(event: Display, glyphs: Glyphs) -> list[str]:
    """A display of the model, with a mark: it may look like a line of handrail."""
    signs = {"info": glyphs.info, "success": glyphs.ok, "warning": glyphs.asks, "error": glyphs.failed}
    first, *more = [line for line in event.content.splitlines() if line.strip()] or [""]
    title = f"{event.title}: " if event.title and first else event.title or ""
    lines = [f"{glyphs.says} {signs.get(event.level, glyphs.running)} {to_one_line(title + first)}"]
    lines += [f"{glyphs.says}   {to_one_line(line)}" for line in more[:_MAX_DISPLAY_LINES]]
    left = len(more) - _MAX_DISPLAY_LINES
    whole = f"handrail log --session {event.session_id} --events --after {event.seq - 1} --limit 1 --json"
    return [*lines, f"  … {left} more lines: {whole}"] if left > 0 else lines


def render_event(event: Event, glyphs: Glyphs, verbose: int) -> list[str]:
    match event:
        case Display():
            return render_display(event, glyphs)
        case Notice():
            return [f"{glyphs.sign('info')} {to_one_line(event.text)}"]
        case Warning() if event.tool_call_id is None or verbose:
            return [f"{glyphs.sign('asks')} {to_one_line(event.text)}"]
        case Network() if not event.allowed:
            host = to_one_line(event.host)
            return [f"{glyphs.sign('denied')} {host}:{event.port} was not reached: {to_one_line(event.reason)}"]
        case Process() if event.state == "ended":
            end = event.reason or (f"exit {event.exit_code}" if event.exit_code is not None else event.signal)
            ended = to_one_line(f"{event.process} has ended ({end}): {event.command}")
            return [f"{glyphs.sign('info')} {ended}"]
        case _:
            return []


def _render_call(name: str, args: object) -> str:
    return f"{to_one_line(name):<5} {to_one_line(describe_subject(name, args))}".rstrip()


def describe_subject(name: str, args: object) -> str:
    """The subject of a call, from its arguments."""
    given: dict[str, Any] = cast("dict[str, Any]", args) if isinstance(args, dict) else {}

    def text(key: str) -> str:
        return value if isinstance(value := given.get(key), str) else ""

    where = f" in {text('path')}" if text("path") not in {"", "."} else ""
    match name:
        case "grep":
            return f'"{text("pattern")}"{where}'
        case "find":
            return f"{text('pattern')}{where}"
        case "exec":
            return text("command")
        case "process":
            return f"{text('action')} {text('sessionId')}".strip()
        case "ls":
            return text("path") or "."
        case _:
            values = (text(key) for key in ("path", "name", "question", "title", "command", "pattern"))
            return next(filter(None, values), "")


def describe_unasked(by: str, *, changed: bool) -> str:
    """Why no person was asked about a call that needs approval. `changed`: whether it changed files."""
    if by == "grant":
        return "not asked: plain edits are allowed in this session"
    return f"not asked: the preview changed {'only caches' if changed else 'nothing'}"


def describe_granted(request: PermissionRequest, answer: Answer) -> str:
    """What later calls are not asked about after an answer. Empty if it is for this call only."""
    if answer.kind == "edits":
        return "no longer asks for plain edits in this session"
    if answer.kind not in {"session", "workspace"}:
        return ""
    if request.kind == "external_directory":
        return f"{', '.join(map(escape_exact_line, request.pattern[::2]))} is open to this {answer.kind}"
    classes = ", ".join(f"`{escape_exact_line(name)}`" for name in answer.grants or request.grants)
    return f"no longer asks for {classes} in this {answer.kind}"


def list_undo_gaps(result: ToolResult[Any]) -> tuple[str, ...]:
    """The effects of a call that undo does not cover."""
    used = result.meta.sandbox
    if used is None or used.undo == "read-only" or getattr(result.data, "session_id", None):
        return ()  # it changed nothing, or it goes on in the background and its result says what that means
    if used.not_covered or used.undo != "none":
        return used.not_covered
    why = f" ({to_one_line(used.no_layer)})" if used.no_layer else ""
    return (f"its changes, if any{why}",)


def describe_to_person(error: ErrorInfo | ToolError) -> str:
    """The message of an error without the parts for models."""
    match error.details:
        case {"answer": "deny", "reason": reason}:
            return f"denied: {reason}".removesuffix(": ")
        case _:
            text = _FOR_MODELS.sub("", error.message).replace("Call again.", "Try again.")
    for part, instead in _FOR_PEOPLE.items():
        text = text.replace(part, instead)
    return text
