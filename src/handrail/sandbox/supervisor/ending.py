"""Ends everything that a command has started, however it tries to get away."""

import os
import select

from handrail.kernel.process import KILL, STOP, SignalQueue
from handrail.kernel.procfs import ProcessStat, list_descendants, signal_process

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
