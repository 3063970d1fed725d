"""One small read in process, with policy, journal and audit, against opening and reading the file oneself."""

import tempfile
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

from bench.measure import Row, Sample, measure
from handrail import Handrail
from handrail.settings import Settings

TEXT = "The quick brown fox jumps over the lazy dog.\n" * 10
ROUNDS = 60
CALLS = 100
"""Each round takes both cases in turn, so many calls of each, every call timed on its own."""
MEDIAN_MICROSECONDS = 100.0
MEAN_MICROSECONDS = 130.0


def rows() -> Iterator[Row]:
    with tempfile.TemporaryDirectory(prefix="handrail-bench-") as folder:
        workspace = Path(folder, "workspace")
        path = workspace / "src" / "sample.txt"
        path.parent.mkdir(parents=True)
        path.write_text(TEXT)
        with Handrail(workspace, state_dir=Path(folder, "state"), settings=Settings()) as rail:

            def handrail() -> None:
                if not rail.read("src/sample.txt").ok:
                    raise AssertionError("the read failed: a fast error is no result")

            cases = {"handrail": handrail, "bare": path.read_text}
            alternate_calls(cases, 5)  # warms caches
            samples = alternate_calls(cases, ROUNDS)
    bare, read = samples["bare"], samples["handrail"]
    yield Row("pathlib read_text, median", bare.median * 1e6, "µs")
    yield Row("rail.read, median", read.median * 1e6, "µs", MEDIAN_MICROSECONDS)
    yield Row("rail.read, mean", read.mean * 1e6, "µs", MEAN_MICROSECONDS)
    yield Row("rail.read, p95", read.p95 * 1e6, "µs")
    yield Row("rail.read / read_text", read.median / bare.median, "x")


def alternate_calls(cases: Mapping[str, Callable[[], object]], rounds: int) -> dict[str, Sample]:
    """Single calls, in blocks that take turns: a program makes many calls in a row, and so do we."""
    times: dict[str, list[float]] = {name: [] for name in cases}
    for _ in range(rounds):
        for name, case in cases.items():
            times[name] += [measure(case, 1) for _ in range(CALLS)]
    return {name: Sample(tuple(taken)) for name, taken in times.items()}
