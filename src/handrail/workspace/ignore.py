"""Ignore rules of a walk."""

import os
import re
import stat
from functools import lru_cache

from handrail.workspace.glob import (
    FOLDERS,
    STAR,
    GlobError,
    GlobTooLargeError,
    Pieces,
    anchor_glob,
    build_expression,
    find_literal,
    parse_glob,
)

# § [workspace.ignore_files] Finds and reads the ignore files of a walk: those in its folders, and the person's own
# § for every repository.


STRONG = (".rgignore", ".ignore")
"""Files with rules that win over git's."""
FILES = (*STRONG, ".gitignore", ".git/info/exclude")
"""The files with rules that a folder may have, those that win first."""

_MAX_RULE_BYTES = 1 << 20
"""Bytes of rules in one walk: many times what a large project has."""
_MAX_RULE_COST = 1 << 19
"""What trying the rules of one walk may cost (`Rules.cost`): a few lines of alternatives are as many as a megabyte."""
_READ = os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC
_INNER_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC


class IgnoreFiles:
    """Reads ignore files until they are more than any project has."""

    __slots__ = ("_cost", "_left", "gap")

    def __init__(self) -> None:
        self._left, self._cost = _MAX_RULE_BYTES, _MAX_RULE_COST
        self.gap: str | None = None
        """Why some rules are not known, if so."""

    def of_folder(self, folder: int) -> "list[IgnoreRules | None]":
        """The rules in each of FILES in an open folder."""
        return [self._read_inside(folder, name) for name in FILES]

    def of_person(self) -> "IgnoreRules | None":
        """The rules of git's `core.excludesFile`, or of the file that git reads without that setting."""
        path = _excludes_file()
        return self._read(path, None) if path.startswith("/") else None

    def _read_inside(self, folder: int, name: str) -> "IgnoreRules | None":
        outer, _, rest = name.partition("/")
        if not rest:
            return self._read(name, folder)
        try:
            inner = os.open(outer, _INNER_FOLDER, dir_fd=folder)
        except OSError:
            return None
        try:
            return self._read_inside(inner, rest)
        finally:
            os.close(inner)

    def _read(self, name: str, folder: int | None) -> "IgnoreRules | None":
        if self._cost < 0:
            return None
        data = _content(name, folder, self._left + 1)
        if len(data) > self._left:
            self.gap = f"the ignore files have more than {_MAX_RULE_BYTES >> 20} MB"
            return None
        self._left -= len(data)
        rules = _rules_of(data) if data else None
        if rules is None:
            return None
        self._cost -= rules.cost
        if rules.incomplete or self._cost < 0:
            self.gap = "an ignore file has lines that are too long or have too many alternatives"
        return rules if self._cost >= 0 else None


def parse_settings_rules(patterns: tuple[str, ...]) -> "IgnoreRules":
    """The rules that the settings spell out."""

    return IgnoreRules(list(patterns))


def _rules_of(data: bytes) -> "IgnoreRules | None":

    return parse_ignore_rules(data)


def _excludes_file() -> str:
    home = os.path.expanduser("~")
    settings = os.environ.get("XDG_CONFIG_HOME") or f"{home}/.config"
    for path in (f"{home}/.gitconfig", f"{settings}/git/config"):
        named = _named_in(_content(path, None, 1 << 20))
        if named:
            return os.fsdecode(named).replace("~", home)
    return f"{settings}/git/ignore"


def _named_in(configuration: bytes) -> bytes:
    """The file that settings of git name, in whatever section: ripgrep looks no closer. Paths with spaces are passed
    over, as they are there."""
    for line in configuration.split(b"\n"):
        key, _, value = line.partition(b"=")
        if key.strip().lower() == b"excludesfile":
            path = value.strip().removeprefix(b'"').removesuffix(b'"').strip()
            if len(path.split()) == 1:
                return path
    return b""


def _content(name: str, folder: int | None, most: int) -> bytes:
    """The beginning of a regular file; nothing when it is none. In the workspace, a link is not followed."""
    try:
        descriptor = os.open(name, _READ if folder is None else _READ | os.O_NOFOLLOW, dir_fd=folder)
    except (OSError, ValueError):
        return b""
    try:
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            return b""
        return _bytes(descriptor, most)
    except OSError:
        return b""
    finally:
        os.close(descriptor)


def _bytes(descriptor: int, most: int) -> bytes:
    parts: list[bytes] = []
    while most > 0 and (part := os.read(descriptor, most)):
        parts.append(part)
        most -= len(part)
    return b"".join(parts)


# § [workspace.ignore] Which folders and files searches and deep listings pass over: one list for all tools, read as
# § ripgrep reads it.


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


# § [workspace.ignore_file] The rules of one ignore file: what its last matching line says about a path below its
# § folder.

_BLANKS = "\t\n\v\f\r \x85\xa0\u1680\u2000\u2001\u2002\u2003\u2004\u2005\u2006\u2007\u2008\u2009\u200a"
_SPACE = f"{_BLANKS}\u2028\u2029\u202f\u205f\u3000"
"""What Rust counts as white space; Python's own list is longer."""
_MAX_KEPT_BYTES = 1 << 16
_MAX_GLOB_PIECES = 1 << 17
"""Pieces of globs that are tried one after the other: about a second to make them ready."""
_SIMPLE = re.compile(r"(?:(/)|(\*\.)(?!.*\.))?([\w@+=~%.-]*[\w@+=~%-])", re.ASCII)
_DOT = frozenset(b".")


