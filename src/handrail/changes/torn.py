"""Files with several names are written in place. One that a kill left half written is found and mended.

Every byte of such a file is the old one or the new one at its place: whatever else is there is somebody's change.
"""

import os
import stat

from handrail.store.blobs import Blobs
from handrail.store.change_log import Step
from handrail.workspace.in_place import write_in_place
from handrail.workspace.walk import Landing

_BLOCK = 4096
_READ = os.O_RDONLY | os.O_NONBLOCK | os.O_NOFOLLOW | os.O_CLOEXEC


def mend(landing: Landing, step: Step, blobs: Blobs) -> None:
    """Puts the old bytes back into a file that was being written in place and is neither old nor new."""
    before, after = step.before, step.after
    if before is None or after is None or {before.kind, after.kind} != {"file"}:
        return
    if not (blobs.has(before.hash) and blobs.has(after.hash)):
        return  # it was not to be written in place
    now = _bytes(landing)
    if now is None:
        return
    old, new = (b"".join(blobs.chunks(digest)) for digest in (before.hash, after.hash))
    if now not in (old, new) and _is_between(now, old, new):
        write_in_place(landing.folder, landing.name, old)


def _bytes(landing: Landing) -> bytes | None:
    """What a file with several names holds; None for any other."""
    descriptor = os.open(landing.name, _READ, dir_fd=landing.folder)
    with open(descriptor, "rb") as file:
        status = os.fstat(descriptor)
        return file.read() if stat.S_ISREG(status.st_mode) and status.st_nlink > 1 else None


def _is_between(now: bytes, old: bytes, new: bytes) -> bool:
    shorter, longer = sorted((len(old), len(new)))
    if not shorter <= len(now) <= longer:
        return False
    old, new = old.ljust(longer, b"\0"), new.ljust(longer, b"\0")
    return all(
        _is_one_of(now[start : start + _BLOCK], old[start : start + _BLOCK], new[start : start + _BLOCK])
        for start in range(0, len(now), _BLOCK)
    )


def _is_one_of(now: bytes, old: bytes, new: bytes) -> bool:
    if old.startswith(now) or new.startswith(now):
        return True
    return all(byte in {one, other} for byte, one, other in zip(now, old, new, strict=False))
