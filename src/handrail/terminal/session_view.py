"""The view of a session: its events become finished rows, with a few live rows below them."""

import re
import time
from collections import deque
from typing import Any, Literal, Protocol, cast

import msgspec

from handrail.edit.diff_parser import DiffLine, iterate_diff
from handrail.models.base import CallPiece, ReasoningPiece, StreamPiece
from handrail.protocol.calls import ToolCall
from handrail.protocol.changes import ChangeSet
from handrail.protocol.errors import ErrorInfo
from handrail.protocol.events import (
    ChangeEvent,
    Display,
    Event,
    PermissionEvent,
    Reasoning,
    Text,
    ToolCallEnd,
    ToolCallError,
    ToolCallPermissionGranted,
    ToolCallQuestionRequired,
    ToolCallRunning,
    ToolCallStart,
    ToolCallUpdate,
    ToolEvent,
    User,
)
from handrail.protocol.results import ToolResult
from handrail.protocol.text import escape_control, to_one_line
from handrail.protocol.wire import to_dict
from handrail.terminal.call_lines import (
    describe_granted,
    describe_unasked,
    render_call_lines,
    render_display,
    render_event,
    render_running_line,
)
from handrail.terminal.error_text import describe_tool_error, render_error
from handrail.terminal.glyphs import Glyphs, SpoofGuard
from handrail.terminal.live_view import RunningCalls
from handrail.terminal.markdown import MarkdownStream
from handrail.terminal.slash_hints import to_slash_commands
from handrail.terminal.style import truncate_painted, wrap_line

MAX_CARDS = 200
_MAX_CARD_CHARS = 200_000
_EXCERPT_LINES = 6
_MAX_TODO_LINES = 10
_MAX_LIVE_ROWS = 7
_MAX_THOUGHT_CHARS = 2_000
_BODY = "    "


class RowWriter(Protocol):
    """Where rows go that do not change any more."""

    @property
    def width(self) -> int: ...

    def write(self, rows: list[str]) -> None: ...


class Card(msgspec.Struct, kw_only=True):
    """A finished call, for the viewer."""

    title: str
    """Escaped, without styles."""
    args: object
    output: str
    diff: str
    number: int | None = None
    """Of its change set."""


