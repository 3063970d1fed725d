"""Runs one command, then ends every process that it started."""

import fcntl
import os
import resource
import select
import sys
import time

from handrail.kernel.folder_removal import OPEN_FOLDER, empty_folder
from handrail.kernel.landlock import allow, restrict_self
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

PREFIX = "handrail-private-"
_MIN_ABANDONED_SECONDS = 60.0
"""A folder exists for a moment before it is locked."""
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
        # Its keys send signals to the command, and /dev/tty works.
        from termios import TIOCSCTTY  # noqa: PLC0415  only background processes have a terminal

        fcntl.ioctl(0, TIOCSCTTY, 0)
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


# The private folder of the command: its home, its temporary files.


class PrivateFolder:
    """A new folder that the command may use. OSError if its name is taken."""

    def __init__(self, fence: LandlockFence) -> None:
        self._path = fence.private
        os.mkdir(self._path, 0o700)
        self._folder = os.open(self._path, OPEN_FOLDER)
        fcntl.flock(self._folder, fcntl.LOCK_EX)  # the kernel releases it when this process ends
        allow(fence.ruleset, self._folder, fence.private_rights)
        os.mkdir("tmp", 0o700, dir_fd=self._folder)
        for name, target in fence.links:
            _make_link(self._folder, [b"home", *name.split(b"/")], target)
        os.close(_make_folder(self._folder, b"home"))

    def remove(self) -> None:
        try:
            os.fchmod(self._folder, 0o700)
            empty_folder(self._folder)
            os.rmdir(self._path)
        except OSError:
            pass
        finally:
            os.close(self._folder)


def remove_abandoned(beside: str) -> None:
    """Remove the private folders that killed supervisors left."""
    for name in os.listdir(beside):
        if name.startswith(PREFIX):
            try:
                _remove_if_abandoned(f"{beside}/{name}")
            except OSError:  # of another user, or in use
                continue


def _remove_if_abandoned(path: str) -> None:
    status = os.lstat(path)
    if status.st_uid != os.geteuid() or time.time() - status.st_mtime < _MIN_ABANDONED_SECONDS:
        return
    folder = os.open(path, OPEN_FOLDER)
    try:
        fcntl.flock(folder, fcntl.LOCK_EX | fcntl.LOCK_NB)
        empty_folder(folder)
        os.rmdir(path)
    finally:
        os.close(folder)


def _make_link(folder: int, names: list[bytes], target: bytes) -> None:
    """Make a link and its parent folders, never below another link."""
    above = os.dup(folder)
    try:
        for name in names[:-1]:
            inner = _make_folder(above, name)
            os.close(above)
            above = inner
        os.symlink(target, names[-1], dir_fd=above)
    except OSError:  # the toolchain remains visible at its real path
        pass
    finally:
        os.close(above)


def _make_folder(folder: int, name: bytes) -> int:
    try:  # noqa: SIM105  contextlib is slow to load
        os.mkdir(name, 0o700, dir_fd=folder)
    except FileExistsError:
        pass
    return os.open(name, OPEN_FOLDER, dir_fd=folder)
