"""What is typed into a kept command's terminal arrives as it was meant, byte for byte."""

import os
from collections.abc import Iterator

import pytest
from hypothesis import given
from hypothesis import strategies as st

from handrail.process.keeper.terminal import END_OF_FILE, KEYS, MAX_PIECE_BYTES, Terminal, encode_keys

LONG_LINES = st.integers(MAX_PIECE_BYTES - 2, 2 * MAX_PIECE_BYTES + 2).map(lambda size: b"x" * size)


@pytest.fixture(scope="module")
def terminal() -> Iterator[Terminal]:
    made = Terminal()
    yield made
    made.close()


@pytest.fixture(scope="module")
def program(terminal: Terminal) -> Iterator[int]:
    """Where a program reads."""
    descriptor = os.open(terminal.path, os.O_RDWR | os.O_NOCTTY | os.O_CLOEXEC)
    yield descriptor
    os.close(descriptor)


def arrived(terminal: Terminal, program: int, data: bytes) -> bytes:
    """What a program reads while that is typed."""
    assert terminal.write(encode_keys(data)) == len(encode_keys(data))
    found = b""
    while len(found) < len(data):
        found += os.read(program, 1 << 16)
    return found


@given(st.lists(st.one_of(st.binary(max_size=200), LONG_LINES, st.just(b"\n"), st.sampled_from(sorted(KEYS)))))
def test_every_byte_arrives(terminal: Terminal, program: int, pieces: list[bytes]) -> None:
    data = b"".join(pieces)
    for start in range(0, len(data), MAX_PIECE_BYTES):
        piece = data[start : start + MAX_PIECE_BYTES]
        assert arrived(terminal, program, piece) == piece


def test_the_end_of_a_file_follows_what_was_typed(terminal: Terminal, program: int) -> None:
    terminal.write(encode_keys(b"without a newline") + END_OF_FILE)
    assert os.read(program, 100) == b"without a newline"
    assert os.read(program, 100) == b""


def test_what_is_printed_comes_out_unchanged(terminal: Terminal, program: int) -> None:
    data = bytes(range(256)) + b"\r\n\t\x1b[31m"
    os.write(program, data)
    found = b""
    while len(found) < len(data):
        found += terminal.read(4096)
    assert found == data
    assert os.get_terminal_size(program) == (120, 40)
