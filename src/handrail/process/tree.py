"""A tree of processes."""

import contextlib
import os
import re
import select
import signal
import stat
import time
from collections.abc import Callable
from typing import NamedTuple, Protocol, Self

from handrail.kernel.procfs import find_process, read_entry
from handrail.sandbox.launch import Launch

# § [process.held] A hold on a process: it is killed and waited for, never another that got its number.

_POLL_SECONDS = 0.005
"""How often to look where the kernel has no way to wait."""


class ProcessHandle:
    """One process. Who has this closes it."""

    def __init__(self, process: int) -> None:
        self.process = process
        self.descriptor = _descriptor_of(process)
        """Readable once the process is gone; -1 where the kernel cannot tell, or there is no descriptor left."""
        found = find_process(process) if self.descriptor < 0 else None
        self._started = found.started if found else -1

    @property
    def gone(self) -> bool:
        """Whether it has ended: it runs no more, and of a namespace's first process nothing else in there does."""
        if self.descriptor >= 0:
            return _readable(self.descriptor, 0.0)
        found = find_process(self.process)
        return found is None or found.dead or found.started != self._started

    def kill(self) -> None:
        """Kills it; nothing where it is gone, or where we may not."""
        with contextlib.suppress(ProcessLookupError, PermissionError):
            if self.descriptor >= 0:
                signal.pidfd_send_signal(self.descriptor, signal.SIGKILL)
            elif not self.gone:
                os.kill(self.process, signal.SIGKILL)

    def wait(self, until: float) -> bool:
        """Waits until it is gone or the clock is there; whether it is gone."""
        if self.descriptor >= 0:
            return _readable(self.descriptor, until - time.monotonic())
        while not self.gone:
            if time.monotonic() >= until:
                return False
            time.sleep(_POLL_SECONDS)
        return True

    def close(self) -> None:
        """Lets go of it; can be repeated."""
        descriptor, self.descriptor = self.descriptor, -1
        if descriptor >= 0:
            os.close(descriptor)


def _descriptor_of(process: int) -> int:
    try:
        return os.pidfd_open(process)
    except OSError:
        return -1


def _readable(descriptor: int, seconds: float) -> bool:
    poller = select.poll()
    poller.register(descriptor, select.POLLIN)
    return bool(poller.poll(max(0.0, seconds * 1000)))


# § [process.status] What the launched program says of the command: which process it is, and how it ended.

_MAX_STATUS_BYTES = 1 << 16
# Two numbers are all that is looked for: a keeper, which reads a status too, starts without what decodes JSON.
_SAID = re.compile(rb'[{,]\s*"(child-pid|exit-code)"\s*:\s*([0-9]{1,10})\s*[,}]')


class Status:
    """The status so far. Each thing is believed once: nobody says it twice who means it."""

    def __init__(self, descriptor: int) -> None:
        os.set_blocking(descriptor, False)
        self.descriptor = descriptor
        self.child_pid: int | None = None
        self.exit_code: int | None = None
        self.over = False
        """Whether nothing more can come."""
        self._rest = b""

    def read(self) -> None:
        """Takes in what there is by now."""
        while not self.over:
            try:
                data = os.read(self.descriptor, _MAX_STATUS_BYTES)
            except BlockingIOError:
                return
            self.over = not data or len(self._rest) > _MAX_STATUS_BYTES
            *lines, self._rest = (self._rest + data).split(b"\n")
            for line in [*lines, self._rest] if self.over else lines:
                self._believe(line)

    def _believe(self, line: bytes) -> None:
        said = {name: int(number) for name, number in _SAID.findall(line)}
        if self.child_pid is None:
            self.child_pid = said.get(b"child-pid")
        if self.exit_code is None:
            self.exit_code = said.get(b"exit-code")


# § [process.tree] Everything that a launch has started, held so that it can be ended.

_GONE_WITHIN_SECONDS = 2.0
"""Seconds in which what was told to end has to be gone, before harder means."""
_FIRST_STATUS_SECONDS = 0.5
"""Seconds to wait for the first status: a few milliseconds, where the machine is not overloaded."""


class RunningProgram(Protocol):
    """A program that runs: `subprocess.Popen` is one."""

    @property
    def pid(self) -> int: ...
    def poll(self) -> int | None: ...
    def wait(self) -> int: ...


