"""Globs as ripgrep reads them, matched in linear time."""

import re
from collections.abc import Callable
from functools import lru_cache
from itertools import groupby
from typing import Literal

from handrail.protocol.errors import ToolError
from handrail.workspace.errors import clip_path

# § [workspace.search.glob_tokens] Reads a glob the way ripgrep 14 does, its corner cases included.  A path is
# § matched byte by byte: `?` is one byte, and a class is a set of bytes.

Kind = Literal["prefix", "suffix", "between", "star"]
"""`**/` at the beginning, `/**` at the end, `/**/`, and `*`."""
Token = frozenset[int] | Kind | tuple["Tokens", ...]
"""One byte out of a set, a wildcard, or a group of alternatives."""
Tokens = tuple[Token, ...]

_ANY = frozenset(range(256)) - frozenset(b"/")


class GlobError(Exception):
    """The glob is broken; the text says how."""


def parse_tokens(glob: str) -> Tokens:
    """A glob taken apart; GlobError when it is broken."""
    return _GlobReader(glob).tokens()


class _GlobReader:
    """One pass over a glob."""

    def __init__(self, glob: str) -> None:
        self._glob = glob
        self._at = 0
        self._open: list[list[Token]] = [[]]
        """The tokens so far; above them, the alternatives of the group that is open."""

    def tokens(self) -> Tokens:
        special = {
            "*": self._star, "?": lambda: self._add(_ANY), "[": self._class, "{": self._group, "}": self._end_of_group,
            ",": self._comma, "\\": self._escape,
        }  # fmt: skip
        while (character := self._next()) is not None:
            read = special.get(character)
            read() if read else self._literal(character)
        if len(self._open) > 1:
            raise GlobError("a { is not closed by a }")
        return tuple(self._open[0])

    def _next(self) -> str | None:
        self._at += 1
        return self._glob[self._at - 1] if self._at <= len(self._glob) else None

    def _peek(self) -> str | None:
        return self._glob[self._at] if self._at < len(self._glob) else None

    def _add(self, token: Token) -> None:
        self._open[-1].append(token)

    def _literal(self, character: str) -> None:
        self._open[-1].extend(frozenset((byte,)) for byte in _bytes_of(character))

    def _escape(self) -> None:
        character = self._next()
        if character is None:
            raise GlobError("it ends in a backslash that escapes nothing")
        self._literal(character)

    def _group(self) -> None:
        if len(self._open) > 1:
            raise GlobError("a { stands inside another {…}")
        self._open.append([])

    def _comma(self) -> None:
        if len(self._open) > 1:
            self._open.append([])
        else:
            self._literal(",")

    def _end_of_group(self) -> None:
        ways = tuple(tuple(tokens) for tokens in self._open[1:])
        del self._open[1:]
        self._add(ways)

    def _star(self) -> None:
        before = self._glob[self._at - 2] if self._at > 1 else None
        if self._peek() != "*":
            self._add("star")
            return
        self._at += 1
        in_group = len(self._open) > 1
        if not self._open[-1]:
            self._stars_at_start()
        elif before == "/" or (in_group and before in {",", "{"}):
            self._stars_behind_slash(in_group)
        else:
            self._two_stars()

    def _stars_at_start(self) -> None:
        if self._peek() in {None, "/"}:
            self._add("prefix")
            self._at += 1
        else:
            self._two_stars()

    def _stars_behind_slash(self, in_group: bool) -> None:
        following = self._peek()
        if following == "/":
            self._at += 1
            self._across("between")
        elif following is None or (in_group and following in {",", "}"}):
            self._across("suffix")
        else:
            self._two_stars()

    def _two_stars(self) -> None:
        self._open[-1].extend(("star", "star"))

    def _across(self, kind: Literal["suffix", "between"]) -> None:
        """`/**` takes the place of the slash before it, and adds nothing to another one."""
        before = self._open[-1].pop()
        self._add(before if before in {"prefix", "suffix"} else kind)

    def _class(self) -> None:
        negated = self._peek() in {"!", "^"}
        self._at += negated
        ranges: list[list[str]] = []
        in_range, first = False, True
        while (character := self._next()) != "]" or first:
            if character is None:
                raise GlobError("a [ is not closed by a ]")
            if character == "-" and not first and not in_range:
                in_range = True
            elif in_range:
                ranges[-1][1] = character
                if character < ranges[-1][0]:
                    raise GlobError(f"the range {ranges[-1][0]}-{character} is the wrong way round")
                in_range = False
            else:
                ranges.append([character, character])
            first = False
        if in_range:
            ranges.append(["-", "-"])
        members = frozenset(byte for low, high in ranges for byte in _range(low, high))
        # As a group of its own it is told apart from a plain character.
        self._add(((frozenset(range(256)) - members if negated else members,),))


def _bytes_of(character: str) -> bytes:
    try:
        return character.encode()
    except UnicodeEncodeError:
        raise GlobError("it is not valid text") from None


