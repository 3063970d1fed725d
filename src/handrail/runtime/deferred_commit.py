"""The deferred commit of a command that outlived its call.

Its overlay stays until a runtime commits, parks or drops the changes. Exactly one does. If that one is killed, the next
runtime of the session takes over.
"""

import fcntl
import os
from collections.abc import Generator
from contextlib import contextmanager, nullcontext
from datetime import UTC, datetime

from msgspec.structs import replace

from handrail.changes.model import CommandPreview
from handrail.changes.overlay.changes import read_git_configs
from handrail.changes.overlay.previews import delete_preview, save_preview
from handrail.changes.recorder import Recorder
from handrail.process.result import CommandResult
from handrail.process.sessions.sessions import ProcessSession
from handrail.process.sessions.store import NOTE, OverlayNote, drop_unfinished, is_settled, read_note, settle
from handrail.protocol.changes import ChangeSet
from handrail.protocol.decisions import Decision
from handrail.protocol.errors import ToolError
from handrail.protocol.events import ChangeEvent
from handrail.runtime.decide import check_arguments, judge_call_changes
from handrail.runtime.execute import build_command_context, resolve_turn
from handrail.runtime.park import park
from handrail.runtime.pending_call import Approval, PendingCall, load_answer, load_call
from handrail.runtime.permission_request import build_request
from handrail.runtime.results import build_event_fields
from handrail.runtime.session import Session
from handrail.sandbox.overlay.overlay import Overlay
from handrail.tools.exec.detached import read_captured_output
from handrail.tools.exec.overlay import check_room, commit_preview, examine_overlay, to_permission_preview
from handrail.tools.exec.result import render_change_row
from handrail.tools.exec.run import remove_spill_files

_REQUEST_ID_SUFFIX = "-kept"
"""Ends the id of the call that requests approval for the changes."""
_PARKED = "its changes wait for approval (handrail approvals)"


def commit_deferred(session: Session, process: ProcessSession) -> None:
    """Commits, parks or drops the changes of an ended command. The record of its process session says which."""
    note = read_note(process.folder)
    if note is None or is_settled(process.folder):
        return
    with _try_lock(process) as locked:
        if locked and not is_settled(process.folder) and not drop_unfinished(process.folder, process.record()):
            settle(process.folder, _settle(session, process, note))


@contextmanager
def _try_lock(process: ProcessSession) -> Generator[bool]:
    with open(os.path.join(process.folder, NOTE), "rb") as note:
        try:
            fcntl.flock(note, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            yield False
        else:
            yield True


def _settle(session: Session, process: ProcessSession, note: OverlayNote) -> str:
    """Returns the row about the changes for the record of the process session."""
    pending = _load_decided(session, note.call_id)
    if pending is None:
        return "its changes were dropped: the record of its call cannot be read"
    made = session.recorder.made_by(note.call_id)  # by a runtime that was killed before it settled
    if made is not None and made.state == "done":
        return render_change_row(ChangeSet(changes=made.body.changes, number=made.number, undoable=made.body.undoable))
    if session.journal.entry(f"{note.call_id}{_REQUEST_ID_SUFFIX}") is not None:
        return _PARKED
    overlay = Overlay.reclaim(note.layer)
    if overlay is None and os.path.isdir(note.layer):  # the sweep locks each overlay for a moment
        raise ToolError("CONFLICT", "Another process is checking its changes. Try again.")
    if overlay is None:
        return "its changes are gone: its overlay was removed"
    try:
        return _settle_overlay(session, pending, process, note, overlay)
    finally:
        overlay.release()


def _load_decided(session: Session, call_id: str) -> PendingCall | None:
    """The call that started the command, as it was decided."""
    entry = session.journal.entry(call_id)
    if entry is None:
        return None
    pending = load_call(session.journal, session.offer, entry, session.characters)
    pending.rules = session.rules
    load_answer(session, pending)
    return pending if pending.error is None else None


def _settle_overlay(
    session: Session, pending: PendingCall, process: ProcessSession, note: OverlayNote, overlay: Overlay
) -> str:
    try:
        examined = examine_overlay(session.workspace, overlay)
        configs = read_git_configs(session.workspace, overlay, examined)
        decision = judge_call_changes(session, pending, examined.changes, configs)
        if decision.decision == "confirm":
            check_room(session.recorder, examined)
    except ToolError as error:  # the workspace is gone, or the changes are too large to be stored
        return f"its changes were dropped: {error.message}"
    if not examined.steps:
        return "it changed nothing"
    if decision.decision == "deny":
        return f"its changes were dropped: {decision.reason}"
    record, limits = process.record(), session.commands.limits(None, restricted=False)
    result = CommandResult(
        ending="exit",
        exit_code=record.exit_code,
        seconds=((record.ended or record.started) - record.started).total_seconds(),
        output=read_captured_output(process.log, limits, session.commands.spill_folder),
    )
    try:
        preview = CommandPreview(ran=result, examined=examined, sandbox=note.sandbox)
        preview_id = save_preview(session.workspace, session.recorder.history, preview, overlay)
        return _commit_or_park(session, pending, preview, preview_id, decision)
    except BaseException:
        remove_spill_files(result)
        raise


def _commit_or_park(
    session: Session, pending: PendingCall, preview: CommandPreview, preview_id: str, decision: Decision
) -> str:
    history = session.recorder.history
    try:
        if decision.decision == "confirm":
            _park(session, pending, preview, preview_id, decision)
            return _PARKED
        row = _commit(session, pending, preview)
    except Exception:  # the next attempt stores it again
        delete_preview(history, preview_id)
        raise
    delete_preview(history, preview_id)
    return row


def _commit(session: Session, pending: PendingCall, preview: CommandPreview) -> str:
    context = build_command_context(session, pending)
    # A recorder of its own: that of the session has the turn of the call that runs at the same time.
    recorder = Recorder(session.workspace, session.recorder.history, session.id, session.journal.runner)
    recorder.turn = resolve_turn(session, pending)
    with context.exclusive():  # outside of the commit: without the lock nothing is dropped, but tried again
        outcome = commit_preview(replace(context, exclusive=nullcontext), recorder, preview, None)
    if outcome.made is None:
        return f"its changes were dropped: {outcome.failure.message}" if outcome.failure else "it changed nothing"
    session.journal.append((ChangeEvent, {**build_event_fields(pending), "change": outcome.made.changes}))
    return outcome.row


def _park(session: Session, pending: PendingCall, preview: CommandPreview, preview_id: str, decision: Decision) -> None:
    """Parks the changes as the preview of a call of their own."""
    call = replace(
        pending.call,
        tool_call_id=f"{pending.call.tool_call_id}{_REQUEST_ID_SUFFIX}",
        provider_call_id=None,
        args={name: value for name, value in pending.args.items() if name != "yieldMs"},
        timestamp=datetime.now(UTC),
    )
    asking, command = PendingCall(call, session.characters), pending.facts.command
    asking.tool, asking.rules, asking.decision = pending.tool, pending.rules, decision
    asking.facts = replace(pending.facts, command=replace(command, yields=False) if command is not None else None)
    check_arguments(session, asking)
    asking.approval = Approval(build_request(session, asking, to_permission_preview(preview, preview_id)))
    park(session, [asking], [asking])
