"""What an expression is made of. Groups are gone: only where an expression matches counts."""

from typing import Literal

import msgspec

from handrail.workspace.search.regex.characters import Test

Position = Literal["line start", "line end", "boundary", "no boundary", "word start", "word end"]


class Characters(msgspec.Struct, frozen=True):
    """One character out of a set."""

    test: Test
    whole: bool = False
    """Whether it is every character."""


class At(msgspec.Struct, frozen=True):
    """A place between characters."""

    position: Position


class Sequence(msgspec.Struct, frozen=True):
    """One after the other; none is the empty text."""

    parts: tuple["Node", ...] = ()


class Choice(msgspec.Struct, frozen=True):
    """The first that leads to a match."""

    ways: tuple["Node", ...]


class Repeat(msgspec.Struct, frozen=True):
    """Several times the same."""

    body: "Node"
    least: int
    most: int | None
    greedy: bool


Node = Characters | At | Sequence | Choice | Repeat


def can_be_empty(node: Node, *, places: bool = True) -> bool:
    """Whether it may match without a character; `places` says whether its places between characters are met."""
    match node:
        case Characters():
            return False
        case At():
            return places
        case Sequence(parts):
            return all(can_be_empty(part, places=places) for part in parts)
        case Choice(ways):
            return any(can_be_empty(way, places=places) for way in ways)
        case Repeat(body, least, _, _):
            return least == 0 or can_be_empty(body, places=places)


def sets_in(node: Node) -> int:
    """How many sets of characters it has."""
    match node:
        case Characters():
            return 1
        case At():
            return 0
        case Sequence(parts) | Choice(parts):
            return sum(map(sets_in, parts))
        case Repeat(body, _, _, _):
            return sets_in(body)


def asks_words(node: Node) -> bool:
    """Whether the edges of words matter."""
    match node:
        case Characters():
            return False
        case At(position):
            return position not in {"line start", "line end"}
        case Sequence(parts):
            return any(map(asks_words, parts))
        case Choice(ways):
            return any(map(asks_words, ways))
        case Repeat(body, _, _, _):
            return asks_words(body)
