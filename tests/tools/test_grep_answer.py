"""What grep makes of the lines that were found: how often it goes through them, and where it cuts."""

from collections.abc import Iterator

from handrail.tools.grep import GrepArguments
from handrail.tools.grep_answer import answer
from handrail.workspace.search.engine import FileHits, Line, Notes
from handrail.workspace.search.python import PythonEngine
from handrail.workspace.search.search import Engines, Found

ENGINES = Engines(PythonEngine(), PythonEngine())


class Watched(tuple[Line, ...]):
    """Lines that count how often somebody begins to go through them."""

    __slots__ = ()
    times = 0

    def __iter__(self) -> Iterator[Line]:
        Watched.times += 1
        return super().__iter__()


def test_the_lines_of_a_file_are_gone_through_a_few_times_however_many_they_are() -> None:
    """With a look at all lines at every gap between two of them, 40,000 hits took 40 seconds."""
    counts: list[int] = []
    for hits in (10, 1_000):
        lines = Watched(Line(2 * number + 1, 8 * number, b"hit", ((0, 3),)) for number in range(hits))
        Watched.times = 0
        found = Found([FileHits(b"a", lines)], hits, True, (), 0, Notes())
        output = answer(GrepArguments(pattern="hit"), found, "a", ENGINES, bytes.decode, "")
        assert output.meta["total"] == hits
        counts.append(Watched.times)
    assert max(counts) < 20
