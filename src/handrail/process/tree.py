"""Everything that a launch has started, held so that it can be ended."""

import contextlib
import os
import select
import signal
import time
from collections.abc import Callable
from typing import Protocol, Self

from handrail.kernel.procfs import find_process
from handrail.process.held import ProcessHandle
from handrail.process.status import Status
from handrail.sandbox.launch import Launch

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
