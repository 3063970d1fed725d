"""Permission bits of files that are to be executable, or no longer."""

import contextlib

_READ_BITS = 0o444
_STATUS = "/proc/self/status"


def build_executable_mode(mode: int | None, *, on: bool = True) -> int:
    """The mode with the right to execute for everybody who may read, or for nobody; None is that of a new file."""
    if mode is None:
        return (0o777 if on else 0o666) & ~_umask()
    return mode | (mode & _READ_BITS) >> 2 if on else mode & ~0o111


def _umask() -> int:
    """What new files are not given. To ask the system itself would change it for a moment, for all threads."""
    with contextlib.suppress(OSError, ValueError), open(_STATUS, encoding="utf-8") as status:
        for line in status:
            if line.startswith("Umask:"):
                return int(line.removeprefix("Umask:"), 8)
    return 0o077  # not known: for nobody else
