"""undo: takes changes back."""

from argparse import Namespace
from collections.abc import Sequence
from typing import Any

from handrail.cli.changes import opened, refused
from handrail.cli.coverage import of_changes
from handrail.cli.exits import FAILED, OK
from handrail.cli.output import answer, answer_json, note, warn
from handrail.protocol.error import ToolError
from handrail.protocol.result import ToolResult
from handrail.protocol.wire import encode
from handrail.runtime.person import Resolve


def run(options: Namespace) -> int:
    """Takes back what was asked for, and shows what that changed."""
    number, turn, session, chosen = options.number, options.turn, options.session, resolve(options)
    with opened(options) as rail:
        if options.preview:
            try:
                return _print_preview(options, rail.preview_undo(number, turn=turn, session=session, resolve=chosen))
            except ToolError as error:
                return refused(options, "undo", error)
        result = rail.undo(number, turn=turn, session=session, resolve=chosen)
        open_ends = of_changes(rail, result.data.undone) if result.data is not None else []
    return show(options, "undo", result, "bring it back: handrail redo", open_ends)


def resolve(options: Namespace) -> Resolve | None:
    """What to do where a file was changed since."""
    return "later" if options.with_later else "lines" if options.lines else None


def show(
    options: Namespace, command: str, result: ToolResult[Any], next_step: str, open_ends: Sequence[str] = ()
) -> int:
    """Prints the result of an undo or a redo, what of it is not taken back with the files, and how to turn back."""
    if options.json:
        answer_json(encode({"schema": f"handrail.{command}/1", "result": result, "notCovered": open_ends}))
    elif result.error is None:
        answer(result.content)
        for text in result.warnings:
            warn(f"warning: {text}")
        for text in open_ends:
            warn(text)
        note(f"to {next_step}")
    else:
        warn(f"{result.error.code}: {result.error.message}")
    return OK if result.error is None else FAILED


def _print_preview(options: Namespace, text: str) -> int:
    if options.json:
        answer_json(encode({"schema": "handrail.undo/1", "preview": text}))
    else:
        answer(text)
        note("nothing was changed")
    return OK
