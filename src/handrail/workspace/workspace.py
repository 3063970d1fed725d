"""Opens the files of a session's roots for tools."""

import errno
import os
import stat
import threading
from collections.abc import Generator
from contextlib import contextmanager
from functools import cached_property
from typing import TYPE_CHECKING, Self

import msgspec

from handrail.kernel.files import RESOLVE_NO_SYMLINKS, has_openat2, openat2
from handrail.policy.names import find_protection
from handrail.protocol.errors import REFUSAL_ADVICE, ToolError
from handrail.workspace.errors import list_similar_names, to_tool_error
from handrail.workspace.file_state import FileId, read_contents, read_start
from handrail.workspace.resolve import (
    ENTER_FOLDER,
    INSPECT,
    LIST_FOLDER,
    READ_FILE,
    NewFolders,
    ResolvedParent,
    closing_descriptor,
    open_beneath,
    resolve_parent,
)
from handrail.workspace.roots import (
    Boundary,
    Root,
    SessionRoots,
    SpelledPath,
    build_outside_error,
    clip_path,
    find_descriptor_path,
    find_innermost_root,
    split_parts,
)

if TYPE_CHECKING:
    from handrail.workspace.sensitive_paths import SensitivePaths

_APPEND = os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC


class OpenPath(msgspec.Struct, frozen=True):
    """A descriptor, and the path that it really has."""

    descriptor: int
    status: os.stat_result
    root: Root
    relative: str
    real: str
    """The path as results show it."""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        os.close(self.descriptor)


class _OpenFileCache(threading.local):
    """The file that a decision was about, open for the call that follows: it cannot become another file in between."""

    entry: tuple[str, OpenPath] | None = None
    """The path as asked for, and the file. One value, since each access to thread-local data costs."""


