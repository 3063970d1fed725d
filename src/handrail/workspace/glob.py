"""Matches globs as ripgrep 14 does, its corner cases included, in linear time."""

import re
from collections.abc import Callable, Container
from functools import lru_cache
from itertools import groupby
from typing import Literal

from handrail.protocol.errors import ToolError
from handrail.workspace.roots import clip_path

STAR: Literal["star"] = "star"
"""Any bytes but a slash."""
FOLDERS: Literal["folders"] = "folders"
"""Any number of names, each with its slash."""
Piece = frozenset[int] | Literal["star", "folders"]
"""One byte out of a set, or a wildcard. Paths are matched byte by byte."""
Pieces = tuple[Piece, ...]
Matches = Callable[[bytes], bool]
"""Whether a path matches."""

_Wildcard = Literal["prefix", "suffix", "between", "star"]
"""`**/` at the beginning, `/**` at the end, `/**/`, and `*`."""
_Token = frozenset[int] | _Wildcard | tuple["_Tokens", ...]
"""One byte out of a set, a wildcard, or a group of alternatives."""
_Tokens = tuple[_Token, ...]

_EVERY_BYTE = frozenset(range(256))
_SLASH = frozenset(b"/")
_NO_SLASH = _EVERY_BYTE - _SLASH
_MIN_COUNTED_REPEATS = 4
_MAX_GLOB_CHARS = 1 << 14
_MAX_WAYS = 1_024
"""Ways to spell out the alternatives of a glob. No person writes so many."""
_MAX_PIECES = 50_000
"""Pieces of all ways together. Each costs memory and time."""
_WILDCARDS: dict[_Wildcard, Pieces] = {
    "star": (STAR,),
    "prefix": (FOLDERS,),
    "suffix": (_SLASH, FOLDERS, STAR),
    "between": (_SLASH, FOLDERS),
}


class GlobError(Exception):
    """The glob is invalid. The text says why."""


class GlobTooLargeError(Exception):
    """The glob is too long or has too many alternatives."""


def build_matcher(glob: str) -> Matches:
    """Matches paths below the searched folder: by their last name if the glob has no slash, else as a whole."""
    match = compile_glob(glob)
    return lambda path: match(path) is not None


def build_excluder(globs: tuple[str, ...]) -> Callable[[bytes, bool], bool]:
    """Tells whether a path, or a folder above it, matches a glob. The second argument is true for a folder.

    A glob that ends in a slash matches folders only.
    """
    everything = [build_matcher(glob) for glob in globs if not glob.endswith("/")]
    folders = everything + [build_matcher(glob.rstrip("/")) for glob in globs if glob.endswith("/")]
    known: dict[bytes, bool] = {b"": False}

    def is_excluded(path: bytes, is_folder: bool) -> bool:
        for folder in list_unknown_folders(path, known):
            known[folder] = is_excluded(folder, True)
        matchers = folders if is_folder else everything
        return known[path.rpartition(b"/")[0]] or any(matches(path) for matches in matchers)

    return is_excluded


def list_unknown_folders(path: bytes, known: Container[bytes]) -> list[bytes]:
    """The folders on the way to a path that are not known yet, the outermost first."""
    unknown: list[bytes] = []
    folder = path.rpartition(b"/")[0]
    while folder not in known:
        unknown.append(folder)
        folder = folder.rpartition(b"/")[0]
    return unknown[::-1]


@lru_cache(maxsize=64)
def compile_glob(glob: str) -> Callable[[bytes], re.Match[bytes] | None]:
    """The match function of a glob. INVALID_ARGUMENT if the glob is invalid or too large."""
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


def anchor_glob(glob: str) -> str:
    """The glob for whole paths. A glob without a slash matches at any depth."""
    if glob.startswith("/"):
        glob = glob[1:]
    elif "/" not in glob and glob != "**":
        glob = f"**/{glob}"
    # a/** alone would match the folder a/ too.
    return f"{glob}/*" if glob.endswith("/**") else glob


def parse_glob(glob: str) -> tuple[Pieces, ...]:
    """The ways to match a glob, with its alternatives spelled out. A path matches if it matches one of them."""
    if len(glob) > _MAX_GLOB_CHARS:
        raise GlobTooLargeError
    tokens = _GlobReader(glob).read()
    if tokens == ("prefix",):
        return ((FOLDERS, STAR),)
    return () if _is_never_found(tokens) else tuple(_spell_out(tokens))


def find_literal(pieces: Pieces) -> bytes | None:
    """The only text that pieces match. None if there are several."""
    if all(isinstance(piece, frozenset) and len(piece) == 1 for piece in pieces):
        return bytes(byte for piece in pieces for byte in piece if isinstance(byte, int))
    return None


