"""The roots of a session, and race-free access to what is in them."""

import contextlib
import errno
import hashlib
import os
import stat
import threading
from collections.abc import Callable
from functools import cached_property
from typing import TYPE_CHECKING, Self

import msgspec

from handrail.kernel.openat2 import RESOLVE_NO_SYMLINKS, openat2
from handrail.kernel.openat2 import has_openat2 as openat2_works
from handrail.policy.names import find_protection, list_possible_repositories
from handrail.protocol.decisions import Access, FileKind, PathFact
from handrail.protocol.errors import ToolError
from handrail.workspace.errors import build_outside_error, clip_path, list_similar_names, to_tool_error
from handrail.workspace.facts import Boundary, build_outside_fact, is_repository_change
from handrail.workspace.resolve import NewFolders, ResolvedParent, resolve_parent
from handrail.workspace.roots import Root, SessionRoots, SpelledPath, find_descriptor_path, find_innermost_root

if TYPE_CHECKING:
    from handrail.workspace.facts import FileId
    from handrail.workspace.sensitive_paths import ProtectedName, SensitivePaths

_LOOK = getattr(os, "O_PATH", os.O_RDONLY | os.O_NONBLOCK)
_READ = os.O_RDONLY | os.O_NONBLOCK | os.O_NOCTTY
_FOLDER = os.O_RDONLY | os.O_DIRECTORY


class OpenPath(msgspec.Struct, frozen=True):
    """A descriptor and what it really is."""

    descriptor: int
    status: os.stat_result
    root: Root
    relative: str
    real: str
    """The path as results name it."""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        os.close(self.descriptor)


class OpenFileCache(threading.local):
    """The file a decision was made about, kept for the call that follows: one look instead of two, and no moment
    between them in which it could become another file."""

    kept: tuple[str, OpenPath] | None = None
    """By the path that it was asked for by. One value: each look at what is a thread's own costs."""

    def keep(self, path: str, opened: OpenPath) -> None:
        """Keeps one file, instead of the one before."""
        self.drop()
        self.kept = path, opened

    def take(self, path: str) -> OpenPath | None:
        """Hands the file over, if it is the one."""
        kept = self.kept
        if kept is None or kept[0] != path:
            return None
        self.kept = None
        return kept[1]

    def drop(self) -> None:
        """Closes the file that nobody took."""
        kept = self.kept
        if kept is not None:
            self.kept = None
            os.close(kept[1].descriptor)


