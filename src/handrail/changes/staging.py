"""Files set aside while steps are applied."""

import contextlib
import os
import shutil
import stat
from collections.abc import Collection, Iterable, Iterator, Mapping

from handrail.protocol.errors import ToolError
from handrail.store.change_log import FileExtras, Step
from handrail.workspace.atomic import Away
from handrail.workspace.errors import to_tool_error
from handrail.workspace.file_state import PathState, read_state
from handrail.workspace.resolve import ENTER_FOLDER, LIST_FOLDER
from handrail.workspace.roots import Root
from handrail.workspace.workspace import Workspace

# § [changes.holding] Holds what a change takes out of the workspace until all of it is done. If it fails in the
# § middle, the very files go back: with their times, owners and attributes, and on a disk that is full. If the held
# § files are on another file system than the workspace, they go back from their stored contents.

_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC


class StagingDir:
    """A folder of ours for the files of one change set."""

    def __init__(self, folder: str) -> None:
        self._folder = folder
        os.makedirs(folder, mode=0o700, exist_ok=True)
        self._descriptor = os.open(folder, _FOLDER)
        self._held: dict[bytes, str] = {}
        self._number = 0

    def stash(self, path: bytes) -> Away:
        """Takes in the file of a path."""

        def take_in(folder: int, name: str) -> None:
            self._number += 1
            try:
                os.rename(name, str(self._number), src_dir_fd=folder, dst_dir_fd=self._descriptor)
                self._held[path] = str(self._number)
            except OSError:
                os.unlink(name, dir_fd=folder)

        return take_in

    def unstash(self, path: bytes) -> tuple[int, str] | None:
        """Where the file of a path is held: folder and name; None when it is not. It is handed out once."""
        name = self._held.pop(path, None)
        return (self._descriptor, name) if name is not None else None

    def close(self) -> None:
        """Does away with what is held."""
        os.close(self._descriptor)
        remove_staging_dir(self._folder)


def build_staging_path(history: str, temporary: str) -> str:
    """Where the files of one change set are held: known, so that a crash leaves nothing that cannot be found."""
    return os.path.join(history, "held", temporary)


def remove_staging_dir(folder: str) -> None:
    """Removes held files, also those that a killed process left."""
    shutil.rmtree(folder, ignore_errors=True)
    with contextlib.suppress(OSError):
        os.rmdir(os.path.dirname(folder))


# § [changes.opened] Folders whose owner may not write in them, opened while a change is made in them. A command may
# § open such a folder, work in it and close it again. What it did there can only be committed, or undone, in the
# § same way. Which folders these are is written down first, so that a crash does not leave them open.

_ALL = stat.S_IRWXU


def list_locked_dirs(workspace: Workspace, steps: Iterable[Step]) -> dict[bytes, int]:
    """The folders of ours that steps lead through and that have to be opened for it, with their modes."""
    if os.geteuid() == 0:
        return {}  # may write everywhere
    closed: dict[bytes, int] = {}
    for folder in sorted({above for step in steps for above in _above(step.path)}):
        with contextlib.suppress(ToolError, OSError), workspace.open_parent(folder) as landing:
            if landing.missing:
                continue
            status = os.stat(landing.name, dir_fd=landing.folder, follow_symlinks=False)
            mine = stat.S_ISDIR(status.st_mode) and status.st_uid == os.geteuid()
            if mine and status.st_mode & _ALL != _ALL:
                closed[folder] = stat.S_IMODE(status.st_mode)
    return closed


class UnlockedDirs:
    """Opens folders, and closes them again."""

    def __init__(self, workspace: Workspace, closed: Mapping[bytes, int]) -> None:
        self._workspace = workspace
        self._closed = closed

    def open(self) -> None:
        """Lets the owner write in them, the outer ones first."""
        for path in sorted(self._closed):
            set_mode(self._workspace, path, self._closed[path] | _ALL, only_from=self._closed[path])

    def close(self, but: Collection[bytes] = ()) -> None:
        """Makes them what they were, the inner ones first; not those that are something else by now, or that got a
        mode of their own."""
        for path in sorted(self._closed.keys() - set(but), reverse=True):
            with contextlib.suppress(ToolError, OSError):
                set_mode(self._workspace, path, self._closed[path], only_from=self._closed[path] | _ALL)

    def mode(self, path: bytes, now: int | None) -> int | None:
        """The mode of a folder, as it was before it was opened."""
        then = self._closed.get(path)
        return then if then is not None and now == then | _ALL else now


class FolderModes:
    """Gives folders their modes when everything in them is done."""

    def __init__(self, workspace: Workspace) -> None:
        self._workspace = workspace
        self._modes: dict[bytes, int] = {}

    @property
    def paths(self) -> Collection[bytes]:
        """The folders that get one."""
        return self._modes.keys()

    def later(self, path: bytes, mode: int) -> None:
        """Notes what a folder is to have."""
        self._modes[path] = mode

    def will_change(self, step: Step) -> bool:
        """Notes the mode of a folder that stays, where a step changes it; whether it does."""
        before, after = step.before, step.after
        if before is None or after is None or after.mode is None or before.mode == after.mode:
            return False
        self.later(step.path, after.mode)
        return True

    def set(self) -> None:
        """The inner folders first: an outer one may be closed by it."""
        for path in sorted(self._modes, reverse=True):
            try:
                set_mode(self._workspace, path, self._modes[path])
            except OSError as error:
                raise to_tool_error(error, os.fsdecode(path)) from None

    def clear(self) -> None:
        """Forgets them all."""
        self._modes.clear()