def _range(low: str, high: str) -> list[int]:
    """The bytes of a class's range: ripgrep writes both ends as bytes, so only the inner two make the range."""
    first, last = _bytes_of(low), _bytes_of(high)
    if low == high:
        return list(first)
    return [*first[:-1], *range(first[-1], last[0] + 1), *last[1:]]


# § [workspace.search.glob_ways] The ways to match a glob, each a plain row of bytes and wildcards: alternatives are
# § spelled out.

STAR: Literal["star"] = "star"
"""Any bytes but a slash."""
FOLDERS: Literal["folders"] = "folders"
"""Any number of whole names, each with its slash."""

Piece = frozenset[int] | Literal["star", "folders"]
"""One byte out of a set, or one of the wildcards."""
Pieces = tuple[Piece, ...]

_MAX_GLOB_CHARS = 1 << 14
"""Characters of a glob."""
_MAX_WAYS = 1_024
"""Ways to spell out a glob's alternatives; no glob that a person writes has as many."""
_MAX_PIECES = 50_000
"""Pieces of all its ways together: each costs memory and time, however few ways there are."""
_SLASH = frozenset(b"/")
_WILDCARDS: dict[Kind, Pieces] = {
    "star": (STAR,),
    "prefix": (FOLDERS,),
    "suffix": (_SLASH, FOLDERS, STAR),
    "between": (_SLASH, FOLDERS),
}


class GlobTooLargeError(Exception):
    """The glob is longer, or has more alternatives, than is spelled out."""


def parse_glob(glob: str) -> tuple[Pieces, ...]:
    """The ways to match a glob: a path matches when it matches one of them."""
    if len(glob) > _MAX_GLOB_CHARS:
        raise GlobTooLargeError
    tokens = parse_tokens(glob)
    if tokens == ("prefix",):
        return ((FOLDERS, STAR),)
    return () if _never_found(tokens) else tuple(_spelled_out(tokens))


def find_literal(pieces: Pieces) -> bytes | None:
    """The one text that pieces match; None when there are others."""
    if all(isinstance(piece, frozenset) and len(piece) == 1 for piece in pieces):
        return bytes(byte for piece in pieces for byte in piece if isinstance(byte, int))
    return None


def _never_found(tokens: Tokens) -> bool:
    """ripgrep looks a name up by what follows its last dot, and does not see a dot that ends the name."""
    if not tokens or tokens[-1] != frozenset(b"."):
        return False
    whole_path = all(isinstance(token, frozenset) for token in tokens[1:]) and (
        isinstance(tokens[0], frozenset) or (tokens[0] == "prefix" and _SLASH in tokens)
    )
    return not whole_path


def _spelled_out(tokens: Tokens) -> list[Pieces]:
    ways: list[Pieces] = [()]
    row: list[Piece] = []
    """What all ways go on with; added to them only where they part, not piece by piece."""
    for token in tokens:
        choices = _choices(token, first=ways == [()] and not row)
        if len(choices) == 1:
            row += choices[0]
        else:
            ways, row = _joined(_joined(ways, [tuple(row)]), choices), []
    return list(dict.fromkeys(_joined(ways, [tuple(row)])))


def _joined(ways: list[Pieces], choices: list[Pieces]) -> list[Pieces]:
    """Every way, going on with every choice."""
    _check(len(ways) * len(choices), len(choices) * _size(ways) + len(ways) * _size(choices))
    return [way + choice for way in ways for choice in choices]


def _size(ways: list[Pieces]) -> int:
    return sum(map(len, ways))


def _check(ways: int, pieces: int) -> None:
    if ways > _MAX_WAYS or pieces > _MAX_PIECES:
        raise GlobTooLargeError


def _choices(token: Token, *, first: bool) -> list[Pieces]:
    if isinstance(token, tuple):
        # An alternative that is empty counts for nothing, and a group of such for an empty text.
        return _group(token, first=first) or [()]
    if isinstance(token, frozenset):
        # A slash is kept apart, since the wildcards stop at it.
        return [(token,)] if len(token) == 1 or 47 not in token else [(token - _SLASH,), (_SLASH,)]
    if token == "prefix" and not first:  # noqa: S105  no password
        return [(), (_SLASH,), (STAR, _SLASH, FOLDERS)]
    return [_WILDCARDS[token]]


def _group(alternatives: tuple[Tokens, ...], *, first: bool) -> list[Pieces]:
    ways: list[Pieces] = []
    pieces = 0
    for tokens in filter(None, alternatives):
        more = _inside(tokens, first=first)
        ways, pieces = ways + more, pieces + _size(more)
        _check(len(ways), pieces)
    return ways


def _inside(tokens: Tokens, *, first: bool) -> list[Pieces]:
    ways = _spelled_out(tokens)
    if first or tokens[0] != "prefix":
        return ways
    rest = _spelled_out(tokens[1:])
    return [start + way for start in _choices("prefix", first=False) for way in rest]


