"""Reaches a path exactly as it is spelled: no link on the way is followed, nor the last name if it is one.

Undo goes this way. It knows the real path of what was changed; a link that is there now is somebody else's change.
"""

import errno
import os
import stat

import msgspec

from handrail.kernel.openat2 import RESOLVE_NO_SYMLINKS, openat2
from handrail.protocol.change import State
from handrail.protocol.error import ToolError
from handrail.workspace.current import FileSnapshot, hash_link, read_file_snapshot
from handrail.workspace.errors import clip_path
from handrail.workspace.place import find_innermost_root
from handrail.workspace.root import Root, find_descriptor_path
from handrail.workspace.walk import ResolvedParent
from handrail.workspace.workspace import Workspace

_FOLDER = os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC | getattr(os, "O_PATH", os.O_RDONLY)


class PathState(msgspec.Struct, frozen=True):
    """What is at a path now."""

    state: State | None
    current: FileSnapshot | None = None
    """The file, where it is one."""


def build_exact_path(workspace: Workspace, landing: ResolvedParent) -> bytes:
    """How a landing is spelled so that `reach` finds it again: relative in the workspace, absolute elsewhere."""
    parts, own = (
        tuple(part for part in find_descriptor_path(descriptor).split("/") if part)
        for descriptor in (landing.folder, workspace.main.descriptor)  # by where they are now, should they be moved
    )
    start = parts[len(own) :] if parts[: len(own)] == own else ("", *parts)
    return os.fsencode("/".join((*start, *landing.missing, landing.name)))


def render_path(workspace: Workspace, path: bytes) -> str:
    """The same as results name it."""
    root, parts = _placed(workspace, path)
    return root.display_path("/".join(parts))


def resolve_root(workspace: Workspace, path: bytes) -> Root:
    """The root that a path is in; OUTSIDE_WORKSPACE when this session has none such."""
    return _placed(workspace, path)[0]


def open_parent(workspace: Workspace, path: bytes) -> ResolvedParent:
    """The folder that a path is in, by descriptors; CONFLICT where a link or a file is on the way by now."""
    root, parts = _placed(workspace, path)
    if not root.writable:
        raise ToolError("ACCESS_DENIED", f"{_clipped(path)} is in a root that was opened for reading only.")
    if not parts:
        raise ToolError("CONFLICT", f"{_clipped(path)} is a root: what is in it is changed, not the root itself.")
    straight = _straight_to(root, parts) if workspace.kernel else None
    if straight is not None:
        return ResolvedParent(straight, parts[-1], ())
    folder = os.dup(root.descriptor)
    try:
        for number, name in enumerate(parts[:-1]):
            try:
                folder, outer = os.open(name, _FOLDER, dir_fd=folder), folder
            except FileNotFoundError:
                return ResolvedParent(folder, parts[-1], parts[number:-1])
            os.close(outer)
    except OSError as error:
        os.close(folder)
        if error.errno in {errno.ELOOP, errno.ENOTDIR}:
            raise ToolError("CONFLICT", f"On the way to {_clipped(path)} there is a link or a file now.") from None
        raise
    return ResolvedParent(folder, parts[-1], ())


def _straight_to(root: Root, parts: tuple[str, ...]) -> int | None:
    """The folder by one call of the kernel, as it mostly is; None where the walk has to say what is in the way."""
    try:
        return openat2(root.descriptor, "/".join(parts[:-1]) or ".", _FOLDER, resolve=RESOLVE_NO_SYMLINKS)
    except OSError:
        return None


def read_state(landing: ResolvedParent, keep: int = 0) -> PathState:
    """What is there, the bytes of a file kept up to a size; CONFLICT for what is neither file, link nor folder."""
    if landing.missing:
        return PathState(None)
    try:
        status = os.stat(landing.name, dir_fd=landing.folder, follow_symlinks=False)
    except FileNotFoundError:
        return PathState(None)
    mode = stat.S_IMODE(status.st_mode)
    if stat.S_ISDIR(status.st_mode):
        return PathState(State(kind="folder", mode=mode))
    if stat.S_ISLNK(status.st_mode):
        return PathState(State(kind="link", hash=hash_link(landing.folder, landing.name) or "", size=status.st_size))
    if not stat.S_ISREG(status.st_mode):
        raise ToolError("CONFLICT", f"{clip_path(landing.name)} is no file, link or folder any more.")
    now = read_file_snapshot(landing.folder, landing.name, keep)
    return PathState(to_state(now), now) if now is not None else PathState(None)


def to_state(file: FileSnapshot) -> State:
    """The state of a file that was looked at."""
    mode = stat.S_IMODE(file.status.st_mode)
    return State(kind="file", hash=file.hash, size=file.status.st_size, mode=mode)


def _placed(workspace: Workspace, path: bytes) -> tuple[Root, tuple[str, ...]]:
    spelled = os.fsdecode(path)
    parts = tuple(part for part in spelled.split("/") if part)
    if not spelled.startswith("/"):
        return workspace.main, parts
    found = find_innermost_root(parts, workspace.roots)
    if found is None:
        raise ToolError("OUTSIDE_WORKSPACE", f"{clip_path(spelled)} is in no root of this session.")
    return found


def _clipped(path: bytes) -> str:
    return clip_path(os.fsdecode(path))
