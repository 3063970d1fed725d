"""Finds the paths in the roots that commands must not see.

These are credentials, by their names, and sockets and named pipes, since a process outside may be at the other end.
Scanning the whole tree before every command is too slow, so results are cached per folder. They are reused while the
folder's change time is the same, which only the kernel sets.
"""

import errno
import os
import socket
import stat
import threading
import time
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from itertools import chain
from typing import NamedTuple

import msgspec

from handrail.kernel.files import has_openat2
from handrail.policy.credential_names import ORDINARY_NAME
from handrail.policy.names import is_credential, is_packaged
from handrail.protocol.errors import ToolError
from handrail.workspace.directory import list_hard_links
from handrail.workspace.file_state import FileId
from handrail.workspace.resolve import INSPECT, LIST_FOLDER, closing_descriptor, open_beneath
from handrail.workspace.roots import Root

_MAX_FOLDERS = 200_000
_SETTLED_SECONDS = 2.0
"""How long after a change a second one may have the same time, on the coarsest of clocks."""
_SEALED_NAMES = ("handrail.toml", ".handrail")
_NO_FILES = (None, stat.S_IFDIR, stat.S_IFLNK)
"""Missing, a folder, and a link that leads in a circle."""


class MaskedPaths(msgspec.Struct, frozen=True, kw_only=True):
    """Paths that commands must not see: absolute, without links, none of them below another."""

    credentials: tuple[str, ...] = ()
    credential_folders: tuple[str, ...] = ()
    """Folders of credentials, and folders that are closed to us now but not for good."""
    sockets: tuple[str, ...] = ()
    pipes: tuple[str, ...] = ()
    configs: tuple[str, ...] = ()
    """Files that git may read as configuration. Commands do see them."""


class SensitivePaths:
    """Scans roots, and caches the results per folder. It is safe for threads."""

    def __init__(
        self, *, kernel: bool | None = None, most_folders: int = _MAX_FOLDERS, settled_after: float = _SETTLED_SECONDS
    ) -> None:
        self._lock = threading.Lock()
        self._kernel = has_openat2() if kernel is None else kernel
        self._most = most_folders
        self._settled_after = settled_after
        self._trees: dict[str, _FolderCache] = {}
        self._masked: MaskedPaths | None = None
        self._links: tuple[str, ...] = ()

    def scan(self, roots: Sequence[Root]) -> MaskedPaths:
        """The paths to mask in these roots now. ToolError if there are too many folders."""
        with self._lock:
            self._refresh(roots)
            if self._masked is None:
                self._masked, self._links = _collect_paths(self._trees)
            paths = [root.path for root in roots]
            masked = _add_link_targets(self._masked, self._links, paths) if self._links else self._masked
            return _add_hard_links(masked, paths)

    def credential_files(self, roots: Sequence[Root]) -> frozenset[FileId]:
        """The files that are credentials by any of their names in these roots."""
        statuses = map(_read_status, self.scan(roots).credentials)
        return frozenset((status.st_dev, status.st_ino) for status in statuses if status is not None)

    def list_known(self, root: Root, relative: str) -> tuple[tuple[bytes, bool], ...] | None:
        """The credentials below a folder of a root, as of the last scan, by their paths below it. True marks a folder.

        None if nothing was scanned. It waits for no scan.
        """
        masked, folder = self._masked, os.path.join(root.path, "" if relative == "." else relative, "")
        if masked is None:
            return None
        kinds = ((masked.credentials, False), (masked.credential_folders, True))
        paths = ((path, is_folder) for kind, is_folder in kinds for path in kind if path.startswith(folder))
        return tuple((os.fsencode(path[len(folder) :]), is_folder) for path, is_folder in paths if is_credential(path))

    def find_foreign(self, roots: Sequence[Root]) -> str | None:
        """A writable folder of another user or group in these roots, as of the last scan. Scans if there was none."""
        with self._lock:
            if not all(root.path in self._trees for root in roots):
                self._refresh(roots)
            for root, tree in self._trees.items():
                for path, cached in tree.folders.items():
                    if cached.foreign:
                        return os.path.normpath(os.path.join(root, path))
        return None

    def _refresh(self, roots: Sequence[Root]) -> None:
        paths = frozenset(root.path for root in roots)
        if paths != self._trees.keys():
            self._masked = None
            self._trees = {path: self._trees.get(path) or self._build_cache() for path in paths}
        for root in roots:
            tree = self._trees[root.path]
            if tree.refresh(root, paths - {root.path}):
                self._masked = None
            if "." not in tree.folders or tree.folders["."].closed:
                raise ToolError("IO_ERROR", "No command was run: a root can no longer be read.")

    def _build_cache(self) -> "_FolderCache":
        return _FolderCache(kernel=self._kernel, most=self._most, settled_after=self._settled_after)


