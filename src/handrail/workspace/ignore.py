"""Applies ignore rules to the names of a walk as ripgrep reads them."""

import os
import re
import stat
from contextlib import closing, suppress
from functools import lru_cache

import msgspec

from handrail.workspace.file_state import read_start
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
from handrail.workspace.resolve import READ_FILE, closing_descriptor, enter_folders, open_beneath

ALWAYS_IGNORED = (".git", "node_modules", "dist", "build", ".next")
"""Folders that no walk enters."""
TEMPORARY_PREFIX = ".handrail-"
"""The start of the names of our own unfinished files."""
STRONG = (".rgignore", ".ignore")
"""Ignore files that win over git's."""
FILES = (*STRONG, ".gitignore", ".git/info/exclude")
"""The ignore files of a folder, in the order of their weight."""

_ALWAYS = frozenset(map(os.fsencode, ALWAYS_IGNORED))
_TEMPORARY = TEMPORARY_PREFIX.encode()
_MAX_RULE_BYTES = 1 << 20
"""Bytes of rules in one walk: many times those of a large project."""
_MAX_RULE_COST = 1 << 19
"""Cost of the rules of one walk (`_IgnoreRules.cost`). A few lines of alternatives can cost as much as a megabyte."""
_MAX_CONFIG_BYTES = 1 << 20
_MAX_CACHED_BYTES = 1 << 15
_MAX_GLOB_PIECES = 1 << 17
"""Pieces of the globs of one file that have no quick lookup: about a second to compile."""
_BLANKS = "\t\n\v\f\r \x85\xa0\u1680\u2000\u2001\u2002\u2003\u2004\u2005\u2006\u2007\u2008\u2009\u200a"
_SPACE = f"{_BLANKS}\u2028\u2029\u202f\u205f\u3000"
"""White space as in Rust. Python's own list is longer."""
_SIMPLE = re.compile(r"(?:(/)|(\*\.)(?!.*\.))?([\w@+=~%.-]*[\w@+=~%-])", re.ASCII)
"""A name, an extension, or a name in the file's own folder: nearly all lines."""
_DOT, _SLASH = frozenset(b"."), frozenset(b"/")

_Level = tuple[int, "_IgnoreRules"]
"""Rules, and the number of bytes of a path up to their folder."""
_NO_LEVELS: tuple[tuple[_Level, ...], ...] = ((),) * len(FILES)


def read_ignore_rules(root: int, relative: str, patterns: tuple[str, ...] = ()) -> "IgnoreStack":
    """The rules of a folder below an open root and of its parents. `patterns` are written as in a .gitignore.

    The caller asked for this folder, so rules that ignore the folder itself or its parents are left out.
    """
    files = _IgnoreFiles()
    settings = _IgnoreRules(list(patterns)) if patterns else None
    ignore = IgnoreStack(files, settings, files.read_user_rules())
    names = relative.split("/") if relative != "." else []
    with closing(enter_folders(root, names)) as folders:
        for name, folder in zip(("", *names), folders, strict=True):
            is_ignored = name != "" and ignore.matches(name, folder=True)
            outer = msgspec.structs.replace(ignore, levels=_NO_LEVELS) if is_ignored else ignore
            ignore = outer.enter(folder, name)
    return msgspec.structs.replace(ignore, start=len(ignore.path))


class _IgnoreFiles:
    """Reads the ignore files of one walk, up to a limit for all of them."""

    __slots__ = ("_bytes_left", "_cost_left", "gap")

    def __init__(self) -> None:
        self._bytes_left, self._cost_left = _MAX_RULE_BYTES, _MAX_RULE_COST
        self.gap: str | None = None
        """Why some rules are unknown, if so."""

    def read_user_rules(self) -> "_IgnoreRules | None":
        """The rules of git's `core.excludesFile`, or of git's default file."""
        path = _find_excludes_file()
        return self.read(path, None) if path.startswith("/") else None

    def read(self, path: str, folder: int | None) -> "_IgnoreRules | None":
        if self._cost_left < 0:
            return None
        if folder is not None and not os.access(path, os.F_OK, dir_fd=folder):
            return None  # nearly always, and an error takes longer to tell it
        data = _read_file(path, folder, self._bytes_left + 1)
        if len(data) > self._bytes_left:
            self.gap = f"the ignore files have more than {_MAX_RULE_BYTES >> 20} MB"
            return None
        self._bytes_left -= len(data)
        parse = _parse_rules if len(data) < _MAX_CACHED_BYTES else _parse_rules.__wrapped__
        rules = parse(data)
        if rules is None:
            return None
        self._cost_left -= rules.cost
        if rules.incomplete or self._cost_left < 0:
            self.gap = "an ignore file has lines that are too long or have too many alternatives"
        return rules if self._cost_left >= 0 else None


