"""Ends a process session whose keeper does not: from outside, and only what is still what it was."""

import contextlib
import fcntl
import os
import time
from collections.abc import Iterator

from handrail.process.held import ProcessHandle
from handrail.process.keeper.files import END, write_end
from handrail.process.sessions.known import KeeperRecord, ProcessIdentity, has_keeper, read_boot_id, read_record
from handrail.process.sessions.log import ProcessLog
from handrail.process.sessions.ports import is_alive

_STOP_SECONDS = 5.0


def force_stop(folder: str, reason: str) -> bool:
    """Ends whatever is left of it, where its keeper does not, and writes down why; whether nothing is left.

    Where its keeper was killed without anybody asking, nobody knows why it ended: it stays lost.
    """
    known = read_record(folder)
    if known is None:
        return True
    was_kept = has_keeper(folder)
    gone = known.boot != read_boot_id() or _ended(known)
    if gone and was_kept:
        with contextlib.suppress(OSError):
            _write_end(folder, reason)
    return gone


def _ended(known: KeeperRecord) -> bool:
    """Kills what is left of a keeper and of the command; whether nothing is."""
    with contextlib.ExitStack() as held:
        # The first of a namespace takes all others with it; a supervisor ends its own when its lifeline breaks.
        named = (known.keeper, known.first, known.program) if known.own_processes else (known.keeper,)
        for process in _holding(held, named):
            process.kill()
        until = time.monotonic() + _STOP_SECONDS
        return all(process.wait(until) for process in _holding(held, (known.keeper, known.first, known.program)))


def _holding(held: contextlib.ExitStack, processes: tuple[ProcessIdentity, ...]) -> Iterator[ProcessHandle]:
    for named in processes:
        process = ProcessHandle(named.number)
        held.callback(process.close)
        if is_alive(named):  # looked at when it is held: nobody else gets its number any more
            yield process


def _write_end(folder: str, reason: str) -> None:
    """In the keeper's place, which is gone; two who try take turns."""
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
    try:
        with contextlib.suppress(BlockingIOError):  # somebody just looks, or has it from a fork
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        if not os.access(END, os.F_OK, dir_fd=descriptor):
            size = ProcessLog(folder).size
            write_end(descriptor, {"ended": time.time(), "exit_code": None, "reason": reason, "size": size})
    finally:
        os.close(descriptor)