def list_read_only_paths(roots: Iterable[Root]) -> tuple[str, ...]:
    """The existing settings files and folders of handrail in writable roots."""
    paths = (os.path.join(root.path, name) for root in roots if root.writable for name in _SEALED_NAMES)
    return tuple(path for path in paths if _read_kind(path) in {stat.S_IFREG, stat.S_IFDIR})


def _collect_paths(trees: "dict[str, _FolderCache]") -> tuple[MaskedPaths, tuple[str, ...]]:
    """All paths that were found, and the links that are named like credentials."""
    paths: dict[str, list[str]] = {kind: [] for kind in _KINDS}
    for root, tree in trees.items():
        for path, cached in tree.folders.items():
            folder = root if path == "." else os.path.join(root, path)
            for kind, name in cached.sensitive:
                paths[kind].append(os.path.join(folder, name))
            if cached.closed:
                paths["credential_folders"].append(folder)
    # A person opened a root by its name, so it is never masked.
    paths["credential_folders"] = [path for path in paths["credential_folders"] if path not in trees]
    links = tuple(paths.pop("links"))
    return MaskedPaths(**{kind: tuple(names) for kind, names in paths.items()}), links


def _add_link_targets(masked: MaskedPaths, links: tuple[str, ...], roots: list[str]) -> MaskedPaths:
    """Adds the targets in the roots of links that are named like credentials. A target is one too, by any name."""
    targets = [target for target in dict.fromkeys(map(os.path.realpath, links)) if _can_be_masked(target, roots)]
    kinds = {target: _read_kind(target) for target in targets}
    folders = {*masked.credential_folders, *(path for path, kind in kinds.items() if kind == stat.S_IFDIR)}
    files = (*masked.credentials, *(path for path, kind in kinds.items() if kind not in _NO_FILES))

    def drop_covered(paths: Iterable[str]) -> tuple[str, ...]:
        return tuple(path for path in paths if not _is_below_any(path, folders))

    return MaskedPaths(
        credentials=drop_covered(dict.fromkeys(files)),
        credential_folders=drop_covered(sorted(folders)),
        sockets=drop_covered(masked.sockets),
        pipes=drop_covered(masked.pipes),
        configs=masked.configs,
    )


def _add_hard_links(masked: MaskedPaths, roots: list[str]) -> MaskedPaths:
    """Adds the other names (hard links) of credentials in the roots.

    The roots are searched only if a credential has a link count above 1. Files of installed packages are no secrets,
    and installers link very many of them.
    """
    walks = chain.from_iterable(map(os.walk, masked.credential_folders))
    paths = (*masked.credentials, *(os.path.join(folder, name) for folder, _, names in walks for name in names))
    statuses = (_read_status(path) for path in paths if not _is_packaged_in(path, roots))
    files = (status for status in statuses if status is not None and stat.S_ISREG(status.st_mode))
    shared = {(status.st_dev, status.st_ino): status.st_nlink for status in files if status.st_nlink > 1}
    if not shared:
        return masked
    names = (os.path.join(root, below) for root in roots for below, _ in list_hard_links(root, shared))
    credentials = (*masked.credentials, *(name for name in names if not _is_below_any(name, masked.credential_folders)))
    return msgspec.structs.replace(masked, credentials=tuple(dict.fromkeys(credentials)))


def _is_packaged_in(path: str, roots: list[str]) -> bool:
    return is_packaged(min((os.path.relpath(path, root) for root in roots), key=len))


def _can_be_masked(path: str, roots: list[str]) -> bool:
    """Whether a path is below a root and no root is at it or below it."""
    return _is_below_any(path, roots) and path not in roots and not any(_is_below_any(root, (path,)) for root in roots)


