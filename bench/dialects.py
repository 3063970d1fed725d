"""Every tool of each dialect over its canonical call, in processor time.

A first run records the canonical results of the calls that `tests/dialects` has for each dialect. Then the dialect
translates and answers each call with its recorded results, many times, so no file and no command disturbs the measure.
"""

import statistics
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import suppress
from copy import deepcopy
from importlib import import_module
from pathlib import Path
from typing import Any

from bench.measure import Row
from handrail.protocol.calls import Done, Parked
from handrail.protocol.errors import UsageError

ROUNDS = 200
LIMIT_MICROSECONDS = 20.0
OWN_WORK = frozenset(("NotebookEdit", "write_stdin", "background commands"))
"""Work that no canonical call does: parse a notebook, wait for a process, find the id of a process that was started."""


def rows() -> Iterator[Row]:
    sys.path.insert(0, str(Path(__file__).parent.parent / "tests" / "dialects"))
    spoken: Any = import_module("spoken")  # of the tests
    for dialect, calls in import_module("calls").CALLS.items():
        folder = tempfile.TemporaryDirectory(prefix="handrail-bench-")
        with folder, spoken.open_rail(Path(folder.name), dialect, mode="full") as rail:
            taken = measure_calls(rail, spoken, calls)
        yield Row(f"{dialect}, median of its tools", statistics.median(taken.values()), "µs")
        slowest = max(taken.keys() - OWN_WORK, key=lambda name: taken[name])
        yield Row(f"{dialect}, slowest tool ({slowest})", taken[slowest], "µs", LIMIT_MICROSECONDS)
        for name in sorted(taken.keys() & OWN_WORK):
            yield Row(f"{dialect}, {name}", taken[name], "µs")


def measure_calls(rail: Any, spoken: Any, calls: tuple[tuple[str, Any], ...]) -> dict[str, float]:
    """The microseconds of each tool. Of several calls of one tool the slowest counts."""
    surface, recorded = rail._surface, list[Done | Parked]()  # noqa: SLF001
    run, names, taken = surface.run_canonical, dict[str, str](), dict[str, float]()

    def record(canonical: Any, fresh: bool) -> Done | Parked:
        recorded.append(run(canonical, fresh))
        return recorded[-1]

    for name, given in calls:
        args = spoken.fill_in(given, rail.workspace, names)
        recorded.clear()
        surface.run_canonical = record
        result = spoken.finish_call(rail, rail.call(name, args))
        spoken.note_names(result, names)
        row = "background commands" if "is_background" in given else name
        if name in surface.names and recorded and all(isinstance(outcome, Done) for outcome in recorded):
            called = surface.build_call(name, args, result.tool_call_id)
            taken[row] = max(taken.get(row, 0.0), measure_call(surface, called, tuple(recorded)))
    return taken


def measure_call(surface: Any, called: Any, recorded: tuple[Done | Parked, ...]) -> float:
    """The microseconds of a call. None count if the call is another now, since it created its file before."""
    times, memory = list[int](), deepcopy(surface.memory)
    outcomes: Iterator[Any] = iter(())

    def give(canonical: Any, _: bool) -> Done | Parked:
        outcome = next(outcomes)
        if canonical[0].name != outcome.results[0].name:
            raise UsageError("another call")
        return outcome

    surface.run_canonical = give
    with suppress(UsageError):
        for _ in range(ROUNDS):
            surface.memory, outcomes = deepcopy(memory), iter(recorded)
            start = time.thread_time_ns()
            surface.run((called,), True)
            times.append(time.thread_time_ns() - start)
    return statistics.median(times) / 1_000 if times else 0.0
