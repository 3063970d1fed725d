"""Matches an expression by following all its ways at once: slower than Python's `re`, but in linear time.

For expressions and lines over which `re`, which tries one way after the other, could take forever.
"""

from collections.abc import Callable
from typing import Literal

from handrail.workspace.search.regex.alphabet import Alphabet
from handrail.workspace.search.regex.places import is_at
from handrail.workspace.search.regex.reader import UnsupportedPatternError
from handrail.workspace.search.regex.tree import (
    Alternation,
    Characters,
    Concatenation,
    Node,
    Position,
    PositionTest,
    Repeat,
)

_MAX_INSTRUCTIONS = 5_000
_MAX_LINE_STEPS = 20_000_000
"""For one line: some seconds."""
_STEPS_BETWEEN_QUESTIONS = 20_000
"""Steps after which it is asked whether to stop: some milliseconds."""

_Step = tuple[Literal["one"], frozenset[str]] | tuple[Literal["at"], Position] | tuple[Literal["or"], int, int]
_END: _Step = ("or", -1, -1)


class StoppedError(Exception):
    """The search is to end."""


class StepBudget:
    """The steps that were taken over one line: bounded, whatever the expression and the line are."""

    def __init__(self, stop: Callable[[], bool]) -> None:
        self.steps = 0
        self._stop = stop
        self._asked = 0

    def take(self, steps: int) -> None:
        """Counts steps; StoppedError when the search is to end, BeyondError when they are too many."""
        self.steps += steps
        if self.steps - self._asked < _STEPS_BETWEEN_QUESTIONS:
            return
        self._asked = self.steps
        if self._stop():
            raise StoppedError
        if self.steps > _MAX_LINE_STEPS:
            raise UnsupportedPatternError("an expression of so many ways on so long a line")


class _Ways:
    """Where threads stand at one place of the text, the preferred first, and from where each set out."""

    __slots__ = ("passed", "threads")

    def __init__(self) -> None:
        self.threads: dict[int, int] = {}
        self.passed: set[int] = set()
        """The other steps that were gone through on the way: whoever comes there next finds nothing new."""


class NfaProgram:
    """A program for the ways through an expression, the preferred ones first."""

    def __init__(self, node: Node, alphabet: Alphabet) -> None:
        self._alphabet = alphabet
        self._program: list[_Step] = []
        self._compile(node)
        self._program.append(_END)

    @property
    def size(self) -> int:
        """How many steps each character may take."""
        return len(self._program)

    def search(self, text: str, position: int, end: int, work: StepBudget) -> tuple[int, int] | None:
        """The first match in a line from a position on; the line ends at `end`."""
        found: tuple[int, int] | None = None
        ways = _Ways()
        for at in range(position, end + 1):
            if found is None:
                self._follow(0, at, ways, text, at, end)
            elif not ways.threads:
                break
            work.take(1 + len(ways.threads) + len(ways.passed))
            ways, found = self._advance(ways, text, at, end, found)
        return found

    def _advance(
        self, ways: _Ways, text: str, at: int, end: int, found: tuple[int, int] | None
    ) -> tuple[_Ways, tuple[int, int] | None]:
        """All threads over one character; those behind one that has matched are given up."""
        later = _Ways()
        character = text[at] if at < end else ""
        for place, start in ways.threads.items():
            step = self._program[place]
            if step is _END:
                return later, (start, at)
            if step[0] == "one" and character in step[1]:
                self._follow(place + 1, start, later, text, at + 1, end)
        return later, found

    def _follow(self, place: int, start: int, ways: _Ways, text: str, at: int, end: int) -> None:
        """Puts a thread where it next needs a character, in the order in which its ways are preferred."""
        waiting = [place]
        threads, passed = ways.threads, ways.passed
        while waiting:
            place = waiting.pop()
            if place in threads or place in passed:
                continue
            step = self._program[place]
            if step is _END or step[0] == "one":
                threads[place] = start
                continue
            passed.add(place)
            if step[0] == "or":
                waiting += (step[2], step[1])
            elif step[0] == "at" and is_at(step[1], text, at, end):
                waiting.append(place + 1)

    def _compile(self, node: Node) -> None:
        if len(self._program) > _MAX_INSTRUCTIONS:
            raise UnsupportedPatternError("so large an expression")
        match node:
            case Characters():
                self._program.append(("one", self._alphabet.members(node)))
            case PositionTest(position):
                self._program.append(("at", position))
            case Concatenation(parts):
                for part in parts:
                    self._compile(part)
            case Alternation(ways):
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


def _split(inside: int, behind: int, greedy: bool) -> _Step:
    return ("or", inside, behind) if greedy else ("or", behind, inside)
