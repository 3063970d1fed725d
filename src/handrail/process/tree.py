"""The process tree of a launch, held so that all of it can be ended."""

import contextlib
import os
import re
import select
import signal
import stat
import time
from collections.abc import Callable
from typing import NamedTuple, Protocol, Self

from handrail.kernel.procfs import find_process, list_processes, read_entry
from handrail.sandbox.launch import Launch

_END_SECONDS = 2.0
"""Time for processes to end before harder means are used."""
_FIRST_STATUS_SECONDS = 0.5
"""Time to wait for the first status. It takes a few milliseconds on a machine that is not overloaded."""
_MAX_STATUS_BYTES = 1 << 16
# The keeper reads a status too, and starts without a JSON decoder.
_STATUS_FIELD = re.compile(rb'[{,]\s*"(child-pid|exit-code)"\s*:\s*([0-9]{1,10})\s*[,}]')
_POLL_SECONDS = 0.005
"""Pause between looks at a process if the kernel has no pidfds."""
_STARTING_SECONDS = 0.1
"""Time for a process that is just starting and cannot be inspected yet."""
_FORK_SECONDS = 1.0
"""Time for a fork of a runtime to begin bubblewrap."""
_RECHECK_SECONDS = 0.05


class RunningProgram(Protocol):
    """A started program, such as `subprocess.Popen`."""

    @property
    def pid(self) -> int: ...
    def wait(self) -> int: ...


class ProcessTree:
    """The launched program, the command's first process, and all their descendants.

    The program is bubblewrap or the supervisor. Leaving the `with` block ends the tree.
    """

    def __init__(self, launch: Launch) -> None:
        self.status = Status(launch.status)
        self._launch = launch
        self._is_attempted = False
        self._process: RunningProgram | None = None
        self._returned: int | None = None
        self._program: ProcessHandle | None = None
        self._first: ProcessHandle | None = None
        self._knows_first = False

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        try:
            self.end()
        finally:
            for handle in (self._program, self._first):
                if handle is not None:
                    handle.close()

    @property
    def process_id(self) -> int:
        """The launched program's number."""
        return self._program.process if self._program else 0

    @property
    def program_descriptor(self) -> int:
        """Readable once the launched program has ended. -1: the kernel cannot tell."""
        return self._program.descriptor if self._program else -1

    @property
    def over(self) -> bool:
        """Whether the launched program has ended. Its descendants may still run."""
        return self._program is not None and self._program.gone

    @property
    def command_is_over(self) -> bool:
        """Whether the exit code is known and `end` can finish the rest.

        A supervisor still has to end the command's other processes. A namespace ends with its first process.
        """
        return self._launch.own_processes and self.status.exit_code is not None

    def start(self, start: Callable[[Launch], RunningProgram]) -> None:
        """Start the program. `start` raises OSError or ValueError if that fails."""
        self._is_attempted = True
        try:
            self._process = start(self._launch)
        except (OSError, ValueError):
            self._is_attempted = False
            raise
        self._program = ProcessHandle(self._process.pid)
        self._launch.close_child_ends()

    def read_status(self) -> None:
        """Read the status, and hold the first process before its number can be reused."""
        self.status.read()
        if self.status.child_pid is not None and not self._knows_first:
            self._first = self._hold_first(self.status.child_pid)
            self._knows_first = True  # set last, so that an interrupt cannot lose the handle

    def exit_code(self) -> int | None:
        """The command's exit code, after the end. None: it never ran."""
        self.read_status()
        if self.status.exit_code is not None:
            return self.status.exit_code
        # The launched program was killed, and the command with it.
        returned = self._returned or 0
        return 128 - returned if self._knows_first and returned < 0 else None

    def end(self) -> bool:
        """End the tree, in any state. False: a process is left. Can be repeated, also after an interrupt."""
        if not self._is_attempted:
            return True
        self._launch.close_child_ends()
        if self._program is None and self._process is not None:
            self._program = ProcessHandle(self._process.pid)
        elif self._program is None:  # interrupted in the middle of the start: only the status leads to the program
            self._wait_for_status()
        self._end_gently()
        if self._wait_for_end():
            return True
        self._kill_program()
        return self._wait_for_end()

    def _hold_first(self, process: int) -> "ProcessHandle | None":
        first = ProcessHandle(process)
        found = find_process(process)
        if found and self._program is None:
            self._program = ProcessHandle(found.parent)
        if found and self._program and self._program.process not in {found.parent, found.session}:
            first.close()  # it ended before, and its number was reused
            return None
        return first

    def _end_gently(self) -> None:
        self._launch.drop_lifeline()  # a supervisor ends its tree, then itself; bubblewrap ignores it
        if self._launch.own_processes and not self._knows_first:
            self._wait_for_status()
        if self._launch.own_processes and not self._knows_first:
            self._kill_program()
        if self._first is not None and (self._launch.own_processes or self.over):
            self._first.kill()

    def _wait_for_status(self) -> None:
        until = time.monotonic() + _FIRST_STATUS_SECONDS
        poller = select.poll()
        poller.register(self.status.descriptor, select.POLLIN)
        while not (self._knows_first or self.status.over) and time.monotonic() < until:
            poller.poll(max(0.0, until - time.monotonic()) * 1000)
            self.read_status()

    def _kill_program(self) -> None:
        """Kill the launched program with its group, which holds a first process that is not known yet."""
        if self._program is not None and not self._program.gone:
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.killpg(self._program.process, signal.SIGKILL)
        if self._first is not None:
            self._first.kill()

    def _wait_for_end(self) -> bool:
        until = time.monotonic() + _END_SECONDS
        if not all(handle.wait(until) for handle in (self._first, self._program) if handle is not None):
            return False
        if self._process is not None:
            self._returned = self._process.wait() if self._returned is None else self._returned
        elif self._program is not None:
            with contextlib.suppress(ChildProcessError):
                os.waitpid(self._program.process, 0)
        return True


