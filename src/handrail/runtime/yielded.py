"""Keeps what a command changed in its layer that went on after its call, once it has ended: judged like any other.

Whichever runtime is there does it, once. One that is killed meanwhile leaves it to the next: the layer is still there.
"""

import contextlib
import fcntl
import os
import time
from collections.abc import Generator
from datetime import UTC, datetime

from msgspec.structs import replace

from handrail.changes.layered.configs import configs_of
from handrail.changes.layered.sealing import drop, seal
from handrail.changes.layered.trial import Trial
from handrail.changes.recorder import Recorder
from handrail.process.ran import Ran
from handrail.process.sessions.layers import NOTE, Yielded, drop_unfinished, is_settled, read_note, settle
from handrail.process.sessions.session import ProcessSession
from handrail.protocol.change import ChangeSet
from handrail.protocol.decision import Decision
from handrail.protocol.error import ToolError
from handrail.protocol.event import Change, ToolCallPermissionRequired
from handrail.protocol.process import ProcessRecord
from handrail.runtime.closing import named
from handrail.runtime.latch import park
from handrail.runtime.question import worded
from handrail.runtime.reloading import reloaded
from handrail.runtime.session import Flight, Session
from handrail.runtime.steps import check_arguments, command_context_of, judged, turn_of
from handrail.sandbox.layer.layer import Layer
from handrail.sandbox.layer.owner import taken_back
from handrail.store.requests import answer_to
from handrail.tools.changed_words import changed_row
from handrail.tools.kept_output import printed_of
from handrail.tools.layered import keep
from handrail.tools.running import remove_printed
from handrail.tools.trying import check_room, examined_in, previewed

_ASKED = "-kept"
"""What the id of the call ends with that asks for the rest."""


def keep_yielded(session: Session, process: ProcessSession) -> None:
    """Keeps it, asks, or drops it, and says so in the record of the process session."""
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


def _settled(session: Session, process: ProcessSession, note: Yielded) -> str:
    flight = _flight(session, note.call_id)
    if flight is None:
        return "what it changed was dropped: the record of its call cannot be read"
    made = session.recorder.made_by(note.call_id)  # by one that was killed before it could say so
    if made is not None and made.state == "done":
        return changed_row(ChangeSet(changes=made.body.changes, number=made.number, undoable=made.body.undoable))
    if session.journal.entry(f"{note.call_id}{_ASKED}") is not None:
        return _waits()
    layer = taken_back(note.layer)
    if layer is None and os.path.isdir(note.layer):  # whoever sweeps looks at each, and lets go of what is owned
        raise ToolError("CONFLICT", "Another process is looking at what it changed just now. Try again.")
    if layer is None:
        return "what it changed is gone: its layer was removed"
    try:
        return _examined(session, flight, process, note, layer)
    finally:
        layer.let_go()


def _examined(session: Session, flight: Flight, process: ProcessSession, note: Yielded, layer: Layer) -> str:
    try:
        examined = examined_in(session.workspace, layer)
        decision = judged(session, flight, examined.changes, configs_of(session.workspace, layer, examined))
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
        trial = Trial(ran=ran, examined=examined, sandbox=note.sandbox)
        sealed = seal(session.workspace, session.recorder.history, trial, layer)
        return _concluded(session, flight, trial, sealed, decision)
    except BaseException:
        remove_printed(ran)
        raise


def _concluded(session: Session, flight: Flight, trial: Trial, sealed: str, decision: Decision) -> str:
    asks = decision.decision == "confirm"
    try:
        said = _ask(session, flight, trial, sealed, decision) if asks else _kept(session, flight, trial)
    except Exception:  # whoever looks next seals it anew
        drop(session.recorder.history, sealed)
        raise
    if not asks:
        drop(session.recorder.history, sealed)
    return said


def _kept(session: Session, flight: Flight, trial: Trial) -> str:
    context = command_context_of(session, flight)
    # One of its own: that of the session goes by the turn of the call that runs beside this.
    recorder = Recorder(session.workspace, session.recorder.history, session.id, session.journal.runner)
    recorder.turn = turn_of(session, flight)
    with context.alone():  # outside: who cannot have it now tries again, and nothing is dropped for that
        outcome = keep(replace(context, alone=contextlib.nullcontext), trial, recorder, None)
    if outcome.made is None:
        return f"what it changed was dropped: {outcome.failure.message}" if outcome.failure else "it changed nothing"
    session.journal.append((Change, {**named(flight), "change": outcome.made.changes}))
    return outcome.row


def _ask(session: Session, flight: Flight, trial: Trial, sealed: str, decision: Decision) -> str:
    """What it changed waits as the result of a call of its own."""
    arguments = {name: value for name, value in flight.args.items() if name != "yieldMs"}
    call = replace(
        flight.call,
        tool_call_id=f"{flight.call.tool_call_id}{_ASKED}",
        provider_call_id=None,
        args=arguments,
        timestamp=datetime.now(UTC),
    )
    asking = Flight(call, time.perf_counter(), session.characters)
    command = flight.facts.command
    asking.tool, asking.rules, asking.decision, asking.tried = flight.tool, flight.rules, decision, sealed
    asking.facts = replace(flight.facts, command=replace(command, yields=False) if command is not None else None)
    check_arguments(session, asking)
    request = worded(session, asking, previewed(trial, sealed))
    asking.drafts.append((ToolCallPermissionRequired, {**named(asking), "permission_request": request}))
    park(session, [asking])
    return _waits()


def _waits() -> str:
    return "what it changed waits for a person's yes (handrail approvals)"


def _flight(session: Session, call_id: str) -> Flight | None:
    """The call that started it, as it was decided."""
    entry = session.journal.entry(call_id)
    if entry is None:
        return None
    flight = reloaded(session.journal, session.offer, entry, session.characters)
    flight.rules = session.rules
    answered = answer_to(session.journal.database, call_id)
    if answered is not None:
        flight.asked, flight.answer = answered
    return flight if flight.error is None else None


def _ran(session: Session, record: ProcessRecord, process: ProcessSession) -> Ran:
    ended = record.ended or record.started
    return Ran(
        ending="exit",
        exit_code=record.exit_code,
        seconds=(ended - record.started).total_seconds(),
        output=printed_of(process.log, session.commands.limits(None, restricted=False), session.commands.spill_folder),
    )
