"""Which of the paths that ripgrep names are wanted: what its command line cannot say, is said here."""

import os
import stat

from handrail.policy.names import is_credential, protection
from handrail.workspace.ignore import Ignore, rules_at
from handrail.workspace.search.above import has_rules_above
from handrail.workspace.search.beneath import open_beneath
from handrail.workspace.search.engine import Where
from handrail.workspace.search.glob import excluder, matcher

_FOLDER = os.O_RDONLY | os.O_DIRECTORY


class Kept:
    """Says of each path below a folder whether it is wanted. Protected ones are noted, by the name that protects."""

    def __init__(self, where: Where) -> None:
        self._notes = where.notes
        self._chosen = Chosen(where, ignored=_has_more_rules(where))
        self._protector = Protector()

    def __call__(self, path: bytes) -> bool:
        """Whether the path is wanted."""
        if not self._chosen(path):
            return False
        withheld = self._protector(path)
        if withheld is not None:
            self._notes.protected.add(withheld)
        return withheld is None


class Chosen:
    """What globs and ignore rules leave over, apart from policy."""

    def __init__(self, where: Where, *, ignored: bool = True) -> None:
        self._include = matcher(where.include) if where.include is not None else None
        self._excluded = excluder(where.exclude) if where.exclude else None
        self._ignored = Ignored(where) if ignored else None
        """None where whoever walks goes by the rules."""

    def __call__(self, path: bytes, *, folder: bool = False) -> bool:
        """Whether a file is to be searched, or a folder to be entered."""
        if not folder and self._include is not None and not self._include(path):
            return False
        if self._excluded is not None and self._excluded(path, folder):
            return False
        return self._ignored is None or not self._ignored(path, folder=folder)


class Protector:
    """The part of a path up to the first name that is a credential's; None where there is none."""

    def __init__(self) -> None:
        self._folders: dict[bytes, bytes | None] = {b"": None}

    def __call__(self, path: bytes) -> bytes | None:
        """The path of what withholds it."""
        folder, _, name = path.rpartition(b"/")
        if folder not in self._folders:
            self._folders[folder] = self(folder)
        return self._folders[folder] or (path if is_credential(os.fsdecode(name)) else None)


class Ignored:
    """Whether ignore rules pass a path over: those of the settings, of the folder, of what is above and below it."""

    def __init__(self, where: Where) -> None:
        self._where = where
        self._rules: dict[str, Ignore | None] = {"": rules_at(where.root, where.relative, where.ignore)}

    def __call__(self, path: bytes, *, folder: bool = False) -> bool:
        """Whether a name is passed over, or a folder that it lies in."""
        outer, _, name = os.fsdecode(path).rpartition("/")
        rules = self._inside(outer)
        return rules is None or rules.matches(name, folder=folder)

    def _inside(self, folder: str) -> Ignore | None:
        """The rules of a folder; None where it is passed over itself."""
        if folder not in self._rules:
            outer, _, name = folder.rpartition("/")
            rules = self._inside(outer)
            passed_over = rules is None or rules.matches(name, folder=True)
            self._rules[folder] = None if rules is None or passed_over else self._own(rules, folder, name)
        return self._rules[folder]

    def _own(self, rules: Ignore, folder: str, name: str) -> Ignore | None:
        try:
            descriptor = open_beneath(self._where, folder, _FOLDER)
        except OSError:
            return None
        try:
            return rules.inside(descriptor, name)
        finally:
            os.close(descriptor)


def withheld(names: list[bytes], where: Where) -> set[bytes]:
    """Of names that were passed over, those that policy withholds and that nothing else passes over."""
    secret = [name for name in names if protection(os.fsdecode(name)) == "credential"]
    if not secret:
        return set()
    chosen = Chosen(where)
    kinds = ((name, _is_folder(where.folder, name)) for name in secret)
    return {name for name, folder in kinds if folder is not None and chosen(name, folder=folder)}


def _is_folder(root: int, path: bytes) -> bool | None:
    """Whether a name is a folder's or a file's; None for links and the like, which nobody would have searched."""
    try:
        mode = os.stat(path, dir_fd=root, follow_symlinks=False).st_mode
    except OSError:
        return None
    return True if stat.S_ISDIR(mode) else False if stat.S_ISREG(mode) else None


def _has_more_rules(where: Where) -> bool:
    """Whether there are rules that ripgrep, which looks only below the folder, does not know."""
    return bool(where.ignore) or has_rules_above(where)
