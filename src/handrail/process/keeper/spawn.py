"""Starts and stops a background process."""

import os
import signal
import time

from handrail.kernel.process import CONTINUE, STOP, TERMINATE
from handrail.kernel.procfs import ProcessStat, signal_process
from handrail.process.keeper.terminal import Terminal, list_live_descendants
from handrail.sandbox.launch import Launch

# § [process.keeper.spawning] Starts a launch on a terminal of its own.

_CHANGED = (signal.SIGHUP, signal.SIGINT, signal.SIGPIPE, signal.SIGXFSZ)
"""What a keeper, or the interpreter, ignores; what is started is to have them as they are in a new login."""


class SpawnedProcess:
    """A program that was started; Tree asks it how it ended."""

    def __init__(self, process: int) -> None:
        self.pid = process
        self._returned: int | None = None

    def poll(self) -> int | None:
        """How it ended, negative for a signal; None while it runs."""
        return self._ask(os.WNOHANG)

    def wait(self) -> int:
        """The same, once it has ended."""
        return self._ask(0) or 0

    def _ask(self, options: int) -> int | None:
        if self._returned is None:
            process, status = os.waitpid(self.pid, options)
            if process:
                self._returned = os.waitstatus_to_exitcode(status)
        return self._returned


def spawn(launch: Launch, terminal: Terminal) -> SpawnedProcess:
    """Starts it as the first of a new session; OSError where it cannot be."""
    for descriptor in launch.inherited:
        os.set_inheritable(descriptor, True)
    # The first of a session that opens a terminal has it as its own. A supervisor must not: its command is to.
    mode = os.O_RDWR if launch.own_processes else os.O_RDWR | os.O_NOCTTY
    process = os.posix_spawn(
        launch.argv[0],
        launch.argv,
        launch.environment,
        file_actions=[
            (os.POSIX_SPAWN_OPEN, 0, terminal.path, mode, 0),
            (os.POSIX_SPAWN_DUP2, 0, 1),
            (os.POSIX_SPAWN_DUP2, 0, 2),
        ],
        setsid=True,
        setsigmask=(),
        setsigdef=_CHANGED,
    )
    return SpawnedProcess(process)


# § [process.keeper.stopping] How a kept command is asked to end: every process of its tree is, and has a few
# § seconds for it.

GRACE_SECONDS = 3.0
_SHELL_WAIT_SECONDS = 2.0
"""Seconds of these in which the shell is held back: when it ends, so does everything else, at once."""


class StopSequence:
    """Asks once; says when it is enough."""

    def __init__(self, program: int, namespace: int | None) -> None:
        self._began = time.monotonic()
        self._program = program
        self._namespace = namespace
        tree = list_live_descendants(program, namespace)
        above = program if namespace is None else namespace
        self._shells = [process for process in tree if process.parent == above] if len(tree) > 1 else []
        for process in self._shells:
            signal_process(process, STOP)
        for process in tree:
            if process not in self._shells:
                _terminate(process)

    def is_over(self) -> bool:
        """Whether nothing is left to wait for, or the time is up; lets the shell go on when it is time for that."""
        waited = time.monotonic() - self._began
        if self._shells and (waited > _SHELL_WAIT_SECONDS or not self._others()):
            for shell in self._shells:
                _terminate(shell)  # not before: of two signals that wait for it, it would take this one first
            self._shells = []
        return waited > GRACE_SECONDS

    def _others(self) -> list[ProcessStat]:
        held = {shell.number for shell in self._shells}
        return [
            process for process in list_live_descendants(self._program, self._namespace) if process.number not in held
        ]


def _terminate(process: ProcessStat) -> None:
    signal_process(process, TERMINATE)
    signal_process(process, CONTINUE)  # who was stopped would never know