def _is_below_any(path: str, folders: Collection[str]) -> bool:
    while (path := os.path.dirname(path)) != "/":
        if path in folders:
            return True
    return "/" in folders


def _read_kind(path: str) -> int | None:
    status = _read_status(path)
    return None if status is None else stat.S_IFMT(status.st_mode)


def _read_status(path: str) -> os.stat_result | None:
    try:
        return os.lstat(path)
    except OSError:
        return None


_KINDS = ("credentials", "credential_folders", "links", "sockets", "pipes", "configs")
"""Kinds of sensitive entries: as in MaskedPaths, and links that are named like credentials."""
_CONFIG_NAMES = frozenset({"config", "config.worktree", ".gitconfig"})
_GONE = frozenset({errno.ENOENT, errno.ENOTDIR, errno.ELOOP})
_REFUSED = frozenset({errno.EACCES, errno.EPERM})
_MAX_PATH_BYTES = 3_800
"""Below a longer path, a name may be too long for the system to open."""


class _CachedFolder(NamedTuple):
    identity: tuple[int, int, int] | None
    """Change time, inode and device. None if a later change may have the same time."""
    folders: tuple[str, ...] = ()
    """Names of subfolders to scan too."""
    sensitive: tuple[tuple[str, str], ...] = ()
    """Kinds (`_KINDS`) and names."""
    closed: bool = False
    """Whether it cannot be read now, but its owner could open it. It is masked as a whole."""
    foreign: bool = False
    """Whether new files in it may get another owner or group than ours."""


class _FolderCache:
    """The folders of one root by their paths below it, each before those in it."""

    def __init__(self, *, kernel: bool, most: int, settled_after: float) -> None:
        self.folders: dict[str, _CachedFolder] = {}
        self._kernel = kernel
        self._most = most
        self._settled_after = int(settled_after * 1_000_000_000)
        self._others: frozenset[str] = frozenset()

    def refresh(self, root: Root, others: frozenset[str]) -> bool:
        """Reads the folders that changed, and returns whether the entries may differ. `others`: roots to leave out."""
        if self.folders and self._others == others:
            differs = self._reread_changed(root)
            if differs is not None:
                return differs
        self._others = others
        self._read_all(root)
        return True

    def _reread_changed(self, root: Root) -> bool | None:
        """Reads the folders that changed, and returns whether the entries differ. None if folders came or went."""
        differs = False
        for path in self._list_changed(root.descriptor):
            before = self.folders[path]
            now = self._read_folder(root, path, before)
            if now is None or now.folders != before.folders:
                return None
            self.folders[path] = now
            differs = differs or now[1:] != before[1:]
        return differs

    def _list_changed(self, root: int) -> list[str]:
        """The folders that are gone or may have changed."""
        stat_path = os.stat
        changed: list[str] = []
        for path, cached in self.folders.items():
            try:
                status = stat_path(path, dir_fd=root, follow_symlinks=False)
            except OSError:
                changed.append(path)
                continue
            if (status.st_ctime_ns, status.st_ino, status.st_dev) != cached.identity:
                changed.append(path)
        return changed

    def _read_all(self, root: Root) -> None:
        known, self.folders = self.folders, {}
        others = {os.path.relpath(other, root.path) for other in self._others}
        for path, cached in self._walk(root, ".", known, others.__contains__):
            self.folders[path] = cached
            if len(self.folders) > self._most:
                self.folders = {}
                message = (
                    f"No command was run: a root has more than {self._most:,} folders, too many to keep the credentials"
                    " in them from commands. Ask for a smaller folder to be opened as the workspace; the file tools"
                    " still work."
                )
                raise ToolError("LIMIT_EXCEEDED", message)

    def _walk(
        self, root: Root, top: str, known: dict[str, _CachedFolder], is_skipped: Callable[[str], bool]
    ) -> Iterator[tuple[str, _CachedFolder]]:
        pending = [top]
        while pending:
            path = pending.pop()
            cached = self._read_folder(root, path, known.get(path))
            if cached is not None:
                yield path, cached
                inner = (_join(path, name) for name in cached.folders)
                pending += [below for below in inner if not is_skipped(below)]

    def _read_folder(self, root: Root, path: str, before: _CachedFolder | None) -> _CachedFolder | None:
        """A folder as it is now. None if it is gone."""
        try:
            status = os.stat(path, dir_fd=root.descriptor, follow_symlinks=False)
        except OSError:
            return None
        # The time is taken before the folder is read: a change during the read has a later time.
        identity = (status.st_ctime_ns, status.st_ino, status.st_dev)
        if before is not None and before.identity == identity:
            return before
        settled = identity if time.time_ns() - status.st_ctime_ns > self._settled_after else None
        if not stat.S_ISDIR(status.st_mode):
            return None
        if len(os.fsencode(path)) > _MAX_PATH_BYTES - len(os.fsencode(root.path)):
            return _CachedFolder(settled, closed=True)
        return self._read_entries(root, path, _CachedFolder(settled, foreign=_is_foreign(status)), status.st_uid)

    def _read_entries(self, root: Root, path: str, empty: _CachedFolder, owner: int) -> _CachedFolder | None:
        """Adds its entries to a folder. None if it is gone or became a link. No file is opened."""
        try:
            descriptor = open_beneath(root.descriptor, path, LIST_FOLDER, kernel=self._kernel)
        except OSError as error:
            if error.errno in _GONE:
                return None
            # The owner can open a folder with chmod. In another user's folder a command reads as little as we do.
            return empty._replace(closed=error.errno not in _REFUSED or owner == os.geteuid())
        with closing_descriptor(descriptor):
            folders, sensitive = _sort_entries(descriptor, root.display_path(path))
        return empty._replace(folders=tuple(folders), sensitive=tuple(sensitive))


