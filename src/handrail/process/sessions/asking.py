"""Speaks to a keeper."""

import json
import os
import select
import socket
import time
from collections.abc import Callable, Generator
from contextlib import ExitStack, contextmanager, suppress

from handrail.process.keeper.files import SOCKET, VERSION, Json

_PIECE_BYTES = 1 << 16
_MAX_REPLY_BYTES = 4096


class NoKeeperError(Exception):
    """Nobody answers: it has ended, or it hangs."""


def ask(folder: str, request: Json, data: bytes = b"", *, seconds: float) -> Json:
    """The answer of the folder's keeper, who has so many seconds for each step; NoKeeperError where there is none."""
    with _connected(folder, seconds) as connection:
        return _answer_to(connection, request, data, seconds)


@contextmanager
def bind_to_caller(folder: str, *, seconds: float) -> Generator[Callable[[], None]]:
    """Meanwhile the command ends with this process, however that ends; what is given lets go of it."""
    with ExitStack() as opened:
        try:
            connection = opened.enter_context(_connected(folder, seconds))
            _answer_to(connection, {"do": "await"}, b"", seconds)
        except NoKeeperError:  # it has ended by itself
            yield lambda: None
            return
        yield lambda: _let_go(connection)


def _let_go(connection: socket.socket) -> None:
    with suppress(OSError):
        connection.send(b"\n")


@contextmanager
def _connected(folder: str, seconds: float) -> Generator[socket.socket]:
    opened = _open(folder)
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as connection:
        try:
            connection.settimeout(seconds)
            connection.connect(f"/proc/self/fd/{opened}/{SOCKET}")  # a path has 108 bytes, a folder's may be longer
        except OSError as error:
            raise NoKeeperError(str(error)) from None
        finally:
            os.close(opened)
        yield connection


def _answer_to(connection: socket.socket, request: Json, data: bytes, seconds: float) -> Json:
    line = json.dumps({"v": VERSION, **request}).encode() + b"\n"
    try:
        return _exchanged(connection, line + data, seconds)
    except OSError as error:
        raise NoKeeperError(str(error)) from None


def _exchanged(connection: socket.socket, data: bytes, seconds: float) -> Json:
    """Sends, and listens meanwhile: who does not want the rest says so early."""
    connection.setblocking(False)
    poller = select.poll()
    answer, rest = b"", memoryview(data)
    poller.register(connection, select.POLLIN | select.POLLOUT)
    until = time.monotonic() + seconds
    while b"\n" not in answer:
        ready = poller.poll(max(0.0, until - time.monotonic()) * 1000)
        if not ready:
            raise NoKeeperError("no answer")
        if ready[0][1] & ~select.POLLOUT:
            said = connection.recv(_MAX_REPLY_BYTES)
            if not said:
                raise NoKeeperError("it ended")
            answer += said
        elif rest:
            rest = rest[connection.send(rest[:_PIECE_BYTES]) :]
            until = time.monotonic() + seconds
        if not rest:
            poller.modify(connection, select.POLLIN)
    return _decoded(answer)


def _decoded(answer: bytes) -> Json:
    try:
        found = json.loads(answer)
    except ValueError:
        found = None
    if not isinstance(found, dict):
        raise NoKeeperError("it does not make sense")
    return found  # pyright: ignore[reportUnknownVariableType]


def _open(folder: str) -> int:
    try:
        return os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
    except OSError as error:
        raise NoKeeperError(str(error)) from None
