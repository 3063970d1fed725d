"""Shows a run."""

import os
import re
import sys
from argparse import Namespace
from collections.abc import Callable
from threading import Lock, Timer
from typing import Any, cast

import msgspec

from handrail.cli.exits import CommandFailed
from handrail.cli.output import warn, write_out
from handrail.models.model import CallPiece, StreamPiece
from handrail.protocol.errors import REFUSAL_ADVICE
from handrail.protocol.events import (
    Display,
    Event,
    Network,
    Notice,
    Process,
    Reasoning,
    Text,
    ToolCallEnd,
    ToolCallError,
    ToolCallRunning,
    ToolCallStart,
    User,
    Warning,  # noqa: A004
)
from handrail.protocol.results import ToolResult
from handrail.protocol.text import pad, to_one_line, truncate

# § [cli.running.form] How the lines of a run look: signs where there are such, words where not.


class Glyphs(msgspec.Struct, frozen=True):
    """The signs that begin lines, and what stands between facts."""

    ok: str = "✓"
    running: str = "●"
    asks: str = "!"
    failed: str = "✗"
    denied: str = "⊘"
    info: str = "·"
    says: str = "»"
    """Before what a model shows or says where it could pass for a line of ours."""
    between: str = " · "
    minus: str = "−"
    to: str = "→"
    plain: bool = False
    width: int = 100
    """Of the terminal, or as if it were one."""


class SpoofGuard:
    """Marks lines of a model's that begin as ours do. They come in pieces."""

    def __init__(self, form: Glyphs) -> None:
        signs = "".join((form.ok, form.running, form.asks, form.failed, form.denied, form.info, form.says, "?"))
        self._mark = f"{form.says} "
        self._begins = re.compile(rf"(\A|\n)(?=[^\S\n]*[{re.escape(signs)}])")
        self._fresh = True
        """Whether nothing but blanks is in the line so far."""

    def mark_piece(self, piece: str, *, begins: bool) -> str:
        """The piece with its marks. `begins`: it is the first of its line."""
        fresh = self._fresh or begins
        *_, last = piece.rpartition("\n")
        self._fresh = (fresh or "\n" in piece) and not last.strip()

        def mark(found: re.Match[str]) -> str:
            return found[1] + self._mark if found[1] or fresh else ""

        return self._begins.sub(mark, piece)


def build_glyphs(options: Namespace) -> Glyphs:
    """Signs if stderr has them and nobody asked for words."""
    signs = "✓●✗⊘·»−→"
    plain = options.plain or os.environ.get("TERM") == "dumb" or not _has(signs)
    if not plain:
        return Glyphs(width=_width())
    words = {"ok": "ok", "running": "..", "asks": "ASK", "failed": "ERR", "denied": "DENY", "info": "-", "says": "SAYS"}
    return Glyphs(**words, between=", ", minus="-", to=" to ", plain=True, width=_width())


def _has(signs: str) -> bool:
    try:
        signs.encode(getattr(sys.stderr, "encoding", None) or "ascii")
    except (UnicodeEncodeError, LookupError):
        return False
    return True


def _width() -> int:
    try:
        return max(40, min(160, os.get_terminal_size(2).columns))
    except OSError:
        return 100


# § [cli.running.lines] One line for a call: what it was about, what came of it, how long it took.

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


# § [cli.running.view] What a person sees of a turn: the model's words on stdout, a line for everything else on
# § stderr.

_PATIENCE_SECONDS = 1.0
"""Seconds after which somebody at a terminal is told what takes so long."""


