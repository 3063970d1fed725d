"""The rules of one ignore file: what its last matching line says about a path below its folder."""

import re
from functools import lru_cache

from handrail.workspace.search.glob import anchor_glob, build_expression
from handrail.workspace.search.glob_tokens import GlobError
from handrail.workspace.search.glob_ways import FOLDERS, STAR, GlobTooLargeError, Pieces, find_literal, parse_glob

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