class Workspace:
    """One main root, where relative paths start, and any number of extra roots."""

    def __init__(self, main: str, *extra: Root, kernel: bool | None = None) -> None:
        self.main = Root(main, main=True)
        self.root_sets = SessionRoots((self.main, *extra))
        """The roots, some of which come and go."""
        self.boundary: Boundary | None = None
        """What is never opened, where a person may be asked about paths outside; None where nobody is."""
        self._at_hand = OpenFileCache()
        self.kernel = openat2_works() if kernel is None else kernel
        """Whether the kernel resolves paths (openat2) or we walk them."""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Gives every root's descriptor back."""
        self.root_sets.close()

    @property
    def roots(self) -> tuple[Root, ...]:
        """The roots that there are now, for this thread."""
        return self.root_sets.now.all

    def open_file(self, path: str) -> OpenPath:
        """A regular file, open for reading; anything else is a ToolError."""
        opened = self._at_hand.take(path) or self._opened(path, _READ)
        try:
            refuse_special(opened, path)
            refuse_credential(opened, path)
        except ToolError:
            os.close(opened.descriptor)
            raise
        return opened

    def open_folder(self, path: str) -> OpenPath:
        """A folder, open for listing; anything else is a ToolError."""
        opened = self._opened(path, _FOLDER)
        try:
            refuse_credential(opened, path)
        except ToolError:
            os.close(opened.descriptor)
            raise
        return opened

    def resolve_for_write(self, path: str) -> tuple[ResolvedParent, str]:
        """The parent of a file that is to be written, links resolved, and the path as results name it."""
        landing, root, real = self._landed(path)
        try:
            _refuse_read_only(root, path)
            _refuse_protected(real, self._place(path).named, path)
        except ToolError:
            os.close(landing.folder)
            raise
        return landing, real

    def resolve_for_removal(self, path: str) -> tuple[ResolvedParent, str]:
        """The folder of a name that is to be removed, and the path as results name it. Links on the way are followed;
        the name itself is not, if it is one."""
        where = self._place_of_name(path)
        if where is None:
            raise to_tool_error(IsADirectoryError(errno.EISDIR, ""), path)
        folder, name = where
        try:
            opened = self._open(self._place(folder), _FOLDER)
        except FileNotFoundError:
            raise self.not_found(path, "file") from None
        except OSError as error:
            raise to_tool_error(error, path) from None
        real = opened.root.display_path(_joined(opened.relative, name))
        try:
            _refuse_read_only(opened.root, path)
            _refuse_protected(real, self._place(path).named, path)
        except ToolError:
            os.close(opened.descriptor)
            raise
        return ResolvedParent(opened.descriptor, name, ()), real

    def append(self, path: str, data: bytes) -> None:
        """Adds bytes to the end of a file, all or none; it is created with its parents, for its owner only."""
        landing, _ = self.resolve_for_write(path)
        with landing:
            folders = NewFolders(landing.folder, landing.missing)
            try:
                flags = os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
                descriptor = os.open(landing.name, flags, 0o600, dir_fd=folders.innermost)
                try:
                    if not stat.S_ISREG(os.fstat(descriptor).st_mode):
                        raise OSError(errno.ENXIO, os.strerror(errno.ENXIO), path)
                    _append_all(descriptor, data, path)
                finally:
                    os.close(descriptor)
                folders.keep()
            except OSError as error:
                raise to_tool_error(error, path) from None
            finally:
                folders.close()

    def hash_of(self, path: str) -> str | None:
        """The hash of a file's bytes; None where there is no regular file."""
        try:
            with self.open_file(path) as opened:
                digest = hashlib.sha256()
                while chunk := os.read(opened.descriptor, 1 << 20):
                    digest.update(chunk)
                return digest.hexdigest()
        except (ToolError, OSError):
            return None

    def fact(self, path: str, access: Access) -> PathFact:
        """What a path is now, for policy to judge. A path that leads outside is a fact, an impossible one an error."""
        fact = self._fact_inside(path, access)
        if fact.real is None or (access != "read" and not fact.writable):
            return self._fact_outside(fact)
        return fact if access == "read" else self._with_repository(fact, fact.real)

    def fact_for_command(self, path: str, access: Access, *, past_files: bool = False) -> PathFact:
        """The same about a path that a command names: no call follows that reads it, and nothing is opened for it. With
        `past_files`, a path below a file is missing: the command may put a folder in the file's place."""
        fact = self._fact_inside(path, "delete" if access == "delete" else "write", past_files=past_files)
        fact = msgspec.structs.replace(fact, access=access, root=self._is_or_holds_root(fact.real or path))
        return fact if access == "read" or fact.real is None else self._with_repository(fact, fact.real)

    def _is_or_holds_root(self, path: str) -> bool:
        """By its spelling: what is outside is not looked at."""
        whole = os.path.normpath(path).rstrip("/") + "/"
        return any(f"{root.path}/".startswith(whole) for root in self.roots)

    def _fact_outside(self, fact: PathFact) -> PathFact:
        """Where a person may be asked: where it leads. A root that was opened for reading may be opened further."""
        if self.boundary is None or (
            fact.real is not None and not self.root_sets.now.holding(fact.real).opened_by_person
        ):
            return fact
        return build_outside_fact(self.main, self.roots, fact.path, fact.access, self.boundary)

    def _with_repository(self, fact: PathFact, real: str) -> PathFact:
        for folder, name in list_possible_repositories(real):
            with contextlib.suppress(OSError, ToolError), self._open(self._place(folder), _LOOK) as found:
                if is_repository_change(found.descriptor, name, adds=fact.access == "write"):
                    return msgspec.structs.replace(fact, repository=True)
        return fact

    def _fact_inside(self, path: str, access: Access, *, past_files: bool = False) -> PathFact:
        try:
            if access == "read":
                return self._glance(path)
            where = self._place(path)
            named = self._place_of_name(path) if access == "delete" else None
            if named is not None:
                return self._fact_of_name(where, *named)
            with self._open(where, _LOOK) as found:
                return self._fact(where, access, found)
        except (FileNotFoundError, NotADirectoryError):
            landing, root, real = self._landed(path, past_files=past_files)
            os.close(landing.folder)
            named = _other(self._place(path).named, real)
            return PathFact(path=path, access=access, kind="missing", real=real, named=named, writable=root.writable)
        except OSError as error:
            if error.errno == errno.EXDEV:
                return PathFact(path=path, access=access, kind="other", real=None)
            raise to_tool_error(error, path) from None

    def credential_files(self) -> "frozenset[FileId]":
        """The files that are credentials by any of their names in the roots; none where the roots have too many folders
        to be looked through. Only for files with several names (hard links): of others the name says it."""
        try:
            return self._withheld.credential_files(self.roots)
        except ToolError:
            return frozenset()

    def list_protected_names(self, opened: OpenPath, stop: Callable[[], bool]) -> "list[ProtectedName]":
        """The credentials below an open folder; see `SensitivePaths.list_protected_names`."""
        return self._withheld.list_protected_names(opened.root, opened.relative, stop)

    def _fact(self, where: SpelledPath, access: Access, found: OpenPath) -> PathFact:
        kind, status = _kind(found.status), found.status
        shared = kind == "file" and status.st_nlink > 1
        return PathFact(
            path=where.spelled,
            access=access,
            kind=kind,
            real=found.real,
            named=_other(where.named, found.real),
            writable=found.root.writable,
            size=status.st_size if kind == "file" else None,
            shared=shared,
            credential=shared and (status.st_dev, status.st_ino) in self.credential_files(),
            read_only=kind == "file" and not status.st_mode & 0o222,
        )

    @cached_property
    def _withheld(self) -> "SensitivePaths":
        from handrail.workspace.sensitive_paths import SensitivePaths  # noqa: PLC0415  few files have several names

        return SensitivePaths(kernel=self.kernel)

    def root_path(self, real: str) -> str:
        """The folder of the root that a path, as results name it, is in."""
        return self.root_sets.now.holding(real).path

    def shared_file(self, path: str) -> tuple[int, int] | None:
        """Which file a path is one of several names of; None when it is the only one, or there is none."""
        try:
            with self._open(self._place(path), _LOOK) as found:
                status = found.status
        except (OSError, ToolError):
            return None
        is_shared = stat.S_ISREG(status.st_mode) and status.st_nlink > 1
        return (status.st_dev, status.st_ino) if is_shared else None

    def not_found(self, path: str, kind: str) -> ToolError:
        """The refusal for a path where nothing is, with the names that may be meant."""
        folder, _, name = path.rstrip("/").rpartition("/")
        target = ""
        try:
            with self._open(self._place(folder or ("/" if path.startswith("/") else ".")), _FOLDER) as opened:
                names = list_similar_names(name, opened.descriptor)
                if name in names:
                    names.remove(name)
                    target = os.readlink(name, dir_fd=opened.descriptor)
        except (OSError, ToolError):
            names = []
        near = [f"{folder}/{found}" if folder else found for found in names]
        link = f" It is a link to {clip_path(target)}, which is missing." if target else ""
        hint = f" Near: {', '.join(map(clip_path, near))}." if near else ""
        return ToolError("NOT_FOUND", f"No {kind} {clip_path(path)}.{link}{hint}", details={"near": near})

    def drop_cached(self) -> None:
        """Closes what a decision left open: no call follows, or too much may happen before it."""
        self._at_hand.drop()

    def _glance(self, path: str) -> PathFact:
        """The fact about a file to be read; the file itself stays at hand for the call that reads it."""
        where = self._place(path)
        try:
            opened = self._open(where, _READ)
        except OSError as error:
            if error.errno not in {errno.EACCES, errno.EPERM, errno.ENXIO, errno.ENODEV}:
                raise
            with self._open(where, _LOOK) as found:
                return self._fact(where, "read", found)
        fact = self._fact(where, "read", opened)
        if fact.kind == "file":
            self._at_hand.keep(path, opened)
        else:
            os.close(opened.descriptor)
        return fact

    def _place_of_name(self, path: str) -> tuple[str, str] | None:
        """The folder that a name is in, and the name; None where a path ends with none."""
        self._place(path)  # a path that can be none is refused
        folder, _, name = path.rstrip("/").rpartition("/")
        if name in {"", ".", ".."} or path.endswith("/"):
            return None
        return folder or ("/" if path.startswith("/") else "."), name

    def _fact_of_name(self, where: SpelledPath, folder: str, name: str) -> PathFact:
        """The fact about a name that is to be removed: a link is a link, wherever it leads."""
        with self._open(self._place(folder), _LOOK) as opened:
            status = os.stat(name, dir_fd=opened.descriptor, follow_symlinks=False)
            real = opened.root.display_path(_joined(opened.relative, name))
        kind = _kind(status)
        return PathFact(
            path=where.spelled,
            access="delete",
            kind=kind,
            real=real,
            named=_other(where.named, real),
            writable=opened.root.writable,
            size=status.st_size if kind == "file" else None,
        )

    def _place(self, path: str) -> SpelledPath:
        return self.root_sets.now.place(path)

    def _landed(self, path: str, *, past_files: bool = False) -> tuple[ResolvedParent, Root, str]:
        try:
            where = self._place(path)
            landing = resolve_parent(where.root.descriptor, where.parts, self._reroot, path, past_files=past_files)
        except OSError as error:
            raise to_tool_error(error, path) from None
        try:
            root, folder = self._root_of(landing.folder, path)
        except OSError as error:
            os.close(landing.folder)
            raise to_tool_error(error, path) from None
        return landing, root, root.display_path(_joined(folder, *landing.missing, landing.name))

    def _opened(self, path: str, flags: int) -> OpenPath:
        try:
            return self._open(self._place(path), flags)
        except FileNotFoundError:
            raise self.not_found(path, "folder" if flags == _FOLDER else "file") from None
        except OSError as error:
            raise to_tool_error(error, path) from None

    def _open(self, where: SpelledPath, flags: int) -> OpenPath:
        if not self.kernel:
            return self._walked(where, flags)
        try:
            # Without links on the way, the path as spelled is the path as it is, and asking the kernel again is saved.
            descriptor = openat2(where.root.descriptor, where.path, flags, resolve=RESOLVE_NO_SYMLINKS)
        except OSError as error:
            if error.errno not in {errno.ELOOP, errno.EXDEV}:
                raise
            return self._walked(where, flags)
        if where.straight is None or where.named is None:
            os.close(descriptor)
            raise build_outside_error(where.spelled)
        return OpenPath(descriptor, os.fstat(descriptor), where.owner, where.straight, where.named)

    def _walked(self, where: SpelledPath, flags: int) -> OpenPath:
        with resolve_parent(where.root.descriptor, where.parts, self._reroot, where.spelled) as landing:
            descriptor = landing.open(flags)
        try:
            if stat.S_ISLNK(os.fstat(descriptor).st_mode):
                raise OSError(errno.ELOOP, os.strerror(errno.ELOOP), where.spelled)
            root, relative = self._root_of(descriptor, where.spelled)
        except OSError:
            os.close(descriptor)
            raise
        return OpenPath(descriptor, os.fstat(descriptor), root, relative, root.display_path(relative))

    def _root_of(self, descriptor: int, spelled: str) -> tuple[Root, str]:
        """The root an open file lies in, innermost first, by where it is now."""
        parts = tuple(part for part in find_descriptor_path(descriptor).split("/") if part)
        for root in self.root_sets.now.innermost_first:
            own = tuple(part for part in find_descriptor_path(root.descriptor).split("/") if part)
            if parts[: len(own)] == own:
                return root, "/".join(parts[len(own) :]) or "."
        raise build_outside_error(spelled)

    def _reroot(self, parts: tuple[str, ...], up: bool) -> tuple[int, tuple[str, ...]] | None:
        found = find_innermost_root(parts, self.roots)
        if found is None or (up and not found[0].opened_by_person):
            return None
        return found[0].descriptor, found[1]


