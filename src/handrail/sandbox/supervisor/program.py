"""Starts a command, waits for it, ends its tree."""

import os
import resource
import select
import sys

from handrail.kernel.landlock import restrict_self
from handrail.kernel.process import (
    CHILD,
    HANGUP,
    INTERRUPT,
    KILL,
    STOP,
    TERMINATE,
    SignalQueue,
    adopt_orphans,
    die_with_parent,
    filter_system_calls,
    keep_capabilities,
    refuse_new_privileges,
    reset_signals,
)
from handrail.kernel.procfs import ProcessStat, list_descendants, list_processes, signal_process
from handrail.sandbox.supervisor.plan import LandlockFence, SupervisorPlan
from handrail.sandbox.supervisor.private_folder import PrivateFolder

# § [sandbox.supervisor.ending] Ends everything that a command has started, however it tries to get away.

_MAX_ROUNDS = 16
_MIN_WAIT_MS, _MAX_WAIT_MS = 10, 1_000  # milliseconds


def end_all(waiting: SignalQueue) -> None:
    """Kills until this process has no child left; who loses its parent becomes a child of this one."""
    events = select.poll()
    events.register(waiting.descriptor, select.POLLIN)
    patience = _MIN_WAIT_MS
    while has_children():
        for process in _frozen():
            signal_process(process, KILL)
        events.poll(patience)
        waiting.take()
        patience = min(2 * patience, _MAX_WAIT_MS)


def reap() -> dict[int, int]:
    """Children that have ended, each with its exit code as a shell tells it."""
    ended: dict[int, int] = {}
    while True:
        try:
            child, status = os.waitpid(-1, os.WNOHANG)
        except ChildProcessError:
            return ended
        if child == 0:
            return ended
        code = os.waitstatus_to_exitcode(status)
        ended[child] = code if code >= 0 else 128 - code


def has_children() -> bool:
    """Whether any child lives on after the dead ones are buried."""
    reap()
    try:
        os.waitid(os.P_ALL, 0, os.WEXITED | os.WNOHANG | os.WNOWAIT)
    except ChildProcessError:
        return False
    return True


def _frozen() -> list[ProcessStat]:
    """All descendants, each stopped: a tree that forks faster than it is killed would outrun a mere killing."""
    stopped: dict[tuple[int, int], ProcessStat] = {}
    for _ in range(_MAX_ROUNDS):
        new = [one for one in _living() if (one.number, one.started) not in stopped]
        if not new:
            break
        for process in new:
            signal_process(process, STOP)
            stopped[process.number, process.started] = process
    return list(stopped.values())


def _living() -> list[ProcessStat]:
    return [one for one in list_descendants(os.getpid()) if not one.dead]


# § [sandbox.supervisor.starting] Starts the command: everything that a process does to itself before the program is
# § in its place.

_MAX_REASON_BYTES = 65_536


def start(plan: SupervisorPlan) -> int:
    """The process that runs the command; OSError says why there is none."""
    supervisor = os.getpid()
    # Both ends close by themselves when the program takes over: silence says that it did.
    reading, writing = os.pipe()
    process = os.fork()
    if process == 0:
        _become_or_tell(plan, supervisor, writing)
    os.close(writing)
    reason = os.read(reading, _MAX_REASON_BYTES)
    os.close(reading)
    if reason:
        raise OSError(os.fsdecode(reason))
    return process


def _become_or_tell(plan: SupervisorPlan, supervisor: int, writing: int) -> None:
    try:
        _become(plan, supervisor)
    except BaseException as error:  # whatever it is: this process must not go on as a second supervisor
        os.write(writing, os.fsencode(_reason(error))[:_MAX_REASON_BYTES])
    finally:
        os._exit(1)


def _reason(error: BaseException) -> str:
    if isinstance(error, OSError) and error.filename:
        return f"{os.fsdecode(error.filename)}: {error.strerror}"
    return str(error) or repr(error)


def _become(plan: SupervisorPlan, supervisor: int) -> None:
    os.setsid()  # `kill 0` is not for the supervisor
    if os.isatty(0):
        _have_terminal(0)
    die_with_parent(KILL)
    if os.getppid() != supervisor:
        return
    reset_signals()
    os.chdir(plan.cwd)
    _limit(plan)
    refuse_new_privileges()
    if plan.fence:
        _confine(plan.fence)
    os.write(plan.status, b'{"child-pid": %d}\n' % os.getpid())
    os.execve(plan.arguments[0], plan.arguments, plan.environment)  # noqa: S606  it is the shell


def _have_terminal(terminal: int) -> None:
    """Makes it this session's own: keys that send signals send them to the command, and /dev/tty is there."""
    from fcntl import ioctl  # noqa: PLC0415  only a command that is kept has a terminal
    from termios import TIOCSCTTY  # noqa: PLC0415

    ioctl(terminal, TIOCSCTTY, 0)


def _limit(plan: SupervisorPlan) -> None:
    _lower(resource.RLIMIT_CORE, 0)
    _lower(resource.RLIMIT_FSIZE, plan.file_size)
    # It counts everything that the user runs, not only the command's; root it does not bind at all.
    if user := os.getuid():
        _lower(resource.RLIMIT_NPROC, plan.threads + _threads_of(user))


def _lower(what: int, limit: int) -> None:
    _, most = resource.getrlimit(what)
    limit = limit if most == resource.RLIM_INFINITY else min(limit, most)
    resource.setrlimit(what, (limit, limit))


def _threads_of(user: int) -> int:
    return sum(one.threads for one in list_processes() if one.user() == user)


def _confine(fence: LandlockFence) -> None:
    keep_capabilities(fence.capabilities)
    restrict_self(fence.ruleset)
    filter_system_calls(fence.filter)


# § [sandbox.supervisor.program] The supervisor: starts the command, waits for it or for the end of the runtime, and
# § leaves nothing behind.

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
