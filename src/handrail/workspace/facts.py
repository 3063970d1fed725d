"""Collects facts about a path for the policy."""

import errno
import os
from collections.abc import Collection, Iterable
from contextlib import suppress
from functools import lru_cache

import msgspec

from handrail.policy.names import is_git_control_name, list_possible_repositories, normalize_name
from handrail.protocol.decisions import Access, PathFact
from handrail.protocol.errors import ToolError
from handrail.workspace.errors import to_tool_error
from handrail.workspace.file_state import find_kind
from handrail.workspace.resolve import INSPECT, READ_FILE, closing_descriptor
from handrail.workspace.roots import Boundary, Root, SpelledPath, find_descriptor_path, is_inside
from handrail.workspace.workspace import OpenPath, Workspace, join_names

_REPOSITORY_PARTS = ("HEAD", "objects", "refs", "commondir")
_GIT_CONFIGS = ("/etc/gitconfig", "/usr/local/etc/gitconfig", "~/.gitconfig", "~/.config/git/config")
_MAX_CONFIG_BYTES, _MIN_COUNTED_BYTES = 16 << 20, 4096
"""Bytes of all configurations together, and the least that each counts for."""
_MAX_INDEX_BYTES = 256 << 20
_NAME_LENGTH_BITS = 0x0FFF
"""The bits of an index entry's flags that hold the length of its name."""
_SHORT_NAMES = b"DIRC\0\0\0\4"
"""The start of an index of version 4."""
_SPLIT_INDEX = b"link\0\0"
"""The start of the extension that names the other half of a split index. The name of a file may look the same."""


def build_path_fact(workspace: Workspace, path: str, access: Access) -> PathFact:
    """The fact about a path that a file tool names. A path outside is a fact too, an impossible one a ToolError.

    A file to be read stays open for the call that follows.
    """
    fact = _build_inside_fact(workspace, path, access)
    if fact.real is None or (access != "read" and not fact.writable):
        return _build_outside_fact(workspace, fact)
    return fact if access == "read" else _add_repository(workspace, fact, fact.real)


def build_command_fact(workspace: Workspace, path: str, access: Access, *, past_files: bool = False) -> PathFact:
    """The fact about a path that a command names. Nothing stays open.

    With `past_files`, a path below a file counts as missing: the command may replace the file by a folder.
    """
    fact = _build_inside_fact(workspace, path, "delete" if access == "delete" else "write", past_files=past_files)
    folder = os.path.normpath(fact.real or path)
    holds_root = any(is_inside(root.path, folder) for root in workspace.roots)
    fact = msgspec.structs.replace(fact, access=access, root=holds_root)
    return fact if access == "read" or fact.real is None else _add_repository(workspace, fact, fact.real)


def find_spelled_folder(path: str, real: str, folder: str) -> str | None:
    """The spelling of a folder in an absolute path below it. None if the path does not spell it."""
    below = real[len(folder) :].strip("/")
    spelled = path.rstrip("/")
    if not path.startswith("/") or ".." in path.split("/"):
        return None
    if not f"{spelled}/".endswith(f"/{below}/" if below else "/"):
        return None
    start = spelled[: len(spelled) - len(below)].rstrip("/") or "/"
    return start if os.path.realpath(start) == folder else None


def list_tracked(paths: Iterable[str], roots: Iterable[str]) -> frozenset[str]:
    """The files that their git repository tracks, and the folders in which it tracks a file. All paths absolute.

    The index is read without git, since git would run programs that a repository configures.
    """
    within = tuple(roots)
    return frozenset(path for path in paths if _is_tracked(path, within))