# § [workspace.search.glob] Globs as ripgrep understands them, matched in a time that grows with the path and not
# § with the stars.

Matches = Callable[[bytes], bool]
"""Whether a path is meant."""

_EVERY_BYTE = frozenset(range(256))
_OFTEN = 4


def build_matcher(glob: str) -> Matches:
    """Whether a path below the searched folder matches: by its name without a slash in the glob, else as a whole."""
    found = compile_glob(glob)
    return lambda path: found(path) is not None


def build_excluder(globs: tuple[str, ...]) -> Callable[[bytes, bool], bool]:
    """Whether a path (True: of a folder), or a folder on its way, is left out; a glob that ends in / means folders."""
    everything = [build_matcher(glob) for glob in globs if not glob.endswith("/")]
    folders = everything + [build_matcher(glob.rstrip("/")) for glob in globs if glob.endswith("/")]
    known: dict[bytes, bool] = {b"": False}

    def is_out(path: bytes, is_folder: bool) -> bool:
        outer = path.rpartition(b"/")[0]
        if outer not in known:
            known[outer] = is_out(outer, True)
        return known[outer] or any(matches(path) for matches in (folders if is_folder else everything))

    return is_out


def anchor_glob(glob: str) -> str:
    """The glob for whole paths that a glob stands for: without a slash it matches at any depth."""
    if glob.startswith("/"):
        glob = glob[1:]
    elif "/" not in glob and glob != "**":
        glob = f"**/{glob}"
    # Without more, a/** would match the folder a/ too.
    return f"{glob}/*" if glob.endswith("/**") else glob


def build_expression(ways: tuple[Pieces, ...]) -> bytes:
    """An expression that matches the same paths, to be tried at their beginning."""
    return b"(?:%b)" % b"|".join(map(_way, ways)) if ways else b"(?!)"


@lru_cache(maxsize=64)
def compile_glob(glob: str) -> Callable[[bytes], re.Match[bytes] | None]:
    """What a glob matches, ready to be asked; INVALID_ARGUMENT where it is broken or too much."""
    try:
        ways = parse_glob(anchor_glob(glob))
    except GlobError as error:
        raise ToolError("INVALID_ARGUMENT", f"The glob {clip_path(glob)!r} is broken: {error}.") from None
    except GlobTooLargeError:
        message = (
            f"The glob {clip_path(glob)!r} is too long or has too many alternatives; use several narrower searches."
        )
        raise ToolError("INVALID_ARGUMENT", message) from None
    return re.compile(build_expression(ways), re.DOTALL).match


def _way(pieces: Pieces) -> bytes:
    """Nothing is tried twice: a group is closed as soon as it matched, because its first match is also the best one.

    For bytes behind a star, the nearest place leaves most to what follows; and if they hold a slash or end the path,
    there is only one place. For names behind any number of folders it is the same, up to the next such wildcard.
    """
    *runs, last = _split(pieces, FOLDERS)
    if not runs:
        return _run(last, b"\\Z")
    first, *middle = [_run(run) for run in runs]
    closed = b"".join(b"(?>(?:[^/]*+/)*?%b)" % run for run in middle)
    return b"%b%b(?:[^/]*+/)*?%b" % (first, closed, _run(last, b"\\Z"))


def _run(pieces: Pieces, end: bytes = b"") -> bytes:
    """What stands between two wildcards for folders."""
    first, *others = [_row(run) for run in _split(pieces, STAR)]
    if not others:
        return first + end
    others[-1] += end
    return first + b"".join(b"(?>[^/]*?%b)" % other for other in others)


def _split(pieces: Pieces, wildcard: str) -> list[Pieces]:
    runs: list[list[Piece]] = [[]]
    for piece in pieces:
        if piece == wildcard:
            runs.append([])
        else:
            runs[-1].append(piece)
    return [tuple(run) for run in runs]


def _row(pieces: Pieces) -> bytes:
    """Bytes one after the other; the same several times is written once."""
    runs = ((_one(piece), sum(1 for _ in same)) for piece, same in groupby(pieces))
    return b"".join(one * count if count < _OFTEN else b"%b{%d}" % (one, count) for one, count in runs)


@lru_cache(maxsize=512)
def _one(piece: Piece) -> bytes:
    """An expression for one byte, by what it is or by what it is not, whichever is shorter."""
    members = frozenset(byte for byte in piece if isinstance(byte, int))
    if len(members) == 1:
        return re.escape(bytes(members))
    others = _EVERY_BYTE - members
    positive = b"[%b]" % _ranges(members) if members else b"(?!)"
    return min(positive, b"[^%b]" % _ranges(others), key=len) if others else positive


def _ranges(members: frozenset[int]) -> bytes:
    starts = sorted(byte for byte in members if byte - 1 not in members)
    ends = sorted(byte for byte in members if byte + 1 not in members)
    return b"".join(
        b"\\x%02x" % low if low == high else b"\\x%02x-\\x%02x" % (low, high)
        for low, high in zip(starts, ends, strict=True)
    )