class Status:
    """The documents that a launched program writes to its status descriptor. The first value of a field counts."""

    def __init__(self, descriptor: int) -> None:
        os.set_blocking(descriptor, False)
        self.descriptor = descriptor
        self.child_pid: int | None = None
        self.exit_code: int | None = None
        self.over = False
        """Whether nothing more can come."""
        self._rest = b""

    def read(self) -> None:
        """Read what has arrived, without waiting."""
        while not self.over:
            try:
                data = os.read(self.descriptor, _MAX_STATUS_BYTES)
            except BlockingIOError:
                return
            self.over = not data or len(self._rest) > _MAX_STATUS_BYTES
            *lines, self._rest = (self._rest + data).split(b"\n")
            for line in [*lines, self._rest] if self.over else lines:
                self._take_fields(line)

    def _take_fields(self, line: bytes) -> None:
        fields = {name: int(number) for name, number in _STATUS_FIELD.findall(line)}
        if self.child_pid is None:
            self.child_pid = fields.get(b"child-pid")
        if self.exit_code is None:
            self.exit_code = fields.get(b"exit-code")


class ProcessHandle:
    """One process, and never another that got its number."""

    def __init__(self, process: int) -> None:
        self.process = process
        self.descriptor = -1
        """Readable once the process has ended. -1: the kernel cannot tell, or no descriptor is free."""
        with contextlib.suppress(OSError):
            self.descriptor = os.pidfd_open(process)
        found = find_process(process) if self.descriptor < 0 else None
        self._started = found.started if found else -1

    @property
    def gone(self) -> bool:
        """Whether it has ended. If it was the first process of a namespace, all others in there have too."""
        if self.descriptor >= 0:
            return _is_readable(self.descriptor, 0.0)
        found = find_process(self.process)
        return found is None or found.dead or found.started != self._started

    def kill(self) -> None:
        """Does nothing if it has ended, or may not be killed."""
        with contextlib.suppress(ProcessLookupError, PermissionError):
            if self.descriptor >= 0:
                signal.pidfd_send_signal(self.descriptor, signal.SIGKILL)
            elif not self.gone:
                os.kill(self.process, signal.SIGKILL)

    def wait(self, until: float) -> bool:
        """Wait for its end. False: it still runs at that time of the monotonic clock."""
        if self.descriptor >= 0:
            return _is_readable(self.descriptor, until - time.monotonic())
        while not self.gone:
            if time.monotonic() >= until:
                return False
            time.sleep(_POLL_SECONDS)
        return True

    def close(self) -> None:
        descriptor, self.descriptor = self.descriptor, -1
        if descriptor >= 0:
            os.close(descriptor)


def _is_readable(descriptor: int, seconds: float) -> bool:
    poller = select.poll()
    poller.register(descriptor, select.POLLIN)
    return bool(poller.poll(max(0.0, seconds * 1000)))


