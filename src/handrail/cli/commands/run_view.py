"""The view of a running turn: the words of the model on stdout, a line for everything else on stderr."""

import io
import os
import re
import sys
from collections.abc import Callable, Generator
from contextlib import contextmanager
from types import SimpleNamespace
from typing import Any

import msgspec

from handrail.cli.exits import CommandFailed
from handrail.cli.format import describe_subject, describe_unasked
from handrail.cli.output import warn_painted, write_out
from handrail.models.base import CallPiece, StreamPiece
from handrail.protocol.calls import ToolCall
from handrail.protocol.changes import ChangeSet
from handrail.protocol.errors import ErrorInfo
from handrail.protocol.events import (
    ChangeEvent,
    Display,
    Event,
    Network,
    Notice,
    PermissionEvent,
    Process,
    Reasoning,
    Text,
    ToolCallEnd,
    ToolCallError,
    ToolCallQuestionRequired,
    ToolCallRunning,
    ToolCallStart,
    ToolCallUpdate,
    ToolEvent,
    User,
    Warning,  # noqa: A004
)
from handrail.protocol.results import ToolResult
from handrail.protocol.text import escape_control, pad, to_one_line, truncate
from handrail.terminal.live_view import LiveView, RunningCalls
from handrail.terminal.screen import Screen
from handrail.terminal.style import Paint, Style, choose_paint, paint_nothing

_PATIENCE_SECONDS = 1.0
"""After which a person at a terminal sees what takes so long."""
_CALL_PATIENCE_SECONDS = 0.3
"""The same for a call on a terminal that can erase it."""
_REFUSED = frozenset({"POLICY_DENIED", "PERMISSION_DENIED", "OUTSIDE_WORKSPACE", "CANCELLED"})
_MAX_DISPLAY_LINES = 8
_STYLES: dict[str, Style] = {
    "ok": "ok",
    "running": "running",
    "asks": "refused",
    "failed": "failed",
    "denied": "refused",
    "info": "dim",
}
_COLUMN = 66
"""Where the outcome of a call begins, if there is room."""


class Glyphs(msgspec.Struct, frozen=True):
    """The signs at the start of lines, and those between facts."""

    ok: str = "✓"
    running: str = "●"
    asks: str = "!"
    failed: str = "✗"
    denied: str = "⊘"
    info: str = "·"
    says: str = "»"
    """Before words of a model that could pass for a line of handrail."""
    between: str = " · "
    minus: str = "−"
    to: str = "→"
    plain: bool = False
    width: int = 100
    """The columns of a line."""
    paint: Paint = paint_nothing

    def sign(self, name: str) -> str:
        """The sign at the start of a line, painted."""
        return self.paint(getattr(self, name), _STYLES[name])


_WORDS = Glyphs(
    ok="ok",
    running="..",
    asks="ASK",
    failed="ERR",
    denied="DENY",
    info="-",
    says="SAYS",
    between=", ",
    minus="-",
    to=" to ",
    plain=True,
)


def build_glyphs(options: SimpleNamespace) -> Glyphs:
    """Signs, or words if stderr cannot show signs or the person asked for words."""
    try:
        width = max(40, min(160, os.get_terminal_size(2).columns))
    except OSError:
        width = 100
    if not options.plain and os.environ.get("TERM") != "dumb" and _can_encode("✓●✗⊘·»−→"):
        return Glyphs(width=width, paint=choose_paint(sys.stderr, os.environ))
    return msgspec.structs.replace(_WORDS, width=width)


def _can_encode(signs: str) -> bool:
    try:
        signs.encode(getattr(sys.stderr, "encoding", None) or "ascii")
    except (UnicodeEncodeError, LookupError):
        return False
    return True


