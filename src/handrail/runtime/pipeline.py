"""The way of a call: three tuples of steps. To wrap a call in something new, add a step."""

from collections.abc import Callable
from contextlib import suppress

from msgspec.structs import replace

from handrail.protocol.errors import StoreError, ToolError
from handrail.runtime import closing, steps
from handrail.runtime.crash import build_internal_error
from handrail.runtime.cut_off import describe_interrupted
from handrail.runtime.session import PendingCall, Session
from handrail.runtime.waiting_trials import forget_preview
from handrail.store.journal import DuplicateCallError
from handrail.tools.contract import ApprovalNeededError


def note_edited_command(_: Session, pending: PendingCall) -> None:
    """A step behind the run: the model reads that it was not its command that ran, but which."""
    asked, output = pending.request, pending.output
    if asked is None or not asked.edited or output is None:
        return
    told = f"The person changed the command to: {asked.command}"
    pending.output = replace(output, content=f"{told}\n{output.content}", summary=f"{output.summary} (changed command)")


Step = Callable[[Session, PendingCall], None]

DECIDING: tuple[Step, ...] = (
    steps.find_tool,
    steps.check_version,
    steps.check_arguments,
    steps.gather_facts,
    steps.decide_call,
)
RUNNING: tuple[Step, ...] = (
    steps.wait_in_queue,
    steps.check_skills,
    steps.take_locks,
    steps.check_bound_files,
    steps.write_started,
    steps.run_tool,
    note_edited_command,
    closing.build_result,
)
CLOSING: tuple[Step, ...] = (closing.build_error_result, closing.finish, forget_preview)

_NOT_STARTED = "The call was interrupted before it ran. Nothing was done."


def take_steps(session: Session, pending: PendingCall, todo: tuple[Step, ...]) -> None:
    """Takes step after step until one fails; a failure is kept in the flight."""
    if pending.error is not None:
        return
    try:
        if pending.roots:
            _take_with_roots(session, pending, todo)
        else:
            for step in todo:
                step(session, pending)
    except ToolError as error:
        pending.fail(error)
    except (DuplicateCallError, ApprovalNeededError):
        raise
    except StoreError as error:  # of something else than the journal: then this is the call's result
        pending.fail(error.in_result(_far(session, pending)))
    except Exception as error:  # a defect of ours or of a custom tool: it becomes a result too
        pending.fail(build_internal_error(error, session.crashes))


def _take_with_roots(session: Session, pending: PendingCall, todo: tuple[Step, ...]) -> None:
    with session.workspace.root_sets.temporarily(pending.roots):
        for step in todo:
            step(session, pending)


def fail_unrecorded(session: Session, pending: PendingCall, error: StoreError) -> None:
    """Gives a call a result that cannot be written down; one that is written down stays."""
    if pending.result is None or pending.journal_state != "finished":
        became = _far(session, pending)
        pending.error = pending.result = None
        pending.fail(error.in_result(became))
        closing.build_error_result(session, pending)


def _far(session: Session, pending: PendingCall) -> str:
    """How far a call came whose record failed."""
    if pending.journal_state is None:
        return "Nothing was run." if pending.output is None else "Nothing was changed."
    if pending.output is not None or pending.result is not None:
        return "The call ran, and its result is not recorded: look before you repeat it."
    with suppress(StoreError):
        return describe_interrupted(session, pending)
    return "What it did is not known; look before you repeat it."


def execute_call(session: Session, pending: PendingCall, running: tuple[Step, ...] = RUNNING) -> None:
    """Runs a call that is decided, and closes it; `running`: none where it has run. An interrupt is left to the batch:
    `cut_short`; so is an ApprovalNeededError: what the call came to asks, and it has no result yet."""
    try:
        take_steps(session, pending, running)
        close_call(session, pending)
    finally:
        _let_go(session, pending)
        session.journal.deliver()


def close_call(session: Session, pending: PendingCall) -> None:
    """Gives the call its one result and writes it down."""
    for step in CLOSING:
        step(session, pending)


def close_interrupted(session: Session, pending: PendingCall) -> None:
    """Closes a call that an interrupt came upon, at whatever point: what was done is said, the rest was cancelled."""
    try:
        _cut_short(session, pending)
    finally:
        _let_go(session, pending)


def _cut_short(session: Session, pending: PendingCall) -> None:
    if _is_parked(session, pending):
        return  # it waits for its answer
    with session.workspace.root_sets.temporarily(pending.roots):
        became = (
            describe_interrupted(session, pending)
            if pending.journal_state == "started" and pending.output is None
            else ""
        )
    if pending.result is None and pending.output is not None:
        take_steps(session, pending, (closing.build_result,))
    if pending.result is None:
        pending.fail(ToolError("CANCELLED", f"The call was interrupted. {became}" if became else _NOT_STARTED))
    if pending.journal_state != "finished":
        try:
            close_call(session, pending)
            return
        except DuplicateCallError:
            pass  # the interrupt came when it was just written down, or the call is not ours
    closing.restore_audit_record(session, pending)
    forget_preview(session, pending)


def _is_parked(session: Session, pending: PendingCall) -> bool:
    """Looks up how far the call is: the interrupt may have come before the flight knew. Under an id that was given to
    us the journal may have another call, so there only what the flight knows counts."""
    entry = session.journal.entry(pending.call.tool_call_id)
    if entry is not None and pending.id_is_ours:
        pending.journal_state = entry.state
    return entry is not None and entry.state == "parked"


def _let_go(session: Session, pending: PendingCall) -> None:
    """Frees what the call held. Each release may be repeated, so an interrupt here leaves nothing held."""
    try:
        session.workspace.drop_cached()
        for release in reversed(pending.releases):
            release()
    except BaseException:
        for release in reversed(pending.releases):
            release()
        raise
