"""Runs one command, then ends every process that it started."""

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
from handrail.sandbox.supervisor.plan import SupervisorPlan
from handrail.sandbox.supervisor.private_folder import PrivateFolder

_EXIT_NEVER_RAN = 1
_MAX_REASON_BYTES = 65_536
_MAX_ROUNDS = 16
_MIN_WAIT_MS, _MAX_WAIT_MS = 10, 1_000


def run(descriptor: str) -> int:
    """Run the plan of a memory file. The exit code is that of the command."""
    try:
        return _run(SupervisorPlan.read(int(descriptor)))
    except (OSError, ValueError) as error:
        sys.stderr.write(f"supervisor: {error}\n")
        return _EXIT_NEVER_RAN


def _run(plan: SupervisorPlan) -> int:
    _close_descriptors_on_exec()
    adopt_orphans()
    signals = SignalQueue((CHILD, HANGUP, INTERRUPT, TERMINATE))
    private = PrivateFolder(plan.fence) if plan.fence else None
    try:
        return _supervise(plan, signals)
    finally:
        _end_descendants(signals)
        if private:
            private.remove()


def _supervise(plan: SupervisorPlan, signals: SignalQueue) -> int:
    exit_code = _wait_for_exit(plan.lifeline, signals, _start(plan))
    if exit_code is None:
        return _EXIT_NEVER_RAN
    try:  # noqa: SIM105  contextlib is slow to load
        os.write(plan.status, b'{"exit-code": %d}\n' % exit_code)
    except OSError:  # handrail is gone
        pass
    return exit_code


def _wait_for_exit(lifeline: int, signals: SignalQueue, command: int) -> int | None:
    """The exit code of the command. None if the supervisor must end it."""
    events = select.poll()
    events.register(signals.descriptor, select.POLLIN)
    events.register(lifeline, 0)  # poll reports unasked that the other end is closed
    while True:
        ready = {descriptor for descriptor, _ in events.poll()}
        ended = _reap()
        if command in ended:
            return ended[command]
        if lifeline in ready or set(signals.take()) - {CHILD}:
            return None


def _close_descriptors_on_exec() -> None:
    for name in os.listdir("/proc/self/fd"):
        if int(name) > 2:
            try:  # noqa: SIM105  contextlib is slow to load
                os.set_inheritable(int(name), False)
            except OSError:  # the descriptor of the listing itself
                pass


# The start of the command.


def _start(plan: SupervisorPlan) -> int:
    """The process of the command. OSError gives the reason if it did not start."""
    supervisor = os.getpid()
    # The program closes both ends when it takes over. Nothing is written then.
    reader, writer = os.pipe()
    process = os.fork()
    if process == 0:
        _become_or_report(plan, supervisor, writer)
    os.close(writer)
    reason = os.read(reader, _MAX_REASON_BYTES)
    os.close(reader)
    if reason:
        raise OSError(os.fsdecode(reason))
    return process


def _become_or_report(plan: SupervisorPlan, supervisor: int, writer: int) -> None:
    try:
        _become_command(plan, supervisor)
    except BaseException as error:  # this process must never go on as a second supervisor
        os.write(writer, os.fsencode(_describe_error(error))[:_MAX_REASON_BYTES])
    finally:
        os._exit(1)


def _describe_error(error: BaseException) -> str:
    if isinstance(error, OSError) and error.filename:
        return f"{os.fsdecode(error.filename)}: {error.strerror}"
    return str(error) or repr(error)


def _become_command(plan: SupervisorPlan, supervisor: int) -> None:
    os.setsid()  # `kill 0` does not reach the supervisor
    if os.isatty(0):
        _take_terminal(0)
    die_with_parent(KILL)
    if os.getppid() != supervisor:
        return
    reset_signals()
    os.chdir(plan.cwd)
    _set_limits(plan)
    refuse_new_privileges()
    if plan.fence:
        keep_capabilities(plan.fence.capabilities)
        restrict_self(plan.fence.ruleset)
        filter_system_calls(plan.fence.filter)
    os.write(plan.status, b'{"child-pid": %d}\n' % os.getpid())
    os.execve(plan.arguments[0], plan.arguments, plan.environment)  # noqa: S606  it is the shell


def _take_terminal(terminal: int) -> None:
    """Make it the controlling terminal: its keys send signals to the command, and /dev/tty works."""
    from fcntl import ioctl  # noqa: PLC0415  only background processes have a terminal
    from termios import TIOCSCTTY  # noqa: PLC0415

    ioctl(terminal, TIOCSCTTY, 0)


def _set_limits(plan: SupervisorPlan) -> None:
    _lower_limit(resource.RLIMIT_CORE, 0)
    _lower_limit(resource.RLIMIT_FSIZE, plan.file_size)
    # The kernel counts all threads of the user, and does not limit root.
    if user := os.getuid():
        others = sum(process.threads for process in list_processes() if process.user() == user)
        _lower_limit(resource.RLIMIT_NPROC, plan.threads + others)


def _lower_limit(resource_id: int, limit: int) -> None:
    _, most = resource.getrlimit(resource_id)
    limit = limit if most == resource.RLIM_INFINITY else min(limit, most)
    resource.setrlimit(resource_id, (limit, limit))


# The end of everything that the command started.


def _end_descendants(signals: SignalQueue) -> None:
    """Kill until this process has no child left. Orphans become its children."""
    events = select.poll()
    events.register(signals.descriptor, select.POLLIN)
    wait_ms = _MIN_WAIT_MS
    while _has_children():
        for process in _stop_descendants():
            signal_process(process, KILL)
        events.poll(wait_ms)
        signals.take()
        wait_ms = min(2 * wait_ms, _MAX_WAIT_MS)


def _has_children() -> bool:
    _reap()
    try:
        os.waitid(os.P_ALL, 0, os.WEXITED | os.WNOHANG | os.WNOWAIT)
    except ChildProcessError:
        return False
    return True


def _reap() -> dict[int, int]:
    """The children that ended, each with its exit code in the convention of a shell."""
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


def _stop_descendants() -> list[ProcessStat]:
    """Stop all descendants, so that none can fork faster than it is killed."""
    stopped: dict[tuple[int, int], ProcessStat] = {}
    for _ in range(_MAX_ROUNDS):
        living = [process for process in list_descendants(os.getpid()) if not process.dead]
        new = [process for process in living if (process.number, process.started) not in stopped]
        if not new:
            break
        for process in new:
            signal_process(process, STOP)
            stopped[process.number, process.started] = process
    return list(stopped.values())