class RunView:
    """Shows events as they come, from whatever thread."""

    def __init__(self, options: Namespace, form: Glyphs, model: str) -> None:
        self._form, self._model = form, model
        self._quiet, self._verbose = bool(options.quiet), int(options.verbose)
        self._tells_waits = not options.quiet and sys.stderr is not None and sys.stderr.isatty()
        self._lock = Lock()
        self._message = ""
        self._midline = False
        # Into a pipe go the words alone; on a terminal they stand among lines of ours.
        self._marking = SpoofGuard(form) if sys.stdout is not None and sys.stdout.isatty() and not form.plain else None
        self._thoughts = ""
        self._arguments: dict[str, object] = {}
        self._timer: Timer | None = None
        self.failure: CommandFailed | None = None
        """Why nothing can be shown any more."""

    def show(self, event: Event) -> None:
        """Shows one event."""
        if isinstance(event, Reasoning) and not self._verbose:
            return  # for the person it is still waiting
        with self._lock:
            self._stop_waiting()
            try:
                self._show(event)
            except CommandFailed as stop:  # a listener must not raise, and the turn is not the worse for it
                self.failure = stop

    def show_model_activity(self, piece: StreamPiece) -> None:
        """Tells what the model is at, where a call takes long to be written."""
        if isinstance(piece, CallPiece):
            with self._lock:
                self._wait(lambda: f"{self._form.running} {to_one_line(piece.name)} … the model writes the call")

    def preload(self, event: Event) -> None:
        """Remembers what a call is about that was begun before anybody looked."""
        if isinstance(event, ToolCallStart):
            self._arguments[event.tool_call_id] = event.args

    def remember(self, tool_call_id: str, args: object) -> None:
        """What a call is about of which only the model's message is written down."""
        self._arguments.setdefault(tool_call_id, args)

    def print_line(self, text: str) -> None:
        """A line of ours, below what there is."""
        with self._lock:
            self._stop_waiting()
            self._line(text)

    def end(self) -> None:
        """Nothing comes any more: what was said ends its line."""
        with self._lock:
            self._stop_waiting()
            self._end_words()

    def _show(self, event: Event) -> None:
        match event:
            case Text():
                self._words(event)
            case Reasoning():
                self._think(event.text)
            case User():
                self._await_model()
            case ToolCallStart():
                self._arguments[event.tool_call_id] = event.args
            case ToolCallRunning():
                args = self._arguments.get(event.tool_call_id)
                self._wait(lambda: render_running_line(event.label, args, self._form))
            case ToolCallEnd() | ToolCallError():
                self._call(event.result, event.label)
            case _ if not self._quiet or isinstance(event, Warning):
                for text in _told(event, self._form, self._verbose):
                    self._line(text)
            case _:
                pass

    def _words(self, event: Text) -> None:
        if event.message_id != self._message:
            self._end_words()
            self._message = event.message_id
        marking = self._marking
        write_out(marking.mark_piece(event.text, begins=not self._midline) if marking is not None else event.text)
        self._midline = not event.text.endswith("\n") if event.text else self._midline

    def _think(self, text: str) -> None:
        *whole, self._thoughts = (self._thoughts + text).split("\n")
        for line in whole:
            self._line(f"  {to_one_line(line)}")

    def _call(self, result: Any, label: str) -> None:
        args = self._arguments.pop(result.tool_call_id, None)
        if result.name == "display" and result.ok:
            return  # it was shown
        if not self._quiet:
            self._line(render_call_line(result, args, self._form, label))
        for text in result.warnings:
            self._line(f"{self._form.asks} {to_one_line(text)}")
        self._await_model()

    def _line(self, text: str) -> None:
        if self._thoughts:
            thought, self._thoughts = self._thoughts, ""
            self._line(f"  {to_one_line(thought)}")
        self._end_words()
        warn(text)

    def _end_words(self) -> None:
        if self._midline:
            self._midline = False
            write_out("\n")

    def _await_model(self) -> None:
        self._wait(lambda: f"{self._form.running} waiting for {self._model} … Ctrl-C stops it")

    def _wait(self, told: Callable[[], str]) -> None:
        if not self._tells_waits:
            return
        self._stop_waiting()
        timer = Timer(_PATIENCE_SECONDS, lambda: self._say_waiting(timer, told))
        timer.daemon = True
        self._timer = timer
        timer.start()

    def _say_waiting(self, timer: Timer, told: Callable[[], str]) -> None:
        with self._lock:
            if self._timer is timer:  # else it was too late to be stopped
                self._timer = None
                self._line(told())

    def _stop_waiting(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None


def _told(event: Event, form: Glyphs, verbose: int) -> list[str]:
    """The lines of what is neither words nor a call."""
    match event:
        case Display():
            return render_display(event, form)
        case Notice():
            return [f"{form.info} {to_one_line(event.text)}"]
        case Warning() if event.tool_call_id is None or verbose:
            return [f"{form.asks} {to_one_line(event.text)}"]
        case Network() if not event.allowed:
            return [f"{form.denied} {event.host}:{event.port} was not reached: {to_one_line(event.reason)}"]
        case Process() if event.state == "ended":
            how = event.reason or (f"exit {event.exit_code}" if event.exit_code is not None else event.signal)
            return [f"{form.info} {event.process} has ended ({how}): {to_one_line(event.command)}"]
        case _:
            return []
