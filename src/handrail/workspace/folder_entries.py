"""What in one folder is of interest to who withholds things: read once, without a look at any file."""

import errno
import os
import socket
import stat

import msgspec

from handrail.kernel.openat2 import RESOLVE_NO_SYMLINKS, openat2
from handrail.policy.names import is_credential
from handrail.workspace.root import Root

_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_ITSELF = os.O_NOFOLLOW | os.O_CLOEXEC | getattr(os, "O_PATH", os.O_RDONLY | os.O_NONBLOCK)
_CONFIGS = frozenset({"config", "config.worktree", ".gitconfig"})
_GONE = frozenset({errno.ENOENT, errno.ENOTDIR, errno.ELOOP})
_REFUSED = frozenset({errno.EACCES, errno.EPERM})


class Entries(msgspec.Struct, frozen=True):
    """Names in a folder."""

    folders: tuple[str, ...] = ()
    """Those that may hold more."""
    credentials: tuple[str, ...] = ()
    credential_folders: tuple[str, ...] = ()
    links: tuple[str, ...] = ()
    """Links that are called like credentials."""
    sockets: tuple[str, ...] = ()
    pipes: tuple[str, ...] = ()
    configs: tuple[str, ...] = ()
    """What git may take for a configuration."""
    closed: bool = False
    """Whether nobody could look into it who might later: it is withheld as a whole."""


NOTHING = Entries()
CLOSED = Entries(closed=True)


def read_entries(root: Root, path: str, owner: int, *, kernel: bool) -> Entries | None:
    """What is in a folder below a root; None where it is gone, or a link took its place."""
    try:
        descriptor = _opened(root.descriptor, path, kernel=kernel)
    except OSError as error:
        if error.errno in _GONE:
            return None
        # Who owns a folder opens it with chmod; of another's, a command reads as little as this does.
        return NOTHING if error.errno in _REFUSED and owner != os.geteuid() else CLOSED
    try:
        return _sorted_out(descriptor, root.display_path(path))
    finally:
        os.close(descriptor)


def _opened(root: int, path: str, *, kernel: bool) -> int:
    if kernel:
        return openat2(root, path, _FOLDER, resolve=RESOLVE_NO_SYMLINKS)
    descriptor = os.open(".", _FOLDER, dir_fd=root)
    for name in path.split("/"):
        try:
            descriptor, outer = os.open(name, _FOLDER, dir_fd=descriptor), descriptor
        except OSError:
            os.close(descriptor)
            raise
        os.close(outer)
    return descriptor


def _sorted_out(descriptor: int, shown: str) -> Entries:
    folders, withheld = list[str](), list[tuple[str, str]]()
    with os.scandir(descriptor) as entries:
        for entry in entries:  # the system tells the kind of most entries together with the name
            name = entry.name
            if name in _CONFIGS:
                withheld.append(("configs", name))
            if is_credential(f"{shown}/{name}"):
                withheld.append((_credential(entry), name))
            elif entry.is_file(follow_symlinks=False):
                continue
            elif entry.is_dir(follow_symlinks=False):
                folders.append(name)
            elif channel := _channel(entry, descriptor):
                withheld.append((channel, name))
    return _entries(tuple(folders), withheld) if folders or withheld else NOTHING


def _entries(folders: tuple[str, ...], withheld: list[tuple[str, str]]) -> Entries:
    def of(kind: str) -> tuple[str, ...]:
        return tuple(name for one, name in withheld if one == kind)

    return Entries(
        folders, of("credentials"), of("credential_folders"), of("links"), of("sockets"), of("pipes"), of("configs")
    )


def _credential(entry: os.DirEntry[str]) -> str:
    if entry.is_dir(follow_symlinks=False):
        return "credential_folders"
    return "links" if entry.is_symlink() else "credentials"


def _is_dead(folder: int, name: str) -> bool:
    """Whether nobody has the socket, and so nobody ever will: who listens by this name makes a new one. Else commands
    could leave thousands, each of which would have to be covered for those after them."""
    try:
        itself = os.open(name, _ITSELF, dir_fd=folder)
    except OSError:
        return False
    try:
        with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as asking:  # who listens for streams does not notice
            return asking.connect_ex(f"/proc/self/fd/{itself}") == errno.ECONNREFUSED
    finally:
        os.close(itself)


def _channel(entry: os.DirEntry[str], folder: int) -> str | None:
    """A socket or a named pipe: somebody outside may be at the other end, and that it is read-only does not matter."""
    if entry.is_symlink():
        return None
    try:
        mode = entry.stat(follow_symlinks=False).st_mode
    except OSError:  # gone meanwhile
        return None
    if stat.S_ISSOCK(mode):
        return None if _is_dead(folder, entry.name) else "sockets"
    return "pipes" if stat.S_ISFIFO(mode) else None
