"""How a kept command is asked to end: every process of its tree is, and has a few seconds for it."""

import time

from handrail.kernel.process_table import Process
from handrail.kernel.signals import CONTINUE, STOP, TERMINATE
from handrail.process.keeper.signalling import signal_process, tree_below

GRACE = 3.0
_SHELL_WAITS = 2.0
"""Seconds of these in which the shell is held back: when it ends, so does everything else, at once."""


class Stopping:
    """Asks once; says when it is enough."""

    def __init__(self, program: int, namespace: int | None) -> None:
        self._began = time.monotonic()
        self._program = program
        self._namespace = namespace
        tree = tree_below(program, namespace)
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
        if self._shells and (waited > _SHELL_WAITS or not self._others()):
            for shell in self._shells:
                _terminate(shell)  # not before: of two signals that wait for it, it would take this one first
            self._shells = []
        return waited > GRACE

    def _others(self) -> list[Process]:
        held = {shell.number for shell in self._shells}
        return [process for process in tree_below(self._program, self._namespace) if process.number not in held]


def _terminate(process: Process) -> None:
    signal_process(process, TERMINATE)
    signal_process(process, CONTINUE)  # who was stopped would never know