class SessionView:
    """Shows the events of a session. Its methods must not run at the same time."""

    def __init__(
        self,
        glyphs: Glyphs,
        output: RowWriter,
        *,
        words: RowWriter | None = None,
        verbose: bool = False,
        detail: Literal["all", "lines", "warnings"] = "all",
        in_session: bool = True,
    ) -> None:
        """`words` gets the words of the model. `detail`: `lines` has one line a call. `in_session`: the person can type
        slash commands."""
        self._glyphs, self._output, self._verbose = glyphs, output, verbose
        self._words, self._detail, self._in_session = words or output, detail, in_session
        self._granted: dict[str, str] = {}
        """What later calls are not asked about, by the call whose approval said so."""
        self._markdown = MarkdownStream(glyphs.paint, None if glyphs.plain else SpoofGuard(glyphs))
        self._message = ""
        self._running = RunningCalls(glyphs.paint)
        self._arguments: dict[str, object] = {}
        self._changes: dict[str, ChangeSet] = {}
        self._announced: set[str] = set()
        self._thought = ""
        self._waits_for = ""
        """What the person waits for, while nothing else shows progress."""
        self._waits_since = 0.0
        self._written_call = ""
        """The name of the call that the model writes."""
        self.cards: deque[Card] = deque(maxlen=MAX_CARDS)
        self.own_call: str | None = None
        """The last command of the person, whose whole output is shown below it."""

    def begin_turn(self, model: str, how_to_stop: str = "") -> None:
        self._await(f"waiting for {to_one_line(model)}{how_to_stop}")

    def end_turn(self) -> None:
        """Ends everything that is live."""
        self._end_words()
        self._waits_for = self._thought = self._written_call = ""
        self._running.clear()

    def show(self, event: Event) -> None:
        match event:
            case Text():
                self._write_words(event)
            case Reasoning():
                self._think(event.text)
            case User():
                pass  # the composer showed it
            case ToolCallEnd() | ToolCallError():
                self._show_result(event.result, event.label)
            case ToolEvent():
                self._track(event)
            case Display():
                self._write(self._render_display(event))
            case _:
                self._write_signed(render_event(event, self._glyphs, int(self._verbose)))

    def show_piece(self, piece: StreamPiece) -> None:
        """Shows that the model thinks, or writes a long call."""
        match piece:
            case CallPiece():
                self._written_call = to_one_line(piece.name)
            case ReasoningPiece() if not self._thought:
                self._await("thinking")
            case _:
                pass

    def show_preview(self, call: ToolCall, output: str) -> None:
        self._begin_call(call.tool_call_id, call.name, call.args)
        self._running.add_output(call.tool_call_id, output)

    def remember(self, call_id: str, args: object) -> None:
        """Remembers the arguments of a call from before this process."""
        self._arguments.setdefault(call_id, args)

    def write_note(self, text: str) -> None:
        """Writes lines of handrail, which break between words. Later rows stand below the last column."""
        for line in escape_control(text).rstrip("\n").split("\n"):
            column = re.match(r" *(?:\S+(?: \S+)* {2,})?", line)
            self._write(self._wrap(line, column.end() if column else 0))

    def render_live(self) -> list[str]:
        """The rows that change: a line of the model, running calls with their last output, or what is waited for."""
        width = self._output.width
        rows = self._markdown.render_rest(width)[-3:]
        if self._running:
            rows += self._running.render() if not self._glyphs.plain else []
        elif self._written_call:
            rows.append(f"{self._glyphs.sign('running')} {self._written_call} … the model writes the call")
        elif self._waits_for:
            seconds = int(time.monotonic() - self._waits_since)
            elapsed = self._glyphs.paint(f" {seconds} s", "dim") if seconds else ""
            rows.append(f"{self._glyphs.sign('running')} {self._waits_for}{elapsed}")
            if self._thought:
                last = to_one_line(self._thought.strip().rpartition("\n")[2])
                rows.append(self._glyphs.paint(f"{_BODY}{last}", "dim"))
        return [truncate_painted(row, width) for row in rows[-_MAX_LIVE_ROWS:]]

    # Events

    def _track(self, event: ToolEvent) -> None:
        """Follows a call for its live rows, and for the line of its result."""
        call_id = event.tool_call_id
        match event:
            case ToolCallStart():
                self._arguments[call_id] = event.args
                self._begin_call(call_id, event.label, event.args)
            case ToolCallRunning():
                self._begin_call(call_id, event.label, self._arguments.get(call_id))
            case ToolCallUpdate():
                self._running.add_output(call_id, event.output or "")
            case ToolCallPermissionGranted():
                self._granted[call_id] = describe_granted(event.permission_request, event.answer)
            case PermissionEvent() | ToolCallQuestionRequired():
                self._running.end(call_id)  # it waits for a person
            case ChangeEvent():
                self._changes[call_id] = event.change
            case _:
                pass

    def _begin_call(self, call_id: str, name: str, args: object) -> None:
        self._end_words()
        self._written_call = ""
        if self._glyphs.plain and name == "exec" and call_id not in self._announced:
            self._announced.add(call_id)  # no live row shows it
            self._write([render_running_line(name, args, self._sized_glyphs())])
        self._running.begin(call_id, render_running_line(name, args, self._sized_glyphs()))

    def _write_words(self, event: Text) -> None:
        if event.message_id != self._message:
            self._end_words()
            self._message = event.message_id
        self._waits_for = self._thought = ""
        if rows := self._markdown.feed(event.text, self._words.width):
            self._words.write(rows)

    def _think(self, text: str) -> None:
        if self._verbose:
            *whole, self._thought = (self._thought + text).split("\n")
            self._write([self._glyphs.paint(f"  {to_one_line(line)}", "dim") for line in whole])
        self._thought = (self._thought if self._verbose else self._thought + text)[-_MAX_THOUGHT_CHARS:]
        if not self._waits_for:
            self._await("thinking")

    def _show_result(self, result: ToolResult[Any], label: str) -> None:
        self._running.end(result.tool_call_id)
        args = self._arguments.pop(result.tool_call_id, None)
        change = self._changes.pop(result.tool_call_id, None)
        if not self._running:
            self._await("waiting for the model")
        if result.name == "display" and result.ok:
            return  # its event showed it
        card = _build_card(result, args, label, change)
        self.cards.append(card)
        rows = self._render_result(result, args, label, change) if self._detail != "warnings" else []
        rows += self._render_excerpt(result, card) if self._detail == "all" else []
        self._write(rows)
        self._write_signed([f"{self._glyphs.sign('asks')} {to_one_line(text)}" for text in result.warnings])

    def _render_result(self, result: ToolResult[Any], args: object, label: str, change: ChangeSet | None) -> list[str]:
        """The line of a call. Below it, why nobody was asked, or what needs no approval from now on."""
        error = result.error
        is_own = result.name == "undo" or result.tool_call_id == self.own_call
        if error is not None and is_own and error.code != "CANCELLED":
            return self._render_own_error(result.name, error, args)
        rows = render_call_lines(result, args, self._sized_glyphs(), label, change)
        rows = [to_slash_commands(row) if self._in_session else row for row in rows]
        rows = rows if result.ok or self._detail == "lines" else self._wrap(rows[0], 2)
        if result.meta.answered_by is not None:
            rows.append(f"{_BODY}{describe_unasked(result.meta.answered_by, changed=result.meta.undo is not None)}")
        if granted := self._granted.pop(result.tool_call_id, ""):
            rows += self._wrap(f"{_BODY}{granted}", len(_BODY))
        return rows

    def _render_own_error(self, tool: str, error: ErrorInfo, args: object) -> list[str]:
        """The error of a call that the person made."""
        text, then = describe_tool_error(error, tool, args)
        then = "handrail log --changes" if tool == "undo" else then
        paint, width = self._glyphs.paint, self._output.width
        return render_error(to_one_line(text), to_one_line(then), paint, width, in_session=self._in_session)

    def _render_excerpt(self, result: ToolResult[Any], card: Card) -> list[str]:
        """The first changed lines of a file, the last output of a failed command, or the list of steps."""
        width = self._output.width
        if result.name == "todo" and result.ok:
            return _render_todo(card.args, self._glyphs)
        if card.diff and result.name != "exec":
            lines = [line for line in iterate_diff(card.diff) if line.kind in {"added", "removed"}]
            rows = [self._render_changed_line(line) for line in lines[:_EXCERPT_LINES]]
            left = len(lines) - len(rows)
            where = "ctrl+o" if self._in_session else f"handrail diff {card.number or ''}".rstrip()
            more = [self._glyphs.paint(f"{_BODY}… {left} more changed lines: {where}", "dim")] if left else []
            return [*rows, *more]
        data = to_dict(result.data)
        is_own = result.tool_call_id == self.own_call
        if result.name == "exec" and not is_own and (not result.ok or data.get("exitCode")):
            lines = [line for line in str(data.get("output") or "").splitlines() if line.strip()][-_EXCERPT_LINES:]
            return [
                self._glyphs.paint(truncate_painted(f"{_BODY}{to_one_line(one)}", width - 1), "dim") for one in lines
            ]
        return []

    def _render_changed_line(self, line: DiffLine) -> str:
        number, sign, style = (line.old, "-", "removed") if line.kind == "removed" else (line.new, "+", "added")
        text = to_one_line(line.text.removesuffix("\n").expandtabs(4))
        return self._glyphs.paint(truncate_painted(f"{number:>6} {sign} {text}", self._output.width - 1), style)

    def _render_display(self, event: Display) -> list[str]:
        """A display with its thought and its evidence."""
        says = self._glyphs.says
        rows = render_display(event, self._glyphs)
        if self._detail != "all":
            return rows
        if event.thought:
            rows.append(self._glyphs.paint(f"{says}   why: {to_one_line(event.thought)}", "dim"))
        rows += [self._glyphs.paint(f"{says}   see: {to_one_line(one)}", "dim") for one in event.evidence]
        return rows

    # Rows

    def _write(self, rows: list[str]) -> None:
        self._end_words()
        if rows:
            self._output.write(rows)

    def _write_signed(self, lines: list[str]) -> None:
        self._write([row for line in lines for row in self._wrap(line, 2)])

    def _wrap(self, line: str, indent: int) -> list[str]:
        return wrap_line(line, self._output.width, indent).splitlines()

    def _end_words(self) -> None:
        if rows := self._markdown.end(self._words.width):
            self._words.write(rows)

    def _await(self, what: str) -> None:
        if what != self._waits_for:
            self._waits_for, self._waits_since = what, time.monotonic()

    def _sized_glyphs(self) -> Glyphs:
        return msgspec.structs.replace(self._glyphs, width=max(40, min(160, self._output.width)))


def _build_card(result: ToolResult[Any], args: object, label: str, change: ChangeSet | None) -> Card:
    data = to_dict(result.data)
    output = data.get("output") if result.name == "exec" else None
    return Card(
        title=to_one_line(f"{label or result.name}: {result.summary}"),
        args=args,
        output=str(output or result.content)[:_MAX_CARD_CHARS],
        diff=str(data.get("diff") or "")[:_MAX_CARD_CHARS],
        number=change.number if change is not None else None,
    )


def _render_todo(args: object, glyphs: Glyphs) -> list[str]:
    """The steps of the model, each with its state in a sign."""
    given = cast("dict[str, Any]", args).get("items") if isinstance(args, dict) else None
    items = [cast("dict[str, Any]", one) for one in cast("list[Any]", given or []) if isinstance(one, dict)]
    signs = {"done": glyphs.ok, "active": glyphs.running}
    rows = [
        f"{_BODY}{signs.get(str(one.get('status')), glyphs.info)} {to_one_line(str(one.get('text', '')))}"
        for one in items
    ]
    left = len(rows) - _MAX_TODO_LINES
    return [*rows[:_MAX_TODO_LINES], *([f"{_BODY}… {left} more"] if left > 0 else [])]
