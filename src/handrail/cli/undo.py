"""undo: undoes changes."""

from argparse import Namespace
from collections.abc import Sequence
from typing import Any

from handrail.cli.changes import open_cli_session, print_refusal
from handrail.cli.coverage import list_change_gaps
from handrail.cli.exits import FAILED, OK
from handrail.cli.output import print_json, print_note, print_out, warn
from handrail.protocol.errors import ToolError
from handrail.protocol.results import ToolResult
from handrail.protocol.wire import encode
from handrail.runtime.undo import Resolve


def run(options: Namespace) -> int:
    """Undoes what was asked for, and shows what that changed."""
    number, turn, session, chosen = options.number, options.turn, options.session, choose_conflict_action(options)
    with open_cli_session(options) as rail:
        if options.preview:
            try:
                return _print_preview(options, rail.preview_undo(number, turn=turn, session=session, resolve=chosen))
            except ToolError as error:
                return print_refusal(options, "undo", error)
        result = rail.undo(number, turn=turn, session=session, resolve=chosen)
        open_ends = list_change_gaps(rail, result.data.undone) if result.data is not None else []
    return show(options, "undo", result, "bring it back: handrail redo", open_ends)


def choose_conflict_action(options: Namespace) -> Resolve | None:
    """What to do where a file was changed since."""
    return "later" if options.with_later else "lines" if options.lines else None


def show(
    options: Namespace, command: str, result: ToolResult[Any], next_step: str, open_ends: Sequence[str] = ()
) -> int:
    """Prints the result of an undo or a redo, what of it undo does not cover, and how to reverse it."""
    if options.json:
        print_json(encode({"schema": f"handrail.{command}/1", "result": result, "notCovered": open_ends}))
    elif result.error is None:
        print_out(result.content)
        for text in result.warnings:
            warn(f"warning: {text}")
        for text in open_ends:
            warn(text)
        print_note(f"to {next_step}")
    else:
        warn(f"{result.error.code}: {result.error.message}")
    return OK if result.error is None else FAILED


def _print_preview(options: Namespace, text: str) -> int:
    if options.json:
        print_json(encode({"schema": "handrail.undo/1", "preview": text}))
    else:
        print_out(text)
        print_note("nothing was changed")
    return OK
