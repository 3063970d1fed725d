"""What became of a call that was cut off: its change was made, or nothing was changed, or nobody can know."""

import os
from typing import TYPE_CHECKING

from handrail.changes.recorder import UNDO_ID_SUFFIX
from handrail.protocol.changes import ChangeSet
from handrail.protocol.errors import StoreError, ToolError
from handrail.runtime.closing import list_changed_files
from handrail.runtime.session import PendingCall, Session
from handrail.tools.marks import WholeFileMark, encode_mark
from handrail.workspace.errors import clip_path

if TYPE_CHECKING:
    from handrail.store.change_log import LoggedChangeSet

BY_PERSON = "person.asked"
"""The rule of what a person did: no tool that a model or a third party brings can have it."""
_NOTHING_CHANGED = "Nothing was changed."
_UNKNOWN = "What it did is not known; look before you repeat it."


def describe_interrupted(session: Session, pending: PendingCall) -> str:
    """Settles what the call left half done; the sentence that says what it did."""
    if _only_looked(pending):
        return _NOTHING_CHANGED
    if not _changes_only_files(pending):
        return _of_command(session, pending)
    call_id = pending.call.tool_call_id
    try:
        session.recorder.settle(call_id)
        entry = session.recorder.made_by(call_id)
    except (StoreError, ToolError):
        return _UNKNOWN
    if entry is None:
        return f"{_NOTHING_CHANGED}{_sent(session, pending)}"
    if entry.state != "done" or not entry.body.certain:
        return _UNKNOWN
    if pending.facts.command is None and pending.decision.rule != BY_PERSON:
        _mark_seen(session, entry)
    made = f"Its change was made: {_told(pending, entry)}."
    return f"{made}{_sent(session, pending)}"


def _mark_seen(session: Session, entry: "LoggedChangeSet") -> None:
    """The session knows what its own tool wrote, also where the call did not come to say so."""
    for step in entry.body.steps:
        if step.after is not None and step.after.kind == "file":
            session.journal.set_mark(os.fsdecode(step.path), encode_mark(WholeFileMark(step.after.hash)))


def _of_command(session: Session, pending: PendingCall) -> str:
    """Of a command that ran on the files themselves there may be a snapshot from before: it tells what to take back."""
    if pending.facts.command is None:
        return _UNKNOWN
    call_id = pending.call.tool_call_id
    try:
        session.recorder.settle(f"{call_id}{UNDO_ID_SUFFIX}")
        session.recorder.settle(call_id)
        entry = session.recorder.made_by(call_id)
    except (StoreError, ToolError, OSError):
        return _UNKNOWN
    if entry is None or entry.state != "done" or not entry.body.changes:
        return _UNKNOWN
    if entry.undone_by is not None:
        return f"What it changed was taken back by {entry.undone_by}; look before you repeat it."
    return f"As far as is known it changed {_told(pending, entry)}; look before you repeat it."


def _told(pending: PendingCall, entry: "LoggedChangeSet") -> str:
    """The files of a change that was made, which the result then has too."""
    body = entry.body
    pending.change_set = ChangeSet(
        changes=body.changes,
        number=entry.number,
        undoable=body.undoable,
        undoes=body.undoes,
        not_covered=body.not_covered,
    )
    files = list_changed_files(pending.change_set)
    more = f" and {len(files) - 3} more" if len(files) > 3 else ""
    undo = f" (undo {entry.number})" if body.undoable else ""
    return f"{', '.join(map(clip_path, files[:3]))}{more}{undo}"


def _sent(session: Session, pending: PendingCall) -> str:
    """What an overlay does not hold back."""
    if not session.journal.has_reached(pending.call.tool_call_id):
        return ""
    return " What it sent to other hosts by then was sent: look before you repeat it."


def _changes_only_files(pending: PendingCall) -> bool:
    """Whether all that the call could have done is in the change log."""
    spec = pending.tool.spec
    by_tool = bool(spec.name) and spec.category == "builtin" and spec.side_effects == ("files",)
    return by_tool or _is_layered(pending) or pending.decision.rule == BY_PERSON


def _is_layered(pending: PendingCall) -> bool:
    """Whether it was a command whose changes go into an overlay, which is gone with it unless they were committed."""
    command = pending.facts.command
    return command is not None and command.has_overlay


def _only_looked(pending: PendingCall) -> bool:
    """Whether it was a command that could change nothing, and the sandbox saw to it."""
    command = pending.facts.command
    if command is None or command.tier == 0:
        return False
    from handrail.policy.parse import parse_fact  # noqa: PLC0415  tables that only commands need

    return parse_fact(command).is_read_only
