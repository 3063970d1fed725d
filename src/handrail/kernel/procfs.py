"""The process table, /proc."""

import os

from handrail.kernel.process import send_signal

_FORKED = 0x40
"""The kernel's PF_FORKNOEXEC."""


class ProcessStat:
    """One line of /proc/PID/stat."""

    def __init__(self, number: int, line: bytes) -> None:
        # The name stands in parentheses and may hold anything, parentheses too.
        fields = line.rpartition(b")")[2].split()
        self.number = number
        self.parent = int(fields[1])
        self.group = int(fields[2])
        self.session = int(fields[3])
        self.is_fork = bool(int(fields[6]) & _FORKED)
        """It has not begun a program of its own."""
        self.threads = int(fields[17])
        self.dead = fields[0] in {b"Z", b"X"} and self.threads <= 1
        """It has ended, and its parent has not waited for it. If only the first thread ended, the process lives."""
        self.started = int(fields[19])
        """In clock ticks. It tells a process from a later one with the same number."""

    def user(self) -> int | None:
        """The id of its user. None: it has ended."""
        try:
            return os.stat(f"/proc/{self.number}").st_uid
        except OSError:
            return None


def find_process(number: int) -> ProcessStat | None:
    """The process that has this number now."""
    try:
        return ProcessStat(number, read_entry(f"/proc/{number}/stat"))
    except IndexError:  # it ended meanwhile
        return None


def list_processes() -> list[ProcessStat]:
    return [process for name in os.listdir("/proc") if name.isdigit() and (process := find_process(int(name)))]


def list_descendants(ancestor: int) -> list[ProcessStat]:
    """The children of a process, their children and so on. Dead ones are included."""
    children: dict[int, list[ProcessStat]] = {}
    for process in list_processes():
        children.setdefault(process.parent, []).append(process)
    descendants = children.pop(ancestor, [])
    for process in descendants:  # the list grows in the loop
        descendants += children.pop(process.number, [])
    return descendants


def signal_process(process: ProcessStat, number: int) -> bool:
    """Signal this process and no other that got its number. False: it has ended, or may not be signalled."""
    try:
        pidfd = os.pidfd_open(process.number)
    except OSError:
        return False
    try:
        now = find_process(process.number)
        return now is not None and now.started == process.started and send_signal(pidfd, number)
    finally:
        os.close(pidfd)


def read_entry(path: str, folder: int | None = None) -> bytes:
    """A small file of /proc. Empty: the process has ended, or may not be looked at."""
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC, dir_fd=folder)
    except OSError:
        return b""
    try:
        return os.read(descriptor, 8192)
    except OSError:  # it ended after the file was opened
        return b""
    finally:
        os.close(descriptor)
