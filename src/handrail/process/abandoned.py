"""Ends what a runtime that was killed at an unlucky moment leaves of a command that was just starting.

Bubblewrap's process inside waits for its process outside to say who is who in there. If the one outside dies with the
runtime just then, the other, which does not die with anybody yet, waits for ever. Ours is a process that still has a
file which only we hand out, and the end of a pipe that only its runtime had the other end of.

It dies with the one outside only a moment after the command may begin, and stays if that dies in between. It has closed
its files by then; ours is one that has a variable as only we set it.
"""

import contextlib
import os
import select
import stat
import time
from typing import NamedTuple

from handrail.kernel.procfs import find_process, read_entry
from handrail.process.held import ProcessHandle

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
