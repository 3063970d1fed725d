"""Filters that decide which paths a search reports."""

import os
import stat
from collections.abc import Iterator
from contextlib import suppress

from handrail.policy.names import is_credential
from handrail.workspace.glob import build_excluder, compile_glob, list_unknown_folders
from handrail.workspace.ignore import FILES, STRONG, TEMPORARY_PREFIX, IgnoreStack, read_ignore_rules
from handrail.workspace.resolve import READ_FILE, closing_descriptor
from handrail.workspace.search.engine import SearchScope, to_sort_key

_MAX_IGNORE_FILE_BYTES = 1 << 16
_TEMPORARY = TEMPORARY_PREFIX.encode()


class GlobFilter:
    """Accepts paths by globs and ignore rules, apart from policy."""

    def __init__(self, scope: SearchScope, *, has_ignore_rules: bool = True) -> None:
        self._include = compile_glob(scope.include) if scope.include is not None else None
        self._excludes = build_excluder(scope.exclude) if scope.exclude else None
        self.ignore = _IgnoreFilter(scope) if has_ignore_rules else None

    def accepts(self, path: bytes) -> bool:
        return bool(self.select([path]))

    def select(self, paths: list[bytes]) -> list[bytes]:
        included = paths if self._include is None else list(filter(self._include, paths))
        if self._excludes is None and self.ignore is None:
            return included
        return [path for path in included if self.enters(path, is_folder=False)]

    def includes(self, path: bytes) -> bool:
        return self._include is None or self._include(path) is not None

    def enters(self, path: bytes, *, is_folder: bool = True) -> bool:
        """Whether neither globs nor ignore rules leave out a path."""
        if self._excludes is not None and self._excludes(path, is_folder):
            return False
        return self.ignore is None or not self.ignore.matches(path, is_folder=is_folder)


class PathFilter:
    """Selects the paths from ripgrep that a search may report. ripgrep's command line cannot express all filters."""

    def __init__(self, scope: SearchScope, *, has_ignored: bool = False) -> None:
        has_rules = has_ignored or bool(scope.ignore) or _has_rules_above(scope) or has_odd_rules(scope)
        self._globs = GlobFilter(scope, has_ignore_rules=has_rules)
        self._credentials = CredentialFilter(scope)

    @property
    def has_gap(self) -> bool:
        """Whether some ignore rules are unknown."""
        return self._globs.ignore is not None and self._globs.ignore.top.gap is not None

    def accepts(self, path: bytes) -> bool:
        return self._globs.accepts(path) and not self._credentials.matches(path)

    def select(self, paths: list[bytes]) -> list[bytes]:
        """Return the paths that may be reported. ripgrep takes longer to leave out our unfinished files."""
        if any(_TEMPORARY in path for path in paths):
            paths = [path for path in paths if not any(name.startswith(_TEMPORARY) for name in path.split(b"/"))]
        return self._credentials.drop(self._globs.select(paths))


class CredentialFilter:
    """Tells the paths that are, or lie in, a credential."""

    def __init__(self, scope: SearchScope) -> None:
        self._prefix = "" if scope.relative == "." else f"{scope.relative}/"
        self._folders: dict[bytes, bool] = {b"": False}
        self._known, self._odd = set[str](), set[bytes]()
        """Names of files and folders that were met, and those of them that are credentials in some folders."""

    def drop(self, paths: list[bytes]) -> list[bytes]:
        """Return the paths that do not match. Each name is judged once, since the same ones are on many paths."""
        names = set(os.fsdecode(b"/".join(paths)).split("/")) - self._known
        self._known |= names
        self._odd.update(os.fsencode(name) for name in names if is_credential(name, anywhere=True))
        if not self._odd:
            return paths
        return [path for path in paths if self._odd.isdisjoint(path.split(b"/")) or not self.matches(path)]

    def matches(self, path: bytes) -> bool:
        """Whether policy withholds a path below the folder."""
        outer = path[: max(0, path.rfind(b"/"))]
        is_inside = self._folders.get(outer)
        if is_inside is None:
            for folder in list_unknown_folders(path, self._folders):
                self._folders[folder] = self.matches(folder)
            is_inside = self._folders[outer]
        return is_inside or is_credential(self._prefix + os.fsdecode(path))


