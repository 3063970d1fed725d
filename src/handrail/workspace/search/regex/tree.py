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


class PositionTest(msgspec.Struct, frozen=True):
    """A place between characters."""

    position: Position


class Concatenation(msgspec.Struct, frozen=True):
    """One after the other; none is the empty text."""

    parts: tuple["Node", ...] = ()


class Alternation(msgspec.Struct, frozen=True):
    """The first that leads to a match."""

    ways: tuple["Node", ...]


class Repeat(msgspec.Struct, frozen=True):
    """Several times the same."""

    body: "Node"
    least: int
    most: int | None
    greedy: bool


Node = Characters | PositionTest | Concatenation | Alternation | Repeat


def can_be_empty(node: Node, *, places: bool = True) -> bool:
    """Whether it may match without a character; `places` says whether its places between characters are met."""
    match node:
        case Characters():
            return False
        case PositionTest():
            return places
        case Concatenation(parts):
            return all(can_be_empty(part, places=places) for part in parts)
        case Alternation(ways):
            return any(can_be_empty(way, places=places) for way in ways)
        case Repeat(body, least, _, _):
            return least == 0 or can_be_empty(body, places=places)


def count_sets(node: Node) -> int:
    """How many sets of characters it has."""
    match node:
        case Characters():
            return 1
        case PositionTest():
            return 0
        case Concatenation(parts) | Alternation(parts):
            return sum(map(count_sets, parts))
        case Repeat(body, _, _, _):
            return count_sets(body)


def has_word_edges(node: Node) -> bool:
    """Whether the edges of words matter."""
    match node:
        case Characters():
            return False
        case PositionTest(position):
            return position not in {"line start", "line end"}
        case Concatenation(parts):
            return any(map(has_word_edges, parts))
        case Alternation(ways):
            return any(map(has_word_edges, ways))
        case Repeat(body, _, _, _):
            return has_word_edges(body)
