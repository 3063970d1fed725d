"""What became of a call that was cut off: its change was made, or nothing was changed, or nobody can know."""

import os
from typing import TYPE_CHECKING

from handrail.changes.recorder import TAKEN_BACK
from handrail.protocol.change import ChangeSet
from handrail.protocol.error import StoreError, ToolError
from handrail.runtime.closing import files_of
from handrail.runtime.session import Flight, Session
from handrail.tools.marks import Whole, encode_mark
from handrail.workspace.errors import clipped

if TYPE_CHECKING:
    from handrail.store.change_log import Entry

BY_PERSON = "person.asked"
"""The rule of what a person did: no tool that a model or a third party brings can have it."""
_NOTHING = "Nothing was changed."
_UNKNOWN = "What it did is not known; look before you repeat it."


def what_became(session: Session, flight: Flight) -> str:
    """Settles what the call left half done; the sentence that says what it did."""
    if _only_looked(flight):
        return _NOTHING
    if not _changes_only_files(flight):
        return _of_command(session, flight)
    call_id = flight.call.tool_call_id
    try:
        session.recorder.settle(call_id)
        entry = session.recorder.made_by(call_id)
    except (StoreError, ToolError):
        return _UNKNOWN
    if entry is None:
        return f"{_NOTHING}{_sent(session, flight)}"
    if entry.state != "done" or not entry.body.certain:
        return _UNKNOWN
    if flight.facts.command is None and flight.decision.rule != BY_PERSON:
        _mark_seen(session, entry)
    made = f"Its change was made: {_told(flight, entry)}."
    return f"{made}{_sent(session, flight)}"


def _mark_seen(session: Session, entry: "Entry") -> None:
    """The session knows what its own tool wrote, also where the call did not come to say so."""
    for step in entry.body.steps:
        if step.after is not None and step.after.kind == "file":
            session.journal.mark_seen(os.fsdecode(step.path), encode_mark(Whole(step.after.hash)))


def _of_command(session: Session, flight: Flight) -> str:
    """Of a command that ran on the files themselves there may be a snapshot from before: it tells what to take back."""
    if flight.facts.command is None:
        return _UNKNOWN
    call_id = flight.call.tool_call_id
    try:
        session.recorder.settle(f"{call_id}{TAKEN_BACK}")
        session.recorder.settle(call_id)
        entry = session.recorder.made_by(call_id)
    except (StoreError, ToolError, OSError):
        return _UNKNOWN
    if entry is None or entry.state != "done" or not entry.body.changes:
        return _UNKNOWN
    if entry.undone_by is not None:
        return f"What it changed was taken back by {entry.undone_by}; look before you repeat it."
    return f"As far as is known it changed {_told(flight, entry)}; look before you repeat it."


def _told(flight: Flight, entry: "Entry") -> str:
    """The files of a change that was made, which the result then has too."""
    body = entry.body
    flight.made = ChangeSet(
        changes=body.changes,
        number=entry.number,
        undoable=body.undoable,
        undoes=body.undoes,
        not_covered=body.not_covered,
    )
    files = files_of(flight.made)
    more = f" and {len(files) - 3} more" if len(files) > 3 else ""
    undo = f" (undo {entry.number})" if body.undoable else ""
    return f"{', '.join(map(clipped, files[:3]))}{more}{undo}"


def _sent(session: Session, flight: Flight) -> str:
    """What a layer does not hold back."""
    if not session.journal.has_reached(flight.call.tool_call_id):
        return ""
    return " What it sent to other hosts by then was sent: look before you repeat it."


def _changes_only_files(flight: Flight) -> bool:
    """Whether all that the call could have done is in the change log."""
    spec = flight.tool.spec
    by_tool = bool(spec.name) and spec.category == "builtin" and spec.side_effects == ("files",)
    return by_tool or _is_layered(flight) or flight.decision.rule == BY_PERSON


def _is_layered(flight: Flight) -> bool:
    """Whether it was a command whose changes go into a layer, which is gone with it unless they were kept."""
    command = flight.facts.command
    return command is not None and command.layered


def _only_looked(flight: Flight) -> bool:
    """Whether it was a command that could change nothing, and the sandbox saw to it."""
    command = flight.facts.command
    if command is None or command.tier == 0:
        return False
    from handrail.policy.confinement import runnable  # noqa: PLC0415  tables that only commands need

    return runnable(command.text, command.cwd, command.there).proven
