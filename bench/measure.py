"""Measuring side by side: the cases of a comparison take turns in one run, so that their ratio holds at any hour."""

import statistics
import time
from collections.abc import Callable, Iterable, Mapping
from typing import Literal, NamedTuple


class Sample(NamedTuple):
    """What one case took, in seconds a call, in the order of measuring."""

    times: tuple[float, ...]

    @property
    def median(self) -> float:
        return statistics.median(self.times)

    @property
    def mean(self) -> float:
        return statistics.fmean(self.times)

    @property
    def p95(self) -> float:
        """The time that 95 of 100 repetitions do not exceed."""
        return sorted(self.times)[-(len(self.times) // 20) - 1]


class Row(NamedTuple):
    """One line of the report: a value, and the most it may be (None: only reported)."""

    name: str
    value: float | None
    """None: it cannot be measured here."""
    unit: str
    limit: float | None = None
    reason: str = ""
    """Why it cannot be measured."""

    @property
    def verdict(self) -> Literal["ok", "missed", "reported", "not measured"]:
        if self.value is None:
            return "not measured"
        if self.limit is None:
            return "reported"
        return "ok" if self.value <= self.limit else "missed"


def alternate(cases: Mapping[str, Callable[[], object]], repetitions: int = 15, inner: int = 1) -> dict[str, Sample]:
    """Measures every case `repetitions` times, each time over `inner` calls.

    A round runs every case once; every second round runs them backwards, so that none always follows the same other.
    """
    times: dict[str, list[float]] = {name: [] for name in cases}
    for repetition in range(repetitions):
        turns = list(cases.items())
        for name, case in turns if repetition % 2 == 0 else reversed(turns):
            times[name].append(measure(case, inner))
    return {name: Sample(tuple(taken)) for name, taken in times.items()}


def measure(case: Callable[[], object], inner: int) -> float:
    calls = range(inner)
    start = time.perf_counter_ns()
    for _ in calls:
        case()
    return (time.perf_counter_ns() - start) / inner / 1e9


def table(rows: Iterable[Row]) -> str:
    cells = [("benchmark", "value", "unit", "limit", "verdict")]
    for row in rows:
        limit = "" if row.limit is None else f"{row.limit:g}"
        value = "–" if row.value is None else f"{row.value:.2f}"
        verdict = f"{row.verdict}: {row.reason}" if row.reason else row.verdict
        cells.append((row.name, value, row.unit, limit, verdict))
    widths = [max(len(line[column]) for line in cells) for column in range(5)]
    return "\n".join(aligned(line, widths) for line in cells)


def aligned(line: tuple[str, str, str, str, str], widths: list[int]) -> str:
    name, value, unit, limit, verdict = line
    return f"{name:<{widths[0]}}  {value:>{widths[1]}} {unit:<{widths[2]}}  {limit:>{widths[3]}}  {verdict}"
