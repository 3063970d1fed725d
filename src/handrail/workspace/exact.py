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
from handrail.workspace.current import Current, current, link_hash
from handrail.workspace.errors import clipped
from handrail.workspace.place import innermost
from handrail.workspace.root import Root, path_of
from handrail.workspace.walk import Landing
from handrail.workspace.workspace import Workspace

_FOLDER = os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC | getattr(os, "O_PATH", os.O_RDONLY)


class Found(msgspec.Struct, frozen=True):
    """What is at a path now."""

    state: State | None
    current: Current | None = None
    """The file, where it is one."""


def exact_path(workspace: Workspace, landing: Landing) -> bytes:
    """How a landing is spelled so that `reach` finds it again: relative in the workspace, absolute elsewhere."""
    parts, own = (
        tuple(part for part in path_of(descriptor).split("/") if part)
        for descriptor in (landing.folder, workspace.main.descriptor)  # by where they are now, should they be moved
    )
    start = parts[len(own) :] if parts[: len(own)] == own else ("", *parts)
    return os.fsencode("/".join((*start, *landing.missing, landing.name)))


def shown_path(workspace: Workspace, path: bytes) -> str:
    """The same as results name it."""
    root, parts = _placed(workspace, path)
    return root.shown("/".join(parts))


def root_of(workspace: Workspace, path: bytes) -> Root:
    """The root that a path is in; OUTSIDE_WORKSPACE when this session has none such."""
    return _placed(workspace, path)[0]


def reach(workspace: Workspace, path: bytes) -> Landing:
    """The folder that a path is in, by descriptors; CONFLICT where a link or a file is on the way by now."""
    root, parts = _placed(workspace, path)
    if not root.writable:
        raise ToolError("ACCESS_DENIED", f"{_clipped(path)} is in a root that was opened for reading only.")
    if not parts:
        raise ToolError("CONFLICT", f"{_clipped(path)} is a root: what is in it is changed, not the root itself.")
    straight = _straight_to(root, parts) if workspace.kernel else None
    if straight is not None:
        return Landing(straight, parts[-1], ())
    folder = os.dup(root.descriptor)
    try:
        for number, name in enumerate(parts[:-1]):
            try:
                folder, outer = os.open(name, _FOLDER, dir_fd=folder), folder
            except FileNotFoundError:
                return Landing(folder, parts[-1], parts[number:-1])
            os.close(outer)
    except OSError as error:
        os.close(folder)
        if error.errno in {errno.ELOOP, errno.ENOTDIR}:
            raise ToolError("CONFLICT", f"On the way to {_clipped(path)} there is a link or a file now.") from None
        raise
    return Landing(folder, parts[-1], ())


def _straight_to(root: Root, parts: tuple[str, ...]) -> int | None:
    """The folder by one call of the kernel, as it mostly is; None where the walk has to say what is in the way."""
    try:
        return openat2(root.descriptor, "/".join(parts[:-1]) or ".", _FOLDER, resolve=RESOLVE_NO_SYMLINKS)
    except OSError:
        return None


def found_at(landing: Landing, keep: int = 0) -> Found:
    """What is there, the bytes of a file kept up to a size; CONFLICT for what is neither file, link nor folder."""
    if landing.missing:
        return Found(None)
    try:
        status = os.stat(landing.name, dir_fd=landing.folder, follow_symlinks=False)
    except FileNotFoundError:
        return Found(None)
    mode = stat.S_IMODE(status.st_mode)
    if stat.S_ISDIR(status.st_mode):
        return Found(State(kind="folder", mode=mode))
    if stat.S_ISLNK(status.st_mode):
        return Found(State(kind="link", hash=link_hash(landing.folder, landing.name) or "", size=status.st_size))
    if not stat.S_ISREG(status.st_mode):
        raise ToolError("CONFLICT", f"{clipped(landing.name)} is no file, link or folder any more.")
    now = current(landing.folder, landing.name, keep)
    return Found(state_of(now), now) if now is not None else Found(None)


def state_of(file: Current) -> State:
    """The state of a file that was looked at."""
    mode = stat.S_IMODE(file.status.st_mode)
    return State(kind="file", hash=file.hash, size=file.status.st_size, mode=mode)


def _placed(workspace: Workspace, path: bytes) -> tuple[Root, tuple[str, ...]]:
    spelled = os.fsdecode(path)
    parts = tuple(part for part in spelled.split("/") if part)
    if not spelled.startswith("/"):
        return workspace.main, parts
    found = innermost(parts, workspace.roots)
    if found is None:
        raise ToolError("OUTSIDE_WORKSPACE", f"{clipped(spelled)} is in no root of this session.")
    return found


def _clipped(path: bytes) -> str:
    return clipped(os.fsdecode(path))