class RunView:
    """Shows events as they come, from any thread."""

    def __init__(self, options: SimpleNamespace, glyphs: Glyphs, model: str) -> None:
        self._glyphs, self._model = glyphs, model
        self._quiet, self._verbose = bool(options.quiet), int(options.verbose)
        is_shown = not options.quiet and sys.stderr is not None and sys.stderr.isatty()
        self._live = LiveView(Screen(sys.stderr or io.StringIO(), os.environ, plain=glyphs.plain), shown=is_shown)
        self._running = RunningCalls(glyphs.paint)
        self._render_running = self._with_words_ended(self._running.render)
        self._message = ""
        self._midline = False
        # On a terminal, the words of the model stand among the lines of handrail.
        shares_terminal = sys.stdout is not None and sys.stdout.isatty() and not glyphs.plain
        self._guard = SpoofGuard(glyphs) if shares_terminal else None
        self._thoughts = ""
        self._is_lent = False
        self._arguments: dict[str, object] = {}
        self._changes: dict[str, ChangeSet] = {}
        self.failure: CommandFailed | None = None
        """Why the view cannot write any more."""

    def show(self, event: Event) -> None:
        if isinstance(event, Reasoning) and not self._verbose:
            return  # the person still waits
        with self._live.lock:
            try:
                self._show(event)
            except CommandFailed as failure:  # a listener must not raise, and the turn can go on
                self.failure = failure

    def show_model_activity(self, piece: StreamPiece) -> None:
        """Shows that the model writes a long call."""
        if isinstance(piece, CallPiece):
            with self._live.lock:
                self._wait(
                    lambda: f"{self._glyphs.sign('running')} {to_one_line(piece.name)} … the model writes the call"
                )

    def preload(self, event: Event) -> None:
        """Remembers the arguments of a call from before this process."""
        if isinstance(event, ToolCallStart):
            self._arguments[event.tool_call_id] = event.args

    def remember(self, tool_call_id: str, args: object) -> None:
        """Remembers the arguments of a call that has no event yet."""
        self._arguments.setdefault(tool_call_id, args)

    def print_line(self, text: str) -> None:
        with self._live.lock:
            self._line(escape_control(text))

    def show_preview(self, call: ToolCall, output: str) -> None:
        """Shows that a call is previewed, and its new output."""
        with self._live.lock:
            self._begin_call(call.tool_call_id, call.name, call.args)
            self._running.add_output(call.tool_call_id, output)

    def end(self) -> None:
        """Ends the line of the model, and the live view."""
        with self._live.lock:
            self._live.stop()
            self._end_words()

    @contextmanager
    def lend(self) -> Generator[None]:
        """Shows no live view while a prompt has the terminal."""
        self.end()
        self._is_lent = True
        try:
            yield
        finally:
            self._is_lent = False

    @contextmanager
    def above(self) -> Generator[None]:
        """Lets others write lines."""
        with self._live.lock:
            self._live.clear()
            self._end_words()
            yield

    @property
    def erasure(self) -> bytes:
        """Erases the live view, without a lock."""
        return self._live.erasure

    def _show(self, event: Event) -> None:
        match event:
            case Text():
                self._write_words(event)
            case Reasoning():
                self._write_thoughts(event.text)
            case User():
                self._await_model()
            case ToolCallEnd() | ToolCallError():
                self._show_result(event.result, event.label)
            case ToolEvent():
                self._track_call(event)
            case _ if not self._quiet or isinstance(event, Warning):
                for text in _render_event(event, self._glyphs, self._verbose):
                    self._line(text)
            case _:
                pass

    def _track_call(self, event: ToolEvent) -> None:
        match event:
            case ToolCallStart():
                self._arguments[event.tool_call_id] = event.args
                self._begin_call(event.tool_call_id, event.label, event.args)
            case ToolCallRunning():
                self._begin_call(event.tool_call_id, event.label, self._arguments.get(event.tool_call_id))
            case ToolCallUpdate():
                self._running.add_output(event.tool_call_id, event.output or "")
            case PermissionEvent() | ToolCallQuestionRequired():
                self._running.end(event.tool_call_id)  # it waits for a person
            case ChangeEvent():
                self._changes[event.tool_call_id] = event.change
            case _:
                pass

    def _begin_call(self, call_id: str, name: str, args: object) -> None:
        self._running.begin(call_id, render_running_line(name, args, self._glyphs))
        self._show_running()

    def _show_running(self) -> None:
        patience = _PATIENCE_SECONDS if self._glyphs.plain else _CALL_PATIENCE_SECONDS
        if not self._is_lent:
            self._live.start(self._render_running, patience)

    def _write_words(self, event: Text) -> None:
        self._live.stop()
        if event.message_id != self._message:
            self._end_words()
            self._message = event.message_id
        guard = self._guard
        write_out(guard.mark_piece(event.text, begins=not self._midline) if guard is not None else event.text)
        self._midline = not event.text.endswith("\n") if event.text else self._midline

    def _write_thoughts(self, text: str) -> None:
        *whole, self._thoughts = (self._thoughts + text).split("\n")
        for line in whole:
            self._line(f"  {to_one_line(line)}")

    def _show_result(self, result: ToolResult[Any], label: str) -> None:
        args = self._arguments.pop(result.tool_call_id, None)
        change = self._changes.pop(result.tool_call_id, None)
        self._running.end(result.tool_call_id)
        if result.name == "display" and result.ok:
            return  # the view showed the display itself
        if not self._quiet:
            self._line(render_call_line(result, args, self._glyphs, label, change))
            if result.meta.answered_by is not None:
                self._line(f"    {describe_unasked(result.meta.answered_by, changed=result.meta.undo is not None)}")
        for text in result.warnings:
            self._line(f"{self._glyphs.sign('asks')} {to_one_line(text)}")
        if self._running:
            self._show_running()
        else:
            self._await_model()

    def _line(self, text: str) -> None:
        """Writes a line that is escaped already."""
        if self._thoughts:
            thought, self._thoughts = self._thoughts, ""
            self._line(f"  {to_one_line(thought)}")
        self._live.clear()
        self._end_words()
        warn_painted(text)

    def _end_words(self) -> None:
        if self._midline:
            self._midline = False
            write_out("\n")

    def _await_model(self) -> None:
        self._wait(lambda: f"{self._glyphs.sign('running')} waiting for {to_one_line(self._model)} … Ctrl-C stops it")

    def _wait(self, render: Callable[[], str]) -> None:
        """Shows a line after a second, unless something else is shown before."""
        self._live.start(self._with_words_ended(lambda: [render()]), _PATIENCE_SECONDS)

    def _with_words_ended(self, render: Callable[[], list[str]]) -> Callable[[], list[str]]:
        def end_words() -> list[str]:
            self._end_words()
            return render()

        return end_words