def _join(folder: str, name: str) -> str:
    return name if folder == "." else f"{folder}/{name}"


def _is_foreign(status: os.stat_result) -> bool:
    if status.st_uid == os.geteuid() and status.st_gid == os.getegid():
        return False
    others = status.st_gid in (os.getegid(), *os.getgroups()) and status.st_mode & stat.S_IWGRP
    return os.geteuid() in (0, status.st_uid) or bool(others or status.st_mode & stat.S_IWOTH)


def _sort_entries(descriptor: int, path: str) -> tuple[list[str], list[tuple[str, str]]]:
    folders, sensitive = list[str](), list[tuple[str, str]]()
    is_ordinary = ORDINARY_NAME.fullmatch
    with os.scandir(descriptor) as entries:
        for entry in entries:  # the system tells the kind of most entries together with the name
            name = entry.name
            if is_ordinary(name) and entry.is_file(follow_symlinks=False):
                continue
            if name in _CONFIG_NAMES:
                sensitive.append(("configs", name))
            if is_credential(f"{path}/{name}"):
                is_folder = entry.is_dir(follow_symlinks=False)
                kind = "credential_folders" if is_folder else "links" if entry.is_symlink() else "credentials"
                sensitive.append((kind, name))
            elif entry.is_file(follow_symlinks=False):
                continue
            elif entry.is_dir(follow_symlinks=False):
                folders.append(name)
            elif channel := _find_channel_kind(entry, descriptor):
                sensitive.append((channel, name))
    return folders, sensitive


def _find_channel_kind(entry: os.DirEntry[str], folder: int) -> str | None:
    """Tells sockets and named pipes from other entries. A read-only mount does not close either of them."""
    if entry.is_symlink():
        return None
    try:
        mode = entry.stat(follow_symlinks=False).st_mode
    except OSError:
        return None
    if stat.S_ISSOCK(mode):
        return None if _is_dead_socket(folder, entry.name) else "sockets"
    return "pipes" if stat.S_ISFIFO(mode) else None


def _is_dead_socket(folder: int, name: str) -> bool:
    """Whether no process listens on a socket. None ever will: a new listener makes a new file.

    Commands can leave thousands of dead sockets, and each mask costs time.
    """
    try:
        descriptor = os.open(name, INSPECT | os.O_NOFOLLOW, dir_fd=folder)
    except OSError:
        return False
    # A stream listener does not notice a datagram socket.
    with closing_descriptor(descriptor), socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as probe:
        return probe.connect_ex(f"/proc/self/fd/{descriptor}") == errno.ECONNREFUSED
