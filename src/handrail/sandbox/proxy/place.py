"""The unix socket that a proxy listens at: this user's alone, however long its path is; and the folder it is in."""

import os
import socket
import stat

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