class IgnoreStack(msgspec.Struct, frozen=True):
    """The rules that hold in one folder: its own, its parents', the user's and the built-in ones."""

    files: _IgnoreFiles = msgspec.field(default_factory=_IgnoreFiles)
    settings: "_IgnoreRules | None" = None
    """No file of the workspace takes these back."""
    user: "_IgnoreRules | None" = None
    """The user's rules for every repository."""
    path: bytes = b""
    levels: tuple[tuple[_Level, ...], ...] = _NO_LEVELS
    """For each of FILES the rules from the innermost folder outwards."""
    start: int = 0
    """The number of bytes of a path up to the folder where the walk began."""

    @property
    def gap(self) -> str | None:
        """Why some rules are unknown, if so."""
        return self.files.gap

    def enter(self, folder: int, name: bytes | str, below: str = "") -> "IgnoreStack":
        """The rules of a subfolder. It is open, or lies at a path below an open folder that ends in a slash."""
        name = os.fsencode(name)
        path = b"%b%b/" % (self.path, name) if name else self.path
        own = [self.files.read(f"{below}{name}", folder) for name in FILES]
        if not any(own):
            return msgspec.structs.replace(self, path=path)
        levels = tuple(
            ((len(path), rules), *outer) if rules else outer for rules, outer in zip(own, self.levels, strict=True)
        )
        return msgspec.structs.replace(self, path=path, levels=levels)

    def matches(self, name: bytes | str, *, folder: bool) -> bool:
        name = os.fsencode(name)
        if (folder and name in _ALWAYS) or name.startswith(_TEMPORARY):
            return True
        path = self.path + name
        if self.settings is not None and self.settings.decide(path, folder=folder):
            return True
        for levels in self.levels:
            for length, rules in levels:
                decision = rules.decide(path[length:], folder=folder)
                if decision is not None:
                    return decision
        return self.user is not None and bool(self.user.decide(path[self.start :], folder=folder))


def _find_excludes_file() -> str:
    home = os.path.expanduser("~")
    settings = os.environ.get("XDG_CONFIG_HOME") or f"{home}/.config"
    for path in (f"{home}/.gitconfig", f"{settings}/git/config"):
        excludes = _find_excludes_setting(_read_file(path, None, _MAX_CONFIG_BYTES))
        if excludes:
            return os.fsdecode(excludes).replace("~", home)
    return f"{settings}/git/ignore"


def _find_excludes_setting(configuration: bytes) -> bytes:
    """The value of `excludesFile` in any section, as in ripgrep. Paths with spaces are ignored, as there."""
    for line in configuration.split(b"\n"):
        key, _, value = line.partition(b"=")
        if key.strip().lower() == b"excludesfile":
            path = value.strip().removeprefix(b'"').removesuffix(b'"').strip()
            if len(path.split()) == 1:
                return path
    return b""


def _read_file(path: str, folder: int | None, most: int) -> bytes:
    """The start of a regular file. Empty if there is none. Below a folder, links are not followed."""
    try:
        if folder is None:
            descriptor = os.open(path, READ_FILE & ~os.O_NOFOLLOW)
        else:
            descriptor = open_beneath(folder, path, READ_FILE)
    except (OSError, ValueError):
        return b""
    with closing_descriptor(descriptor), suppress(OSError):
        if stat.S_ISREG(os.fstat(descriptor).st_mode):
            return read_start(descriptor, most)
    return b""


@lru_cache(maxsize=512)
def _parse_rules(data: bytes) -> "_IgnoreRules | None":
    """The rules in an ignore file. None if there are none. They are cached, since most walks meet the same files."""
    lines: list[str] = []
    for line in data.split(b"\n"):
        try:
            lines.append(line.removesuffix(b"\r").decode())
        except UnicodeDecodeError:
            break  # ripgrep reads no further
    rules = _IgnoreRules(lines)
    return rules if rules.keeps or rules.incomplete else None


