"""Sends signals to what a kept command has started, each to that process and to no other that got its number."""

import os

from handrail.kernel.process import send
from handrail.kernel.procfs import ProcessStat, find_process, list_descendants


def list_live_descendants(program: int, namespace: int | None) -> list[ProcessStat]:
    """All that the command has started and that lives: not the launched program, nor what is first in its
    namespace, where it has one."""
    try:
        found = list_descendants(program)
    except OSError:  # there is no descriptor left to look with
        return []
    return [process for process in found if not process.dead and process.number != namespace]


def signal_process(process: ProcessStat, number: int) -> bool:
    """Whether it was there and could be reached."""
    try:
        handle = os.pidfd_open(process.number)
    except OSError:
        return False
    try:
        now = find_process(process.number)
        return now is not None and now.started == process.started and send(handle, number)
    finally:
        os.close(handle)