class IgnoreRules:
    """The lines of an ignore file, sorted by how fast they can be looked up."""

    __slots__ = ("_files", "_folders", "_keeps", "cost", "incomplete")

    def __init__(self, lines: list[str]) -> None:
        self._keeps: list[bool] = []
        """Whether a line takes back what others ignore."""
        self._folders, self._files = _Lookup(), _Lookup()
        self.incomplete = False
        """Whether a line is longer, or has more alternatives, than can be tried, or all lines together have."""
        self.cost = 0
        """How many pieces the globs have that are tried one after the other."""
        for line in lines:
            self._add(line)
            if self.cost > _MAX_GLOB_PIECES:
                self.incomplete = True
                break

    @property
    def counts(self) -> bool:
        """Whether there is a rule at all."""
        return bool(self._keeps) or self.incomplete

    def verdict(self, path: bytes, *, folder: bool) -> bool | None:
        """True: ignored; False: kept; None: no line says anything."""
        found = (self._folders if folder else self._files).last(path)
        return None if found < 0 else not self._keeps[found]

    def _add(self, line: str) -> None:
        if line.startswith("#"):
            return
        if not line.endswith("\\ "):
            line = line.rstrip(_SPACE)
        if not line:
            return
        keeps, glob, only_folders = _taken_apart(line)
        lookups = (self._folders,) if only_folders else (self._folders, self._files)
        simple = _SIMPLE.fullmatch(glob)
        if simple:
            for lookup in lookups:
                lookup.add_simple(len(self._keeps), *simple.groups(""))
        elif (ways := self._ways(glob)) is not None:
            for lookup in lookups:
                self.cost += lookup.add(len(self._keeps), ways)
        else:
            return
        self._keeps.append(keeps)

    def _ways(self, glob: str) -> tuple[Pieces, ...] | None:
        """How to match a glob; None when it is broken or matches nothing."""
        try:
            return parse_glob(anchor_glob(glob)) or None
        except GlobError:
            return None
        except GlobTooLargeError:
            self.incomplete = True
            return None


class _Lookup:
    """Globs by their number, most of them found without trying each."""

    __slots__ = ("_compiled", "_endings", "_names", "_others", "_paths")

    def __init__(self) -> None:
        self._names: dict[bytes, int] = {}
        self._endings: dict[bytes, int] = {}
        self._paths: dict[bytes, int] = {}
        self._others: list[tuple[int, tuple[Pieces, ...]]] = []
        self._compiled: re.Pattern[bytes] | None = None

    def add_simple(self, number: int, slash: str, star: str, name: str) -> None:
        """One of the globs that nearly all lines are: a name, an ending, or a name in the file's own folder."""
        group = self._endings if star else self._paths if slash else self._names
        group[name.encode()] = number

    def add(self, number: int, ways: tuple[Pieces, ...]) -> int:
        """A glob that comes after the others, so wins over them; says how many pieces are to be tried for it."""
        group = self._group_of(ways[0]) if len(ways) == 1 else None
        if group is not None:
            group[0][group[1]] = number
            return 0
        self._others.append((number, ways))
        return sum(map(len, ways))

    def _group_of(self, pieces: Pieces) -> tuple[dict[bytes, int], bytes] | None:
        """Where a glob can be looked up, and by what."""
        path = find_literal(pieces)
        if path is not None:
            return self._paths, path
        name = find_literal(pieces[1:]) if pieces[0] == FOLDERS else None
        if name is not None and b"/" not in name:
            return self._names, name
        ending = find_literal(pieces[3:]) if pieces[:3] == (FOLDERS, STAR, _DOT) else None
        if ending is not None and b"/" not in ending and b"." not in ending:
            return self._endings, ending
        return None

    def last(self, path: bytes) -> int:
        """The number of the last glob that matches; -1 when none does."""
        name = path[path.rfind(b"/") + 1 :]
        found = max(self._paths.get(path, -1), self._names.get(name, -1))
        if self._endings:
            found = max(found, self._endings.get(name[name.rfind(b".") + 1 :], -1) if b"." in name else -1)
        if self._others and self._others[-1][0] > found:
            found = max(found, self._last_of_others(path))
        return found

    def _last_of_others(self, path: bytes) -> int:
        if self._compiled is None:
            latest_first = b"|".join(b"(%b)" % build_expression(ways) for _, ways in reversed(self._others))
            self._compiled = re.compile(latest_first, re.DOTALL)
        match = self._compiled.match(path)
        return -1 if match is None or match.lastindex is None else self._others[-match.lastindex][0]


def parse_ignore_rules(data: bytes) -> IgnoreRules | None:
    """The rules in an ignore file's bytes; None when there are none."""
    return _kept_rules(data) if len(data) < _MAX_KEPT_BYTES else _rules(data)


def _rules(data: bytes) -> IgnoreRules | None:
    lines: list[str] = []
    for line in data.split(b"\n"):
        try:
            lines.append(line.removesuffix(b"\r").decode())
        except UnicodeDecodeError:
            break  # ripgrep reads no further
    rules = IgnoreRules(lines)
    return rules if rules.counts else None


_kept_rules = lru_cache(maxsize=64)(_rules)
"""Most walks meet the same files."""


def _taken_apart(line: str) -> tuple[bool, str, bool]:
    """Whether a line keeps what it matches, its glob, and whether that is for folders only."""
    keeps = line.startswith("!")
    glob = line[1:] if keeps or line.startswith(("\\!", "\\#")) else line
    if not glob.endswith("/"):
        return keeps, glob, False
    return keeps, glob[:-1].removesuffix("\\") if len(glob) > 1 else glob, True