def set_mode(workspace: Workspace, path: bytes, mode: int, only_from: int | None = None) -> bool:
    """Changes the mode of a folder, where it is one; whether it did."""
    with workspace.open_parent(path) as landing:
        found = read_state(landing).state
        if found is None or found.kind != "folder" or (only_from is not None and found.mode != only_from):
            return False
        if found.mode == mode:
            return False
        descriptor = os.open(landing.name, ENTER_FOLDER, dir_fd=landing.folder)
        try:
            os.chmod(f"/proc/self/fd/{descriptor}" if hasattr(os, "O_PATH") else descriptor, mode)
        finally:
            os.close(descriptor)
    return True


def _above(path: bytes) -> list[bytes]:
    """The folders that a path is in, below its root."""
    parts = path.split(b"/")
    return [b"/".join(parts[:end]) for end in range(1, len(parts)) if parts[end - 1]]


# § [changes.former] What files were besides their contents and modes: their attributes, and which of them were one
# § file. A commit and an undo write it down of what they replace or remove, so that it comes back with it.

_OWN = "user."
_MAX_ROOT_ENTRIES = 300_000
"""Of a root that are looked through for the other names of files."""
_File = tuple[int, int]


def capture_extras(
    workspace: Workspace, places: Mapping[bytes, PathState], dressed: Iterable[bytes] = ()
) -> tuple[FileExtras, ...]:
    """What is worth to be written down of files that are about to be replaced or removed. `dressed`: paths whose
    attributes count even where they have none."""
    counted = set(dressed)
    links = _links(workspace, places)
    found: list[FileExtras] = []
    for path, place in places.items():
        if place.current is None:
            continue
        attributes = read_user_xattrs(workspace, path)
        if attributes or path in counted or path in links:
            found.append(FileExtras(path, attributes, links.get(path)))
    return tuple(found)


def read_user_xattrs(workspace: Workspace, path: bytes) -> dict[str, bytes]:
    """The extended attributes of the user's own that a file has."""
    if not hasattr(os, "listxattr"):
        return {}
    with contextlib.suppress(OSError, ToolError), workspace.open_parent(path) as landing:
        file = f"/proc/self/fd/{landing.folder}/{landing.name}"
        names = [name for name in os.listxattr(file, follow_symlinks=False) if name.startswith(_OWN)]
        return {name: os.getxattr(file, name, follow_symlinks=False) for name in names}
    return {}


def _links(workspace: Workspace, places: Mapping[bytes, PathState]) -> dict[bytes, bytes]:
    """The paths that are names of one file, each with the name that it is to be made from again: one that stays,
    where there is one."""
    names: dict[_File, list[bytes]] = {}
    sizes: dict[_File, int] = {}
    for path, place in places.items():
        if place.current is not None and place.current.status.st_nlink > 1:
            file = (place.current.status.st_dev, place.current.status.st_ino)
            names.setdefault(file, []).append(path)
            sizes[file] = place.current.status.st_nlink
    others = {file for file, known in names.items() if len(known) < sizes[file]}
    stay = _other_names(workspace, others, places) if others else {}
    links: dict[bytes, bytes] = {}
    for file, known in names.items():
        first = stay.get(file, known[0])
        links |= {path: first for path in known if path != first}
    return links


def _other_names(workspace: Workspace, files: set[_File], but: Mapping[bytes, PathState]) -> dict[_File, bytes]:
    """A name in the roots for each of the files that has one, other than those that are about to go."""
    found: dict[_File, bytes] = {}
    numbers = {number for _, number in files}
    for root in {workspace.find_root(path).path: workspace.find_root(path) for path in but}.values():
        start = b"" if root.main else os.fsencode(root.path) + b"/"
        for folder, name, below in _entries(root, numbers):
            status = os.stat(name, dir_fd=folder, follow_symlinks=False)
            file, path = (status.st_dev, status.st_ino), start + below
            if file in files and path not in but:
                found.setdefault(file, path)
            if len(found) == len(files):
                return found
    return found


def _entries(root: Root, numbers: set[int]) -> Iterator[tuple[int, str, bytes]]:
    """The entries of a root that have one of the numbers: open folder, name, and path below the root."""
    waiting, left = [b""], _MAX_ROOT_ENTRIES
    while waiting and left > 0:
        inner = waiting.pop()
        with contextlib.suppress(OSError):
            folder = os.open(inner or b".", LIST_FOLDER, dir_fd=root.descriptor)
            try:
                with os.scandir(folder) as entries:
                    for entry in entries:
                        left -= 1
                        below = inner + b"/" + os.fsencode(entry.name) if inner else os.fsencode(entry.name)
                        if entry.is_dir(follow_symlinks=False):
                            waiting.append(below)
                        elif entry.inode() in numbers:
                            yield folder, entry.name, below
            finally:
                os.close(folder)