class Workspace:
    """One main root, where relative paths start, and any number of extra roots."""

    def __init__(self, main: str, *extra: Root, kernel: bool | None = None) -> None:
        self.main = Root(main, main=True)
        self.root_sets = SessionRoots((self.main, *extra))
        self.boundary: Boundary | None = None
        """Set if a person may be asked about paths outside the roots."""
        self._cache = _OpenFileCache()
        self.kernel = has_openat2() if kernel is None else kernel
        """Whether the kernel resolves paths (openat2) or we do."""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        self.root_sets.close()

    @property
    def roots(self) -> tuple[Root, ...]:
        return self.root_sets.current.all

    def open_file(self, path: str) -> OpenPath:
        """Opens a regular file for reading. Anything else is a ToolError."""
        opened = self._take_cached(path) or self._open_or_refuse(path, READ_FILE)
        _refuse_special(opened, path)
        _refuse_credential(opened, path)
        return opened

    def is_folder(self, path: str) -> bool:
        """Whether a path leads to a folder. Only a guess: it follows every link, also out of the workspace."""
        try:
            return path != "" and os.access(f"{path}/.", os.F_OK, dir_fd=self.main.descriptor)
        except ValueError:
            return False

    def open_folder(self, path: str) -> OpenPath:
        """Opens a folder for listing. Anything else is a ToolError."""
        opened = self._open_or_refuse(path, LIST_FOLDER)
        _refuse_credential(opened, path)
        return opened

    def read_small_file(self, path: str, most: int) -> bytes:
        """Reads a regular file. LIMIT_EXCEEDED if it has more than `most` bytes."""
        with self.open_file(path) as opened:
            try:
                data = read_start(opened.descriptor, most + 1)
            except OSError as error:
                raise to_tool_error(error, path) from None
        if len(data) > most:
            raise ToolError("LIMIT_EXCEEDED", f"{clip_path(path)} has more than {most} bytes.")
        return data

    def hash_of(self, path: str) -> str | None:
        """The hash of a file. None if there is no regular file."""
        try:
            with self.open_file(path) as opened:
                return read_contents(opened.descriptor, opened.status.st_size).hash
        except (ToolError, OSError):
            return None

    def keep_open(self, path: str, opened: OpenPath) -> None:
        """Keeps a file for the next `open_file` of this path in this thread."""
        self.drop_cached()
        self._cache.entry = path, opened

    def drop_cached(self) -> None:
        entry = self._cache.entry
        if entry is not None:
            self._cache.entry = None
            os.close(entry[1].descriptor)

    def _take_cached(self, path: str) -> OpenPath | None:
        entry = self._cache.entry
        if entry is None or entry[0] != path:
            return None
        self._cache.entry = None
        return entry[1]

    def resolve_for_write(self, path: str) -> tuple[ResolvedParent, str]:
        """The parent of a file to write, links followed, and the path as results show it."""
        parent, root, real = self.resolve(path)
        with _closing_on_error(parent.folder):
            self._refuse_write(root, real, path)
        return parent, real

    def resolve_for_removal(self, path: str) -> tuple[ResolvedParent, str]:
        """The parent of a name to remove, and the path as results show it. A link as the last name is not followed."""
        split = self.split_name(path)
        if split is None:
            raise to_tool_error(IsADirectoryError(errno.EISDIR, ""), path)
        folder, name = split
        opened = self._open_or_refuse(folder, LIST_FOLDER, path)
        real = opened.root.display_path(join_names(opened.relative, name))
        with _closing_on_error(opened.descriptor):
            self._refuse_write(opened.root, real, path)
        return ResolvedParent(opened.descriptor, name, ()), real

    def append(self, path: str, data: bytes) -> None:
        """Appends all bytes to a file, or none. The file is created with its parents, for its owner only."""
        parent, _ = self.resolve_for_write(path)
        with parent:
            folders = NewFolders(parent.folder, parent.missing)
            try:
                opened = os.open(parent.name, _APPEND, 0o600, dir_fd=folders.innermost)
                with closing_descriptor(opened) as descriptor:
                    if not stat.S_ISREG(os.fstat(descriptor).st_mode):
                        raise OSError(errno.ENXIO, os.strerror(errno.ENXIO), path)
                    _append_all(descriptor, data, path)
                folders.keep()
            except OSError as error:
                raise to_tool_error(error, path) from None
            finally:
                folders.close()

    def build_exact_path(self, parent: ResolvedParent) -> bytes:
        """The path by which `open_parent` finds a place again: relative in the workspace, absolute elsewhere."""
        parts, own = (
            split_parts(find_descriptor_path(descriptor))  # where they are now, even if they were moved
            for descriptor in (parent.folder, self.main.descriptor)
        )
        start = parts[len(own) :] if parts[: len(own)] == own else ("", *parts)
        return os.fsencode("/".join((*start, *parent.missing, parent.name)))

    def open_parent(self, path: bytes) -> ResolvedParent:
        """Opens the parent of an exact path. CONFLICT if a link or a file is on the way.

        Undo knows the real paths of its changes, so a link there now is a change by another program.
        """
        root, parts = self._split_exact(path)
        shown = clip_path(os.fsdecode(path))
        _refuse_read_only(root, shown)
        if not parts:
            raise ToolError("CONFLICT", f"{shown} is a root: you can change its content, not the root itself.")
        if self.kernel:
            try:
                outer = "/".join(parts[:-1]) or "."
                return ResolvedParent(open_beneath(root.descriptor, outer, ENTER_FOLDER, kernel=True), parts[-1], ())
            except OSError:
                pass  # the walk below tells a missing folder from an obstacle
        try:
            return resolve_parent(root.descriptor, parts, None, os.fsdecode(path))
        except OSError as error:
            if error.errno in {errno.ELOOP, errno.ENOTDIR}:
                raise ToolError("CONFLICT", f"On the way to {shown} there is a link or a file now.") from None
            raise

    def render_path(self, path: bytes) -> str:
        root, parts = self._split_exact(path)
        return root.display_path("/".join(parts))

    def find_root(self, path: bytes) -> Root:
        """The root of an exact path. OUTSIDE_WORKSPACE if this session has none."""
        return self._split_exact(path)[0]

    def root_path(self, real: str) -> str:
        """The folder of the root that holds a path as results show it."""
        return self.root_sets.current.find_root(real).path

    def shared_file(self, path: str) -> FileId | None:
        """Identifies a file that has several hard links. None for other paths."""
        try:
            with self.open_spelled(self.parse(path), INSPECT) as opened:
                status = opened.status
        except (OSError, ToolError):
            return None
        is_shared = stat.S_ISREG(status.st_mode) and status.st_nlink > 1
        return (status.st_dev, status.st_ino) if is_shared else None

    def credential_files(self) -> frozenset[FileId]:
        """The files that are credentials by any of their names. Empty if the roots have too many folders to scan.

        Needed only for files with several hard links. The name of any other file says it.
        """
        try:
            return self.sensitive_paths.credential_files(self.roots)
        except ToolError:
            return frozenset()

    @cached_property
    def sensitive_paths(self) -> "SensitivePaths":
        """The paths that commands must not see, with the one cache of the session."""
        from handrail.workspace.sensitive_paths import SensitivePaths  # noqa: PLC0415  few calls need it

        return SensitivePaths(kernel=self.kernel)

    def build_not_found_error(self, path: str, kind: str) -> ToolError:
        folder, _, name = path.rstrip("/").rpartition("/")
        target = ""
        try:
            with self.open_spelled(self.parse(folder or _find_start(path)), LIST_FOLDER) as opened:
                names = list_similar_names(name, opened.descriptor)
                if name in names:
                    names.remove(name)
                    target = os.readlink(name, dir_fd=opened.descriptor)
        except (OSError, ToolError):
            names = []
        near = [f"{folder}/{similar}" if folder else similar for similar in names]
        link = f" It is a link to {clip_path(target)}, which is missing." if target else ""
        hint = f" Near: {', '.join(map(clip_path, near))}." if near else ""
        return ToolError("NOT_FOUND", f"No {kind} {clip_path(path)}.{link}{hint}", details={"near": near})

    def parse(self, path: str) -> SpelledPath:
        """Reads a path by its spelling. ToolError if it is impossible, OSError EXDEV if it is in no root."""
        return self.root_sets.current.parse(path)

    def split_name(self, path: str) -> tuple[str, str] | None:
        """The folder of a path and its last name. None if the path ends in `.`, `..` or a slash."""
        self.parse(path)  # an impossible path is refused
        folder, _, name = path.rstrip("/").rpartition("/")
        if name in {"", ".", ".."} or path.endswith("/"):
            return None
        return folder or _find_start(path), name

    def open_spelled(self, spelled: SpelledPath, flags: int) -> OpenPath:
        """Opens a path, following links within the roots. OSError EXDEV if it leads out of them."""
        if not self.kernel:
            return self._open_by_walk(spelled, flags)
        try:
            # Without links on the way the path is the real path. O_NOFOLLOW would report a link to a folder as ENOTDIR.
            descriptor = openat2(
                spelled.root.descriptor, spelled.path, flags & ~os.O_NOFOLLOW, resolve=RESOLVE_NO_SYMLINKS
            )
        except OSError as error:
            if error.errno not in {errno.ELOOP, errno.EXDEV}:
                raise
            return self._open_by_walk(spelled, flags)
        if spelled.straight is None or spelled.named is None:
            os.close(descriptor)
            raise build_outside_error(spelled.spelled)
        return OpenPath(descriptor, os.fstat(descriptor), spelled.owner, spelled.straight, spelled.named)

    def resolve(self, path: str, *, past_files: bool = False) -> tuple[ResolvedParent, Root, str]:
        """The parent of a path that may be missing, its root, and the path as results show it."""
        try:
            spelled = self.parse(path)
            parent = resolve_parent(spelled.root.descriptor, spelled.parts, self._reroot, path, past_files=past_files)
        except OSError as error:
            raise to_tool_error(error, path) from None
        try:
            with _closing_on_error(parent.folder):
                root, folder = self._find_root_of(parent.folder, path)
        except OSError as error:
            raise to_tool_error(error, path) from None
        return parent, root, root.display_path(join_names(folder, *parent.missing, parent.name))

    def _open_or_refuse(self, path: str, flags: int, file: str | None = None) -> OpenPath:
        """Opens a path. Errors are about `file`, if that is the aim."""
        try:
            return self.open_spelled(self.parse(path), flags)
        except FileNotFoundError:
            is_folder = file is None and flags == LIST_FOLDER
            raise self.build_not_found_error(file or path, "folder" if is_folder else "file") from None
        except OSError as error:
            raise to_tool_error(error, file or path) from None

    def _open_by_walk(self, spelled: SpelledPath, flags: int) -> OpenPath:
        with resolve_parent(spelled.root.descriptor, spelled.parts, self._reroot, spelled.spelled) as parent:
            descriptor = parent.open(flags)
        with _closing_on_error(descriptor):
            status = os.fstat(descriptor)
            if stat.S_ISLNK(status.st_mode):
                raise OSError(errno.ELOOP, os.strerror(errno.ELOOP), spelled.spelled)
            root, relative = self._find_root_of(descriptor, spelled.spelled)
        return OpenPath(descriptor, status, root, relative, root.display_path(relative))

    def _find_root_of(self, descriptor: int, spelled: str) -> tuple[Root, str]:
        """The innermost root of an open file, by their paths now, and the path below it."""
        parts = split_parts(find_descriptor_path(descriptor))
        for root in self.root_sets.current.innermost_first:
            own = split_parts(find_descriptor_path(root.descriptor))
            if parts[: len(own)] == own:
                return root, "/".join(parts[len(own) :]) or "."
        raise build_outside_error(spelled)

    def _reroot(self, parts: tuple[str, ...], up: bool) -> tuple[int, tuple[str, ...]] | None:
        found = find_innermost_root(parts, self.roots)
        if found is None or (up and not found[0].opened_by_person):
            return None
        return found[0].descriptor, found[1]

    def _split_exact(self, path: bytes) -> tuple[Root, tuple[str, ...]]:
        spelled = os.fsdecode(path)
        parts = split_parts(spelled)
        if not spelled.startswith("/"):
            return self.main, parts
        found = find_innermost_root(parts, self.roots)
        if found is None:
            raise ToolError("OUTSIDE_WORKSPACE", f"{clip_path(spelled)} is not in a root of this session.")
        return found

    def _refuse_write(self, root: Root, real: str, path: str) -> None:
        """Refuses a read-only root, and a protected file that the path does not name: a link may be new."""
        _refuse_read_only(root, clip_path(path))
        if real != self.parse(path).named and find_protection(real) == "protected":
            message = f"{clip_path(path)} leads to {clip_path(real)}, which controls tools; use that path to change it."
            raise ToolError("POLICY_DENIED", message)