def build_driver_settings(configs: Iterable[str]) -> tuple[tuple[str, str], ...]:
    """The git settings, name and value, that disable all configured filters and text converters.

    These are in the given files, the machine's, the user's, and all files that they include. ToolError if the files
    are too large.
    """
    from handrail.policy.git_config import disable_drivers, list_included_paths  # noqa: PLC0415  only git needs it

    paths = [*map(os.path.expanduser, _GIT_CONFIGS), *configs]
    settings, left = dict[str, str](), _MAX_CONFIG_BYTES
    for path in paths:  # grows in the loop
        text = _read_config(path, left)
        left -= max(len(text), _MIN_COUNTED_BYTES)
        if left <= 0:
            raise ToolError("LIMIT_EXCEEDED", "The workspace has too much git configuration to check. git was not run.")
        settings |= disable_drivers(text)
        included = (os.path.join(os.path.dirname(path), os.path.expanduser(name)) for name in list_included_paths(text))
        paths += [path for path in map(os.path.normpath, included) if path not in paths]
    return tuple(sorted(settings.items()))


def _build_inside_fact(workspace: Workspace, path: str, access: Access, *, past_files: bool = False) -> PathFact:
    try:
        if access == "read":
            return _build_read_fact(workspace, path)
        spelled = workspace.parse(path)
        split = workspace.split_name(path) if access == "delete" else None
        if split is not None:
            return _build_name_fact(workspace, spelled, *split)
        with workspace.open_spelled(spelled, INSPECT) as opened:
            return _build_open_fact(workspace, spelled, access, opened)
    except (FileNotFoundError, NotADirectoryError):
        parent, root, real = workspace.resolve(path, past_files=past_files)
        os.close(parent.folder)
        named = _other_than(real, workspace.parse(path).named)
        return PathFact(path=path, access=access, kind="missing", real=real, named=named, writable=root.writable)
    except OSError as error:
        if error.errno == errno.EXDEV:
            return PathFact(path=path, access=access, kind="other", real=None)
        raise to_tool_error(error, path) from None


def _build_read_fact(workspace: Workspace, path: str) -> PathFact:
    spelled = workspace.parse(path)
    try:
        opened = workspace.open_spelled(spelled, READ_FILE)
    except OSError as error:
        if error.errno not in {errno.EACCES, errno.EPERM, errno.ENXIO, errno.ENODEV}:
            raise
        with workspace.open_spelled(spelled, INSPECT) as opened:
            return _build_open_fact(workspace, spelled, "read", opened)
    fact = _build_open_fact(workspace, spelled, "read", opened)
    if fact.kind == "file":
        workspace.keep_open(path, opened)
    else:
        os.close(opened.descriptor)
    return fact


def _build_open_fact(workspace: Workspace, spelled: SpelledPath, access: Access, opened: OpenPath) -> PathFact:
    status = opened.status
    fact = _build_fact(spelled, access, opened.root, opened.real, status)
    shared, read_only = status.st_nlink > 1, not status.st_mode & 0o222
    if fact.kind != "file" or not (shared or read_only):
        return fact
    credential = shared and (status.st_dev, status.st_ino) in workspace.credential_files()
    return msgspec.structs.replace(fact, shared=shared, credential=credential, read_only=read_only)


def _build_name_fact(workspace: Workspace, spelled: SpelledPath, folder: str, name: str) -> PathFact:
    """The fact about a name to remove. A link is a link, wherever it leads."""
    with workspace.open_spelled(workspace.parse(folder), INSPECT) as opened:
        status = os.stat(name, dir_fd=opened.descriptor, follow_symlinks=False)
        real = opened.root.display_path(join_names(opened.relative, name))
    return _build_fact(spelled, "delete", opened.root, real, status)


def _build_fact(spelled: SpelledPath, access: Access, root: Root, real: str, status: os.stat_result) -> PathFact:
    kind = find_kind(status.st_mode)
    return PathFact(
        path=spelled.spelled,
        access=access,
        kind=kind,
        real=real,
        named=_other_than(real, spelled.named),
        writable=root.writable,
        size=status.st_size if kind == "file" else None,
    )


def _other_than(real: str, named: str | None) -> str | None:
    return None if named == real else named


