"""A repository is one unit: where a command changed something in `.git`, nobody else may have changed anything in it.

Its files belong together: an index of one moment with the references of another is a broken repository. What others
changed is told by the change times, which nobody can set. Objects do not count: they are only ever added.
"""

import os
import stat
from collections.abc import Iterator

from handrail.changes.layered.trial import OverlayChanges
from handrail.protocol.errors import ToolError
from handrail.sandbox.layer.clock import is_changed_since
from handrail.workspace.resolve import LIST_FOLDER
from handrail.workspace.workspace import Workspace

_GIT = b".git"
_OBJECTS = "objects"


def list_repository_conflicts(workspace: Workspace, examined: OverlayChanges) -> Iterator[bytes]:
    """What others changed, since the overlay was made, in repositories that the command changed too."""
    own = {step.path for step in examined.steps} | set(examined.expected)
    changed = (step.path for step in examined.steps)
    for repository in sorted({found for path in changed if (found := _repository(path)) is not None}):
        for path in _later(workspace, repository, examined.started):
            if path not in own:
                yield path


def _repository(path: bytes) -> bytes | None:
    """The `.git` folder that a path is in."""
    parts = path.split(b"/")
    return b"/".join(parts[: parts.index(_GIT) + 1]) if _GIT in parts[:-1] else None


def _later(workspace: Workspace, repository: bytes, started: int) -> Iterator[bytes]:
    try:
        with workspace.open_parent(repository) as landing:
            if landing.missing:
                return
            folder = os.open(landing.name, LIST_FOLDER, dir_fd=landing.folder)
    except (ToolError, OSError):
        return  # it is no folder, or none of ours: what the command changed there is looked at path by path
    yield from _walked(folder, repository, started, top=True)


def _walked(folder: int, path: bytes, started: int, *, top: bool) -> Iterator[bytes]:
    """Everything below a folder that has a later change time. The descriptor is closed at the end."""
    try:
        with os.scandir(folder) as entries:
            for entry in entries:
                if not (top and entry.name == _OBJECTS):
                    yield from _later_at(folder, entry.name, path + b"/" + os.fsencode(entry.name), started)
    finally:
        os.close(folder)


def _later_at(folder: int, name: str, path: bytes, started: int) -> Iterator[bytes]:
    try:
        status = os.stat(name, dir_fd=folder, follow_symlinks=False)
        if is_changed_since(status.st_ctime_ns, started):
            yield path
        if not stat.S_ISDIR(status.st_mode):
            return
        inner = os.open(name, LIST_FOLDER, dir_fd=folder)
    except PermissionError:
        return  # closed to us: the command could not look into it either
    except OSError:
        yield path  # gone, or another thing, since it was listed
        return
    yield from _walked(inner, path, started, top=False)
