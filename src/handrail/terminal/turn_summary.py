"""The summary of a turn: counts, changed files, gaps of undo, running processes."""

from handrail.protocol.events import (
    ChangeEvent,
    End,
    Error,
    Event,
    ToolCallEnd,
    ToolCallError,
    ToolCallPermissionDenied,
    ToolCallPermissionGranted,
    Usage,
    User,
)
from handrail.protocol.records import ProcessRecord
from handrail.protocol.results import ToolResult
from handrail.protocol.text import measure_width, to_one_line, truncate
from handrail.terminal.call_lines import list_undo_gaps
from handrail.terminal.glyphs import Glyphs
from handrail.terminal.screen import format_seconds

_DENIED = frozenset({"POLICY_DENIED", "PERMISSION_DENIED", "OUTSIDE_WORKSPACE"})
_WORDS = {
    "done": "Done",
    "cancelled": "Stopped",
    "limit": "Stopped at a limit",
    "parked": "Waits for approval",
    "question": "Waits for your reply",
    "error": "Failed",
}


class Tally:
    """Counts the events of a turn. A prompt begins another turn."""

    def __init__(self) -> None:
        self.events = 0
        self.ended = False
        """Whether the turn has ended."""
        self._begin()

    def _begin(self) -> None:
        self.calls = self.kept = self.denied = 0
        self._unanswered: set[str] = set()
        self.input_tokens = self.output_tokens = 0
        self.cost: float | None = None
        self.files: dict[str, tuple[int, int]] = {}
        """Added and removed lines by path."""
        self.not_covered: list[str] = []
        self.undoable = False
        self.numbers: list[int] = []
        """Of the change sets."""

    def add(self, event: Event) -> None:
        self.events += 1
        self.ended |= isinstance(event, End | Error)
        self.preload(event)

    def preload(self, event: Event) -> None:
        """Counts an event from before this process."""
        match event:
            case User():
                self._begin()
            case ToolCallEnd() | ToolCallError():
                self._add_call(event.result)
            case ToolCallPermissionGranted():
                self.kept += event.answer.by is None
            case ToolCallPermissionDenied() if event.answer.by is not None:
                self._unanswered.add(event.tool_call_id)
            case ChangeEvent():
                self._add_change(event)
            case Usage():
                self.input_tokens += event.input_tokens
                self.output_tokens += event.output_tokens
                self.cost = self.cost if event.cost is None else (self.cost or 0.0) + event.cost
            case _:
                pass

    def _add_call(self, result: ToolResult[object]) -> None:
        self.calls += 1
        is_denied = result.error is not None and result.error.code in _DENIED
        self.denied += is_denied and result.tool_call_id not in self._unanswered
        if result.meta.sandbox is not None:
            self._add_gaps(result.meta.sandbox.not_covered or list_undo_gaps(result))

    def _add_change(self, event: ChangeEvent) -> None:
        self.undoable |= event.change.undoable
        self.numbers += [] if event.change.number is None else [event.change.number]
        self._add_gaps(event.change.not_covered)
        for change in (one for one in event.change.changes if one.kind != "folder"):
            added, removed = self.files.get(change.path, (0, 0))
            self.files[change.path] = (added + (change.added or 0), removed + (change.removed or 0))

    def _add_gaps(self, gaps: tuple[str, ...]) -> None:
        self.not_covered += [text for text in gaps if text not in self.not_covered]


def render_ending(
    reason: str, tally: Tally, took: float, processes: tuple[ProcessRecord, ...], glyphs: Glyphs, *, here: str | None
) -> list[str]:
    """How the turn ended, what it changed, what undo does not cover, what still runs.

    `here`: the option for the workspace, if that is not the current folder. None: in a session with slash commands.
    """
    return [
        glyphs.between.join([_WORDS[reason], format_seconds(took), *_list_counts(tally, glyphs)]),
        *_render_files(tally, glyphs, here),
        *_render_gaps(tally),
        *_render_running(processes, "/ps" if here is None else "handrail processes"),
    ]


def _list_counts(tally: Tally, glyphs: Glyphs) -> list[str]:
    calls = f"{tally.calls} {'call' if tally.calls == 1 else 'calls'}, {tally.kept} kept, {tally.denied} denied"
    facts = [calls]
    if tally.input_tokens or tally.output_tokens:
        facts.append(f"{_format_count(tally.input_tokens)}{glyphs.to}{_format_count(tally.output_tokens)} tokens")
    if tally.cost is not None:
        facts.append(f"${tally.cost:.2f}" if tally.cost >= 0.01 else f"${tally.cost:.4f}")
    return facts


def _render_files(tally: Tally, glyphs: Glyphs, here: str | None) -> list[str]:
    if not tally.files:
        return []
    added = sum(lines[0] for lines in tally.files.values())
    removed = sum(lines[1] for lines in tally.files.values())
    files = (
        f"{len(tally.files)} {'file' if len(tally.files) == 1 else 'files'} changed +{added} {glyphs.minus}{removed}"
    )
    if not tally.undoable:
        return [f"  {files}"]
    if here is None:
        numbers = ", ".join(map(str, tally.numbers))
        done = f"{files}{glyphs.between}undo {numbers}"
        return _fit([done, "/diff turn · /undo turn · /rewind"], glyphs, " " * 6)
    return _fit([files, f"handrail diff --turn{here}", f"handrail undo --turn{here}"], glyphs, glyphs.between)


def _fit(facts: list[str], glyphs: Glyphs, between: str) -> list[str]:
    """One row, or a row for each fact: a break within a command would spoil the command."""
    row = between.join(facts)
    return [f"  {row}"] if measure_width(row) < glyphs.width - 2 else [f"  {fact}" for fact in facts]


def _render_gaps(tally: Tally) -> list[str]:
    if tally.not_covered:
        return [f"  Not undoable: {'; '.join(map(to_one_line, tally.not_covered))}"]
    return []


def _render_running(processes: tuple[ProcessRecord, ...], command: str) -> list[str]:
    running = [one for one in processes if one.state == "running"]
    listed = ", ".join(f"{one.id[:9]} {truncate(to_one_line(one.command), 60)}" for one in running)
    if not running:
        return []
    return [
        f"  Still running (not covered by undo): {listed}",
        f"  to stop it: {command} stop {running[0].id[:9]}",
    ]


def _format_count(number: int) -> str:
    if number < 1_000:
        return str(number)
    return f"{number / 1e3:.1f}k" if number < 1_000_000 else f"{number / 1e6:.1f}M"