def _add_repository(workspace: Workspace, fact: PathFact, real: str) -> PathFact:
    """Notes whether the change steers a git repository, or makes a folder one, under any name."""
    for folder, name in list_possible_repositories(real):
        with suppress(OSError, ToolError), workspace.open_spelled(workspace.parse(folder), INSPECT) as opened:
            if _is_repository_change(opened.descriptor, name, adds=fact.access == "write"):
                return msgspec.structs.replace(fact, repository=True)
    return fact


def _is_repository_change(folder: int, name: str, *, adds: bool) -> bool:
    if normalize_name(name) != "head" and not _exists(folder, "HEAD"):
        return False  # nearly every folder
    parts = {part for part in _REPOSITORY_PARTS if _exists(folder, part)}
    if _is_repository(parts):
        return is_git_control_name(name)
    added = {part for part in _REPOSITORY_PARTS if part.casefold() == normalize_name(name)}
    return adds and _is_repository(parts | added)


def _is_repository(parts: set[str]) -> bool:
    return "HEAD" in parts and ("commondir" in parts or {"objects", "refs"} <= parts)


def _exists(folder: int, name: str) -> bool:
    try:
        os.stat(name, dir_fd=folder, follow_symlinks=False)
    except OSError:
        return False
    return True


def _build_outside_fact(workspace: Workspace, fact: PathFact) -> PathFact:
    """Finds where a path outside leads, if a person may be asked. A read-only root that they opened counts as outside.

    No file there is read.
    """
    boundary = workspace.boundary
    if boundary is None:
        return fact
    if fact.real is not None and not workspace.root_sets.current.find_root(fact.real).opened_by_person:
        return fact
    find_path = _find_outside_name if fact.access == "delete" else _find_outside_path
    real, status = find_path(workspace, fact.path)
    kind = find_kind(status.st_mode) if status is not None else "missing"
    folder = real if kind == "directory" else _find_existing_folder(real)
    return PathFact(
        path=fact.path,
        access=fact.access,
        kind=kind,
        size=status.st_size if status is not None and kind == "file" else None,
        outside=real,
        folder=folder,
        closed_reason=_find_closed_reason(workspace, boundary, fact.path, real, folder),
    )


def _find_closed_reason(workspace: Workspace, boundary: Boundary, path: str, real: str, folder: str) -> str:
    if any(is_inside(real, root.path) for root in workspace.roots if not root.opened_by_person):
        return f"it leads back to {real}, so name it by that path"
    if closed := boundary.find_closed_reason(folder):
        return closed
    if path.startswith("/") and find_spelled_folder(path, real, folder) is None:
        return f"it leads to {real}, so name it by that path"
    return ""


def _find_outside_path(workspace: Workspace, path: str) -> tuple[str, os.stat_result | None]:
    """The real path and its status. An existing path is opened, so that no link can change meanwhile."""
    try:
        descriptor = os.open(path, INSPECT, dir_fd=workspace.main.descriptor)
    except OSError:
        return os.path.realpath(_to_absolute(workspace, path)), None
    with closing_descriptor(descriptor):
        return find_descriptor_path(descriptor), os.fstat(descriptor)


def _find_outside_name(workspace: Workspace, path: str) -> tuple[str, os.stat_result | None]:
    """The same for a name to remove: a link as the last name is not followed."""
    folder, _, name = _to_absolute(workspace, path.rstrip("/")).rpartition("/")
    if name in {"", ".", ".."}:
        return _find_outside_path(workspace, path)
    real = os.path.join(os.path.realpath(folder or "/"), name)
    try:
        return real, os.lstat(real)
    except OSError:
        return real, None


def _to_absolute(workspace: Workspace, path: str) -> str:
    return os.path.join(find_descriptor_path(workspace.main.descriptor), path)


def _find_existing_folder(real: str) -> str:
    folder: str = os.path.dirname(real)
    while not os.path.isdir(folder) and folder not in {"/", ""}:
        folder = os.path.dirname(folder)
    return folder or "/proc"  # a file without a path was reached by its number there


