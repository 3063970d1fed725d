"""The supervisor: starts the command, waits for it or for the end of the runtime, and leaves nothing behind."""

import os
import select
import sys

from handrail.kernel.process import CHILD, HANGUP, INTERRUPT, TERMINATE, SignalQueue, adopt_orphans
from handrail.sandbox.supervisor.ending import end_all, reap
from handrail.sandbox.supervisor.plan import SupervisorPlan
from handrail.sandbox.supervisor.private import PrivateFolder
from handrail.sandbox.supervisor.starting import start

_NEVER_RAN = 1


def run(descriptor: int) -> int:
    """Runs the plan behind the descriptor; the exit code is the command's."""
    try:
        return _run(SupervisorPlan.read(descriptor))
    except (OSError, ValueError) as error:
        sys.stderr.write(f"supervisor: {error}\n")
        return _NEVER_RAN


def _run(plan: SupervisorPlan) -> int:
    _keep_descriptors_from_the_command()
    adopt_orphans()
    waiting = SignalQueue((CHILD, HANGUP, INTERRUPT, TERMINATE))
    private = PrivateFolder(plan.fence) if plan.fence else None
    try:
        return _supervise(plan, waiting)
    finally:
        end_all(waiting)
        if private:
            private.remove()


def _supervise(plan: SupervisorPlan, waiting: SignalQueue) -> int:
    command = start(plan)
    exit_code = _exit_code(plan.lifeline, waiting, command)
    if exit_code is None:
        return _NEVER_RAN
    _tell(plan.status, b'{"exit-code": %d}\n' % exit_code)
    return exit_code


def _exit_code(lifeline: int, waiting: SignalQueue, command: int) -> int | None:
    """Waits until the command ends, and has its exit code, or until it must end."""
    events = select.poll()
    events.register(waiting.descriptor, select.POLLIN)
    events.register(lifeline, 0)  # that its other end is closed is told unasked
    while True:
        ready = {descriptor for descriptor, _ in events.poll()}
        ended = reap()
        if command in ended:
            return ended[command]
        if lifeline in ready or set(waiting.take()) - {CHILD}:
            return None


def _tell(status: int, document: bytes) -> None:
    try:  # noqa: SIM105  contextlib costs a start
        os.write(status, document)
    except OSError:  # the runtime is gone, and with it whoever would have liked to know
        pass


def _keep_descriptors_from_the_command() -> None:
    for name in os.listdir("/proc/self/fd"):
        if int(name) > 2:
            try:  # noqa: SIM105  contextlib costs a start
                os.set_inheritable(int(name), False)
            except OSError:  # the listing's own
                pass
