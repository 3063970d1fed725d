"""The state of the tree around the steps of a change set."""

import contextlib
import os
import shutil
import stat
from collections.abc import Iterable, Mapping

from handrail.protocol.changes import State
from handrail.protocol.errors import ToolError
from handrail.store.change_log import FileExtras, Step
from handrail.workspace.atomic import Away
from handrail.workspace.directory import list_hard_links
from handrail.workspace.errors import to_tool_error
from handrail.workspace.file_state import FileId, PathState, read_state
from handrail.workspace.resolve import ENTER_FOLDER, closing_descriptor
from handrail.workspace.workspace import Workspace

_ELSEWHERE = PathState(State(kind="link", hash="elsewhere"))
"""A link or a file is on the way to the path. No step starts from this state."""


class PathProbe:
    """Reads the states of a change set's paths, parents first.

    If the set replaces a folder by a file or link, or the other way round, the paths below it count as missing.
    """

    def __init__(self, workspace: Workspace) -> None:
        self._workspace = workspace
        self._blocking: set[bytes] = set()

    def read(self, path: bytes, keep: int = 0) -> PathState:
        state = probe_path(self._workspace, path, keep)
        return PathState(None) if state is _ELSEWHERE and self.is_blocked(path) else state

    def is_blocked(self, path: bytes) -> bool:
        """Whether a file or link of the set is on the way to a path."""
        parts = path.split(b"/")
        return any(b"/".join(parts[:end]) in self._blocking for end in range(1, len(parts)))

    def note(self, path: bytes, now: State | None) -> None:
        """Remembers a path that has the state that the set expects."""
        if now is not None and now.kind != "folder":
            self._blocking.add(path)


def probe_path(workspace: Workspace, path: bytes, keep: int = 0) -> PathState:
    """The state of a path, with the bytes of a file up to `keep`. No step starts from a path below a link or file."""
    try:
        with workspace.open_parent(path) as parent:
            return read_state(parent, keep)
    except OSError as error:
        raise to_tool_error(error, os.fsdecode(path)) from None
    except ToolError as error:
        if error.code != "CONFLICT":
            raise
        return _ELSEWHERE


class StagingDir:
    """Holds the files that a change set removes until the change set is done.

    If a step fails, the very files go back: with their times, owners and attributes, and even if the disk is full.
    Files on another file system than the staging folder are deleted at once, and come back from the blobs.
    """

    def __init__(self, folder: str) -> None:
        self._folder = folder
        os.makedirs(folder, mode=0o700, exist_ok=True)
        self._descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        self._names: dict[bytes, str] = {}
        self._number = 0

    def stash(self, path: bytes) -> Away:
        """A function that sets the file of a path aside."""

        def set_aside(folder: int, name: str) -> None:
            self._number += 1
            try:
                os.rename(name, str(self._number), src_dir_fd=folder, dst_dir_fd=self._descriptor)
                self._names[path] = str(self._number)
            except OSError:
                os.unlink(name, dir_fd=folder)

        return set_aside

    def unstash(self, path: bytes) -> tuple[int, str] | None:
        """Folder and name of the file of a path, once. None if it is not held."""
        name = self._names.pop(path, None)
        return (self._descriptor, name) if name is not None else None

    def close(self) -> None:
        os.close(self._descriptor)
        remove_staging_dir(self._folder)


def build_staging_path(history: str, temporary: str) -> str:
    """The staging folder of a change set. Recovery finds it by the same names."""
    return os.path.join(history, "held", temporary)


def remove_staging_dir(folder: str) -> None:
    shutil.rmtree(folder, ignore_errors=True)
    with contextlib.suppress(OSError):
        os.rmdir(os.path.dirname(folder))


def unlock_dirs(workspace: Workspace, modes: Mapping[bytes, int]) -> None:
    """Makes read-only folders of ours writable while a change is made in them.

    A command may make such a folder writable, work in it and lock it again. Committing or undoing its changes needs
    the same. The change set records the folders first, so that recovery can lock them after a crash.
    """
    for path in sorted(modes):
        set_mode(workspace, path, modes[path] | stat.S_IRWXU, only_from=modes[path])


def lock_dirs(workspace: Workspace, modes: Mapping[bytes, int], but: Iterable[bytes]) -> None:
    """Restores the modes, inner folders first. Folders that changed their mode meanwhile keep it."""
    for path in sorted(modes.keys() - set(but), reverse=True):
        with contextlib.suppress(ToolError, OSError):
            set_mode(workspace, path, modes[path], only_from=modes[path] | stat.S_IRWXU)