def refuse_special(opened: OpenPath, path: str) -> None:
    """Only regular files are read: a FIFO would hang, a device may never end."""
    if stat.S_ISREG(opened.status.st_mode):
        return
    if stat.S_ISDIR(opened.status.st_mode):
        raise to_tool_error(IsADirectoryError(errno.EISDIR, ""), path)
    raise to_tool_error(OSError(errno.ENXIO if not is_device(opened.status) else errno.ENODEV, ""), path)


def refuse_credential(opened: OpenPath, path: str) -> None:
    """The name of what was really opened counts, whatever the path was when policy looked."""
    if find_protection(opened.real) == "credential":
        raise ToolError(
            "POLICY_DENIED",
            f"Rule fs.secret forbids reading {clip_path(path)}. Do not try another way; say what you need it for.",
        )


def is_device(status: os.stat_result) -> bool:
    """A character or block device."""
    return stat.S_ISCHR(status.st_mode) or stat.S_ISBLK(status.st_mode)


def _append_all(descriptor: int, data: bytes, path: str) -> None:
    """Half a line would be glued to the next one: it is taken away, unless somebody wrote behind it meanwhile."""
    written = os.write(descriptor, data)
    if written < len(data):
        end = os.lseek(descriptor, 0, os.SEEK_CUR)
        if os.fstat(descriptor).st_size == end:
            os.ftruncate(descriptor, end - written)
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), path)


def _refuse_read_only(root: Root, path: str) -> None:
    if not root.writable:
        raise ToolError("ACCESS_DENIED", f"{clip_path(path)} is in a root that was opened for reading only.")


def _refuse_protected(real: str, named: str | None, path: str) -> None:
    """A link may have been turned since policy looked: what asks before a change is changed under its own name only."""
    if real != named and find_protection(real) == "protected":
        message = (
            f"{clip_path(path)} leads to {clip_path(real)}, which steers tools; name it by that path to change it."
        )
        raise ToolError("POLICY_DENIED", message)


def _kind(status: os.stat_result) -> FileKind:
    mode = status.st_mode
    if stat.S_ISREG(mode):
        return "file"
    return "directory" if stat.S_ISDIR(mode) else "link" if stat.S_ISLNK(mode) else "other"


def _other(named: str | None, real: str) -> str | None:
    return None if named == real else named


def _joined(*parts: str) -> str:
    return "/".join(part for part in parts if part and part != ".") or "."
