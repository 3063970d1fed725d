"""How a kept command is asked to end: every process of its tree is, and has a few seconds for it."""

import time

from handrail.kernel.process import CONTINUE, STOP, TERMINATE
from handrail.kernel.procfs import ProcessStat, signal_process
from handrail.process.keeper.signalling import list_live_descendants

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
