"""The way of a call: three tuples of steps. To wrap a call in something new, add a step."""

from collections.abc import Callable

from handrail.protocol.error import StoreError, ToolError
from handrail.runtime import closing, steps
from handrail.runtime.crash import internal_error
from handrail.runtime.session import Flight, Session
from handrail.store.journal import DuplicateCallError

Step = Callable[[Session, Flight], None]

DECIDING: tuple[Step, ...] = (
    steps.find_tool,
    steps.check_version,
    steps.check_arguments,
    steps.gather_facts,
    steps.decide_call,
)
RUNNING: tuple[Step, ...] = (steps.wait_in_queue, steps.take_locks, steps.write_started, steps.run_tool)
CLOSING: tuple[Step, ...] = (closing.seal, closing.finish)


def take_steps(session: Session, flight: Flight, todo: tuple[Step, ...]) -> None:
    """Takes step after step until one fails; a failure is kept in the flight."""
    if flight.error is not None:
        return
    try:
        for step in todo:
            step(session, flight)
    except ToolError as error:
        flight.fail(error)
    except (StoreError, DuplicateCallError):
        raise
    except Exception as error:  # a defect of ours or of a custom tool: it becomes a result too
        flight.fail(internal_error(error, session.crashes()))


def fly(session: Session, flight: Flight) -> None:
    """Runs a call that is decided, and closes it whatever happens."""
    try:
        take_steps(session, flight, RUNNING)
        close(session, flight)
    except KeyboardInterrupt:
        flight.fail(ToolError("CANCELLED", "The call was interrupted from the keyboard."))
        close(session, flight)
        raise
    finally:
        session.workspace.let_go()
        while flight.held:
            flight.held.pop()()


def close(session: Session, flight: Flight) -> None:
    """Gives the call its one result and writes it down."""
    for step in CLOSING:
        step(session, flight)
