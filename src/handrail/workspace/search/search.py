"""Searches in two runs, within limits."""

import time
from collections.abc import Callable, Iterator
from typing import Generic, Literal, TypeVar

import msgspec

from handrail.protocol.errors import ToolError
from handrail.settings.model import SearchEngine
from handrail.workspace.search import engine as limits
from handrail.workspace.search.engine import (
    MAX_HITS,
    MAX_SECONDS,
    Engine,
    FileHits,
    Pattern,
    Run,
    SearchScope,
    SearchStats,
    Stop,
    Without,
    to_sort_key,
)
from handrail.workspace.search.ripgrep import find_ripgrep
from handrail.workspace.search.verify import verify_hits, verify_names
from handrail.workspace.workspace import Workspace

# § [workspace.search.search] Searches a folder: the same answer every run, within limits, and nothing that was not
# § looked at again.  An ordered run gives the first results soon where there are many; an unordered one is through
# § sooner where there are few. Which it will be, nobody knows before: so one is begun and, when it turns out to be
# § the wrong one, given up.

Item = TypeVar("Item")
Limit = Literal["time", "hits", "size"]
_WHOLE, _ORDERED, _COUNT = 0.75, 0.95, 0.05
"""Of the time of a search: when a whole run ends at the latest, when the ordered one after it does, and what is left
for counting protected names in any case."""
STREAM_SECONDS = 20
"""How long a file that was named may take."""
_ATTEMPT_SECONDS = 0.025
_GLANCE_SECONDS = 0.008
"""After so long it shows whether an attempt will be in time."""
_SOON_SECONDS = 0.02
"""Names that are too many after so long are sooner shown in order than counted and looked at again, all of them."""
_MAX_BATCH_RESULTS = 1_000
"""Results that are looked at again before the clock is."""


class Engines(msgspec.Struct, frozen=True):
    """The same engine twice: one run is through sooner, the other begins at the beginning."""

    whole: Engine
    ordered: Engine
    seconds: float = MAX_SECONDS
    """How long a search may take, all its runs together."""


class SearchResult(msgspec.Struct, Generic[Item], frozen=True):
    """Verified results in order."""

    items: list[Item]
    total: int
    exact: bool
    """Whether `total` counts everything there is."""
    limits: tuple[Limit, ...]
    protected: int | None
    """How many names policy withheld; None where counting them would have taken too long."""
    notes: SearchStats


class SearchTask(msgspec.Struct, Generic[Item], frozen=True):
    """What is searched for, apart from how."""

    candidates: Callable[[Engine, SearchScope, Stop], Iterator[Item]]
    weigh: Callable[[Item], tuple[int, int]]
    """How many results an item holds, and how many bytes."""
    path: Callable[[Item], bytes]
    verified: Callable[[SearchScope, list[Item]], list[Item]]
    """What of it is true; what else there is to say of that is noted at the place."""


def find_files(engines: Engines, where: SearchScope, most: int, cancelled: Stop) -> SearchResult[bytes]:
    """The files below a folder. Names come fast: the whole is tried first, and given up where it is far too much."""

    def verified(place: SearchScope, paths: list[bytes]) -> list[bytes]:
        return list(verify_names(place, paths))

    task = SearchTask[bytes](
        candidates=lambda engine, place, stop: engine.files(place, stop),
        weigh=lambda path: (1, len(path)),
        path=lambda path: path,
        verified=verified,
    )
    search = _Search(engines, where, task, most, cancelled)
    return (
        search.attempt(judge=lambda seconds, count: count > most and seconds < _SOON_SECONDS)
        or search.ordered(seconds=4 * _SOON_SECONDS)
        or search.whole()
    )


