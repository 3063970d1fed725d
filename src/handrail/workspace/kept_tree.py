"""The folders of one root with what was found in them, kept from one look to the next."""

import os
import stat
import time
from collections.abc import Iterator

import msgspec

from handrail.protocol.error import ToolError
from handrail.workspace.folder_entries import CLOSED, Entries, read_entries
from handrail.workspace.root import Root

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
