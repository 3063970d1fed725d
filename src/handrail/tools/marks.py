"""Marks: how a session remembers what it saw of a file, and how it finds out that the bytes are other ones now."""

import os
from typing import Literal

import msgspec

from handrail.protocol.error import ToolError
from handrail.workspace.current import Current
from handrail.workspace.errors import clipped
from handrail.workspace.large import hash_of_part


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


def staleness(
    path: str, mark: bytes | None, now: Current | None, part: str | None, doing: str = "writing"
) -> Literal["unread", "fresh"]:
    """Whether the session knows the file; STALE_FILE when it knew other bytes. Where none are left, none are lost."""
    if mark is None or now is None:
        return "unread"
    seen = _decode(mark)
    if seen.hash != (now.hash if isinstance(seen, Whole) else part):
        raise ToolError("STALE_FILE", f"{clipped(path)} changed since you read it. Read it again before {doing}.")
    return "fresh"


def part_of(folder: int, name: str, mark: bytes | None) -> str | None:
    """The hash of what is now at the place of the page that was seen, if it was a page."""
    seen = _decode(mark) if mark else None
    if not isinstance(seen, Part):
        return None
    descriptor = os.open(name, os.O_RDONLY | os.O_NONBLOCK | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=folder)
    try:
        return hash_of_part(descriptor, seen.start, seen.length)
    finally:
        os.close(descriptor)
