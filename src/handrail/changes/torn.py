"""Files with several names are written in place. One that a kill left half written is found and mended.

It is written from its beginning on, so it then holds the new bytes up to some place, and the old ones behind it:
whatever else is there is somebody's change.
"""

import os
import stat

from handrail.edit.trimming import common_start
from handrail.store.blobs import Blobs
from handrail.store.change_log import Step
from handrail.workspace.in_place import put_back
from handrail.workspace.walk import Landing


def mend(landing: Landing, step: Step, blobs: Blobs) -> None:
    """Puts the old bytes back into a file that was being written in place and is neither old nor new."""
    before, after = step.before, step.after
    if before is None or after is None or {before.kind, after.kind} != {"file"}:
        return
    if not (blobs.has(before.hash) and blobs.has(after.hash)):
        return  # it was not to be written in place
    flags = os.O_RDWR | os.O_NONBLOCK | os.O_NOFOLLOW | os.O_CLOEXEC
    descriptor = os.open(landing.name, flags, dir_fd=landing.folder)
    try:
        status = os.fstat(descriptor)
        if stat.S_ISREG(status.st_mode) and status.st_nlink > 1:
            old, new = (b"".join(blobs.chunks(digest)) for digest in (before.hash, after.hash))
            written = _written(os.pread(descriptor, status.st_size + 1, 0), old, new)
            if written is not None:
                put_back(descriptor, old, written)
    finally:
        os.close(descriptor)


def _written(now: bytes, old: bytes, new: bytes) -> int | None:
    """How many of the new bytes are there, with the old ones behind them; None when that is not what is there."""
    longer = max(len(old), len(new))
    if now in (old, new) or not min(len(old), len(new)) <= len(now) <= longer:
        return None
    written = common_start(now, new)
    behind = old.ljust(longer, b"\0")[written : len(now)]
    return written if now[written:] == behind else None