class SpoofGuard:
    """Marks lines of a model that begin as lines of handrail do. They come in pieces."""

    def __init__(self, glyphs: Glyphs) -> None:
        signs = "".join(
            (glyphs.ok, glyphs.running, glyphs.asks, glyphs.failed, glyphs.denied, glyphs.info, glyphs.says, "?")
        )
        self._mark = f"{glyphs.says} "
        self._begins = re.compile(rf"(\A|\n)(?=[^\S\n]*[{re.escape(signs)}])")
        self._fresh = True
        """Whether the line has only blanks so far."""

    def mark_piece(self, piece: str, *, begins: bool) -> str:
        """Adds the marks. `begins`: the piece is the first of its line."""
        fresh = self._fresh or begins
        *_, last = piece.rpartition("\n")
        self._fresh = (fresh or "\n" in piece) and not last.strip()

        def mark(found: re.Match[str]) -> str:
            return found[1] + self._mark if found[1] or fresh else ""

        return self._begins.sub(mark, piece)


# Lines


def render_call_line(
    result: ToolResult[Any], args: object, glyphs: Glyphs, label: str = "", change: ChangeSet | None = None
) -> str:
    """A finished call: subject, outcome, duration. `label`: the name of the tool for people."""
    name = label or result.name
    error = result.error
    if error is not None:
        sign = "denied" if error.code in _REFUSED else "failed"
        line = truncate(f"{_render_call(name, args)}: {_explain_error(error)}", glyphs.width * 2 - 2)
        return f"{glyphs.sign(sign)} {line}"
    facts = [truncate(_describe_outcome(result, change, glyphs), 60)]
    if result.meta.undo is not None:
        facts.append(f"undo {result.meta.undo}")
    facts.append(format_rounded_seconds(result.duration_ms / 1e3))
    facts = [fact for fact in facts if fact]
    outcome = glyphs.between.join(facts)
    painted = glyphs.between.join([facts[0], *(glyphs.paint(fact, "dim") for fact in facts[1:])])
    room = max(24, glyphs.width - len(outcome) - 4)
    indent = len(glyphs.ok) + 1
    subject = truncate(_render_call(name, args), room - indent)
    return f"{glyphs.sign('ok')} {pad(subject, min(_COLUMN, room) - indent)}  {painted}"


def _describe_outcome(result: ToolResult[Any], change: ChangeSet | None, glyphs: Glyphs) -> str:
    """The outcome without the path and the number of the change, which the line has elsewhere."""
    data: Any = msgspec.to_builtins(result.data) if result.name in {"read", "write", "edit", "exec"} else None
    if result.name == "read" and result.meta.returned:
        return _describe_lines(data["firstLine"], result.meta.returned, result.meta.total)
    if result.name == "exec" and change is not None and change.undoable:
        from handrail.terminal.changes_text import describe_command_end  # noqa: PLC0415  with the room of commands

        return describe_command_end(data["exitCode"], data.get("meaning"), change)
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
    """The rule of a refusal with its reason, else the message for the model."""
    match error.details:
        case {"rule": str(rule), "reason": str(reason)}:
            return f"{to_one_line(reason)} ({to_one_line(rule)})"
        case _:
            return to_one_line(error.message)


def render_running_line(name: str, args: object, glyphs: Glyphs) -> str:
    return f"{glyphs.sign('running')} {truncate(f'{_render_call(name, args)} …', glyphs.width - 2)}"


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


def format_rounded_seconds(number: float) -> str:
    """A duration with at most three digits: `0.05 s`, `12 s`, `2.5 min`."""
    if number < 0.1:
        return f"{number:.2f} s"
    if number < 10:
        return f"{number:.1f} s"
    return f"{number:.0f} s" if number < 100 else f"{number / 60:.1f} min"


def _render_event(event: Event, glyphs: Glyphs, verbose: int) -> list[str]:
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