def kill_orphans() -> int:
    """Kill the bubblewrap processes of this user whose runtime was killed while it started them. How many there were.

    Bubblewrap has a process outside and one inside of its namespaces. Early on, the inner one waits for the outer one
    and does not die with it. It then still has a file that only handrail hands out, and a lifeline without a writer.
    For a moment after the command may begin, it has closed its files and does not die with the outer one either. It
    then has a variable that only handrail sets. Before all that, it is a fork of the runtime with such a file.
    """
    total, begun = 0, time.monotonic()
    while True:
        has_fork = _has_fork()  # first: a fork that begins bubblewrap after this is among the candidates
        candidates = [int(name) for name in os.listdir("/proc") if name.isdecimal() and _is_bubblewrap(int(name))]
        killed = sum(map(_kill_orphan, candidates))
        total += killed
        # Repeat after a kill: the killed process may have started another.
        waited = time.monotonic() - begun
        is_known = waited > _STARTING_SECONDS or all(_list_files(one) is not None for one in candidates)
        if not killed and is_known and (waited > _FORK_SECONDS or not has_fork):
            return total
        time.sleep(_POLL_SECONDS)


def _has_fork() -> bool:
    """Whether a fork of a killed runtime has yet to begin bubblewrap. The parent of a living one's runs the same."""
    forks = (one for one in list_processes() if one.is_fork and not _is_bubblewrap(one.number))
    lost = (one.number for one in forks if _read_command(one.number) != _read_command(one.parent))
    return any(_holds_handed_file(_list_files(one) or []) for one in lost)


def _is_bubblewrap(process: int) -> bool:
    return os.path.basename(_read_command(process).partition(b"\0")[0]) == b"bwrap"


def _read_command(process: int) -> bytes:
    return read_entry(f"/proc/{process}/cmdline")


def _kill_orphan(process: int) -> bool:
    handle = ProcessHandle(process)
    try:
        # Checked while held, so that its number is not reused. Twice, as one that starts or ends may look orphaned.
        for pause in (0.0, _RECHECK_SECONDS):
            time.sleep(pause)
            if not _is_bubblewrap(process) or not (_has_lost_runtime(process) or _has_lost_outer_process(process)):
                return False
        handle.kill()
        return handle.wait(time.monotonic() + _END_SECONDS)
    finally:
        handle.close()


def _has_lost_runtime(process: int) -> bool:
    files = _list_files(process) or []
    written = {file.target for file in files if file.is_writable}
    pipes = [file for file in files if file.target.startswith("pipe:") and not file.path.endswith("/fd/0")]
    lifelines = [file.path for file in pipes if file.target not in written]
    return _holds_handed_file(files) and any(map(_is_hung_up, lifelines))


def _holds_handed_file(files: "list[_OpenFile]") -> bool:
    return any(file.target.startswith("/memfd:handrail") for file in files)


def _has_lost_outer_process(process: int) -> bool:
    numbers = read_entry(f"/proc/{process}/status").partition(b"\nNSpid:")[2].partition(b"\n")[0].split()
    variables = read_entry(f"/proc/{process}/environ").split(b"\0")  # the shell that mounts an overlay reorders them
    if numbers[1:][-1:] != [b"1"] or not any(one.startswith(b"BASH_ENV=/proc/self/fd/") for one in variables):
        return False
    return (found := find_process(process)) is not None and not _is_bubblewrap(found.parent)


class _OpenFile(NamedTuple):
    path: str
    target: str
    is_writable: bool


def _list_files(process: int) -> list[_OpenFile] | None:
    """Its open files. None: it cannot be inspected."""
    files: list[_OpenFile] = []
    try:
        names = os.listdir(f"/proc/{process}/fd")
    except FileNotFoundError:
        return files
    except OSError:
        return None
    for name in names:
        path = f"/proc/{process}/fd/{name}"
        with contextlib.suppress(OSError):  # closed meanwhile
            files.append(_OpenFile(path, os.readlink(path), bool(os.lstat(path).st_mode & stat.S_IWUSR)))
    return files


def _is_hung_up(pipe: str) -> bool:
    """Whether the pipe has no writer. Its content stays in it."""
    try:
        descriptor = os.open(pipe, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError:
        return False
    try:
        poller = select.poll()
        poller.register(descriptor, select.POLLIN)
        return any(event & select.POLLHUP for _, event in poller.poll(0))
    finally:
        os.close(descriptor)
