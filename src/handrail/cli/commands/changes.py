"""handrail changes, diff, undo and redo."""

from argparse import Namespace
from collections.abc import Sequence
from typing import Any

from handrail.api import Handrail
from handrail.cli.context import load_effective_settings, resolve_workspace
from handrail.cli.exits import FAILED, OK
from handrail.cli.format import describe_record_gap, format_time, list_change_gaps
from handrail.cli.output import can_show, print_json, print_note, print_out, render_table, warn
from handrail.protocol.changes import ChangeRecord
from handrail.protocol.errors import ToolError
from handrail.protocol.results import ToolResult
from handrail.protocol.text import truncate
from handrail.protocol.wire import encode
from handrail.runtime.undo import Resolve

# § [cli.changes] The change sets of a workspace, as a table.


def open_cli_session(options: Namespace) -> Handrail:
    """The workspace with its session cli."""
    return Handrail(resolve_workspace(options), session="cli", settings=load_effective_settings(options, None))


def print_refusal(options: Namespace, command: str, error: ToolError) -> int:
    """Says why not."""
    if options.json:
        told = {"code": error.code, "message": error.message, "details": error.details}
        print_json(encode({"schema": f"handrail.{command}/1", "error": told}))
    else:
        warn(f"{error.code}: {error.message}")
    return FAILED


def print_changes(options: Namespace) -> int:
    """Lists what was changed, the latest first."""
    with open_cli_session(options) as rail:
        found = rail.changes(options.limit)
    if options.json:
        print_json(encode({"schema": "handrail.log/1", "changes": found}))
    elif found:
        print_out(render_table([("", "undo", "time", "session", "what"), *map(_row, found)]))
    else:
        print_note("nothing changed yet")
    return OK


def _row(record: ChangeRecord) -> tuple[str, str, str, str, str]:
    marks = ("●", "○") if can_show("●○") else ("*", "-")
    return marks[not record.in_effect], str(record.number), format_time(record.time), record.session_id, _what(record)


def _what(record: ChangeRecord) -> str:
    added = sum(change.added or 0 for change in record.changes)
    removed = sum(change.removed or 0 for change in record.changes)
    undone = f" (undone by {record.undone_by})" if record.undone_by is not None else ""
    gone = "" if record.undoable else " (too old to undo)"
    minus = "−" if can_show("−") else "-"
    open_ends = f" ({describe_record_gap(record)})" if record.not_covered else ""
    return f"{truncate(record.summary, 100)} +{added} {minus}{removed}{undone}{gone}{open_ends}"


# § [cli.diff] diff: what a change set did to files, or those of a turn.


def run_diff(options: Namespace) -> int:
    """Prints the differences."""
    try:
        with open_cli_session(options) as rail:
            if options.turn:
                numbers, text = rail.turn_diff()
            else:
                number, text = rail.numbered_diff(options.number)
                numbers = (number,)
            open_ends = list_change_gaps(rail, numbers)
    except ToolError as error:
        return print_refusal(options, "diff", error)
    if options.json:
        which = {"numbers": numbers} if options.turn else {"number": numbers[0]}
        print_json(encode({"schema": "handrail.diff/1", **which, "diff": text, "notCovered": open_ends}))
        return OK
    print_out(text)
    for line in open_ends:
        warn(line)
    if any(line.startswith("… ") for line in text.splitlines()):
        print_note("the diff is cut where it says so: it is too long to be kept whole")
    return OK


# § [cli.undo] undo: undoes changes.


def run_undo(options: Namespace) -> int:
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


# § [cli.redo] redo: undoes the last undo.


def run_redo(options: Namespace) -> int:
    """Makes the changes again that the last undo took away."""
    with open_cli_session(options) as rail:
        result = rail.redo(resolve=choose_conflict_action(options))
    return show(options, "redo", result, "take it back: handrail undo")
