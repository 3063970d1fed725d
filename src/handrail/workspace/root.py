"""A root: a folder held open by its descriptor, so that renaming a parent cannot move it elsewhere."""

import os
import sys
from collections.abc import Iterable

from handrail.protocol.error import ToolError, UsageError
from handrail.protocol.plain import escape_surrogates

_GONE = " (deleted)"
_FOLDER = os.O_DIRECTORY | os.O_CLOEXEC | getattr(os, "O_PATH", os.O_RDONLY)


class Root:
    """One folder that file tools may work in."""

    __slots__ = ("descriptor", "main", "opened_by_person", "parts", "path", "spellings", "writable")

    def __init__(self, path: str, *, writable: bool = True, main: bool = False) -> None:
        spelled = os.path.abspath(path)
        self.path = os.path.realpath(spelled)
        try:
            self.descriptor = os.open(self.path, _FOLDER)
        except OSError as error:
            raise UsageError(f"the folder {path!r} cannot be opened: {error.strerror}") from error
        self.parts = _parts(self.path)
        self.spellings = tuple({self.parts: None, _parts(spelled): None})
        self.writable = writable
        self.main = main
        self.opened_by_person = False
        """Whether a person opened it when asked; what was opened for reading may then be asked about again."""

    def beneath(self, parts: tuple[str, ...]) -> tuple[str, ...] | None:
        """The rest of an absolute path below this root, or None; compares whole names, never prefixes of text."""
        for own in self.spellings:
            if parts[: len(own)] == own:
                return parts[len(own) :]
        return None

    def has_name(self, path: str | None) -> bool:
        """Whether the root can be named by a path; None asks for nothing."""
        return path is None or _parts(path) in self.spellings

    def display_path(self, relative: str) -> str:
        """A path below this root as results name it: relative in the workspace, absolute elsewhere."""
        return escape_surrogates(relative if self.main else os.path.normpath(os.path.join(self.path, relative)))

    def close(self) -> None:
        """Gives the descriptor back."""
        if self.descriptor >= 0:
            os.close(self.descriptor)
            self.descriptor = -1


def open_root(folder: str, *, writable: bool, named: str | None = None) -> Root | None:
    """The root of a folder that a person opened; None where something else is there now."""
    try:
        root = Root(folder, writable=writable)
    except UsageError:
        return None
    if root.path != folder or find_descriptor_path(root.descriptor) != folder:
        root.close()
        return None
    root.opened_by_person = True
    if named is not None:
        root.spellings = (*root.spellings, _parts(named))
    return root


def check_roots(roots: Iterable[Root], done: str = "No command was run.") -> None:
    """CONFLICT where a root is no longer where it was: whoever goes by its name gets to what took its place. `done`:
    what became of the command, in words."""
    for root in roots:
        if not _is_there(root):
            path = escape_surrogates(root.path)[:200]
            message = f"The folder {path} was moved or removed, and something else may be there now."
            raise ToolError("CONFLICT", f"{message} {done} The file tools still work in it.")


def _is_there(root: Root) -> bool:
    try:
        return os.path.samestat(os.lstat(root.path), os.fstat(root.descriptor))
    except OSError:
        return False


def find_descriptor_path(descriptor: int) -> str:
    """Where an open file or folder is now."""
    if sys.platform == "darwin":
        import fcntl  # noqa: PLC0415  only there does it have F_GETPATH

        return fcntl.fcntl(descriptor, fcntl.F_GETPATH, b"\0" * 1024).rstrip(b"\0").decode()
    path = os.readlink(f"/proc/self/fd/{descriptor}")
    return _without_mark(path, descriptor) if path.endswith(_GONE) else path


def _without_mark(path: str, descriptor: int) -> str:
    """The kernel marks what was removed while open; but a file may also be called so."""
    try:
        still_there = os.path.samestat(os.lstat(path), os.fstat(descriptor))
    except OSError:
        still_there = False
    return path if still_there else path.removesuffix(_GONE)


def _parts(path: str) -> tuple[str, ...]:
    return tuple(part for part in path.split("/") if part)