class ProcessTree:
    """The launched program, the command's first process, and all below. Leaving the `with` block ends it."""

    def __init__(self, launch: Launch) -> None:
        self.status = Status(launch.status)
        self._launch = launch
        self._attempted = False
        self._process: RunningProgram | None = None
        self._program: ProcessHandle | None = None
        """What was launched: bubblewrap or the supervisor."""
        self._first: ProcessHandle | None = None
        self._named = False

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        try:
            self.end()
        finally:
            for held in (self._program, self._first):
                if held is not None:
                    held.close()

    @property
    def process_id(self) -> int:
        """The launched program's number."""
        return self._program.process if self._program else 0

    @property
    def program_descriptor(self) -> int:
        """Readable once the launched program has ended; -1 where the kernel cannot tell."""
        return self._program.descriptor if self._program else -1

    @property
    def over(self) -> bool:
        """Whether the launched program has ended; what it had started may not have."""
        return self._program is not None and self._program.gone

    @property
    def command_is_over(self) -> bool:
        """Whether it is known already how the command ended. A supervisor still has to end what is left of it; of a
        namespace that is done from here, while bubblewrap itself is only about to end."""
        return self._launch.own_processes and self.status.exit_code is not None

    def start(self, start: Callable[[Launch], RunningProgram]) -> None:
        """Starts it by a step that raises OSError or ValueError when it cannot be, which goes on to the caller."""
        self._attempted = True
        try:
            self._process = start(self._launch)
        except (OSError, ValueError):
            self._attempted = False
            raise
        self._program = ProcessHandle(self._process.pid)
        self._launch.close_child_ends()

    def read_status(self) -> None:
        """Takes in the status, and gets hold of the first process while its number cannot be another's."""
        self.status.read()
        if self.status.child_pid is not None and not self._named:
            self._first = self._hold_first(self.status.child_pid)
            self._named = True  # not before: an interrupt in between must not make us forget it

    def exit_code(self) -> int | None:
        """How the command ended, once all is over; None where it never ran."""
        self.read_status()
        if self.status.exit_code is not None:
            return self.status.exit_code
        returned = self._process.poll() if self._process else None
        # Somebody killed the launched program, and so the command.
        return 128 - returned if self._named and returned is not None and returned < 0 else None

    def end(self) -> bool:
        """Ends all of it, in whatever state it is; whether nothing is left. Can be repeated, after an interrupt too."""
        if not self._attempted:
            return True
        self._launch.close_child_ends()
        if self._program is None:
            self._find_program()
        self._tell()
        if self._gone_within(_GONE_WITHIN_SECONDS):
            return True
        self._kill_program()
        return self._gone_within(_GONE_WITHIN_SECONDS)

    def _hold_first(self, process: int) -> ProcessHandle | None:
        first = ProcessHandle(process)
        found = find_process(process)
        if found and self._program is None:
            self._program = ProcessHandle(found.parent)
        if found and self._program and self._program.process not in {found.parent, found.session}:
            first.close()  # it ended before we looked
            return None
        return first

    def _find_program(self) -> None:
        """An interrupt in the middle of a start leaves a program that only its own status leads to."""
        if self._process is not None:
            self._program = ProcessHandle(self._process.pid)
        else:
            self._wait_for_status()

    def _tell(self) -> None:
        self._launch.drop_lifeline()  # a supervisor ends what is below it, and then itself; bubblewrap takes no notice
        if self._launch.own_processes and not self._named:
            self._wait_for_status()
        if self._launch.own_processes and not self._named:
            self._kill_program()
        if self._first is not None and (self._launch.own_processes or self.over):
            self._first.kill()

    def _wait_for_status(self) -> None:
        """Until the first status is there, or nobody is left who could write it."""
        until = time.monotonic() + _FIRST_STATUS_SECONDS
        poller = select.poll()
        poller.register(self.status.descriptor, select.POLLIN)
        while not (self._named or self.status.over) and time.monotonic() < until:
            poller.poll(max(0.0, until - time.monotonic()) * 1000)
            self.read_status()

    def _kill_program(self) -> None:
        """Kills the launched program with its group: a first process that has not been named yet is still in there."""
        if self._program is not None and not self._program.gone:
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.killpg(self._program.process, signal.SIGKILL)
        if self._first is not None:
            self._first.kill()

    def _gone_within(self, seconds: float) -> bool:
        until = time.monotonic() + seconds
        if not all(held.wait(until) for held in (self._first, self._program) if held is not None):
            return False
        self._ask_how_it_ended()
        return True

    def _ask_how_it_ended(self) -> None:
        """Whom nobody asks about stays in the table of processes."""
        if self._process is not None:
            self._process.wait()
        elif self._program is not None:
            with contextlib.suppress(ChildProcessError):
                os.waitpid(self._program.process, 0)


