"""`handrail diff|undo|redo`: the change sets of a workspace."""

from argparse import ArgumentParser
from collections.abc import Sequence
from types import SimpleNamespace
from typing import Any, Literal

from handrail.api import Handrail
from handrail.cli.context import load_settings_for_undo, resolve_workspace
from handrail.cli.exits import FAILED, OK
from handrail.cli.format import format_time, list_change_gaps, print_refusal, render_undo_gaps, shorten_session
from handrail.cli.output import can_show, print_diff, print_error, print_json, print_note, print_out, render_table, warn
from handrail.cli.parser import Command, add_place_options
from handrail.cli.usage import parse_number
from handrail.protocol.changes import ChangeRecord
from handrail.protocol.errors import ToolError
from handrail.protocol.results import ToolResult
from handrail.protocol.text import truncate
from handrail.protocol.wire import encode
from handrail.terminal.call_lines import describe_to_person

_KNOWN = frozenset({"NOT_FOUND", "NO_CHANGE", "CONFLICT"})


def _suggest_command(code: str) -> str:
    return "handrail log --changes" if code in _KNOWN else "handrail doctor"


def _add_diff_arguments(parser: ArgumentParser) -> None:
    which = parser.add_mutually_exclusive_group()
    which.add_argument(
        "number", metavar="N", nargs="?", type=parse_number(1), help="the change (the last that is not undone)"
    )
    which.add_argument("--turn", action="store_true", help="all changes of the last turn")
    add_place_options(parser)


def run_diff(options: SimpleNamespace) -> int:
    try:
        with open_cli_session(options) as rail:
            diff = rail.stored_diff(options.number, turn=options.turn)
            gaps = list_change_gaps(rail, diff.numbers)
    except ToolError as error:
        return print_refusal(options, "diff", error, _suggest_command(error.code))
    if options.json:
        which = {"numbers": diff.numbers} if options.turn else {"number": diff.numbers[0]}
        print_json(encode({"schema": "handrail.diff/1", **which, "diff": diff.text, "notCovered": gaps}))
        return OK
    print_diff(diff.text)
    for line in gaps:
        warn(line)
    if diff.truncated:
        print_note("the diff is too long and was cut at the marked places")
    return OK


def _add_undo_arguments(parser: ArgumentParser) -> None:
    which = parser.add_mutually_exclusive_group()
    which.add_argument(
        "number", metavar="N", nargs="?", type=parse_number(1), help="the change (the last that is not undone)"
    )
    which.add_argument("--turn", action="store_true", help="all changes of the last turn")
    which.add_argument("--session", metavar="ID", nargs="?", const="cli", help="all changes of a session (cli)")
    _add_redo_arguments(parser)
    parser.add_argument("--preview", action="store_true", help="only show the effect")


def run_undo(options: SimpleNamespace) -> int:
    number, turn, session, resolve = options.number, options.turn, options.session, _choose_resolve(options)
    with open_cli_session(options) as rail:
        if options.preview:
            try:
                return _print_preview(options, rail.preview_undo(number, turn=turn, session=session, resolve=resolve))
            except ToolError as error:
                return print_refusal(options, "undo", error, _suggest_command(error.code))
        result = rail.undo(number, turn=turn, session=session, resolve=resolve)
        gaps = list_change_gaps(rail, result.data.undone) if result.data is not None else []
    return _print_result(options, "undo", result, "redo: handrail redo", gaps)


def _add_redo_arguments(parser: ArgumentParser) -> None:
    resolve = parser.add_mutually_exclusive_group()
    resolve.add_argument("--with-later", action="store_true", help="undo later changes of the same files too")
    resolve.add_argument("--lines", action="store_true", help="undo only lines that did not change since")
    add_place_options(parser)


def run_redo(options: SimpleNamespace) -> int:
    with open_cli_session(options) as rail:
        result = rail.redo(resolve=_choose_resolve(options))
    return _print_result(options, "redo", result, "undo: handrail undo")


COMMANDS = {
    "diff": Command(
        run_diff,
        _add_diff_arguments,
        ("handrail diff --turn", "handrail diff 14 > change.patch"),
        {FAILED: "there is no such change"},
    ),
    "undo": Command(
        run_undo,
        _add_undo_arguments,
        ("handrail undo", "handrail undo 14 --with-later"),
        {FAILED: "refused; nothing was changed"},
    ),
    "redo": Command(
        run_redo,
        _add_redo_arguments,
        ("handrail redo", "handrail redo --json"),
        {FAILED: "refused; nothing was changed"},
    ),
}


def open_cli_session(options: SimpleNamespace) -> Handrail:
    return Handrail(resolve_workspace(options), session="cli", settings=load_settings_for_undo(options))


def print_changes(options: SimpleNamespace) -> int:
    """Prints the last change sets, the latest first."""
    with open_cli_session(options) as rail:
        records = rail.changes(options.limit)
    if options.json:
        print_json(encode({"schema": "handrail.log/1", "changes": records}))
    elif records:
        print_out(render_table([("", "undo", "time", "session", "what"), *map(_build_row, records)]))
    else:
        print_note("nothing changed yet")
    return OK


def _build_row(record: ChangeRecord) -> tuple[str, str, str, str, str]:
    in_effect, undone = ("●", "○") if can_show("●○") else ("*", "-")
    mark = in_effect if record.in_effect else undone
    return (
        mark,
        str(record.number),
        format_time(record.time),
        shorten_session(record.session_id),
        _describe_record(record),
    )


def _describe_record(record: ChangeRecord) -> str:
    added = sum(change.added or 0 for change in record.changes)
    removed = sum(change.removed or 0 for change in record.changes)
    undone = f" (undone by {record.undone_by})" if record.undone_by is not None else ""
    gone = "" if record.undoable else " (too old to undo)"
    minus = "−" if can_show("−") else "-"
    gaps = f" ({render_undo_gaps(record.not_covered)})" if record.not_covered else ""
    return f"{truncate(record.summary, 100)} +{added} {minus}{removed}{undone}{gone}{gaps}"


def _choose_resolve(options: SimpleNamespace) -> Literal["later", "lines"] | None:
    """Chooses what happens to a file that was changed since."""
    return "later" if options.with_later else "lines" if options.lines else None


def _print_result(
    options: SimpleNamespace, command: str, result: ToolResult[Any], next_step: str, gaps: Sequence[str] = ()
) -> int:
    if options.json:
        print_json(encode({"schema": f"handrail.{command}/1", "result": result, "notCovered": gaps}))
    elif result.error is None:
        print_diff(result.content)
        for text in result.warnings:
            warn(f"warning: {text}")
        for text in gaps:
            warn(text)
        print_note(f"to {next_step}")
    else:
        print_error(describe_to_person(result.error), _suggest_command(result.error.code))
    return OK if result.error is None else FAILED


def _print_preview(options: SimpleNamespace, text: str) -> int:
    if options.json:
        print_json(encode({"schema": "handrail.undo/1", "preview": text}))
    else:
        print_diff(text)
        print_note("nothing was changed")
    return OK
