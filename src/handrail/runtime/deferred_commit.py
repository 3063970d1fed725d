"""Commits what a command that outlived its call changed in its overlay, once it has ended: judged like any other.

Whichever runtime is there does it, once. One that is killed meanwhile leaves it to the next: the overlay stays."""

import contextlib
import fcntl
import os
import time
from collections.abc import Generator
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
from handrail.protocol.events import ChangeEvent, ToolCallPermissionRequired
from handrail.protocol.records import ProcessRecord
from handrail.runtime.approvals import park_batch
from handrail.runtime.decide import build_command_context, check_arguments, judge_call_changes, resolve_turn
from handrail.runtime.pending_call import load_call
from handrail.runtime.permission_request import build_request
from handrail.runtime.results import build_event_fields
from handrail.runtime.session import PendingCall, Session
from handrail.sandbox.overlay.overlay import Overlay, reclaim
from handrail.store.inbox import find_answer
from handrail.tools.exec.detached import read_captured_output
from handrail.tools.exec.overlay import check_room, commit_preview, examine_overlay, to_permission_preview
from handrail.tools.exec.result import render_change_row
from handrail.tools.exec.run import remove_spill_files

_ASKED = "-kept"
"""What the id of the call ends with that asks for the rest."""


def commit_deferred(session: Session, process: ProcessSession) -> None:
    """Commits it, asks, or drops it, and says so in the record of the process session."""
    note = read_note(process.folder)
    if note is None or is_settled(process.folder):
        return
    with _alone_with(process) as mine:
        if not mine or is_settled(process.folder) or drop_unfinished(process.folder, process.record()):
            return
        settle(process.folder, _settled(session, process, note))


@contextlib.contextmanager
def _alone_with(process: ProcessSession) -> Generator[bool]:
    descriptor = os.open(os.path.join(process.folder, NOTE), os.O_RDONLY | os.O_CLOEXEC)
    try:
        yield _is_free(descriptor)
    finally:
        os.close(descriptor)


def _is_free(descriptor: int) -> bool:
    """Locks it, where nobody has; it stays so until it is closed."""
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def _settled(session: Session, process: ProcessSession, note: OverlayNote) -> str:
    pending = _flight(session, note.call_id)
    if pending is None:
        return "what it changed was dropped: the record of its call cannot be read"
    made = session.recorder.made_by(note.call_id)  # by one that was killed before it could say so
    if made is not None and made.state == "done":
        return render_change_row(ChangeSet(changes=made.body.changes, number=made.number, undoable=made.body.undoable))
    if session.journal.entry(f"{note.call_id}{_ASKED}") is not None:
        return _waits()
    overlay = reclaim(note.layer)
    if overlay is None and os.path.isdir(note.layer):  # whoever sweeps looks at each, and lets go of what is owned
        raise ToolError("CONFLICT", "Another process is looking at what it changed just now. Try again.")
    if overlay is None:
        return "what it changed is gone: its overlay was removed"
    try:
        return _examined(session, pending, process, note, overlay)
    finally:
        overlay.release()


def _examined(
    session: Session, pending: PendingCall, process: ProcessSession, note: OverlayNote, overlay: Overlay
) -> str:
    try:
        examined = examine_overlay(session.workspace, overlay)
        decision = judge_call_changes(
            session, pending, examined.changes, read_git_configs(session.workspace, overlay, examined)
        )
        if decision.decision == "confirm":
            check_room(session.recorder, examined)
    except ToolError as error:  # the workspace is gone, or there is too much to wait for an answer
        return f"what it changed was dropped: {error.message}"
    if not examined.steps:
        return "it changed nothing"
    if decision.decision == "deny":
        return f"what it changed was dropped: {decision.reason}"
    ran = _ran(session, process.record(), process)
    try:
        preview = CommandPreview(ran=ran, examined=examined, sandbox=note.sandbox)
        sealed = save_preview(session.workspace, session.recorder.history, preview, overlay)
        return _concluded(session, pending, preview, sealed, decision)
    except BaseException:
        remove_spill_files(ran)
        raise


def _concluded(session: Session, pending: PendingCall, preview: CommandPreview, sealed: str, decision: Decision) -> str:
    asks = decision.decision == "confirm"
    try:
        said = _ask(session, pending, preview, sealed, decision) if asks else _kept(session, pending, preview)
    except Exception:  # whoever looks next seals it anew
        delete_preview(session.recorder.history, sealed)
        raise
    if not asks:
        delete_preview(session.recorder.history, sealed)
    return said


def _kept(session: Session, pending: PendingCall, preview: CommandPreview) -> str:
    context = build_command_context(session, pending)
    # One of its own: that of the session goes by the turn of the call that runs beside this.
    recorder = Recorder(session.workspace, session.recorder.history, session.id, session.journal.runner)
    recorder.turn = resolve_turn(session, pending)
    with context.exclusive():  # outside: who cannot have it now tries again, and nothing is dropped for that
        outcome = commit_preview(replace(context, exclusive=contextlib.nullcontext), recorder, preview, None)
    if outcome.made is None:
        return f"what it changed was dropped: {outcome.failure.message}" if outcome.failure else "it changed nothing"
    session.journal.append((ChangeEvent, {**build_event_fields(pending), "change": outcome.made.changes}))
    return outcome.row


def _ask(session: Session, pending: PendingCall, preview: CommandPreview, sealed: str, decision: Decision) -> str:
    """What it changed waits as the result of a call of its own."""
    arguments = {name: value for name, value in pending.args.items() if name != "yieldMs"}
    call = replace(
        pending.call,
        tool_call_id=f"{pending.call.tool_call_id}{_ASKED}",
        provider_call_id=None,
        args=arguments,
        timestamp=datetime.now(UTC),
    )
    asking = PendingCall(call, time.perf_counter(), session.characters)
    command = pending.facts.command
    asking.tool, asking.rules, asking.decision, asking.preview_id = pending.tool, pending.rules, decision, sealed
    asking.facts = replace(pending.facts, command=replace(command, yields=False) if command is not None else None)
    check_arguments(session, asking)
    request = build_request(session, asking, to_permission_preview(preview, sealed))
    asking.pending_events.append(
        (ToolCallPermissionRequired, {**build_event_fields(asking), "permission_request": request})
    )
    park_batch(session, [asking])
    return _waits()


def _waits() -> str:
    return "what it changed waits for a person's yes (handrail approvals)"


def _flight(session: Session, call_id: str) -> PendingCall | None:
    """The call that started it, as it was decided."""
    entry = session.journal.entry(call_id)
    if entry is None:
        return None
    pending = load_call(session.journal, session.offer, entry, session.characters)
    pending.rules = session.rules
    answered = find_answer(session.journal.database, call_id)
    if answered is not None:
        pending.request, pending.answer = answered
    return pending if pending.error is None else None


def _ran(session: Session, record: ProcessRecord, process: ProcessSession) -> CommandResult:
    ended = record.ended or record.started
    return CommandResult(
        ending="exit",
        exit_code=record.exit_code,
        seconds=(ended - record.started).total_seconds(),
        output=read_captured_output(
            process.log, session.commands.limits(None, restricted=False), session.commands.spill_folder
        ),
    )
