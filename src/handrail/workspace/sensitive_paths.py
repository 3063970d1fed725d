"""Paths that commands must not see, cached by change time."""

import errno
import os
import socket
import stat
import threading
import time
from collections.abc import Collection, Iterable, Iterator, Sequence
from itertools import chain

import msgspec

from handrail.kernel.openat2 import RESOLVE_NO_SYMLINKS, has_openat2, openat2
from handrail.policy.names import is_credential, is_packaged
from handrail.protocol.errors import ToolError
from handrail.workspace.facts import FileId, list_hard_links
from handrail.workspace.roots import Root

# § [workspace.folder_entries] What in one folder is of interest to who withholds things: read once, without a look
# § at any file.

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


# § [workspace.kept_tree] The folders of one root with what was found in them, kept from one look to the next.

MAX_FOLDERS = 200_000
SETTLED_SECONDS = 2.0
"""How long after a change a second one may bear the same time, on the coarsest of clocks."""
_MAX_PATH_BYTES = 3_800
"""Bytes of a path; what is below a longer one may have no name that the system opens."""


class CachedFolder(msgspec.Struct, frozen=True):
    """A folder as it was when it was read."""

    identity: tuple[int, int, int] | None
    """Its change time and what it is; None where a later change may bear the same time."""
    entries: Entries
    foreign: bool = False
    """Whether it is written to by who does not own it: it has another owner or another group than new files get."""


class FolderCache:
    """The folders of one root by their path below it, each before those in it."""

    def __init__(self, *, kernel: bool, most: int, settled_after: float) -> None:
        self.folders: dict[str, CachedFolder] = {}
        self._kernel = kernel
        self._most = most
        self._settled_after = int(settled_after * 1_000_000_000)
        self._others: frozenset[str] = frozenset()

    @property
    def is_closed(self) -> bool:
        """Whether the root itself could not be looked into."""
        return "." not in self.folders or self.folders["."].entries.closed

    def refresh(self, root: Root, others: frozenset[str]) -> bool:
        """Looks at every folder, and reads those that changed; whether what was found may be different. `others` are
        roots that are looked through on their own."""
        if self.folders and self._others == others:
            different = self._renewed(root)
            if different is not None:
                return different
        self._others = others
        self._look(root)
        return True

    def _renewed(self, root: Root) -> bool | None:
        """Reads those folders anew that changed; whether that made a difference. None where folders came or went."""
        different = False
        for path in self._changed(root.descriptor):
            before = self.folders[path]
            now = self._folder(root, path, before)
            if now is None or now.entries.folders != before.entries.folders:
                return None
            self.folders[path] = now
            different = different or (now.entries, now.foreign) != (before.entries, before.foreign)
        return different

    def _changed(self, root: int) -> list[str]:
        """The folders that are not surely as they were, those included that are gone."""
        look = os.stat
        changed: list[str] = []
        for path, kept in self.folders.items():
            try:
                status = look(path, dir_fd=root, follow_symlinks=False)
            except OSError:
                changed.append(path)
                continue
            if (status.st_ctime_ns, status.st_ino, status.st_dev) != kept.identity:
                changed.append(path)
        return changed

    def _look(self, root: Root) -> None:
        before, self.folders = self.folders, {}
        pending = ["."]
        while pending:
            path = pending.pop()
            kept = self._folder(root, path, before.get(path))
            if kept is None:
                continue
            self.folders[path] = kept
            if len(self.folders) > self._most:
                self.folders = {}
                raise _too_many(self._most)
            pending += self._below(root, path, kept.entries.folders)

    def _below(self, root: Root, path: str, names: tuple[str, ...]) -> Iterator[str]:
        for name in names:
            below = name if path == "." else f"{path}/{name}"
            if not self._others or os.path.join(root.path, below) not in self._others:
                yield below

    def _folder(self, root: Root, path: str, before: CachedFolder | None) -> CachedFolder | None:
        """A folder as it is now; None where it is none any more."""
        try:
            status = os.stat(path, dir_fd=root.descriptor, follow_symlinks=False)
        except OSError:
            return None
        # Taken before it is read: what changes while it is read bears a later time.
        identity = (status.st_ctime_ns, status.st_ino, status.st_dev)
        if before is not None and before.identity == identity:
            return before
        settled = identity if time.time_ns() - status.st_ctime_ns > self._settled_after else None
        if not stat.S_ISDIR(status.st_mode):
            return None
        if len(os.fsencode(path)) > _MAX_PATH_BYTES - len(os.fsencode(root.path)):
            return CachedFolder(settled, CLOSED)
        entries = read_entries(root, path, status.st_uid, kernel=self._kernel)
        return None if entries is None else CachedFolder(settled, entries, _is_foreign(status))


