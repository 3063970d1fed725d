"""All runs of a search share one time, however many there are."""

import os
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from handrail.workspace.search.engine import EngineName, FileHits, Pattern, SearchScope, Stop
from handrail.workspace.search.search import Engines, SearchResult, find_files, find_hits

Search = Callable[[Engines, SearchScope], SearchResult[Any]]
SEARCHES: dict[str, Search] = {
    "find": lambda engines, where: find_files(engines, where, 10, lambda: False),
    "grep": lambda engines, where: find_hits(engines, where, Pattern("x"), 10, lambda: False),
}


class Clock:
    """A time that passes only when somebody waits."""

    def __init__(self) -> None:
        self.now = 1_000.0

    def __call__(self) -> float:
        return self.now

    def wait(self, stop: Stop) -> None:
        """Never comes to an end by itself."""
        while not stop():
            self.now += 0.002


class Endless:
    """An engine that finds nothing and never comes to an end by itself."""

    name: EngineName = "ripgrep"

    def __init__(self, clock: Clock, *, ordered: bool) -> None:
        self.ordered = ordered
        self._clock = clock

    def files(self, where: SearchScope, stop: Stop) -> Iterator[list[bytes]]:
        self._wait(stop)
        return iter(())

    def hits(self, where: SearchScope, pattern: Pattern, stop: Stop) -> Iterator[FileHits]:
        self._wait(stop)
        return iter(())

    def stream(self, descriptor: int, pattern: Pattern, stop: Stop) -> FileHits | None:
        self._wait(stop)

    def _wait(self, stop: Stop) -> None:
        self._clock.wait(stop)


@pytest.fixture
def where(workspace: Path) -> Iterator[SearchScope]:
    folder = os.open(workspace, os.O_RDONLY)
    yield SearchScope(folder, folder, ".", False)
    os.close(folder)


@pytest.mark.parametrize("seconds", [1.0, 10.0])
@pytest.mark.parametrize("kind", SEARCHES)
def test_a_search_that_never_ends_takes_no_more_than_its_time(
    where: SearchScope, monkeypatch: pytest.MonkeyPatch, kind: str, seconds: float
) -> None:
    clock = Clock()
    engines = Engines(Endless(clock, ordered=False), Endless(clock, ordered=True), seconds)
    with monkeypatch.context() as patch:
        patch.setattr(time, "monotonic", clock)
        found = SEARCHES[kind](engines, where)
    assert (found.limits, found.exact, found.protected) == (("time",), False, None)
    assert seconds * 0.9 < clock.now - 1_000 < seconds * 1.02
