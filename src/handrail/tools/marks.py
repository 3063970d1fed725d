"""Marks: how a session remembers what it saw of a file, and how it finds out that the bytes are other ones now."""

import os

import msgspec

from handrail.protocol.wire import get_json_decoder
from handrail.workspace.file_state import FileSnapshot, hash_range
from handrail.workspace.resolve import READ_FILE


class WholeFileMark(msgspec.Struct, frozen=True, tag="whole"):
    """All bytes were seen."""

    hash: str


class PageMark(msgspec.Struct, frozen=True, tag="part"):
    """One page of a large file was seen."""

    hash: str
    start: int
    length: int


Mark = WholeFileMark | PageMark
_decode = get_json_decoder(Mark).decode
encode_mark = msgspec.json.Encoder().encode


def is_stale(mark: bytes | None, now: FileSnapshot | None, part: str | None) -> bool:
    """Whether the session knew other bytes. Where none are left, none are lost."""
    if mark is None or now is None:
        return False
    seen = _decode(mark)
    return seen.hash != (now.hash if isinstance(seen, WholeFileMark) else part)


def find_whole_hash(mark: bytes | None) -> str | None:
    """The hash of all bytes, where all were seen."""
    seen = _decode(mark) if mark else None
    return seen.hash if isinstance(seen, WholeFileMark) else None


def hash_seen_page(folder: int, name: str, mark: bytes | None) -> str | None:
    """The hash of what is now at the place of the page that was seen, if it was a page."""
    seen = _decode(mark) if mark else None
    if not isinstance(seen, PageMark):
        return None
    descriptor = os.open(name, READ_FILE, dir_fd=folder)
    try:
        return hash_range(descriptor, seen.start, seen.length)
    finally:
        os.close(descriptor)