def _is_foreign(status: os.stat_result) -> bool:
    if status.st_uid == os.geteuid() and status.st_gid == os.getegid():
        return False
    others = status.st_gid in (os.getegid(), *os.getgroups()) and status.st_mode & stat.S_IWGRP
    return os.geteuid() in (0, status.st_uid) or bool(others or status.st_mode & stat.S_IWOTH)


def _too_many(most: int) -> ToolError:
    message = (
        f"No command was run: a root has more than {most:,} folders, too many to keep the credentials in them from"
        " commands. Ask for a smaller folder to be opened as the workspace; the file tools still work."
    )
    return ToolError("LIMIT_EXCEEDED", message)


# § [workspace.withheld] What lies in the roots that commands must not see: credentials, by their names, and sockets
# § and named pipes, at whose other end somebody may be; and what they may see and not change.  Looking through a
# § tree anew for every command would take longer than most commands do. So for each folder is kept what was in it.
# § As long as its change time is the same, that holds: the system sets this time, and nobody else can.

_SEALED = ("handrail.toml", ".handrail")
_NO_FILES = (None, stat.S_IFDIR, stat.S_IFLNK)
"""Nothing, a folder, and a link that leads in a circle."""


class MaskedPaths(msgspec.Struct, frozen=True, kw_only=True):
    """What is withheld, by absolute paths without links. None of them lies in another one."""

    credentials: tuple[str, ...] = ()
    """Files."""
    credential_folders: tuple[str, ...] = ()
    """Folders that are credentials as a whole, and those that nobody could look into who might later."""
    sockets: tuple[str, ...] = ()
    pipes: tuple[str, ...] = ()
    """Those with names."""
    configs: tuple[str, ...] = ()
    """What git may take for a configuration. These are not withheld."""


class SensitivePaths:
    """Keeps what was found in the roots, and looks again where something changed. Any thread may ask."""

    def __init__(
        self, *, kernel: bool | None = None, most_folders: int = MAX_FOLDERS, settled_after: float = SETTLED_SECONDS
    ) -> None:
        self._lock = threading.Lock()
        self._kernel = has_openat2() if kernel is None else kernel
        self._most = most_folders
        self._settled_after = settled_after
        self._trees: dict[str, FolderCache] = {}
        self._found: MaskedPaths | None = None
        self._links: tuple[str, ...] = ()

    def scan(self, roots: Sequence[Root]) -> MaskedPaths:
        """What is withheld in these roots now; a ToolError where there are too many folders to look at."""
        with self._lock:
            self._refresh(roots)
            if self._found is None:
                self._found, self._links = _gathered(self._trees)
            return self._told(self._found, roots)

    def credential_files(self, roots: Sequence[Root]) -> frozenset[FileId]:
        """The files that are credentials by any of their names in these roots."""
        statuses = map(_status, self.scan(roots).credentials)
        return frozenset((one.st_dev, one.st_ino) for one in statuses if one is not None)

    def last_known(self, roots: Sequence[Root]) -> MaskedPaths | None:
        """What was withheld in these roots at the last look, which may be long ago; None where there was none."""
        with self._lock:
            if self._found is None or self._trees.keys() != {root.path for root in roots}:
                return None
            return self._told(self._found, roots)

    def foreign(self, roots: Sequence[Root]) -> str | None:
        """A folder in these roots, as it was at the last look, that can be written to and is another user's or has
        another group; looks where nobody did yet."""
        with self._lock:
            if not all(root.path in self._trees for root in roots):
                self._refresh(roots)
            found = (
                (root, path)
                for root, tree in self._trees.items()
                for path, kept in tree.folders.items()
                if kept.foreign
            )
            return next((os.path.normpath(os.path.join(root, path)) for root, path in found), None)

    def _told(self, found: MaskedPaths, roots: Sequence[Root]) -> MaskedPaths:
        paths = [root.path for root in roots]
        return _with_other_names(_with_targets(found, self._links, paths) if self._links else found, paths)

    def _refresh(self, roots: Sequence[Root]) -> None:
        paths = frozenset(root.path for root in roots)
        if paths != self._trees.keys():
            self._found = None
            self._trees = {path: self._trees.get(path) or self._new() for path in paths}
        for root in roots:
            tree = self._trees[root.path]
            if tree.refresh(root, paths - {root.path}):
                self._found = None
            if tree.is_closed:
                raise ToolError("IO_ERROR", "No command was run: a root cannot be looked into any more.")

    def _new(self) -> FolderCache:
        return FolderCache(kernel=self._kernel, most=self._most, settled_after=self._settled_after)


