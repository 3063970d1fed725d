"""The process table."""

import os


class ProcessStat:
    """One line of /proc/PID/stat."""

    def __init__(self, number: int, line: bytes) -> None:
        # The name stands in parentheses and may hold anything, parentheses too.
        fields = line.rpartition(b")")[2].split()
        self.number = number
        self.parent = int(fields[1])
        self.group = int(fields[2])
        self.session = int(fields[3])
        self.threads = int(fields[17])
        self.dead = fields[0] in {b"Z", b"X"} and self.threads <= 1
        """It has ended, and nobody has asked how. One whose first thread alone has ended goes on in the others."""
        self.started = int(fields[19])
        """In ticks of the kernel: a number that is used again has another start."""

    def user(self) -> int | None:
        """Whose it is; None where it has ended."""
        try:
            return os.stat(f"/proc/{self.number}").st_uid
        except OSError:
            return None


def find_process(number: int) -> ProcessStat | None:
    """What runs under the number at present."""
    try:
        return ProcessStat(number, read_entry(f"/proc/{number}/stat"))
    except IndexError:  # it ended while it was looked at
        return None


def list_processes() -> list[ProcessStat]:
    """All that can be seen."""
    return [found for name in os.listdir("/proc") if name.isdigit() and (found := find_process(int(name)))]


def list_descendants(ancestor: int) -> list[ProcessStat]:
    """All that `ancestor` has started, or that they have; also the dead."""
    children: dict[int, list[ProcessStat]] = {}
    for process in list_processes():
        children.setdefault(process.parent, []).append(process)
    found = children.pop(ancestor, [])
    for process in found:  # which grows meanwhile
        found += children.pop(process.number, [])
    return found


def read_entry(path: str, folder: int | None = None) -> bytes:
    """A small file of /proc; nothing where the process is gone or not ours to look at."""
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC, dir_fd=folder)
    except OSError:
        return b""
    try:
        return os.read(descriptor, 8192)
    except OSError:  # it went between the two
        return b""
    finally:
        os.close(descriptor)