# § [process.abandoned] Ends what a runtime that was killed at an unlucky moment leaves of a command that was just
# § starting. Bubblewrap's process inside waits for its process outside to say who is who in there. If the one
# § outside dies with the runtime just then, the other, which does not die with anybody yet, waits for ever. Ours is
# § a process that still has a file which only we hand out, and the end of a pipe that only its runtime had the
# § other end of. It dies with the one outside only a moment after the command may begin, and stays if that dies in
# § between. It has closed its files by then; ours is one that has a variable as only we set it.

_KILL_SECONDS = 2.0
_STARTING_SECONDS = 0.1
"""Seconds for a process that is only just starting, and cannot be looked into yet."""
_PAUSE_SECONDS, _MOMENT_SECONDS = 0.005, 0.05


def kill_orphans() -> int:
    """Ends every such process of this user; how many there were. Takes some milliseconds."""
    total, until = 0, time.monotonic() + _STARTING_SECONDS
    while True:
        found = [int(name) for name in os.listdir("/proc") if name.isdecimal() and _is_bubblewrap(int(name))]
        ended = sum(map(_ended, found))
        total += ended
        # Once more where one was ended: it may have started another meanwhile.
        if not ended and (time.monotonic() > until or all(_files_of(process) is not None for process in found)):
            return total
        time.sleep(_PAUSE_SECONDS)


def _is_bubblewrap(process: int) -> bool:
    """As far as it says itself."""
    return os.path.basename(read_entry(f"/proc/{process}/cmdline").partition(b"\0")[0]) == b"bwrap"


def _ended(process: int) -> bool:
    held = ProcessHandle(process)
    try:
        # Checked while held, so its number is not reused; twice, as a process that starts or ends may look orphaned.
        for pause in (0.0, _MOMENT_SECONDS):
            time.sleep(pause)
            if not _is_bubblewrap(process) or not (_has_lost_us(process) or _is_left_alone(process)):
                return False
        held.kill()
        return held.wait(time.monotonic() + _KILL_SECONDS)
    finally:
        held.close()


def _has_lost_us(process: int) -> bool:
    """Whether it has a file that only handrail hands out, and a lifeline without a writer."""
    files = _files_of(process) or []
    written = {file.leads_to for file in files if file.is_written}
    pipes = [file for file in files if file.leads_to.startswith("pipe:") and not file.place.endswith("/fd/0")]
    lifelines = [file.place for file in pipes if file.leads_to not in written]
    return any(file.leads_to.startswith("/memfd:handrail") for file in files) and any(map(_is_at_its_end, lifelines))


def _is_left_alone(process: int) -> bool:
    """Whether it is the one inside of ours, and the one outside is dead."""
    numbers = read_entry(f"/proc/{process}/status").partition(b"\nNSpid:")[2].partition(b"\n")[0].split()
    variables = read_entry(f"/proc/{process}/environ").split(b"\0")  # the shell that mounts an overlay reorders them
    if numbers[1:][-1:] != [b"1"] or not any(one.startswith(b"BASH_ENV=/proc/self/fd/") for one in variables):
        return False
    return (found := find_process(process)) is not None and not _is_bubblewrap(found.parent)


class _File(NamedTuple):
    place: str
    leads_to: str
    is_written: bool


def _files_of(process: int) -> list[_File] | None:
    """What it has open; None where it cannot be looked into."""
    files: list[_File] = []
    try:
        names = os.listdir(f"/proc/{process}/fd")
    except FileNotFoundError:
        return files
    except OSError:
        return None
    for name in names:
        place = f"/proc/{process}/fd/{name}"
        with contextlib.suppress(OSError):  # it may be closed meanwhile
            files.append(_File(place, os.readlink(place), bool(os.lstat(place).st_mode & stat.S_IWUSR)))
    return files


def _is_at_its_end(lifeline: str) -> bool:
    """Whether nobody is left who could write to it; what lets a command begin may be in it, and stays there."""
    try:
        descriptor = os.open(lifeline, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError:
        return False
    try:
        asking = select.poll()
        asking.register(descriptor, select.POLLIN)
        return any(event & select.POLLHUP for _, event in asking.poll(0))
    finally:
        os.close(descriptor)
