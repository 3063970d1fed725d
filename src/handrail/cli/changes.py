"""The change sets of a workspace, as a table."""

from argparse import Namespace

from handrail.api import Handrail
from handrail.cli.coverage import describe_record_gap
from handrail.cli.event_row import format_time
from handrail.cli.exits import FAILED, OK
from handrail.cli.output import can_show, print_json, print_note, print_out, render_table, warn
from handrail.cli.place import resolve_workspace
from handrail.cli.preferences import load_effective_settings
from handrail.protocol.changes import ChangeRecord
from handrail.protocol.errors import ToolError
from handrail.protocol.text import truncate
from handrail.protocol.wire import encode


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
