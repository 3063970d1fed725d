"""The status of a launch: believed as it comes, in whatever pieces."""

import fcntl
import os
from collections.abc import Iterator

import pytest

from handrail.process.output import PIPE_CAPACITY_BYTES, Pipes
from handrail.process.tree import Status


@pytest.fixture
def pipes() -> Iterator[Pipes]:
    with Pipes(1) as opened:
        yield opened


def test_it_comes_in_pieces(pipes: Pipes) -> None:
    status = Status(pipes.reading[0])
    seen: list[tuple[int | None, int | None]] = []
    for piece in (b"", b'{ "child-p', b'id": 12', b', "pid-namespace": 4 }', b"\n{", b'"exit-code": 3 }\n'):
        os.write(pipes.writing[0], piece)
        status.read()
        seen.append((status.child_pid, status.exit_code))
    assert seen == [(None, None), (None, None), (None, None), (None, None), (12, None), (12, 3)]
    assert not status.over


def test_the_last_line_needs_no_end(pipes: Pipes) -> None:
    os.write(pipes.writing[0], b'{"child-pid": 12}\n{"exit-code": 0}')
    pipes.close_child_ends()
    status = Status(pipes.reading[0])
    status.read()
    assert (status.child_pid, status.exit_code, status.over) == (12, 0, True)


def test_what_was_said_first_counts(pipes: Pipes) -> None:
    os.write(pipes.writing[0], b'{"child-pid": 12}\n{"exit-code": 1}\n{"child-pid": 13}\n{"exit-code": 2}\n')
    status = Status(pipes.reading[0])
    status.read()
    assert (status.child_pid, status.exit_code) == (12, 1)


@pytest.mark.parametrize(
    "line", [b"", b"child-pid 12", b"[12]", b'{"child-pid": "12"}', b'{"child-pid": 1.5}', b"\xff{}"]
)
def test_nonsense_is_passed_over(pipes: Pipes, line: bytes) -> None:
    os.write(pipes.writing[0], line + b'\n{"child-pid": 7}\n')
    status = Status(pipes.reading[0])
    status.read()
    assert (status.child_pid, status.over) == (7, False)


def test_a_line_without_end_ends_the_status(pipes: Pipes) -> None:
    status = Status(pipes.reading[0])
    for _ in range(4):
        os.write(pipes.writing[0], bytes(60_000))
        status.read()
    assert status.over


def test_a_pipe_holds_a_megabyte(pipes: Pipes) -> None:
    assert fcntl.fcntl(pipes.reading[0], fcntl.F_GETPIPE_SZ) == PIPE_CAPACITY_BYTES == 1 << 20
