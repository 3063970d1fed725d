"""Parses a text with tree-sitter, within a time limit."""

import threading
import time
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tree_sitter import Language, Tree

_MAX_PARSE_SECONDS = 0.5
_CHUNK_BYTES = 4096
"""The parser can be stopped between two chunks."""
_PAGE = bytearray()
"""One buffer for all chunks, because the parser never releases a buffer."""
_ONE_AT_A_TIME = threading.Lock()


def parse_with_timeout(language: "Language", data: bytes, seconds: float = _MAX_PARSE_SECONDS) -> "Tree | None":
    """None if it takes too much processor time. On garbage, the time grows with the square of the length.

    An early end of the text stops the parser. Its progress callback crashes in 0.26.
    """
    from tree_sitter import Parser  # noqa: PLC0415  only for files and commands that need it

    end, earliest, is_stopped = time.thread_time() + seconds, time.monotonic() + seconds, False

    def read(start: int, _: object) -> bytearray:
        nonlocal is_stopped
        # Processor time is never ahead of the clock, which is cheaper to read.
        is_stopped = is_stopped or (time.monotonic() > earliest and time.thread_time() > end)
        _PAGE[:] = b"" if is_stopped else data[start : start + _CHUNK_BYTES]
        return _PAGE

    with _ONE_AT_A_TIME:
        tree = Parser(language).parse(read)
    return None if is_stopped else tree