def _is_tracked(path: str, roots: tuple[str, ...]) -> bool:
    folder = path
    while folder not in roots and folder != "/":
        folder = os.path.dirname(folder)
        index = os.path.join(folder, ".git", "index")
        if (version := _read_version(index)) is not None:
            return has_index_entry(_read_index(index, version), path, folder)
    return False


def has_index_entry(index: bytes, path: str, folder: str) -> bool:
    """Whether the index of the repository in `folder` has an entry for a path, or below it. Both paths are absolute.

    The length of a name stands before it, a NUL behind it. A split index lacks most names.
    """
    index = _expand_names(index) if index.startswith(_SHORT_NAMES) else index
    name = os.fsencode(os.path.relpath(path, folder))
    at = index.find(name)
    while at >= 0:
        length = min(index.find(b"\0", at) - at, _NAME_LENGTH_BITS)
        is_complete = index[at + len(name) : at + len(name) + 1] in {b"\0", b"/"}
        if is_complete and int.from_bytes(index[at - 2 : at], "big") & _NAME_LENGTH_BITS == length:
            return True
        at = index.find(name, at + 1)
    return False


@lru_cache(maxsize=4)
def _expand_names(index: bytes) -> bytes:
    """The names of an index of version 4, each with its length and a NUL. The file has how much of the last name goes,
    and what follows."""
    names: list[bytes] = []
    name, at = b"", 12
    while len(names) < int.from_bytes(index[8:12], "big") and at + 64 < len(index):
        at += 64 if index[at + 60] & 0x40 else 62
        dropped = index[at] & 0x7F
        while index[at] & 0x80 and at + 1 < len(index):
            at += 1
            dropped = (dropped + 1 << 7) + (index[at] & 0x7F)
        end = index.find(b"\0", at + 1)
        name, at = name[: max(0, len(name) - dropped)] + index[at + 1 : end], end + 1
        names.append(min(len(name), _NAME_LENGTH_BITS).to_bytes(2, "big") + name + b"\0")
    return b"".join(names)


def may_be_tracked(paths: Collection[str], roots: Collection[str]) -> bool:
    """Whether git tracks one of these paths, or may do so although no index tells: it is split, or `.git` is a file."""
    return bool(list_tracked(paths, roots)) or _has_unlisted_names(paths, roots)


def _has_unlisted_names(paths: Collection[str], roots: Collection[str]) -> bool:
    for path in paths:
        folder = path
        while folder not in roots and folder != "/":
            folder = os.path.dirname(folder)
            index = os.path.join(folder, ".git", "index")
            if os.path.isfile(os.path.dirname(index)):
                return True
            if (version := _read_version(index)) is not None:
                if _SPLIT_INDEX in _read_index(index, version) and _has_shared_index(os.path.dirname(index)):
                    return True
                break
    return False


def _has_shared_index(repository: str) -> bool:
    """Whether a repository has the other half of a split index. A tracked file may be called `link` too."""
    return any(name.startswith("sharedindex.") for name in os.listdir(repository))


def _read_version(path: str) -> tuple[int, int, int] | None:
    try:
        status = os.lstat(path)
    except OSError:
        return None
    return status.st_ino, status.st_ctime_ns, status.st_size


@lru_cache(maxsize=4)
def _read_index(path: str, _version: tuple[int, int, int]) -> bytes:
    try:
        with open(os.open(path, READ_FILE), "rb") as file:
            return file.read(_MAX_INDEX_BYTES)
    except OSError:
        return b""


def _read_config(path: str, most: int) -> str:
    def open_at_once(path: str, flags: int) -> int:
        return os.open(path, flags | os.O_NONBLOCK)

    with suppress(OSError, ValueError), open(path, "rb", opener=open_at_once) as file:
        return os.fsdecode(file.read(most) or b"")
    return ""  # git cannot read it either