def build_expression(ways: tuple[Pieces, ...]) -> bytes:
    """A regular expression that matches the same paths from their start."""
    return b"(?:%b)" % b"|".join(map(_build_way, ways)) if ways else b"(?!)"


def _build_way(pieces: Pieces) -> bytes:
    """Uses atomic groups, so that nothing is tried twice: the first match of a group is also the best.

    Bytes after a star are best found at the nearest place, which leaves most to the rest. If they hold a slash or end
    the path, there is only one place. The same holds for names after `**`, up to the next `**`.
    """
    *runs, last = _split_at(pieces, FOLDERS)
    if not runs:
        return _build_run(last, b"\\Z")
    first, *middle = [_build_run(run) for run in runs]
    closed = b"".join(b"(?>(?:[^/]*+/)*?%b)" % run for run in middle)
    return b"%b%b(?:[^/]*+/)*?%b" % (first, closed, _build_run(last, b"\\Z"))


def _build_run(pieces: Pieces, end: bytes = b"") -> bytes:
    """The pieces between two `**`."""
    first, *others = [_build_row(run) for run in _split_at(pieces, STAR)]
    if not others:
        return first + end
    others[-1] += end
    return first + b"".join(b"(?>[^/]*?%b)" % other for other in others)


def _split_at(pieces: Pieces, wildcard: str) -> list[Pieces]:
    runs: list[list[Piece]] = [[]]
    for piece in pieces:
        if piece == wildcard:
            runs.append([])
        else:
            runs[-1].append(piece)
    return [tuple(run) for run in runs]


def _build_row(pieces: Pieces) -> bytes:
    """The pieces between two stars. Repeated bytes are written once."""
    runs = ((_build_byte(piece), sum(1 for _ in same)) for piece, same in groupby(pieces))
    return b"".join(byte * count if count < _MIN_COUNTED_REPEATS else b"%b{%d}" % (byte, count) for byte, count in runs)


@lru_cache(maxsize=512)
def _build_byte(piece: Piece) -> bytes:
    """A class of bytes or its complement, the shorter of the two."""
    members = frozenset(byte for byte in piece if isinstance(byte, int))
    if len(members) == 1:
        return re.escape(bytes(members))
    others = _EVERY_BYTE - members
    positive = b"[%b]" % _build_ranges(members) if members else b"(?!)"
    return min(positive, b"[^%b]" % _build_ranges(others), key=len) if others else positive


def _build_ranges(members: frozenset[int]) -> bytes:
    starts = sorted(byte for byte in members if byte - 1 not in members)
    ends = sorted(byte for byte in members if byte + 1 not in members)
    return b"".join(
        b"\\x%02x" % low if low == high else b"\\x%02x-\\x%02x" % (low, high)
        for low, high in zip(starts, ends, strict=True)
    )


def _is_never_found(tokens: _Tokens) -> bool:
    """ripgrep looks names up by their extension, and misses a glob that ends in a dot."""
    if not tokens or tokens[-1] != frozenset(b"."):
        return False
    is_literal_path = all(isinstance(token, frozenset) for token in tokens[1:]) and (
        isinstance(tokens[0], frozenset) or (tokens[0] == "prefix" and _SLASH in tokens)
    )
    return not is_literal_path


def _spell_out(tokens: _Tokens) -> list[Pieces]:
    ways: list[Pieces] = [()]
    row: list[Piece] = []
    """The common end of all ways so far. It is added to them only at the next choice."""
    for token in tokens:
        choices = _list_choices(token, first=ways == [()] and not row)
        if len(choices) == 1:
            row += choices[0]
        else:
            ways, row = _combine(_combine(ways, [tuple(row)]), choices), []
    return list(dict.fromkeys(_combine(ways, [tuple(row)])))


def _combine(ways: list[Pieces], choices: list[Pieces]) -> list[Pieces]:
    _check_size(len(ways) * len(choices), len(choices) * _count_pieces(ways) + len(ways) * _count_pieces(choices))
    return [way + choice for way in ways for choice in choices]


def _count_pieces(ways: list[Pieces]) -> int:
    return sum(map(len, ways))


def _check_size(ways: int, pieces: int) -> None:
    if ways > _MAX_WAYS or pieces > _MAX_PIECES:
        raise GlobTooLargeError


def _list_choices(token: _Token, *, first: bool) -> list[Pieces]:
    if isinstance(token, tuple):
        # Empty alternatives are left out. A group of nothing else is an empty text.
        return _spell_out_group(token, first=first) or [()]
    if isinstance(token, frozenset):
        # A slash is a choice of its own, since the wildcards stop at it.
        return [(token,)] if len(token) == 1 or 47 not in token else [(token - _SLASH,), (_SLASH,)]
    if token == "prefix" and not first:  # noqa: S105  no password
        return [(), (_SLASH,), (STAR, _SLASH, FOLDERS)]
    return [_WILDCARDS[token]]


