"""The summary of a turn: its counts, its last lines, its exit code."""

import shlex
from types import SimpleNamespace

import msgspec

from handrail.agent.turn import Turn
from handrail.cli.commands.run_setup import RunConfig, find_last_model
from handrail.cli.commands.run_view import Glyphs, format_rounded_seconds
from handrail.cli.exits import FAILED, INFRASTRUCTURE, INTERRUPTED, LIMIT, OK, WAITING
from handrail.cli.format import list_undo_gaps
from handrail.cli.output import print_note, warn, warn_painted
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

_DENIED = frozenset({"POLICY_DENIED", "PERMISSION_DENIED", "OUTSIDE_WORKSPACE"})
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


class Tally:
    """Counts the events of a turn. A prompt begins another turn."""

    def __init__(self) -> None:
        self.events = 0
        self.ended = False
        """Whether the turn has ended."""
        self._begin()

    def _begin(self) -> None:
        self.calls = self.kept = self.denied = 0
        self.input_tokens = self.output_tokens = 0
        self.cost: float | None = None
        self.files: dict[str, tuple[int, int]] = {}
        """Added and removed lines by path."""
        self.not_covered: list[str] = []
        self.undoable = False

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
        if result.meta.sandbox is not None:
            self._add_gaps(result.meta.sandbox.not_covered or list_undo_gaps(result))

    def _add_change(self, event: ChangeEvent) -> None:
        self.undoable |= event.change.undoable
        self._add_gaps(event.change.not_covered)
        for change in (one for one in event.change.changes if one.kind != "folder"):
            added, removed = self.files.get(change.path, (0, 0))
            self.files[change.path] = (added + (change.added or 0), removed + (change.removed or 0))

    def _add_gaps(self, gaps: tuple[str, ...]) -> None:
        self.not_covered += [text for text in gaps if text not in self.not_covered]


class RunOutcome(msgspec.Struct, frozen=True, kw_only=True):
    """A turn that is over, or waits for a person."""

    turn: Turn
    tally: Tally
    seconds: float
    processes: tuple[ProcessRecord, ...]
    interrupted: bool


def get_turn_exit_code(turn: Turn) -> int:
    return _EXITS[turn.reason] if turn.reason != "error" else _ERRORS.get(turn.code or "", FAILED)


def print_ending(outcome: RunOutcome, config: RunConfig, options: SimpleNamespace, glyphs: Glyphs) -> None:
    """Prints the summary of a turn, and the next command."""
    turn = outcome.turn
    here = f" --workspace {shlex.quote(options.workspace)}" if options.workspace else ""
    kept = ""
    if turn.reason in {"error", "cancelled", "limit"}:
        kept = f"The session is kept: handrail run -c{here}{_render_model_option(config, options, turn)}"
    if turn.reason == "error":
        text = to_one_line(f"{_end_sentence(turn.message or turn.code or 'it failed')} {kept}")
        warn_painted(f"{glyphs.sign('failed')} {text}")
    if turn.reason != "error" or outcome.tally.calls:
        for line in render_ending(turn, outcome.tally, outcome.seconds, outcome.processes, glyphs, here=here):
            print_note(line)
    if turn.reason in {"cancelled", "limit"}:
        why = f"{to_one_line(turn.message)} " if turn.message else ""
        warn(f"{why}{kept}{'' if turn.requests or turn.questions else ' PROMPT'}")
    elif turn.reason in {"parked", "question"}:
        _print_waiting(turn, f"handrail run --resume {config.session}{here}")
    elif options.out is not None and turn.reason != "done":
        warn(f"{options.out} was not written.")


def render_ending(
    turn: Turn, tally: Tally, took: float, processes: tuple[ProcessRecord, ...], glyphs: Glyphs, *, here: str
) -> list[str]:
    """How the turn ended, what it changed, what undo does not cover, what still runs.

    `here`: the option for the workspace, if that is not the current folder.
    """
    return [
        glyphs.between.join([_WORDS[turn.reason], format_rounded_seconds(took), *_list_counts(tally, glyphs)]),
        *_render_files(tally, glyphs, here),
        *_render_gaps(tally),
        *_render_running(processes),
    ]


def _list_counts(tally: Tally, glyphs: Glyphs) -> list[str]:
    calls = f"{tally.calls} {'call' if tally.calls == 1 else 'calls'}, {tally.kept} kept, {tally.denied} denied"
    facts = [calls]
    if tally.input_tokens or tally.output_tokens:
        facts.append(f"{_format_count(tally.input_tokens)}{glyphs.to}{_format_count(tally.output_tokens)} tokens")
    if tally.cost is not None:
        facts.append(f"${tally.cost:.2f}" if tally.cost >= 0.01 else f"${tally.cost:.4f}")
    return facts


def _render_files(tally: Tally, glyphs: Glyphs, here: str) -> list[str]:
    if not tally.files:
        return []
    added = sum(lines[0] for lines in tally.files.values())
    removed = sum(lines[1] for lines in tally.files.values())
    files = (
        f"{len(tally.files)} {'file' if len(tally.files) == 1 else 'files'} changed +{added} {glyphs.minus}{removed}"
    )
    if not tally.undoable:
        return [f"  {files}"]
    return [f"  {files}      to see it: handrail diff --turn{here}      to take it back: handrail undo --turn{here}"]


def _render_gaps(tally: Tally) -> list[str]:
    if tally.not_covered:
        return [f"  Not undoable: {'; '.join(map(to_one_line, tally.not_covered))}"]
    return ["  Not undoable: nothing"] if tally.files else []


def _render_running(processes: tuple[ProcessRecord, ...]) -> list[str]:
    running = [one for one in processes if one.state == "running"]
    listed = ", ".join(f"{one.id[:9]} {truncate(to_one_line(one.command), 60)}" for one in running)
    if not running:
        return []
    uncovered = "what goes on in the background is not covered by undo"
    return [f"  Still running: {listed} ({uncovered})      to end it: handrail processes stop {running[0].id[:9]}"]


def _format_count(number: int) -> str:
    if number < 1_000:
        return str(number)
    return f"{number / 1e3:.1f}k" if number < 1_000_000 else f"{number / 1e6:.1f}M"


def _print_waiting(turn: Turn, resume: str) -> None:
    """Prints pending requests and questions, and the commands that answer them."""
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


def _render_model_option(config: RunConfig, options: SimpleNamespace, turn: Turn) -> str:
    """The option that the next run needs, if no model has answered in the session yet."""
    if turn.reason == "error" and turn.code == "NOT_FOUND":
        return " --model PROVIDER:ANOTHER"
    if not options.model or find_last_model(config.session, config.workspace) == config.model.name:
        return ""
    return f" --model {shlex.quote(options.model)}"


def _end_sentence(text: str) -> str:
    """The text with a full stop, so that something can follow."""
    line = to_one_line(text)
    return line if line.endswith((".", "!", "?", "…")) else f"{line}."
