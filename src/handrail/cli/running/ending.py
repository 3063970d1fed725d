"""How a turn ended: the lines for the person, and the exit code."""

from handrail.agent.turn import Turn
from handrail.cli.exits import FAILED, INFRASTRUCTURE, INTERRUPTED, LIMIT, OK, WAITING
from handrail.cli.running.form import Glyphs
from handrail.cli.running.lines import format_rounded_seconds
from handrail.cli.running.tally import Tally
from handrail.protocol.records import ProcessRecord
from handrail.protocol.text import to_one_line, truncate

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