def find_hits(
    engines: Engines, where: SearchScope, pattern: Pattern, most: int, cancelled: Stop
) -> SearchResult[FileHits]:
    """The lines that match. Reading takes its time: the beginning is tried first, and given up where hits are rare."""

    def verified(place: SearchScope, found: list[FileHits]) -> list[FileHits]:
        checked = [hits for hits in (verify_hits(place, hits, most) for hits in found) if hits is not None]
        place.notes.oversized += sum(hits.oversized for hits in checked)
        return [hits for hits in checked if hits.lines]

    first = msgspec.structs.replace(pattern, per_file=most + 1)
    task = SearchTask[FileHits](
        candidates=lambda engine, place, stop: engine.hits(place, first if engine.ordered else pattern, stop),
        weigh=FileHits.weight,
        path=lambda hits: hits.path,
        verified=verified,
    )
    search = _Search(engines, where, task, most, cancelled)

    def too_slow(seconds: float, count: int) -> bool:
        return seconds > _GLANCE_SECONDS and count < most * seconds / _ATTEMPT_SECONDS

    return search.ordered(seconds=_ATTEMPT_SECONDS, judge=too_slow) or search.whole()


def find_in_stream(engines: Engines, descriptor: int, pattern: Pattern, cancelled: Stop) -> SearchResult[FileHits]:
    """The lines of one open file that match; a file that was named may take longer than a folder."""
    end = time.monotonic() + STREAM_SECONDS
    late = False

    def stop() -> bool:
        nonlocal late
        late = late or time.monotonic() > end
        return late or cancelled()

    hits = engines.whole.stream(descriptor, pattern, stop) or FileHits(b"", ())
    total, size = hits.weight()
    if late and not total:
        raise ToolError("TIMEOUT", f"The file could not be searched in {STREAM_SECONDS} s; search another way.")
    limit: Limit | None = (
        "hits" if total >= pattern.per_file else "size" if size > limits.MAX_RESULT_BYTES else "time" if late else None
    )
    items = [hits] if total else []
    return SearchResult(
        items, total, limit is None, (limit,) if limit else (), 0, SearchStats(oversized=hits.oversized)
    )


def count_hits(found: FileHits) -> int:
    """How many lines matched, neighbours left out."""
    return found.weight()[0]


