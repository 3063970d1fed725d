"""Which paths a search reports."""

import os
import stat
from collections.abc import Container, Iterator
from functools import lru_cache

from handrail.policy.names import find_protection, is_credential, list_secret_globs
from handrail.workspace.glob import Matches, build_excluder, build_matcher
from handrail.workspace.ignore import FILES, STRONG, IgnoreStack, read_ignore_rules
from handrail.workspace.resolve import LIST_FOLDER, READ_FILE, open_beneath
from handrail.workspace.search.engine import SearchScope, Stop, to_sort_key

# § [workspace.search.above] The ignore files between a root and the folder that is searched. ripgrep would read
# § those above the root too, so it reads none of them, and what they say is applied to its results. Those of the
# § folder itself it reads, unless they are links, which it would follow wherever they lead, or FIFOs, for which it
# § would wait.

_MAX_IGNORE_FILE_BYTES = 1 << 16
_HERE = (*STRONG, ".gitignore")


def has_rules_above(where: SearchScope) -> bool:
    """Whether there are such files."""
    return any(_is_there(where.root, f"{way}{name}") for way in _ways(where) for name in FILES)


def has_exceptions_above(where: SearchScope) -> bool:
    """Whether they may take back what files below the folder pass over: then ripgrep must not go by those either."""
    return any(_has_exception(where.root, f"{way}{name}") for way in _ways(where) for name in STRONG)


def has_odd_rules(where: SearchScope) -> bool:
    """Whether an ignore file of the folder is no regular file: then ripgrep must read none."""
    return any(_kind(where.folder, name) not in {None, stat.S_IFREG} for name in _HERE)


def has_odd_repository(where: SearchScope) -> bool:
    """Whether git's own list would be looked for elsewhere than in the folder's `.git`, as in a linked work tree."""
    for name in (".git", ".git/info"):
        kind = _kind(where.folder, name)
        if kind != stat.S_IFDIR:
            return kind is not None
    return _kind(where.folder, ".git/info/exclude") not in {None, stat.S_IFREG}


def _ways(where: SearchScope) -> Iterator[str]:
    """The folders above the one that is searched, each as the way from the root to it."""
    way = "" if where.relative == "." else where.relative
    while way:
        way = way.rpartition("/")[0]
        yield f"{way}/" if way else ""


def _is_there(root: int, path: str) -> bool:
    return _kind(root, path) is not None


def _kind(folder: int, path: str) -> int | None:
    try:
        return stat.S_IFMT(os.stat(path, dir_fd=folder, follow_symlinks=False).st_mode)
    except OSError:
        return None


def _has_exception(root: int, path: str) -> bool:
    try:
        descriptor = os.open(path, READ_FILE, dir_fd=root)
    except OSError:
        return False
    try:
        return any(line.lstrip().startswith(b"!") for line in os.read(descriptor, _MAX_IGNORE_FILE_BYTES).split(b"\n"))
    except OSError:
        return False
    finally:
        os.close(descriptor)


# § [workspace.search.kept] Which of the paths that ripgrep names are wanted: what its command line cannot say, is
# § said here.


class PathFilter:
    """Says of each path below a folder whether it is wanted. Protected ones are noted, by the name that protects."""

    def __init__(self, where: SearchScope) -> None:
        self._notes = where.notes
        self._chosen = GlobFilter(where, ignored=_has_more_rules(where))
        self._protector = CredentialFilter()

    def __call__(self, path: bytes) -> bool:
        """Whether the path is wanted."""
        if not self._chosen(path):
            return False
        withheld = self._protector(path)
        if withheld is not None:
            self._notes.protected.add(withheld)
        return withheld is None


class GlobFilter:
    """What globs and ignore rules leave over, apart from policy."""

    def __init__(self, where: SearchScope, *, ignored: bool = True) -> None:
        self._include = build_matcher(where.include) if where.include is not None else None
        self._excluded = build_excluder(where.exclude) if where.exclude else None
        self._asked: set[bytes] = {b""}
        self._ignored = IgnoreFilter(where) if ignored else None
        """None where whoever walks goes by the rules."""

    def __call__(self, path: bytes, *, folder: bool = False) -> bool:
        """Whether a file is to be searched, or a folder to be entered."""
        if not folder and self._include is not None and not self._include(path):
            return False
        if self._excluded is not None and self._is_excluded(path, folder=folder):
            return False
        return self._ignored is None or not self._ignored(path, folder=folder)

    def _is_excluded(self, path: bytes, *, folder: bool) -> bool:
        """Asked from the outermost folder on: what asks about each by the one around it goes no deeper than one."""
        if self._excluded is None:
            return False
        for outer in _unknown(path, self._asked):
            self._excluded(b"%b/" % outer, False)
            self._asked.add(outer)
        return self._excluded(path, folder)


class CredentialFilter:
    """The part of a path up to the first name that is a credential's; None where there is none."""

    def __init__(self) -> None:
        self._folders: dict[bytes, bytes | None] = {b"": None}

    def __call__(self, path: bytes) -> bytes | None:
        """The path of what withholds it."""
        for folder in _unknown(path, self._folders):
            self._folders[folder] = self._judged(folder)
        return self._judged(path)

    def _judged(self, path: bytes) -> bytes | None:
        folder = path.rpartition(b"/")[0]
        return self._folders[folder] or (path if is_credential(os.fsdecode(path)) else None)


