"""Takes over a socket that listens inside a sandbox.

A sandbox has a network of its own with nothing in it. A socket belongs to the network it was made in, whoever holds it:
so one that is made inside, and handed out by the proxy's unix socket before the command begins, lets the command reach
the proxy, with nothing of ours running beside it. The unix socket is shut then.
"""

import os
import socket
import sys
from typing import NamedTuple

from handrail.sandbox.proxy.waiting import READABLE, Deadline, Poller

_SIZE = 4
_PIECE_BYTES = 4096
_TAKEN = b"+"


class FirstMessage(NamedTuple):
    """What a connection begins with."""

    data: bytes
    """Nothing where a descriptor came with it: that is no request."""
    listener: socket.socket | None
    """A socket that listens on a loopback address, where one was handed over."""


def receive_first_message(client: socket.socket, waiting: Poller, deadline: Deadline) -> FirstMessage:
    """The first bytes of a connection, and the descriptor that came with them; closed where it is not such a socket."""
    waiting.poll({client: READABLE}, deadline.left)
    data, ancillary, _, _ = client.recvmsg(_PIECE_BYTES, socket.CMSG_SPACE(_SIZE), socket.MSG_CMSG_CLOEXEC)
    handed = [number for level, kind, numbers in ancillary if _is(level, kind) for number in _numbers(numbers)]
    for further in handed[1:]:  # there is room for two, by the way such messages are aligned
        os.close(further)
    return FirstMessage(b"", _listening(handed[0])) if handed else FirstMessage(data, None)


def confirm_handover(client: socket.socket, waiting: Poller, deadline: Deadline) -> None:
    """Tells that the socket was taken over."""
    waiting.send(client, _TAKEN, deadline)


def _numbers(data: bytes) -> list[int]:
    whole = len(data) - len(data) % _SIZE
    return [int.from_bytes(data[start : start + _SIZE], sys.byteorder) for start in range(0, whole, _SIZE)]


def _is(level: int, kind: int) -> bool:
    return (level, kind) == (socket.SOL_SOCKET, socket.SCM_RIGHTS)


def _listening(descriptor: int) -> socket.socket | None:
    try:
        listener = socket.socket(fileno=descriptor)
    except OSError:  # no socket at all
        os.close(descriptor)
        return None
    try:
        if listener.family == socket.AF_INET and _listens_on_loopback(listener):
            listener.setblocking(False)
            return listener
    except OSError:
        pass
    listener.close()
    return None


def _listens_on_loopback(listener: socket.socket) -> bool:
    listens = listener.getsockopt(socket.SOL_SOCKET, socket.SO_ACCEPTCONN)
    return bool(listens) and str(listener.getsockname()[0]).startswith("127.")
