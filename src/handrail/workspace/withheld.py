"""What lies in the roots that commands must not see: credentials, by their names, and sockets and named pipes, at whose
other end somebody may be; and what they may see and not change.

Looking through a tree anew for every command would take longer than most commands do. So for each folder is kept what
was in it. As long as its change time is the same, that holds: the system sets this time, and nobody else can.
"""

import os
import stat
import threading
from collections.abc import Collection, Iterable, Iterator, Sequence
from itertools import chain

import msgspec

from handrail.kernel.openat2 import has_openat2
from handrail.policy.names import is_packaged
from handrail.protocol.error import ToolError
from handrail.workspace.kept_tree import MAX_FOLDERS, SETTLED_SECONDS, FolderCache
from handrail.workspace.other_names import FileId, list_hard_links
from handrail.workspace.root import Root

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