def list_locked_dirs(workspace: Workspace, steps: Iterable[Step]) -> dict[bytes, int]:
    """The folders of ours above the steps that must be unlocked first, with their modes."""
    if os.geteuid() == 0:
        return {}
    locked: dict[bytes, int] = {}
    for folder in sorted({parent for step in steps for parent in _list_parents(step.path)}):
        with contextlib.suppress(ToolError, OSError), workspace.open_parent(folder) as parent:
            if parent.missing:
                continue
            status = os.stat(parent.name, dir_fd=parent.folder, follow_symlinks=False)
            is_ours = stat.S_ISDIR(status.st_mode) and status.st_uid == os.geteuid()
            if is_ours and status.st_mode & stat.S_IRWXU != stat.S_IRWXU:
                locked[folder] = stat.S_IMODE(status.st_mode)
    return locked


def _list_parents(path: bytes) -> list[bytes]:
    """The folders above a path, below its root."""
    parts = path.split(b"/")
    return [b"/".join(parts[:end]) for end in range(1, len(parts)) if parts[end - 1]]


def set_folder_modes(workspace: Workspace, modes: Mapping[bytes, int]) -> None:
    """Sets the modes, inner folders first, because an outer folder may become inaccessible."""
    for path in sorted(modes, reverse=True):
        try:
            set_mode(workspace, path, modes[path])
        except OSError as error:
            raise to_tool_error(error, os.fsdecode(path)) from None


def set_mode(workspace: Workspace, path: bytes, mode: int, only_from: int | None = None) -> None:
    """Sets the mode of a path if it is a folder, and has the mode `only_from`."""
    with workspace.open_parent(path) as parent:
        now = read_state(parent).state
        if now is None or now.kind != "folder" or now.mode == mode or only_from not in {None, now.mode}:
            return
        with closing_descriptor(os.open(parent.name, ENTER_FOLDER, dir_fd=parent.folder)) as folder:
            os.chmod(f"/proc/self/fd/{folder}" if hasattr(os, "O_PATH") else folder, mode)


def capture_extras(
    workspace: Workspace, states: Mapping[bytes, PathState], attributed: Iterable[bytes] = ()
) -> tuple[FileExtras, ...]:
    """The attributes and hard links of files that are about to be replaced or removed, so that undo restores them.

    `attributed`: paths whose attributes are recorded even if they have none.
    """
    recorded = set(attributed)
    links = _find_links(workspace, states)
    extras: list[FileExtras] = []
    for path, state in states.items():
        if state.current is None:
            continue
        attributes = read_user_xattrs(workspace, path)
        if attributes or path in recorded or path in links:
            extras.append(FileExtras(path, attributes, links.get(path)))
    return tuple(extras)


def read_user_xattrs(workspace: Workspace, path: bytes) -> dict[str, bytes]:
    if not hasattr(os, "listxattr"):
        return {}
    with contextlib.suppress(OSError, ToolError), workspace.open_parent(path) as parent:
        file = f"/proc/self/fd/{parent.folder}/{parent.name}"
        names = [name for name in os.listxattr(file, follow_symlinks=False) if name.startswith("user.")]
        return {name: os.getxattr(file, name, follow_symlinks=False) for name in names}
    return {}


def _find_links(workspace: Workspace, states: Mapping[bytes, PathState]) -> dict[bytes, bytes]:
    """The path that each further name of a file is linked to again: one that stays, if there is one."""
    names: dict[FileId, list[bytes]] = {}
    counts: dict[FileId, int] = {}
    for path, state in states.items():
        if state.current is not None and (status := state.current.status).st_nlink > 1:
            names.setdefault((status.st_dev, status.st_ino), []).append(path)
            counts[status.st_dev, status.st_ino] = status.st_nlink
    shared = {file: count for file, count in counts.items() if len(names[file]) < count}
    staying = _find_other_names(workspace, shared, states) if shared else {}
    links: dict[bytes, bytes] = {}
    for file, paths in names.items():
        first = staying.get(file, paths[0])
        links |= {path: first for path in paths if path != first}
    return links


def _find_other_names(
    workspace: Workspace, files: Mapping[FileId, int], but: Mapping[bytes, PathState]
) -> dict[FileId, bytes]:
    """A name in the roots for each file that has one besides those that are about to go."""
    found: dict[FileId, bytes] = {}
    for root in {workspace.find_root(path).path: workspace.find_root(path) for path in but}.values():
        prefix = b"" if root.main else os.fsencode(root.path) + b"/"
        for below, file in list_hard_links(root.path, files):
            if (path := prefix + os.fsencode(below)) not in but:
                found.setdefault(file, path)
            if len(found) == len(files):
                return found
    return found
