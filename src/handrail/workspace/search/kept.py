"""Which of the paths that ripgrep names are wanted: what its command line cannot say, is said here."""

import os
import stat
from collections.abc import Container

from handrail.policy.names import find_protection, is_credential
from handrail.workspace.ignore import IgnoreStack, read_ignore_rules
from handrail.workspace.search.above import has_odd_rules, has_rules_above
from handrail.workspace.search.beneath import open_beneath
from handrail.workspace.search.engine import SearchScope
from handrail.workspace.search.glob import build_excluder, build_matcher

_FOLDER = os.O_RDONLY | os.O_DIRECTORY


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
            descriptor = open_beneath(self._where, os.fsdecode(folder), _FOLDER)
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
        folder = open_beneath(where, outer or ".", _FOLDER)
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
