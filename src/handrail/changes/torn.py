"""Files with several names are written in place. One that a kill left half written is found and mended.

It is written from its beginning on, so it then holds the new bytes up to some place, and the old ones behind it:
whatever else is there is somebody's change. The file may be large: it is compared piece by piece.
"""

import contextlib
import os
import stat

from handrail.edit.lines import count_common_start
from handrail.store.blobs import Blobs
from handrail.store.change_log import Step
from handrail.workspace.in_place import put_back
from handrail.workspace.resolve import ResolvedParent

_PIECE_BYTES = 1 << 20


def repair_torn_file(landing: ResolvedParent, step: Step, blobs: Blobs) -> None:
    """Puts the old bytes back into a file that was being written in place and is neither old nor new."""
    before, after = step.before, step.after
    if before is None or after is None or {before.kind, after.kind} != {"file"}:
        return
    status = os.stat(landing.name, dir_fd=landing.folder, follow_symlinks=False)
    if not stat.S_ISREG(status.st_mode) or status.st_nlink < 2:
        return
    if not (blobs.has(before.hash) and blobs.has(after.hash)):
        return  # it was not to be written in place
    with contextlib.ExitStack() as opened:
        flags = os.O_RDWR | os.O_NONBLOCK | os.O_NOFOLLOW | os.O_CLOEXEC
        now = _closed_with(opened, os.open(landing.name, flags, dir_fd=landing.folder))
        if os.path.samestat(os.fstat(now), status):
            old, new = (_closed_with(opened, blobs.open(digest)) for digest in (before.hash, after.hash))
            written = _written(now, old, new)
            if written is not None:
                put_back(now, old, before.size, written)


def _closed_with(opened: contextlib.ExitStack, descriptor: int) -> int:
    opened.callback(os.close, descriptor)
    return descriptor


def _written(now: int, old: int, new: int) -> int | None:
    """How many of the new bytes are there, with the old ones behind them; None when that is not what is there."""
    size, before, after = (os.fstat(one).st_size for one in (now, old, new))
    if not min(before, after) <= size <= max(before, after):
        return None
    written = _alike(now, new, 0, size)
    if written == size == after or _alike(now, old, 0, size) == size == before:
        return None
    return written if _alike(now, old, written, size, padded=True) == size else None


def _alike(one: int, other: int, start: int, end: int, *, padded: bool = False) -> int:
    """Up to where two files hold the same, from a place on. `padded`: behind its end the other one has zeros."""
    at = start
    while at < end:
        length = min(_PIECE_BYTES, end - at)
        piece, like = os.pread(one, length, at), os.pread(other, length, at)
        if padded:
            like = like.ljust(len(piece), b"\0")
        same = count_common_start(piece, like)
        at += same
        if same < length:
            break
    return at
