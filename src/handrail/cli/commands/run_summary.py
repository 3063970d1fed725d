"""Sums up a run."""

from handrail.agent.turn import Turn
from handrail.cli.commands.run_view import Glyphs, format_rounded_seconds
from handrail.cli.exits import FAILED, INFRASTRUCTURE, INTERRUPTED, LIMIT, OK, WAITING
from handrail.cli.output import print_note, warn
from handrail.cli.permission import describe_answer_commands, render_request_text
from handrail.protocol.events import (
    ChangeEvent,
    End,
    Error,
    Event,
    ToolCallEnd,
    ToolCallError,
    ToolCallPermissionGranted,
    Usage,
    User,
)
from handrail.protocol.records import ProcessRecord
from handrail.protocol.results import ToolResult
from handrail.protocol.text import to_one_line, truncate

# § [cli.running.tally] What a turn came to, counted from its events.

_DENIED = frozenset({"POLICY_DENIED", "PERMISSION_DENIED", "OUTSIDE_WORKSPACE"})


class Tally:
    """Counts the events of a turn; each is seen once. A prompt begins another turn."""

    def __init__(self) -> None:
        self.events = 0
        self.ended = False
        """Whether the turn's end was among them."""
        self._begin()

    def _begin(self) -> None:
        self.calls = self.kept = self.denied = 0
        self.input_tokens = self.output_tokens = 0
        self.cost: float | None = None
        self.files: dict[str, tuple[int, int]] = {}
        """Lines that came and went, by path."""
        self.not_covered: list[str] = []
        self.undoable = False
        """Whether there is something that can be undone."""

    def add(self, event: Event) -> None:
        """Takes one event into account."""
        self.events += 1
        self.ended |= isinstance(event, End | Error)
        self.preload(event)

    def preload(self, event: Event) -> None:
        """The same for what happened in this turn before anybody looked."""
        match event:
            case User():
                self._begin()
            case ToolCallEnd() | ToolCallError():
                self._add_call(event.result)
            case ToolCallPermissionGranted():
                self.kept += 1
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
        self.denied += result.error is not None and result.error.code in _DENIED
        if result.meta.sandbox is not None and not result.meta.sandbox.not_covered:
            from handrail.cli.format import describe_result_gap  # noqa: PLC0415  only commands have something to say

            told = describe_result_gap(result)
            self._not_covered(told.removeprefix("not covered by undo: ") if told else "")
        elif result.meta.sandbox is not None:
            for text in result.meta.sandbox.not_covered:
                self._not_covered(text)

    def _add_change(self, event: ChangeEvent) -> None:
        self.undoable |= event.change.undoable
        for text in event.change.not_covered:
            self._not_covered(text)
        for change in (one for one in event.change.changes if one.kind != "folder"):
            added, removed = self.files.get(change.path, (0, 0))
            self.files[change.path] = (added + (change.added or 0), removed + (change.removed or 0))

    def _not_covered(self, text: str) -> None:
        if text and text not in self.not_covered:
            self.not_covered.append(text)


# § [cli.running.ending] How a turn ended: the lines for the person, and the exit code.

_EXITS = {"done": OK, "cancelled": INTERRUPTED, "limit": LIMIT, "parked": WAITING, "question": WAITING}
_ERRORS = {
    "UNAVAILABLE": INFRASTRUCTURE,
    "NOT_FOUND": INFRASTRUCTURE,
    "SANDBOX_UNAVAILABLE": INFRASTRUCTURE,
    "LIMIT_EXCEEDED": LIMIT,
    "CANCELLED": INTERRUPTED,
}
_WORDS = {
    "done": "Done",
    "cancelled": "Stopped",
    "limit": "Stopped at a limit",
    "parked": "Waits for a yes",
    "question": "Waits for your reply",
    "error": "Failed",
}


def get_turn_exit_code(turn: Turn) -> int:
    """What the exit code says about a turn."""
    return _EXITS[turn.reason] if turn.reason != "error" else _ERRORS.get(turn.code or "", FAILED)


def render_ending(
    turn: Turn, tally: Tally, took: float, processes: tuple[ProcessRecord, ...], form: Glyphs, *, here: str
) -> list[str]:
    """What the turn was, what it did to files, what of that undo does not cover, and what still runs. `here`: how a
    command is told which workspace is meant, where it is not the current folder."""
    return [
        form.between.join([_WORDS[turn.reason], format_rounded_seconds(took), *_counts(tally, form)]),
        *_files(tally, form, here),
        *_not_undoable(tally),
        *_running(processes),
    ]


def _counts(tally: Tally, form: Glyphs) -> list[str]:
    calls = f"{tally.calls} {'call' if tally.calls == 1 else 'calls'}, {tally.kept} kept, {tally.denied} denied"
    facts = [calls]
    if tally.input_tokens or tally.output_tokens:
        facts.append(f"{_short(tally.input_tokens)}{form.to}{_short(tally.output_tokens)} tokens")
    if tally.cost is not None:
        facts.append(f"${tally.cost:.2f}" if tally.cost >= 0.01 else f"${tally.cost:.4f}")
    return facts


def _files(tally: Tally, form: Glyphs, here: str) -> list[str]:
    if not tally.files:
        return []
    added = sum(lines[0] for lines in tally.files.values())
    removed = sum(lines[1] for lines in tally.files.values())
    files = f"{len(tally.files)} {'file' if len(tally.files) == 1 else 'files'} changed +{added} {form.minus}{removed}"
    if not tally.undoable:
        return [f"  {files}"]
    return [f"  {files}      to see it: handrail diff --turn{here}      to take it back: handrail undo --turn{here}"]


def _not_undoable(tally: Tally) -> list[str]:
    if tally.not_covered:
        return [f"  Not undoable: {'; '.join(map(to_one_line, tally.not_covered))}"]
    return ["  Not undoable: nothing"] if tally.files else []


def _running(processes: tuple[ProcessRecord, ...]) -> list[str]:
    running = [one for one in processes if one.state == "running"]
    told = ", ".join(f"{one.id[:9]} {truncate(to_one_line(one.command), 60)}" for one in running)
    if not running:
        return []
    uncovered = "what goes on in the background is not covered by undo"
    return [f"  Still running: {told} ({uncovered})      to end it: handrail processes stop {running[0].id[:9]}"]


def _short(number: int) -> str:
    if number < 1_000:
        return str(number)
    return f"{number / 1e3:.1f}k" if number < 1_000_000 else f"{number / 1e6:.1f}M"


# § [cli.running.waiting] What waits for a person, where nobody is asked: what it is, and how to answer it.


def print_waiting(turn: Turn, resume: str) -> None:
    """The requests with their previews, the questions with their choices, and what goes on afterwards."""
    for request in turn.requests:
        print_note(render_request_text(request).rstrip())
        warn(describe_answer_commands(request))
    for question in turn.questions:
        warn(f"? {to_one_line(question.question)}")
        for number, option in enumerate(question.options, 1):
            warn(f"{number:>3}  {to_one_line(option)}")
        warn(f"To reply: {resume} {'NUMBER-OR-TEXT' if question.options else 'TEXT'}")
    if turn.requests:
        warn(f"Then go on: {resume}")
