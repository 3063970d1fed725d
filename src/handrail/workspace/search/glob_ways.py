"""The ways to match a glob, each a plain row of bytes and wildcards: alternatives are spelled out."""

from typing import Literal

from handrail.workspace.search.glob_tokens import Kind, Token, Tokens, parse_tokens

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
