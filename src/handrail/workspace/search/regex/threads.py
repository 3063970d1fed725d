"""Matches an expression by following all its ways at once: slower than Python's `re`, but in linear time.

For expressions and lines over which `re`, which tries one way after the other, could take forever.
"""

from typing import Literal

from handrail.workspace.search.regex.alphabet import Alphabet
from handrail.workspace.search.regex.characters import is_word
from handrail.workspace.search.regex.reader import BeyondError
from handrail.workspace.search.regex.tree import At, Characters, Choice, Node, Position, Repeat, Sequence

_MOST_INSTRUCTIONS = 5_000
_MOST_STEPS = 50_000_000
"""For one match: some ten seconds."""

_Step = tuple[Literal["one"], frozenset[str]] | tuple[Literal["at"], Position] | tuple[Literal["or"], int, int]
_END: _Step = ("or", -1, -1)


class Threads:
    """A program for the ways through an expression, the preferred ones first."""

    def __init__(self, node: Node, alphabet: Alphabet) -> None:
        self._alphabet = alphabet
        self._program: list[_Step] = []
        self._compile(node)
        self._program.append(_END)
        self._steps = 0

    def search(self, text: str, position: int, end: int) -> tuple[int, int] | None:
        """The first match in a line from a position on; the line ends at `end`."""
        found: tuple[int, int] | None = None
        threads: dict[int, int] = {}
        self._steps = 0
        for at in range(position, end + 1):
            if found is None:
                self._follow(0, at, text, at, end, threads)
            if not threads and found is not None:
                break
            threads, found = self._advance(threads, text, at, end, found)
        return found

    def _advance(
        self, threads: dict[int, int], text: str, at: int, end: int, found: tuple[int, int] | None
    ) -> tuple[dict[int, int], tuple[int, int] | None]:
        """All threads over one character; those behind one that has matched are given up."""
        self._steps += len(threads)
        if self._steps > _MOST_STEPS:
            raise BeyondError("an expression of so many ways on so long a line")
        later: dict[int, int] = {}
        character = text[at] if at < end else ""
        for place, start in threads.items():
            step = self._program[place]
            if step is _END:
                return later, (start, at)
            if step[0] == "one" and character in step[1]:
                self._follow(place + 1, start, text, at + 1, end, later)
        return later, found

    def _follow(self, place: int, start: int, text: str, at: int, end: int, threads: dict[int, int]) -> None:
        """Puts a thread where it next needs a character, in the order in which its ways are preferred."""
        waiting = [place]
        seen = {-1}
        while waiting:
            place = waiting.pop()
            step = self._program[place]
            if place in threads or place in seen:
                continue
            if step is _END or step[0] == "one":
                threads[place] = start
                continue
            seen.add(place)
            if step[0] == "or":
                waiting += (step[2], step[1])
            elif step[0] == "at" and is_at(step[1], text, at, end):
                waiting.append(place + 1)

    def _compile(self, node: Node) -> None:
        if len(self._program) > _MOST_INSTRUCTIONS:
            raise BeyondError("so large an expression")
        match node:
            case Characters():
                self._program.append(("one", self._alphabet.members(node)))
            case At(position):
                self._program.append(("at", position))
            case Sequence(parts):
                for part in parts:
                    self._compile(part)
            case Choice(ways):
                self._choice(ways)
            case Repeat():
                self._repeat(node)

    def _choice(self, ways: tuple[Node, ...]) -> None:
        ends: list[int] = []
        for way in ways[:-1]:
            split = self._hole()
            self._compile(way)
            ends.append(self._hole())
            self._program[split] = ("or", split + 1, len(self._program))
        self._compile(ways[-1])
        for end in ends:
            self._program[end] = ("or", len(self._program), len(self._program))

    def _repeat(self, node: Repeat) -> None:
        for _ in range(node.least):
            self._compile(node.body)
        if node.most is None:
            split = self._hole()
            self._compile(node.body)
            back = self._hole()
            self._program[back] = ("or", split, split)
            self._program[split] = _split(split + 1, len(self._program), node.greedy)
            return
        splits: list[int] = []
        for _ in range(node.most - node.least):
            splits.append(self._hole())
            self._compile(node.body)
        for split in splits:
            self._program[split] = _split(split + 1, len(self._program), node.greedy)

    def _hole(self) -> int:
        """A step to be filled in once it is known where it leads."""
        self._program.append(_END)
        return len(self._program) - 1


def is_at(position: Position, text: str, at: int, end: int) -> bool:
    """Whether a place in a line that ends at `end` is of a kind."""
    before, after = text[at - 1 : at], text[at : at + 1] if at < end else ""
    if position == "line start":
        return before in {"", "\n"} or (before == "\r" and after != "\n")
    if position == "line end":
        return after in {"", "\r"} or (after == "\n" and before != "\r")
    word_before, stray_before = _before(text, at)
    word_after = _is_word(after)
    if position == "no boundary":
        return word_before == word_after and not stray_before and not is_stray(after)
    if position == "boundary":
        return word_before != word_after
    return word_after and not word_before if position == "word start" else word_before and not word_after


def _before(text: str, at: int) -> tuple[bool, bool]:
    """Whether a word's character stands before a place, and whether a byte that belongs to no character.

    Rust goes back from the place to where a character can begin, at most four bytes, and does not mind if that
    character ends too early: bytes that could continue a character are overlooked.
    """
    first = at - 1
    while first > max(0, at - 4) and "\udc80" <= text[first] < "\udcc0":
        first -= 1
    character = text[max(first, 0) : at][:1]
    overlooked = at - first - 1
    if overlooked + len(character.encode("utf-8", "surrogateescape")) > 4 or (overlooked and character == "\n"):
        return False, True
    return _is_word(character), is_stray(character)


def _is_word(character: str) -> bool:
    return character != "" and not is_stray(character) and is_word(character)


def is_stray(character: str) -> bool:
    """Whether it stands for a byte that is no UTF-8."""
    return "\udc80" <= character <= "\udcff"


def _split(inside: int, behind: int, greedy: bool) -> _Step:
    return ("or", inside, behind) if greedy else ("or", behind, inside)