def list_read_only_paths(roots: Iterable[Root]) -> tuple[str, ...]:
    """The files and folders in writable roots that decide what commands may do, as far as they are there."""
    places = (os.path.join(root.path, name) for root in roots if root.writable for name in _SEALED)
    return tuple(place for place in places if _kind(place) in {stat.S_IFREG, stat.S_IFDIR})


def _gathered(trees: dict[str, FolderCache]) -> tuple[MaskedPaths, tuple[str, ...]]:
    """Everything that was found, and the links that are called like credentials."""
    folders = (*_paths(trees, "credential_folders"), *_closed(trees))
    found = MaskedPaths(
        credentials=tuple(_paths(trees, "credentials")),
        credential_folders=tuple(path for path in folders if path not in trees),  # a root was opened by its name
        sockets=tuple(_paths(trees, "sockets")),
        pipes=tuple(_paths(trees, "pipes")),
        configs=tuple(_paths(trees, "configs")),
    )
    return found, tuple(_paths(trees, "links"))


def _paths(trees: dict[str, FolderCache], kind: str) -> Iterator[str]:
    for root, tree in trees.items():
        for path, kept in tree.folders.items():
            for name in getattr(kept.entries, kind):
                yield os.path.join(root, name) if path == "." else os.path.join(root, path, name)


def _closed(trees: dict[str, FolderCache]) -> Iterator[str]:
    for root, tree in trees.items():
        yield from (os.path.join(root, path) for path, kept in tree.folders.items() if kept.entries.closed)


def _with_targets(found: MaskedPaths, links: tuple[str, ...], roots: list[str]) -> MaskedPaths:
    """With what the links lead to in the roots: it is a credential, whatever it is called there."""
    targets = [target for target in dict.fromkeys(map(os.path.realpath, links)) if _may_be_hidden(target, roots)]
    kinds = {target: _kind(target) for target in targets}
    folders = {*found.credential_folders, *(path for path, kind in kinds.items() if kind == stat.S_IFDIR)}
    files = (*found.credentials, *(path for path, kind in kinds.items() if kind not in _NO_FILES))
    return MaskedPaths(
        credentials=tuple(path for path in dict.fromkeys(files) if not _is_in_any(path, folders)),
        credential_folders=tuple(sorted(path for path in folders if not _is_in_any(path, folders))),
        sockets=tuple(path for path in found.sockets if not _is_in_any(path, folders)),
        pipes=tuple(path for path in found.pipes if not _is_in_any(path, folders)),
        configs=found.configs,
    )


def _with_other_names(found: MaskedPaths, roots: list[str]) -> MaskedPaths:
    """With the other names (hard links) that credentials have in the roots. These are searched only if a file says that
    it has some. What came with a package is nobody's secret, and installers link very many such files."""
    walks = chain.from_iterable(map(os.walk, found.credential_folders))
    paths = (*found.credentials, *(os.path.join(folder, name) for folder, _, names in walks for name in names))
    statuses = (_status(path) for path in paths if not is_packaged(min(_below(path, roots), key=len)))
    files = (one for one in statuses if one is not None and stat.S_ISREG(one.st_mode))
    shared = {(one.st_dev, one.st_ino): one.st_nlink for one in files if one.st_nlink > 1}
    if not shared:
        return found
    names = (os.path.join(root, below) for root in roots for below, _ in list_hard_links(root, shared))
    credentials = (*found.credentials, *(name for name in names if not _is_in_any(name, found.credential_folders)))
    return msgspec.structs.replace(found, credentials=tuple(dict.fromkeys(credentials)))


def _below(path: str, roots: list[str]) -> Iterator[str]:
    return (os.path.relpath(path, root) for root in roots)


def _may_be_hidden(path: str, roots: list[str]) -> bool:
    """Whether a path is in a root and holds none."""
    return _is_in_any(path, roots) and path not in roots and not any(_is_in_any(root, (path,)) for root in roots)


def _is_in_any(path: str, folders: Collection[str]) -> bool:
    """Whether a path is beneath one of the folders."""
    while (path := os.path.dirname(path)) != "/":
        if path in folders:
            return True
    return "/" in folders


def _kind(path: str) -> int | None:
    status = _status(path)
    return None if status is None else stat.S_IFMT(status.st_mode)


def _status(path: str) -> os.stat_result | None:
    try:
        return os.lstat(path)
    except OSError:
        return None
