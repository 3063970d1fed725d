"""Reads a glob the way ripgrep 14 does, its corner cases included.

A path is matched byte by byte: `?` is one byte, and a class is a set of bytes.
"""

from typing import Literal

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
