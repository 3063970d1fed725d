"""Which of the paths that ripgrep names are wanted: what its command line cannot say, is said here."""

import os
import stat

from handrail.policy.names import is_credential, protection
from handrail.workspace.ignore import Ignore, rules_at
from handrail.workspace.search.above import has_rules_above
from handrail.workspace.search.beneath import open_beneath
from handrail.workspace.search.engine import Where
from handrail.workspace.search.glob import Matches, matcher

_FOLDER = os.O_RDONLY | os.O_DIRECTORY


class Kept:
    """Says of each path below a folder whether it is wanted. Protected ones are noted, by the name that protects."""

    def __init__(self, where: Where, *, kernel: bool) -> None:
        self._notes = where.notes
        self._include = matcher(where.include) if where.include is not None else None
        self._excluded = excluder(where.exclude)
        self._ignored = Ignored(where, kernel=kernel) if _has_more_rules(where) else None
        self._withheld: dict[bytes, bytes | None] = {b"": None}

    def __call__(self, path: bytes) -> bool:
        """Whether the path is wanted."""
        if self._include is not None and not self._include(path):
            return False
        if self._excluded is not None and self._excluded(path):
            return False
        if self._ignored is not None and self._ignored(path):
            return False
        withheld = self._withheld_by(path)
        if withheld is not None:
            self._notes.protected.add(withheld)
        return withheld is None

    def _withheld_by(self, path: bytes) -> bytes | None:
        """The part of a path up to the first name that is a credential's."""
        folder, _, name = path.rpartition(b"/")
        if folder not in self._withheld:
            self._withheld[folder] = self._withheld_by(folder)
        return self._withheld[folder] or (path if is_credential(os.fsdecode(name)) else None)


class Ignored:
    """Whether ignore rules pass a path over: those of the settings, of the folder, of what is above and below it."""

    def __init__(self, where: Where, *, kernel: bool) -> None:
        self._folder = where.folder
        self._kernel = kernel
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
            descriptor = open_beneath(self._folder, folder, _FOLDER, kernel=self._kernel)
        except OSError:
            return None
        try:
            return rules.inside(descriptor, name)
        finally:
            os.close(descriptor)


def excluder(globs: tuple[str, ...]) -> Matches | None:
    """Whether a path, or a folder that it lies in, is named by one of the globs."""
    if not globs:
        return None
    everything = [matcher(glob) for glob in globs if not glob.endswith("/")]
    folders = everything + [matcher(glob.rstrip("/")) for glob in globs if glob.endswith("/")]
    known: dict[bytes, bool] = {b"": False}

    def is_out(path: bytes, matchers: list[Matches]) -> bool:
        folder = path.rpartition(b"/")[0]
        if folder not in known:
            known[folder] = is_out(folder, folders)
        return known[folder] or any(matches(path) for matches in matchers)

    return lambda path: is_out(path, everything)


def withheld(names: list[bytes], where: Where, *, kernel: bool) -> set[bytes]:
    """Of names that were passed over, those that policy withholds and that nothing else passes over."""
    secret = [name for name in names if protection(os.fsdecode(name)) == "credential"]
    if not secret:
        return set()
    is_ignored, is_excluded = Ignored(where, kernel=kernel), excluder(where.exclude)
    is_included = matcher(where.include) if where.include is not None else None
    found: set[bytes] = set()
    for name in secret:
        is_folder = _is_folder(where.folder, name)
        out = is_folder is None or is_ignored(name, folder=is_folder) or (is_excluded is not None and is_excluded(name))
        if not out and (is_folder or is_included is None or is_included(name)):
            found.add(name)
    return found


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
