"""The handover of a port from inside a sandbox to the proxy outside.

A sandbox has its own empty network. A socket stays in the network it was made in, in any process. So a listening
socket that is made inside, and sent to the proxy before the command begins, lets the command reach the proxy.
"""

import os
import socket
from zlib import crc32

from handrail.sandbox.proxy.sockets import READABLE, Deadline, Poller

PLACE = "/dev/handrail-proxy"
"""The proxy's unix socket in the sandbox, in a read-only folder."""
PORT = 3128
"""The port on a loopback address of the command's network."""

_EXIT_NOT_BEGUN = 125
# It imports _socket alone: `socket` takes as long to load as Python itself.
_HAND_OVER = """
import _socket, sys
listener = _socket.socket(_socket.AF_INET, _socket.SOCK_STREAM)
listener.bind(("{host}", {port}))
listener.listen(128)
way = _socket.socket(_socket.AF_UNIX, _socket.SOCK_STREAM)
way.connect("{place}")
number = listener.fileno().to_bytes(4, sys.byteorder)
way.sendmsg([b"listen"], [(_socket.SOL_SOCKET, _socket.SCM_RIGHTS, number)])
sys.exit(way.recv(1) != b"+")
"""
_PIECE_BYTES = 4096
CONFIRMATION = b"+"
"""Tells the sandbox that the proxy has its port."""
_OPEN_FOLDER = os.O_DIRECTORY | os.O_CLOEXEC | getattr(os, "O_PATH", os.O_RDONLY)
_MAX_WAITING_CONNECTIONS = 128
NAME = "proxy.sock"
_FOLDER_PREFIX = "network-"


def find_proxy_host(path: str, *, shared: bool) -> str:
    """The loopback address for the proxy with this unix socket. In a shared network each proxy has its own."""
    if not shared:
        return "127.0.0.1"
    number = crc32(os.fsencode(path))
    return f"127.{number >> 16 & 0x7F | 0x80}.{number >> 8 & 0xFF}.{number & 0x7F | 0x40}"


def build_handover_command(python: str, host: str) -> str:
    """The shell code that hands the port on a loopback address over to the proxy, before the command begins."""
    program = python.replace("'", "'\\''")
    hand_over = _HAND_OVER.format(host=host, port=PORT, place=PLACE)
    failed = f"echo 'handrail: the proxy was not reached, so nothing was run' >&2; exit {_EXIT_NOT_BEGUN}"
    return f"'{program}' -I -S -c '{hand_over}' </dev/null >/dev/null 2>&1 || {{ {failed}; }}"


def receive_first_message(client: socket.socket, poller: Poller, deadline: Deadline) -> bytes | socket.socket | None:
    """The first bytes, or the socket that came with them. None if that does not listen on a loopback address."""
    poller.poll({client: READABLE}, deadline.left)
    data, handed, _, _ = socket.recv_fds(client, _PIECE_BYTES, 1, socket.MSG_CMSG_CLOEXEC)
    return _open_listener(handed[0]) if handed else data


def _open_listener(descriptor: int) -> socket.socket | None:
    try:
        listener = socket.socket(fileno=descriptor)
    except OSError:  # not a socket
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


def build_socket_folder(within: str) -> str:
    return os.path.join(within, f"{_FOLDER_PREFIX}{os.urandom(6).hex()}")


def list_socket_folders(within: str) -> list[str]:
    """The folders of proxies, including killed ones."""
    return [os.path.join(within, name) for name in os.listdir(within) if name.startswith(_FOLDER_PREFIX)]


def listen_in(folder: str) -> socket.socket:
    """Listen at `proxy.sock` in a folder, for this user alone. The folder is made if needed."""
    os.makedirs(folder, mode=0o700, exist_ok=True)
    listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        os.fchmod(listener.fileno(), 0o600)  # the file has this mode from the start
        _bind(listener, folder)
        listener.listen(_MAX_WAITING_CONNECTIONS)
        listener.setblocking(False)
    except BaseException:
        listener.close()
        raise
    return listener


def _bind(listener: socket.socket, folder: str) -> None:
    held = os.open(folder, _OPEN_FOLDER)
    try:
        listener.bind(f"/proc/self/fd/{held}/{NAME}")  # the folder's own path may exceed 108 bytes
    finally:
        os.close(held)
