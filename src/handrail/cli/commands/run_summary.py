"""The end of a run: its exit code, its last lines, the next command."""

import shlex
from types import SimpleNamespace

import msgspec

from handrail.agent.turn import Turn
from handrail.cli.commands.run_setup import RunConfig, find_last_model
from handrail.cli.exits import FAILED, INFRASTRUCTURE, INTERRUPTED, LIMIT, OK, WAITING
from handrail.cli.output import print_error, print_note, warn
from handrail.cli.permission import describe_answer_commands, render_request_text
from handrail.protocol.records import ProcessRecord
from handrail.protocol.text import to_one_line
from handrail.terminal.error_text import describe_turn_failure
from handrail.terminal.glyphs import Glyphs
from handrail.terminal.turn_summary import Tally, render_ending

_EXITS = {"done": OK, "cancelled": INTERRUPTED, "limit": LIMIT, "parked": WAITING, "question": WAITING}
_ERRORS = {
    "UNAVAILABLE": INFRASTRUCTURE,
    "NOT_FOUND": INFRASTRUCTURE,
    "SANDBOX_UNAVAILABLE": INFRASTRUCTURE,
    "LIMIT_EXCEEDED": LIMIT,
    "CANCELLED": INTERRUPTED,
}


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
    again = f"handrail run -c{here}{_render_model_option(config, options, turn)}"
    if turn.reason == "error":
        print_error(describe_turn_failure(turn.message or turn.code or "it failed"), again)
    if turn.reason != "error" or outcome.tally.calls:
        for line in render_ending(turn.reason, outcome.tally, outcome.seconds, outcome.processes, glyphs, here=here):
            print_note(line)
    if turn.reason in {"cancelled", "limit"}:
        then = f"{again}{'' if turn.requests or turn.questions else ' PROMPT'}"
        print_error(describe_turn_failure(turn.message or "interrupted"), then)
    elif turn.reason in {"parked", "question"}:
        _print_waiting(turn, f"handrail run --resume {config.session}{here}")
    elif options.out is not None and turn.reason != "done":
        warn(f"{options.out} was not written.")


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
