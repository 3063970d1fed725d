"""Runs the steps of a call."""

import contextlib
import errno
import os
from collections.abc import Callable
from contextlib import suppress

from msgspec.structs import replace

from handrail.protocol.errors import EXHAUSTED, HandrailError, StoreError, ToolError
from handrail.runtime import decide, results
from handrail.runtime.pending_call import forget_preview
from handrail.runtime.results import describe_interrupted
from handrail.runtime.session import PendingCall, Session
from handrail.settings import resolve_state_folder
from handrail.store.journal import DuplicateCallError
from handrail.store.state_dir import StateFolder, make_id, open_private
from handrail.tools.tool import ApprovalNeededError

# § [runtime.crash] What is kept of our own defects: where in the code, never what the data was.


def build_internal_error(error: BaseException, folder: Callable[[], str]) -> ToolError:
    """The refusal for a full machine, or for a defect, after its report was written, where there is room for one."""
    if isinstance(error, OSError) and error.errno in EXHAUSTED:
        code, words = EXHAUSTED[error.errno]
        return ToolError(code, f"{words} ({errno.errorcode[error.errno]}), so the call was given up: try again later.")
    with contextlib.suppress(OSError, StoreError):
        write_report(error, folder())
    kind = type(error).__name__
    where = (list_frames(error) or ["an unknown place"])[-1]
    return ToolError(
        "INTERNAL", f"A defect stopped the call ({kind} at {where}). It is not your arguments; go on without it."
    )


def write_report(error: BaseException, folder: str) -> str:
    """Writes down what kind of error came from where; the path of the report."""
    report = os.path.join(folder, f"{make_id('crash')}.txt")
    # The text of the exception stays out: it may quote a file or an argument.
    with open(report, "w", encoding="utf-8", opener=open_private) as out:
        out.write("\n".join([type(error).__name__, *list_frames(error), ""]))
    return report


def report_defect(error: BaseException) -> str:
    """Writes a report to the user's state folder. Returns a sentence with its path, or why there is none."""
    try:
        return f"Report: {write_report(error, StateFolder(resolve_state_folder(os.environ)).crashes())}"
    except (HandrailError, OSError) as reason:
        return f"No report could be written: {reason}"


def list_frames(error: BaseException) -> list[str]:
    """The way to the error through the code, the place itself last."""
    import traceback  # noqa: PLC0415  costs start-up time, and defects are rare

    frames = traceback.extract_tb(error.__traceback__)
    return [f"{os.path.basename(frame.filename)}:{frame.lineno} {frame.name}" for frame in frames]


# § [runtime.pipeline] The way of a call: three tuples of steps. To wrap a call in something new, add a step.


def note_edited_command(_: Session, pending: PendingCall) -> None:
    """A step behind the run: the model reads that it was not its command that ran, but which."""
    asked, output = pending.request, pending.output
    if asked is None or not asked.edited or output is None:
        return
    told = f"The person changed the command to: {asked.command}"
    pending.output = replace(output, content=f"{told}\n{output.content}", summary=f"{output.summary} (changed command)")


Step = Callable[[Session, PendingCall], None]

DECIDING: tuple[Step, ...] = (
    decide.find_tool,
    decide.check_version,
    decide.check_arguments,
    decide.gather_facts,
    decide.decide_call,
)
RUNNING: tuple[Step, ...] = (
    decide.wait_in_queue,
    decide.check_skills,
    decide.take_locks,
    decide.check_bound_files,
    decide.write_started,
    decide.run_tool,
    note_edited_command,
    results.build_result,
)
CLOSING: tuple[Step, ...] = (results.build_error_result, results.finish, forget_preview)

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
        results.build_error_result(session, pending)


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
        take_steps(session, pending, (results.build_result,))
    if pending.result is None:
        pending.fail(ToolError("CANCELLED", f"The call was interrupted. {became}" if became else _NOT_STARTED))
    if pending.journal_state != "finished":
        try:
            close_call(session, pending)
            return
        except DuplicateCallError:
            pass  # the interrupt came when it was just written down, or the call is not ours
    results.restore_audit_record(session, pending)
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