class _IgnoreFilter:
    """Tells the paths that ignore rules match: those of the settings, and of folders above, at and below the scope."""

    def __init__(self, scope: SearchScope) -> None:
        self._scope = scope
        self.top = read_ignore_rules(scope.root, scope.relative, scope.ignore)
        self._rules: dict[bytes, IgnoreStack | None] = {b"": self.top}
        """None for an ignored folder."""

    def matches(self, path: bytes, *, is_folder: bool) -> bool:
        """Whether a path is ignored, or a folder that it lies in."""
        for folder in list_unknown_folders(path, self._rules):
            self._rules[folder] = self._read_rules(folder)
        outer, _, name = path.rpartition(b"/")
        rules = self._rules[outer]
        return rules is None or rules.matches(name, folder=is_folder)

    def _read_rules(self, folder: bytes) -> IgnoreStack | None:
        outer, _, name = folder.rpartition(b"/")
        rules = self._rules[outer]
        if rules is None or rules.matches(name, folder=True):
            return None
        return rules.enter(self._scope.folder, name, f"{os.fsdecode(folder)}/")


def list_protected_names(scope: SearchScope, last: bytes | None) -> list[bytes] | None:
    """Return the names that policy withholds from a search, up to `last`, the key of a result, if that is given.

    None if they are not known. No file is opened, so their number reveals no content.
    """
    if not scope.protected:
        return None if scope.protected is None else []
    globs = GlobFilter(scope)
    shown = [name for name in scope.protected if last is None or to_sort_key(name[0]) <= last]
    return [path for path, is_folder in shown if globs.includes(path) and globs.enters(path, is_folder=is_folder)]


# ripgrep would also read the ignore files above the root, so it reads none above the searched folder: PathFilter
# applies those between the root and the folder. In the folder itself ripgrep would follow links and wait for FIFOs.


def _has_rules_above(scope: SearchScope) -> bool:
    return any(_read_kind(scope.root, f"{folder}{name}") for folder in _list_folders_above(scope) for name in FILES)


def has_exceptions_above(scope: SearchScope) -> bool:
    """Whether those may take back rules of files below the folder. Then ripgrep must ignore nothing."""
    return any(
        _has_exception(scope.root, f"{folder}{name}") for folder in _list_folders_above(scope) for name in STRONG
    )


def has_odd_rules(scope: SearchScope) -> bool:
    """Whether an ignore file of the folder is no regular file. Then ripgrep must read none."""
    return any(_read_kind(scope.folder, name) not in {None, stat.S_IFREG} for name in (*STRONG, ".gitignore"))


def has_odd_repository(scope: SearchScope) -> bool:
    """Whether `.git/info/exclude` lies elsewhere than in the folder, as in a linked work tree."""
    for name in (".git", ".git/info"):
        kind = _read_kind(scope.folder, name)
        if kind != stat.S_IFDIR:
            return kind is not None
    return _read_kind(scope.folder, ".git/info/exclude") not in {None, stat.S_IFREG}


def _list_folders_above(scope: SearchScope) -> Iterator[str]:
    """Yield the folders above the searched one, from the root on, with a slash at the end."""
    path = "" if scope.relative == "." else scope.relative
    while path:
        path = path.rpartition("/")[0]
        yield f"{path}/" if path else ""


def _read_kind(folder: int, path: str) -> int | None:
    try:
        return stat.S_IFMT(os.stat(path, dir_fd=folder, follow_symlinks=False).st_mode)
    except OSError:
        return None


def _has_exception(root: int, path: str) -> bool:
    with suppress(OSError), closing_descriptor(os.open(path, READ_FILE, dir_fd=root)) as descriptor:
        lines = os.read(descriptor, _MAX_IGNORE_FILE_BYTES).split(b"\n")
        return any(line.lstrip().startswith(b"!") for line in lines)
    return False
