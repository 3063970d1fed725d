"""Lines without their ends, and what is said about them."""

from collections.abc import Iterable, Sequence

from handrail.edit.lines import count_common_start


def joined(lines: Iterable[str]) -> str:
    return "\n".join(lines)


def indent_of(line: str) -> str:
    return line[: len(line) - len(line.lstrip(" \t"))]


def common_indent(lines: Iterable[str]) -> str:
    """What all lines that are not blank begin with."""
    indents = sorted(indent_of(line) for line in lines if line.strip())
    return indents[0][: count_common_start(indents[0], indents[-1])] if indents else ""


def full(lines: Sequence[str]) -> list[int]:
    """The numbers of the lines that are not blank."""
    return [number for number, line in enumerate(lines) if line.strip()]


def offset_of(text: str, line: int) -> int:
    """Where the line with this number, from 0, begins."""
    return sum(len(before) + 1 for before in text.split("\n")[:line])


def squashed(text: str) -> str:
    """The text without its white space."""
    return "".join(text.split())


def occurs(lines: Sequence[str], text: str) -> int:
    """How many places of a text have these lines, white space at both sides of a line aside."""
    wanted = [line.strip() for line in lines]
    there = [line.strip() for line in text.split("\n")]
    return sum(there[at : at + len(wanted)] == wanted for at in range(len(there) - len(wanted) + 1))
