"""Marks: how a session remembers what it saw of a file, and how it finds out that the bytes are other ones now."""

import hashlib
import os
from typing import Literal

import msgspec

from handrail.protocol.error import ToolError
from handrail.workspace.errors import clipped
from handrail.workspace.replace import Current


class Whole(msgspec.Struct, frozen=True, tag="whole"):
    """All bytes were seen."""

    hash: str


class Part(msgspec.Struct, frozen=True, tag="part"):
    """One page of a large file was seen."""

    hash: str
    start: int
    length: int


Mark = Whole | Part
_decode = msgspec.json.Decoder(Mark).decode
encode_mark = msgspec.json.Encoder().encode


def staleness(path: str, mark: bytes | None, now: Current | None, part: bytes | None) -> Literal["unread", "fresh"]:
    """Whether the session knows the file; STALE_FILE when it knew other bytes."""
    if mark is None:
        return "unread"
    seen = _decode(mark)
    if now is None:
        fresh = False
    elif isinstance(seen, Whole):
        fresh = seen.hash == now.hash
    else:
        fresh = part is not None and hashlib.sha256(part).hexdigest() == seen.hash
    if not fresh:
        what = "changed" if now else "was removed"
        raise ToolError("STALE_FILE", f"{clipped(path)} {what} since you read it. Read it again before writing.")
    return "fresh"


def part_of(folder: int, name: str, mark: bytes | None) -> bytes | None:
    """The bytes now at the place of the page that was seen, if it was a page."""
    seen = _decode(mark) if mark else None
    if not isinstance(seen, Part):
        return None
    descriptor = os.open(name, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=folder)
    try:
        return os.pread(descriptor, seen.length, seen.start)
    finally:
        os.close(descriptor)
