"""A file's text in blocks of whole lines, as ripgrep sees it: UTF-8, without a mark, and no file with a NUL in it."""

import codecs
import os
from collections.abc import Iterator

from handrail.workspace.search.engine import MAX_LINE_BYTES

BLOCK_BYTES = 4 << 20
UTF16 = {codecs.BOM_UTF16_LE: "utf-16-le", codecs.BOM_UTF16_BE: "utf-16-be"}


class BinaryError(Exception):
    """The file is not text."""


def read_utf8_pieces(descriptor: int) -> Iterator[bytes]:
    """The bytes of a file as UTF-8, without its mark."""
    first = os.read(descriptor, BLOCK_BYTES)
    encoding = UTF16.get(first[:2])
    rest = iter(lambda: os.read(descriptor, BLOCK_BYTES), b"")
    if encoding is None:
        yield first.removeprefix(codecs.BOM_UTF8)
        yield from rest
        return
    decoder = codecs.getincrementaldecoder(encoding)("replace")
    yield decoder.decode(first[2:]).encode()
    for piece in rest:
        yield decoder.decode(piece).encode()
    yield decoder.decode(b"", final=True).encode()


def check_text_pieces(pieces: Iterator[bytes]) -> Iterator[bytes]:
    """The same; BinaryError at the first NUL."""
    for piece in pieces:
        if b"\0" in piece:
            raise BinaryError
        yield piece


class LineBlocks:
    """Whole lines, as many at once as a block holds."""

    def __init__(self, pieces: Iterator[bytes]) -> None:
        self._pieces = pieces
        self.passed_over = 0
        """Bytes of a line too long to be held, which came before the current block."""

    def __iter__(self) -> Iterator[bytes]:
        held: list[bytes] = []
        size = 0
        for piece in self._pieces:
            cut = piece.rfind(b"\n") + 1
            if not cut:
                size += len(piece)
                held = [*held, piece] if size <= MAX_LINE_BYTES else []
                continue
            yield from self._block(held, piece[:cut], size)
            held, size = [piece[cut:]], len(piece) - cut
        if size:
            yield from self._block(held, b"", size)

    def _block(self, held: list[bytes], piece: bytes, size: int) -> Iterator[bytes]:
        if size <= MAX_LINE_BYTES:
            yield b"".join((*held, piece))
            return
        end = piece.find(b"\n") + 1
        self.passed_over = size + (end or len(piece))
        yield piece[end:] if end else b""
        self.passed_over = 0
