"""What to type so that a terminal that collects lines passes on exactly the bytes that were meant."""

import re

MAX_PIECE_BYTES = 3500
"""Bytes of one piece: a terminal keeps 4,095 of a line, and forgets the rest."""

END_OF_FILE = b"\x04"
KEYS = frozenset({b"\x03", b"\x04", b"\x1a", b"\x1c"})
"""What is a key when it is sent alone: interrupt, end of file, stop, quit."""

_TAKEN_FOR_ITSELF = re.compile(rb"[\x03\x04\x16\x1a\x1c]")
_LITERALLY = b"\x16" + rb"\g<0>"


def encode_keys(data: bytes) -> bytes:
    """The keys for some bytes, which a program gets at once, with or without the end of a line."""
    return b"".join(map(_piece, _pieces(data)))


def _pieces(data: bytes) -> list[bytes]:
    """Each ends with a line, or is short enough to be pushed on before it does."""
    pieces: list[bytes] = []
    for line in _lines(data):
        pieces += [line[start : start + MAX_PIECE_BYTES] for start in range(0, len(line), MAX_PIECE_BYTES)]
    return pieces


def _lines(data: bytes) -> list[bytes]:
    lines = data.split(b"\n")
    return [line + b"\n" for line in lines[:-1]] + ([lines[-1]] if lines[-1] else [])


def _piece(piece: bytes) -> bytes:
    literal = _TAKEN_FOR_ITSELF.sub(_LITERALLY, piece)
    # The key for the end of a file passes on what there is of a line; only where there is nothing does it end one.
    return literal if piece.endswith(b"\n") else literal + END_OF_FILE
