"""One line for a call: what it was about, what came of it, how long it took."""

from typing import Any, cast

from handrail.cli.running.form import Glyphs
from handrail.protocol.errors import REFUSAL_ADVICE
from handrail.protocol.events import Display
from handrail.protocol.results import ToolResult
from handrail.protocol.text import pad, to_one_line, truncate

_REFUSED = frozenset({"POLICY_DENIED", "PERMISSION_DENIED", "OUTSIDE_WORKSPACE", "CANCELLED"})
_SHOWN_LINES = 8
_COLUMN = 66
"""Where what came of a call begins, where there is room."""


def render_call_line(result: ToolResult[Any], args: object, form: Glyphs, label: str = "") -> str:
    """A call that is over; `label`: what people call its tool, where that is not its name."""
    name = label or result.name
    error = result.error
    if error is not None:
        refused = error.code in _REFUSED
        sign = form.denied if refused else form.failed
        why = to_one_line(error.message.removesuffix(f" {REFUSAL_ADVICE}")).removeprefix(f"{result.name}: ")
        return truncate(f"{sign} {_named(name, args)}: {why}", form.width * 2)
    facts = [_came_of(result, args, form)]
    if result.meta.undo is not None:
        facts.append(f"undo {result.meta.undo}")
    facts.append(format_rounded_seconds(result.duration_ms / 1e3))
    told = form.between.join(fact for fact in facts if fact)
    room = max(24, form.width - len(told) - 4)
    subject = truncate(f"{form.ok} {_named(name, args)}", room)
    column = min(_COLUMN, room)
    return f"{pad(subject, column)}  {told}"


def render_running_line(name: str, args: object, form: Glyphs) -> str:
    """A call that takes its time."""
    return truncate(f"{form.running} {_named(name, args)} …", form.width)


def render_display(event: Display, form: Glyphs) -> list[str]:
    """What the model wants the person to see, marked: it may be anything, also what a call of ours looks like."""
    signs = {"info": form.info, "success": form.ok, "warning": form.asks, "error": form.failed}
    first, *more = [line for line in event.content.splitlines() if line.strip()] or [""]
    title = f"{event.title}: " if event.title and first else event.title or ""
    lines = [f"{form.says} {signs.get(event.level, form.running)} {to_one_line(title + first)}"]
    lines += [f"{form.says}   {to_one_line(line)}" for line in more[:_SHOWN_LINES]]
    left = len(more) - _SHOWN_LINES
    whole = f"handrail log --session {event.session_id} --after {event.seq - 1} --limit 1 --json"
    return [*lines, f"  … {left} more lines: {whole}"] if left > 0 else lines


def describe_call_subject(name: str, args: object) -> str:
    """What a call is about, in a few words of its own arguments."""
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
            named = (text(key) for key in ("path", "name", "question", "title", "command", "pattern"))
            return next(filter(None, named), "")


def format_rounded_seconds(number: float) -> str:
    """A duration with at most three digits: `0.05 s`, `12 s`, `2.5 min`."""
    if number < 0.1:
        return f"{number:.2f} s"
    if number < 10:
        return f"{number:.1f} s"
    return f"{number:.0f} s" if number < 100 else f"{number / 60:.1f} min"


def _named(name: str, args: object) -> str:
    return f"{to_one_line(name):<5} {to_one_line(describe_call_subject(name, args))}".rstrip()


def _came_of(result: ToolResult[Any], args: object, form: Glyphs) -> str:
    """The summary without what the line says already."""
    summary = to_one_line(result.summary).removesuffix(f"; undo {result.meta.undo}")
    if result.name in {"read", "write", "edit"}:
        said = describe_call_subject(result.name, args)
        summary = summary.removeprefix("Read ").removesuffix(f" of {said}")
        summary = summary.removeprefix(f"Edited {said} ").replace(f" {said} ", " ")
    return truncate(summary if form.minus == "−" else summary.replace("−", form.minus), 60)
