"""Starts a launch on a terminal of its own."""

import os
import signal

from handrail.process.keeper.terminal import Terminal
from handrail.sandbox.launch import Launch

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