class _IgnoreRules:
    """The lines of an ignore file. The last line that matches a path decides."""

    __slots__ = ("_files", "_folders", "cost", "incomplete", "keeps")

    def __init__(self, lines: list[str]) -> None:
        self.keeps: list[bool] = []
        """Whether a line takes back what others ignore."""
        self._folders, self._files = _GlobLookup(), _GlobLookup()
        self.incomplete = False
        """Whether a line, or all lines together, are too large to be tried."""
        self.cost = 0
        """The number of pieces of globs without a quick lookup."""
        for line in lines:
            self._add(line)
            if self.cost > _MAX_GLOB_PIECES:
                self.incomplete = True
                break

    def decide(self, path: bytes, *, folder: bool) -> bool | None:
        """True: ignored. False: kept. None: no line matches."""
        number = (self._folders if folder else self._files).find_last(path)
        return None if number < 0 else not self.keeps[number]

    def _add(self, line: str) -> None:
        if line.startswith("#"):
            return
        if not line.endswith("\\ "):
            line = line.rstrip(_SPACE)
        if not line:
            return
        keeps, glob, only_folders = _split_line(line)
        lookups = (self._folders,) if only_folders else (self._folders, self._files)
        simple = _SIMPLE.fullmatch(glob)
        if simple:
            for lookup in lookups:
                lookup.add_simple(len(self.keeps), *simple.groups(""))
        elif (ways := self._parse_glob(glob)) is not None:
            for lookup in lookups:
                self.cost += lookup.add(len(self.keeps), ways)
        else:
            return
        self.keeps.append(keeps)

    def _parse_glob(self, glob: str) -> tuple[Pieces, ...] | None:
        """The ways to match a glob. None if it is invalid or matches nothing."""
        try:
            return parse_glob(anchor_glob(glob)) or None
        except GlobError:
            return None
        except GlobTooLargeError:
            self.incomplete = True
            return None


def _split_line(line: str) -> tuple[bool, str, bool]:
    """Whether a line keeps what it matches, its glob, and whether it is for folders only."""
    keeps = line.startswith("!")
    glob = line[1:] if keeps or line.startswith(("\\!", "\\#")) else line
    if not glob.endswith("/"):
        return keeps, glob, False
    return keeps, glob[:-1].removesuffix("\\") if len(glob) > 1 else glob, True


class _GlobLookup:
    """Numbered globs, most of them found without trying each."""

    __slots__ = ("_endings", "_name_globs", "_names", "_path_globs", "_paths")

    def __init__(self) -> None:
        self._names: dict[bytes, int] = {}
        self._endings: dict[bytes, int] = {}
        self._paths: dict[bytes, int] = {}
        self._name_globs, self._path_globs = _GlobList(), _GlobList()
        """Those that the last name alone decides are matched sooner without the rest of a path."""

    def add_simple(self, number: int, slash: str, star: str, name: str) -> None:
        """Adds a glob that `_SIMPLE` took apart."""
        group = self._endings if star else self._paths if slash else self._names
        group[name.encode()] = number

    def add(self, number: int, ways: tuple[Pieces, ...]) -> int:
        """Adds a glob that wins over those before it, and returns its cost."""
        found = self._find_group(ways[0]) if len(ways) == 1 else None
        if found is not None:
            group, key = found
            group[key] = number
            return 0
        if all(way[:1] == (FOLDERS,) and FOLDERS not in way[1:] and _SLASH not in way for way in ways):
            self._name_globs.add(number, tuple(way[1:] for way in ways))
        else:
            self._path_globs.add(number, ways)
        return sum(map(len, ways))

    def _find_group(self, pieces: Pieces) -> tuple[dict[bytes, int], bytes] | None:
        """The quick lookup for a glob, and its key there."""
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

    def find_last(self, path: bytes) -> int:
        """The number of the last glob that matches. -1 if none does."""
        name = path[path.rfind(b"/") + 1 :]
        last = max(self._paths.get(path, -1), self._names.get(name, -1))
        if self._endings and b"." in name:
            last = max(last, self._endings.get(name[name.rfind(b".") + 1 :], -1))
        if self._name_globs.last > last:
            last = max(last, self._name_globs.find_last(name))
        if self._path_globs.last > last:
            last = max(last, self._path_globs.find_last(path))
        return last


class _GlobList:
    """Numbered globs that are tried together."""

    __slots__ = ("_compiled", "_globs", "last")

    def __init__(self) -> None:
        self.last = -1
        self._globs: list[tuple[int, tuple[Pieces, ...]]] = []
        self._compiled: re.Pattern[bytes] | None = None

    def add(self, number: int, ways: tuple[Pieces, ...]) -> None:
        self._globs.append((number, ways))
        self.last = number

    def find_last(self, text: bytes) -> int:
        """The number of the last glob that matches. -1 if none does."""
        if self._compiled is None:
            latest_first = b"|".join(b"(%b)" % build_expression(ways) for _, ways in reversed(self._globs))
            self._compiled = re.compile(latest_first, re.DOTALL)
        match = self._compiled.match(text)
        return -1 if match is None or match.lastindex is None else self._globs[-match.lastindex][0]
