"""Parses text with tree-sitter."""

import threading
import time
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tree_sitter import Language, Tree


_MAX_PARSE_SECONDS = 0.5
_CHUNK_BYTES = 4096
"""Bytes that the parser is given at a time: between two of them it can be stopped."""
_PAGE = bytearray()
"""What it is given them in, always the same: it never lets go of what it was given."""
_ONE_AT_A_TIME = threading.Lock()


def parse_with_timeout(language: "Language", data: bytes) -> "Tree | None":
    """None where it takes too long: on what is no program at all, the time grows with the square of the length.

    The parser can be stopped by telling it that the text is over; the callback that is meant for it crashes in 0.26.
    """
    from tree_sitter import Parser  # noqa: PLC0415  only for files and commands that need it

    end, stopped = time.monotonic() + _MAX_PARSE_SECONDS, False

    def read(start: int, _: object) -> bytearray:
        nonlocal stopped
        stopped = stopped or time.monotonic() > end
        _PAGE[:] = b"" if stopped else data[start : start + _CHUNK_BYTES]
        return _PAGE

    with _ONE_AT_A_TIME:
        tree = Parser(language).parse(read)
    return None if stopped else tree
