"""Hands the port of a proxy into a sandbox."""

import os
import socket
import stat
import sys
from typing import NamedTuple

from handrail.sandbox.proxy.sockets import READABLE, Deadline, Poller

# § [sandbox.proxy.handing_over] Takes over a socket that listens inside a sandbox. A sandbox has a network of its
# § own with nothing in it. A socket belongs to the network it was made in, whoever holds it: so one that is made
# § inside, and handed out by the proxy's unix socket before the command begins, lets the command reach the proxy,
# § with nothing of ours running beside it. The unix socket is shut then.

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


# § [sandbox.proxy.inside] How a command inside a sandbox comes to the proxy outside: by a port that listens before
# § the command begins.

PLACE = "/dev/handrail-proxy"
"""Where the proxy's socket is, in every sandbox that has one: in a folder that nobody can change."""
PORT = 3128
"""Where it listens, on the sandbox's own 127.0.0.1."""
ADDRESS = f"http://127.0.0.1:{PORT}"

_NOT_BEGUN = 125
# It loads none of Python's modules but the one it needs: `socket` itself takes as long to load as Python does.
_HAND_OVER = f"""
import _socket, sys
listener = _socket.socket(_socket.AF_INET, _socket.SOCK_STREAM)
listener.bind(("127.0.0.1", {PORT}))
listener.listen(128)
way = _socket.socket(_socket.AF_UNIX, _socket.SOCK_STREAM)
way.connect("{PLACE}")
number = listener.fileno().to_bytes(4, sys.byteorder)
way.sendmsg([b"listen"], [(_socket.SOL_SOCKET, _socket.SCM_RIGHTS, number)])
sys.exit(way.recv(1) != b"+")
"""


def build_handover_command(python: str) -> str:
    """What bash runs before the command: it waits until the proxy has the port, and then nothing of it is left."""
    program = python.replace("'", "'\\''")
    failed = f"echo 'handrail: the proxy was not reached, so nothing was run' >&2; exit {_NOT_BEGUN}"
    return f"'{program}' -I -S -c '{_HAND_OVER}' </dev/null >/dev/null 2>&1 || {{ {failed}; }}"


# § [sandbox.proxy.place] The unix socket that a proxy listens at: this user's alone, however long its path is; and
# § the folder it is in.

_MAX_PATH_BYTES = 100
"""Bytes of a path that a socket can have; the kernel takes a few more."""
_FOLDER = os.O_DIRECTORY | os.O_CLOEXEC | getattr(os, "O_PATH", os.O_RDONLY)
_MAX_WAITING_CONNECTIONS = 128
NAME = "proxy.sock"
_BEGINNING = "network-"


def build_socket_folder(within: str) -> str:
    """A new name for the folder of one proxy's socket."""
    return os.path.join(within, f"{_BEGINNING}{os.urandom(6).hex()}")


def list_socket_folders(within: str) -> list[str]:
    """The folders of proxies, those included whose proxy was killed."""
    return [os.path.join(within, name) for name in os.listdir(within) if name.startswith(_BEGINNING)]


def listen_in(folder: str) -> socket.socket:
    """Listens at `proxy.sock` in a folder, which is made where it is not there."""
    os.makedirs(folder, mode=0o700, exist_ok=True)
    listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        os.fchmod(listener.fileno(), 0o600)  # the file has this mode from its first moment on
        _bind(listener, folder)
        listener.listen(_MAX_WAITING_CONNECTIONS)
        listener.setblocking(False)
    except BaseException:
        listener.close()
        raise
    return listener


def _bind(listener: socket.socket, folder: str) -> None:
    path = os.path.join(folder, NAME)
    if _is_socket(path):
        os.unlink(path)  # of one that was killed
    if len(os.fsencode(path)) <= _MAX_PATH_BYTES:
        listener.bind(path)
        return
    held = os.open(folder, _FOLDER)
    try:
        listener.bind(f"/proc/self/fd/{held}/{NAME}")
    finally:
        os.close(held)


def _is_socket(path: str) -> bool:
    try:
        return stat.S_ISSOCK(os.lstat(path).st_mode)
    except FileNotFoundError:
        return False