def _spell_out_group(alternatives: tuple[_Tokens, ...], *, first: bool) -> list[Pieces]:
    ways: list[Pieces] = []
    pieces = 0
    for tokens in filter(None, alternatives):
        more = _spell_out_alternative(tokens, first=first)
        ways, pieces = ways + more, pieces + _count_pieces(more)
        _check_size(len(ways), pieces)
    return ways


def _spell_out_alternative(tokens: _Tokens, *, first: bool) -> list[Pieces]:
    ways = _spell_out(tokens)
    if first or tokens[0] != "prefix":
        return ways
    rest = _spell_out(tokens[1:])
    return [start + way for start in _list_choices("prefix", first=False) for way in rest]


class _GlobReader:
    def __init__(self, glob: str) -> None:
        self._glob = glob
        self._at = 0
        self._open: list[list[_Token]] = [[]]
        """The tokens so far, then the alternatives of the open group."""

    def read(self) -> _Tokens:
        special = {
            "*": self._read_star, "?": lambda: self._add(_NO_SLASH), "[": self._read_class, "{": self._open_group,
            "}": self._close_group, ",": self._read_comma, "\\": self._read_escape,
        }  # fmt: skip
        while (character := self._take()) is not None:
            read = special.get(character)
            read() if read else self._add_literal(character)
        if len(self._open) > 1:
            raise GlobError("a { is not closed by a }")
        return tuple(self._open[0])

    def _take(self) -> str | None:
        self._at += 1
        return self._glob[self._at - 1] if self._at <= len(self._glob) else None

    def _peek(self) -> str | None:
        return self._glob[self._at] if self._at < len(self._glob) else None

    def _add(self, token: _Token) -> None:
        self._open[-1].append(token)

    def _add_literal(self, character: str) -> None:
        self._open[-1].extend(frozenset((byte,)) for byte in _encode_character(character))

    def _read_escape(self) -> None:
        character = self._take()
        if character is None:
            raise GlobError("it ends in a backslash that escapes nothing")
        self._add_literal(character)

    def _open_group(self) -> None:
        if len(self._open) > 1:
            raise GlobError("a { stands inside another {…}")
        self._open.append([])

    def _read_comma(self) -> None:
        if len(self._open) > 1:
            self._open.append([])
        else:
            self._add_literal(",")

    def _close_group(self) -> None:
        alternatives = tuple(tuple(tokens) for tokens in self._open[1:])
        del self._open[1:]
        self._add(alternatives)

    def _read_star(self) -> None:
        before = self._glob[self._at - 2] if self._at > 1 else None
        if self._peek() != "*":
            self._add("star")
            return
        self._at += 1
        in_group = len(self._open) > 1
        if not self._open[-1]:
            self._read_first_stars()
        elif before == "/" or (in_group and before in {",", "{"}):
            self._read_stars_after_slash(in_group=in_group)
        else:
            self._open[-1] += ("star", "star")

    def _read_first_stars(self) -> None:
        if self._peek() in {None, "/"}:
            self._add("prefix")
            self._at += 1
        else:
            self._open[-1] += ("star", "star")

    def _read_stars_after_slash(self, *, in_group: bool) -> None:
        following = self._peek()
        if following == "/":
            self._at += 1
            self._add_across("between")
        elif following is None or (in_group and following in {",", "}"}):
            self._add_across("suffix")
        else:
            self._open[-1] += ("star", "star")

    def _add_across(self, kind: Literal["suffix", "between"]) -> None:
        """`/**` replaces the slash before it, and adds nothing to another `**`."""
        before = self._open[-1].pop()
        self._add(before if before in {"prefix", "suffix"} else kind)

    def _read_class(self) -> None:
        negated = self._peek() in {"!", "^"}
        self._at += negated
        ranges: list[list[str]] = []
        in_range, first = False, True
        while (character := self._take()) != "]" or first:
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
        members = frozenset(byte for low, high in ranges for byte in _list_range(low, high))
        # As a group it differs from a plain character.
        self._add(((_EVERY_BYTE - members if negated else members,),))


def _encode_character(character: str) -> bytes:
    try:
        return character.encode()
    except UnicodeEncodeError:
        raise GlobError("it is not valid text") from None


def _list_range(low: str, high: str) -> list[int]:
    """The bytes of a range in a class. ripgrep writes both ends as bytes, so only the inner two make the range."""
    first, last = _encode_character(low), _encode_character(high)
    if low == high:
        return list(first)
    return [*first[:-1], *range(first[-1], last[0] + 1), *last[1:]]