class IgnoreFilter:
    """Whether ignore rules pass a path over: those of the settings, of the folder, of what is above and below it."""

    def __init__(self, where: SearchScope) -> None:
        self._where = where
        self._rules: dict[bytes, IgnoreStack | None] = {
            b"": read_ignore_rules(where.root, where.relative, where.ignore)
        }

    def __call__(self, path: bytes, *, folder: bool = False) -> bool:
        """Whether a name is passed over, or a folder that it lies in."""
        for unknown in _unknown(path, self._rules):
            self._rules[unknown] = self._inside(unknown)
        outer, _, name = path.rpartition(b"/")
        rules = self._rules[outer]
        return rules is None or rules.matches(name, folder=folder)

    def _inside(self, folder: bytes) -> IgnoreStack | None:
        """The rules of a folder in one whose rules are known; None where it is passed over itself."""
        outer, _, name = folder.rpartition(b"/")
        rules = self._rules[outer]
        passed_over = rules is None or rules.matches(name, folder=True)
        return None if rules is None or passed_over else self._own(rules, folder, name)

    def _own(self, rules: IgnoreStack, folder: bytes, name: bytes) -> IgnoreStack | None:
        try:
            descriptor = open_beneath(self._where.folder, os.fsdecode(folder), LIST_FOLDER, kernel=self._where.kernel)
        except OSError:
            return None
        try:
            return rules.inside(descriptor, name)
        finally:
            os.close(descriptor)


def _unknown(path: bytes, known: Container[bytes]) -> list[bytes]:
    """The folders on the way to a path that are not known, the outermost first; however many they are."""
    found: list[bytes] = []
    folder = path.rpartition(b"/")[0]
    while folder not in known:
        found.append(folder)
        folder = folder.rpartition(b"/")[0]
    return found[::-1]


def list_withheld_names(names: list[bytes], where: SearchScope) -> set[bytes]:
    """Of names that were passed over, those that policy withholds and that nothing else passes over."""
    secret = [name for name in names if find_protection(os.fsdecode(name)) == "credential"]
    if not secret:
        return set()
    chosen = GlobFilter(where)
    kinds = ((name, _is_folder(where, name)) for name in secret)
    return {name for name, folder in kinds if folder is not None and chosen(name, folder=folder)}


def _is_folder(where: SearchScope, path: bytes) -> bool | None:
    """Whether a name is a folder's or a file's; None for links and the like, which nobody would have searched."""
    outer, _, name = os.fsdecode(path).rpartition("/")
    try:
        folder = open_beneath(where.folder, outer or ".", LIST_FOLDER, kernel=where.kernel)
    except OSError:
        return None
    try:
        mode = os.stat(name, dir_fd=folder, follow_symlinks=False).st_mode
    except OSError:
        return None
    finally:
        os.close(folder)
    return True if stat.S_ISDIR(mode) else False if stat.S_ISREG(mode) else None


def _has_more_rules(where: SearchScope) -> bool:
    """Whether there are rules that ripgrep does not know: it looks only below the folder, and not at what is odd."""
    return bool(where.ignore) or has_rules_above(where) or has_odd_rules(where)


# § [workspace.search.withheld] Counts the names that policy withholds, without looking into any file: the count
# § must tell nothing of their contents.  An ordered search sees a part of the tree, and this walks the same part
# § again. It is cheaper than to make ripgrep log what it passes over, which costs two milliseconds at the start, as
# § long as the part is small.


def collect_withheld_names(where: SearchScope, last: bytes | None, stop: Stop) -> set[bytes]:
    """The withheld names that an ordered search passes on its way to `last`; None for all of them."""
    chosen = GlobFilter(where)
    end = None if last is None else to_sort_key(last)
    found: set[bytes] = set()
    for path, is_folder in _walk(where, chosen):
        if stop() or (end is not None and to_sort_key(path) > end):
            break
        if is_covered(path) and chosen(path, folder=is_folder):
            found.add(path)
    return found


def is_covered(path: bytes) -> bool:
    """Whether ripgrep was kept from a name; the count is the same whichever way it is taken."""
    name = path.rpartition(b"/")[2].lower()
    return any(matches(name) for matches in _secrets())


@lru_cache(maxsize=1)
def _secrets() -> tuple[Matches, ...]:
    return tuple(map(build_matcher, list_secret_globs()))


def _walk(where: SearchScope, chosen: GlobFilter) -> Iterator[tuple[bytes, bool]]:
    """Names in order, each folder before what is in it. What is withheld or passed over is not entered."""
    levels = [(b"", iter(_names(where, b"")))]
    while levels:
        folder, names = levels[-1]
        entry = next(names, None)
        if entry is None:
            levels.pop()
            continue
        name, is_folder = entry
        path = folder + name
        yield path, is_folder
        if is_folder and not is_credential(os.fsdecode(path)) and chosen(path, folder=True):
            inside = path + b"/"
            levels.append((inside, iter(_names(where, inside))))


def _names(where: SearchScope, folder: bytes) -> list[tuple[bytes, bool]]:
    try:
        descriptor = open_beneath(where.folder, os.fsdecode(folder) or ".", LIST_FOLDER, kernel=where.kernel)
    except OSError:
        return []
    try:
        with os.scandir(descriptor) as entries:
            return sorted((os.fsencode(entry.name), _is_own_folder(entry)) for entry in entries if _is_seen(entry))
    finally:
        os.close(descriptor)


def _is_own_folder(entry: os.DirEntry[str]) -> bool:
    return entry.is_dir(follow_symlinks=False)


def _is_seen(entry: os.DirEntry[str]) -> bool:
    """Links and devices are not searched."""
    return _is_own_folder(entry) or entry.is_file(follow_symlinks=False)