class _Search(Generic[Item]):
    def __init__(
        self, engines: Engines, where: SearchScope, task: SearchTask[Item], most: int, cancelled: Stop
    ) -> None:
        self._engines = engines
        self._where = where
        self._task = task
        self._most = most
        self._cancelled = cancelled
        self._began = time.monotonic()

    def ordered(
        self, seconds: float, judge: Callable[[float, int], bool] = lambda _seconds, _count: False
    ) -> SearchResult[Item] | None:
        """The first results; None where it took too long to see them, or too few of them were true."""
        run, where = self._run(self._engines.ordered, self._most, seconds, judge)
        if run.end in {"time", "slow"}:
            return None
        found = self._found(run, where, self._engines.ordered)
        return found if found.exact or found.total >= self._most else None

    def attempt(self, judge: Callable[[float, int], bool]) -> SearchResult[Item] | None:
        """Everything; None where the judge gave it up."""
        run, where = self._run(self._engines.whole, MAX_HITS, self._left(_WHOLE), judge)
        return None if run.end == "slow" else self._ended(run, where)

    def whole(self) -> SearchResult[Item]:
        """Everything; where that is too much, the first results, or at the worst some, and which limit it was."""
        return self._ended(*self._run(self._engines.whole, MAX_HITS, self._left(_WHOLE)))

    def _ended(self, run: Run[Item], where: SearchScope) -> SearchResult[Item]:
        if run.end == "complete":
            return self._found(run, where, self._engines.whole)
        limit: Limit = "hits" if run.end == "enough" else "size" if run.end == "size" else "time"
        second, place = self._run(self._engines.ordered, self._most, self._left(_ORDERED))
        first = self._verified(second, place)
        if second.end == "complete":
            return self._told(first, place, self._engines.ordered, complete=True)
        if self._count(first) < self._most:
            some = self._verified(run, where)
            if self._count(some) > self._count(first):
                found = self._told(some, where, self._engines.whole, complete=False)
                return msgspec.structs.replace(found, limits=(limit,))
        found = self._told(first, place, self._engines.ordered, complete=False)
        return msgspec.structs.replace(found, total=max(found.total, self._true(run, where)), limits=(limit,))

    def _true(self, run: Run[Item], where: SearchScope) -> int:
        """How many of a run's results are true, so far as there is time to look at them again."""
        place = msgspec.structs.replace(where, notes=SearchStats())
        count = 0
        for start in range(0, len(run.items), _MAX_BATCH_RESULTS):
            if self._cancelled() or self._left(1) < 0:
                break
            count += self._count(self._task.verified(place, run.items[start : start + _MAX_BATCH_RESULTS]))
        return count

    def _left(self, share: float) -> float:
        """How long it is until a share of the search's time has passed."""
        return self._began + share * self._engines.seconds - time.monotonic()

    def _run(
        self,
        engine: Engine,
        most: int,
        seconds: float,
        judge: Callable[[float, int], bool] = lambda _seconds, _count: False,
    ) -> tuple[Run[Item], SearchScope]:
        where = msgspec.structs.replace(self._where, notes=SearchStats())
        run = Run(self._task.weigh, most=most, seconds=seconds, cancelled=self._cancelled, judge=judge)
        run.take(self._task.candidates(engine, where, run.stop))
        return run, where

    def _withheld(self, engine: Engine, where: SearchScope, last: bytes | None) -> int | None:
        end = time.monotonic() + max(self._left(1), _COUNT * self._engines.seconds)
        names = engine.withheld(where, last, lambda: self._cancelled() or time.monotonic() > end)
        return len(names) if time.monotonic() <= end else None

    def _last(self, items: list[Item], total: int, *, complete: bool) -> bytes | None:
        """The path of the last result that is shown, where not all are: it is the same whichever run found it."""
        if complete and total <= self._most:
            return None
        shown = 0
        for item in items:
            shown += self._task.weigh(item)[0]
            if shown >= self._most:
                return self._task.path(item)
        return self._task.path(items[-1]) if items else None

    def _found(self, run: Run[Item], where: SearchScope, engine: Engine) -> SearchResult[Item]:
        return self._told(self._verified(run, where), where, engine, complete=run.end == "complete")

    def _verified(self, run: Run[Item], where: SearchScope) -> list[Item]:
        path = self._task.path
        run.items.sort(key=lambda item: to_sort_key(path(item)))
        return self._task.verified(where, run.items)

    def _count(self, items: list[Item]) -> int:
        return sum(self._task.weigh(item)[0] for item in items)

    def _told(self, items: list[Item], where: SearchScope, engine: Engine, *, complete: bool) -> SearchResult[Item]:
        total = self._count(items)
        withheld = self._withheld(engine, where, self._last(items, total, complete=complete))
        return SearchResult(items, total, complete, (), withheld, where.notes)


# § [workspace.search.choose] Which engine searches: ripgrep where there is one, else Python.

_PYTHON_SECONDS = 10.0
"""Seconds for what takes ripgrep one: Python is slower, and its answer is to be the same."""


def choose_engines(workspace: Workspace, choice: SearchEngine) -> Engines:
    """The engines for a workspace; ToolError UNAVAILABLE where the chosen one is not here."""
    found = None if choice == "python" else _ripgrep(workspace)
    if found is None and choice == "ripgrep":
        message = "ripgrep is not installed, and the setting search.engine asks for it; `handrail doctor` says more."
        raise ToolError("UNAVAILABLE", message)
    return found or _python("switched off" if choice == "python" else "not installed")


def _ripgrep(workspace: Workspace) -> Engines | None:
    program = find_ripgrep(root.path for root in workspace.roots)
    if program is None:
        return None
    from handrail.workspace.search.ripgrep import Ripgrep  # noqa: PLC0415  only where there is one

    return Engines(Ripgrep(program), Ripgrep(program, ordered=True), MAX_SECONDS)


def _python(without: Without) -> Engines:
    from handrail.workspace.search.python_engine import PythonEngine  # noqa: PLC0415  only where there is no ripgrep

    return Engines(PythonEngine(ordered=False, without=without), PythonEngine(without=without), _PYTHON_SECONDS)