def join_names(*names: str) -> str:
    return "/".join(name for name in names if name and name != ".") or "."


@contextmanager
def _closing_on_error(descriptor: int) -> Generator[None]:
    try:
        yield
    except BaseException:
        os.close(descriptor)
        raise


def _find_start(path: str) -> str:
    return "/" if path.startswith("/") else "."


def _refuse_special(opened: OpenPath, path: str) -> None:
    """Closes and refuses anything but a regular file: a FIFO would block, a device may never end."""
    mode = opened.status.st_mode
    if stat.S_ISREG(mode):
        return
    is_device = stat.S_ISCHR(mode) or stat.S_ISBLK(mode)
    number = errno.EISDIR if stat.S_ISDIR(mode) else errno.ENODEV if is_device else errno.ENXIO
    os.close(opened.descriptor)
    raise to_tool_error(OSError(number, ""), path)


def _refuse_credential(opened: OpenPath, path: str) -> None:
    """Closes and refuses a credential by its real name, since a link may have changed after the policy decided."""
    if find_protection(opened.real) == "credential":
        os.close(opened.descriptor)
        raise ToolError("POLICY_DENIED", f"Rule fs.secret forbids reading {clip_path(path)}. {REFUSAL_ADVICE}")


def _refuse_read_only(root: Root, shown: str) -> None:
    if not root.writable:
        raise ToolError("ACCESS_DENIED", f"{shown} is in a root that was opened for reading only.")


def _append_all(descriptor: int, data: bytes, path: str) -> None:
    """Appends bytes in one write. A partial write is truncated, unless another process appended after it."""
    written = os.write(descriptor, data)
    if written < len(data):
        end = os.lseek(descriptor, 0, os.SEEK_CUR)
        if os.fstat(descriptor).st_size == end:
            os.ftruncate(descriptor, end - written)
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), path)
