"""Which folders and files searches and deep listings pass over: one list for all tools, read as ripgrep reads it."""

import os
from typing import TYPE_CHECKING

from handrail.workspace.ignore_files import FILES, IgnoreFiles, parse_settings_rules

if TYPE_CHECKING:
    from handrail.workspace.ignore_file import IgnoreRules

ALWAYS_IGNORED = (".git", "node_modules", "dist", "build", ".next")
TEMPORARY_PREFIX = ".handrail-"
"""How the names of our own unfinished files begin."""

_ALWAYS = frozenset(map(os.fsencode, ALWAYS_IGNORED))
_TEMPORARY = TEMPORARY_PREFIX.encode()
_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC

_Level = tuple[int, "IgnoreRules"]
"""Rules, and how many bytes of a path lead to their folder."""
_NO_LEVELS: tuple[tuple[_Level, ...], ...] = ((),) * len(FILES)


class IgnoreStack:
    """The rules that hold in one folder: its own, its parents', the person's and the built-in ones."""

    __slots__ = ("_files", "_levels", "_path", "_person", "_settings", "_start")

    def __init__(
        self,
        files: IgnoreFiles | None = None,
        settings: "IgnoreRules | None" = None,
        person: "IgnoreRules | None" = None,
        path: bytes = b"",
        levels: tuple[tuple[_Level, ...], ...] = _NO_LEVELS,
        start: int = 0,
    ) -> None:
        self._files = files or IgnoreFiles()
        self._settings = settings
        """Of these nothing is taken back by a file of the workspace."""
        self._person = person
        """The person's own for every repository."""
        self._path = path
        self._levels = levels
        """For each of FILES the rules from the innermost folder outwards."""
        self._start = start
        """How many bytes of a path lead to the folder where the walk began."""

    @property
    def gap(self) -> str | None:
        """Why the rules are not all known, if so: more of them were found than are read."""
        return self._files.gap

    def inside(self, folder: int, name: bytes | str) -> "IgnoreStack":
        """The rules of a folder that was just entered, with those that its own files add."""
        name = os.fsencode(name)
        path = b"%b%b/" % (self._path, name) if name else self._path
        own = self._files.of_folder(folder)
        if not any(own):
            return self._at(path, self._levels)
        levels = tuple(
            ((len(path), rules), *outer) if rules else outer for rules, outer in zip(own, self._levels, strict=True)
        )
        return self._at(path, levels)

    def matches(self, name: bytes | str, *, folder: bool) -> bool:
        """Whether a name in this folder is passed over."""
        name = os.fsencode(name)
        if (folder and name in _ALWAYS) or name.startswith(_TEMPORARY):
            return True
        path = self._path + name
        if self._settings is not None and self._settings.verdict(path, folder=folder):
            return True
        for levels in self._levels:
            for length, rules in levels:
                verdict = rules.verdict(path[length:], folder=folder)
                if verdict is not None:
                    return verdict
        return self._person is not None and bool(self._person.verdict(path[self._start :], folder=folder))

    def without_parents(self) -> "IgnoreStack":
        """Only what holds everywhere, in the same folder."""
        return self._at(self._path, _NO_LEVELS)

    def starting_here(self) -> "IgnoreStack":
        """The rules for a walk that begins in this folder."""
        return IgnoreStack(self._files, self._settings, self._person, self._path, self._levels, len(self._path))

    def _at(self, path: bytes, levels: tuple[tuple[_Level, ...], ...]) -> "IgnoreStack":
        return IgnoreStack(self._files, self._settings, self._person, path, levels, self._start)


def read_ignore_rules(root: int, relative: str, patterns: tuple[str, ...] = ()) -> IgnoreStack:
    """The rules of a folder below an open root, its parents' included; `patterns` are written as in a .gitignore.

    A folder that they pass over was asked for by name, so what passes it over does not hold in it.
    """
    files = IgnoreFiles()
    settings = parse_settings_rules(patterns) if patterns else None
    ignore, folder = IgnoreStack(files, settings, files.of_person()).inside(root, b""), os.dup(root)
    try:
        for name in map(os.fsencode, relative.split("/") if relative != "." else ()):
            folder, outer = os.open(name, _FOLDER, dir_fd=folder), folder
            os.close(outer)
            outside = ignore.without_parents() if ignore.matches(name, folder=True) else ignore
            ignore = outside.inside(folder, name)
    finally:
        os.close(folder)
    return ignore.starting_here()
