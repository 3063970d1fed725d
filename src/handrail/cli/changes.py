"""The change sets of a workspace, as a table."""

from argparse import Namespace

from handrail.cli.coverage import of_record
from handrail.cli.event_row import when
from handrail.cli.exits import FAILED, OK
from handrail.cli.output import answer, answer_json, can_show, cut, note, table, warn
from handrail.cli.place import workspace_of
from handrail.cli.preferences import settings_for
from handrail.protocol.change import ChangeRecord
from handrail.protocol.error import ToolError
from handrail.protocol.wire import encode
from handrail.rail import Handrail


def opened(options: Namespace) -> Handrail:
    """The workspace with its session cli."""
    return Handrail(workspace_of(options), session="cli", settings=settings_for(options, None))


def refused(options: Namespace, command: str, error: ToolError) -> int:
    """Says why not."""
    if options.json:
        told = {"code": error.code, "message": error.message, "details": error.details}
        answer_json(encode({"schema": f"handrail.{command}/1", "error": told}))
    else:
        warn(f"{error.code}: {error.message}")
    return FAILED


def print_changes(options: Namespace) -> int:
    """Lists what was changed, the latest first."""
    with opened(options) as rail:
        found = rail.changes(options.limit)
    if options.json:
        answer_json(encode({"schema": "handrail.log/1", "changes": found}))
    elif found:
        answer(table([("", "undo", "time", "session", "what"), *map(_row, found)]))
    else:
        note("nothing changed yet")
    return OK


def _row(record: ChangeRecord) -> tuple[str, str, str, str, str]:
    marks = ("●", "○") if can_show("●○") else ("*", "-")
    return marks[not record.in_effect], str(record.number), when(record.time), record.session_id, _what(record)


def _what(record: ChangeRecord) -> str:
    added = sum(change.added or 0 for change in record.changes)
    removed = sum(change.removed or 0 for change in record.changes)
    undone = f" (undone by {record.undone_by})" if record.undone_by is not None else ""
    gone = "" if record.undoable else " (too old to undo)"
    minus = "−" if can_show("−") else "-"
    open_ends = f" ({of_record(record)})" if record.not_covered else ""
    return f"{cut(record.summary)} +{added} {minus}{removed}{undone}{gone}{open_ends}"
