"""A repository is one unit: where a command changed something in `.git`, nobody else may have changed anything in it.

Its files belong together: an index of one moment with the references of another is a broken repository. What others
changed is told by the change times, which nobody can set. Objects do not count: they are only ever added.
"""

import contextlib
import os
import stat
from collections.abc import Iterator

from handrail.changes.layered.trial import Examined
from handrail.protocol.error import ToolError
from handrail.sandbox.layer.clock import is_since
from handrail.workspace.exact import reach
from handrail.workspace.workspace import Workspace

_GIT = b".git"
_OBJECTS = "objects"
_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC


def changed_in_repositories(workspace: Workspace, examined: Examined) -> Iterator[bytes]:
    """What others changed, since the layer was made, in repositories that the command changed too."""
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
    with contextlib.suppress(ToolError, OSError), reach(workspace, repository) as landing:
        if not landing.missing:
            folder = os.open(landing.name, _FOLDER, dir_fd=landing.folder)
            yield from _walked(folder, repository, started, top=True)


def _walked(folder: int, path: bytes, started: int, *, top: bool) -> Iterator[bytes]:
    """Everything below a folder that has a later change time. The descriptor is closed at the end."""
    try:
        with os.scandir(folder) as entries:
            for entry in entries:
                if top and entry.name == _OBJECTS:
                    continue
                inner = path + b"/" + os.fsencode(entry.name)
                status = os.stat(entry.name, dir_fd=folder, follow_symlinks=False)
                if is_since(status.st_ctime_ns, started):
                    yield inner
                if stat.S_ISDIR(status.st_mode):
                    yield from _walked(os.open(entry.name, _FOLDER, dir_fd=folder), inner, started, top=False)
    finally:
        os.close(folder)
