"""Tells what was changed before a moment from what was changed after it, by change times: nobody can set those."""

import errno
import os
import time

_SECOND = 1_000_000_000
_PAUSE_SECONDS = 0.0005
_MAX_PAUSES = 20_000
"""Ten seconds: there are file systems that count in two."""


def wait_for_fresh_ctime(folder: str) -> int:
    """A change time that nothing has yet, of a folder of ours. The clock of file systems stands still for milliseconds,
    and much longer on a machine that is busy; newer kernels move it on when somebody looks at a time. OSError if the
    file system does not renew change times at all."""
    latest = _touched(folder)  # nothing that was changed until now has a later one
    for _ in range(_MAX_PAUSES):
        if (now := _touched(folder)) != latest:
            return now
        time.sleep(_PAUSE_SECONDS)
    raise OSError(errno.EOPNOTSUPP, "the file system does not renew change times", folder)


def is_changed_since(change_time: int, tick: int) -> bool:
    """Whether something was changed at that tick or later; where a file system counts in seconds, it may have been."""
    return (change_time + _SECOND - 1 if change_time % _SECOND == 0 else change_time) >= tick


def _touched(folder: str) -> int:
    os.chmod(folder, 0o700)
    return os.stat(folder).st_ctime_ns
