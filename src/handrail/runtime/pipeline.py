"""The way of a call: three tuples of steps. To wrap a call in something new, add a step."""

from collections.abc import Callable
from contextlib import suppress

from handrail.protocol.error import StoreError, ToolError
from handrail.runtime import closing, steps
from handrail.runtime.crash import internal_error
from handrail.runtime.cut_off import what_became
from handrail.runtime.question import tell_of_edit
from handrail.runtime.session import Flight, Session
from handrail.runtime.waiting_trials import forget_trial
from handrail.store.journal import DuplicateCallError
from handrail.tools.contract import AsksError

Step = Callable[[Session, Flight], None]

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
    steps.check_basis,
    steps.write_started,
    steps.run_tool,
    tell_of_edit,
    closing.seal_output,
)
CLOSING: tuple[Step, ...] = (closing.seal_error, closing.finish, forget_trial)

_NOT_STARTED = "The call was interrupted before it ran. Nothing was done."


def take_steps(session: Session, flight: Flight, todo: tuple[Step, ...]) -> None:
    """Takes step after step until one fails; a failure is kept in the flight."""
    if flight.error is not None:
        return
    try:
        if flight.roots:
            _take_with_roots(session, flight, todo)
        else:
            for step in todo:
                step(session, flight)
    except ToolError as error:
        flight.fail(error)
    except (DuplicateCallError, AsksError):
        raise
    except StoreError as error:  # of something else than the journal: then this is the call's result
        flight.fail(error.in_result(_far(session, flight)))
    except Exception as error:  # a defect of ours or of a custom tool: it becomes a result too
        flight.fail(internal_error(error, session.crashes))


def _take_with_roots(session: Session, flight: Flight, todo: tuple[Step, ...]) -> None:
    with session.workspace.variable.lent(flight.roots):
        for step in todo:
            step(session, flight)


def fail_unrecorded(session: Session, flight: Flight, error: StoreError) -> None:
    """Gives a call a result that cannot be written down; one that is written down stays."""
    if flight.result is None or flight.recorded != "finished":
        became = _far(session, flight)
        flight.error = flight.result = None
        flight.fail(error.in_result(became))
        closing.seal_error(session, flight)


def _far(session: Session, flight: Flight) -> str:
    """How far a call came whose record failed."""
    if flight.recorded is None:
        return "Nothing was run." if flight.output is None else "Nothing was changed."
    if flight.output is not None or flight.result is not None:
        return "The call ran, and its result is not recorded: look before you repeat it."
    with suppress(StoreError):
        return what_became(session, flight)
    return "What it did is not known; look before you repeat it."


def fly(session: Session, flight: Flight, running: tuple[Step, ...] = RUNNING) -> None:
    """Runs a call that is decided, and closes it; `running`: none where it has run. An interrupt is left to the batch:
    `cut_short`; so is an AsksError: what the call came to asks, and it has no result yet."""
    try:
        take_steps(session, flight, running)
        close(session, flight)
    finally:
        _let_go(session, flight)
        session.journal.deliver()


def close(session: Session, flight: Flight) -> None:
    """Gives the call its one result and writes it down."""
    for step in CLOSING:
        step(session, flight)


def cut_short(session: Session, flight: Flight) -> None:
    """Closes a call that an interrupt came upon, at whatever point: what was done is said, the rest was cancelled."""
    try:
        _cut_short(session, flight)
    finally:
        _let_go(session, flight)


def _cut_short(session: Session, flight: Flight) -> None:
    if _is_parked(session, flight):
        return  # it waits for its answer
    with session.workspace.variable.lent(flight.roots):
        became = what_became(session, flight) if flight.recorded == "started" and flight.output is None else ""
    if flight.result is None and flight.output is not None:
        take_steps(session, flight, (closing.seal_output,))
    if flight.result is None:
        flight.fail(ToolError("CANCELLED", f"The call was interrupted. {became}" if became else _NOT_STARTED))
    if flight.recorded != "finished":
        try:
            close(session, flight)
            return
        except DuplicateCallError:
            pass  # the interrupt came when it was just written down, or the call is not ours
    closing.make_up(session, flight)
    forget_trial(session, flight)


def _is_parked(session: Session, flight: Flight) -> bool:
    """Looks up how far the call is: the interrupt may have come before the flight knew. Under an id that was given to
    us the journal may have another call, so there only what the flight knows counts."""
    entry = session.journal.entry(flight.call.tool_call_id)
    if entry is not None and flight.fresh:
        flight.recorded = entry.state
    return entry is not None and entry.state == "parked"


def _let_go(session: Session, flight: Flight) -> None:
    """Frees what the call held. Each release may be repeated, so an interrupt here leaves nothing held."""
    try:
        session.workspace.let_go()
        for release in reversed(flight.held):
            release()
    except BaseException:
        for release in reversed(flight.held):
            release()
        raise
