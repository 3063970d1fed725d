"""A small read in each dialect against the canonical call. They take turns, so their difference holds at any hour."""

import tempfile
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

from bench.measure import Row
from bench.small_read import TEXT, alternate_calls
from handrail import Handrail

ROUNDS = 20
LIMIT_MICROSECONDS = 20.0
READS: dict[str, tuple[str, str]] = {
    "deepchat": ("read", "path"),
    "clude": ("read_file", "path"),
    "agentica": ("read_file", "file_path"),
    "onething": ("read", "file_path"),
    "claude-code": ("Read", "file_path"),
    "opencode": ("read", "filePath"),
}
"""The reading tool of each dialect that has one for the whole workspace, with its parameter for the path."""


def rows() -> Iterator[Row]:
    with tempfile.TemporaryDirectory(prefix="handrail-bench-") as folder, ExitStack() as opened:
        workspace = Path(folder, "workspace")
        workspace.mkdir()
        (workspace / "sample.txt").write_text(TEXT)
        state = Path(folder, "state")
        cases = {"": build_case(opened.enter_context(Handrail(workspace, state_dir=state)), "read", "path")}
        for dialect, (name, parameter) in READS.items():
            rail = opened.enter_context(Handrail(workspace, state_dir=state, dialect=dialect))
            cases[dialect] = build_case(rail, name, parameter)
        alternate_calls(cases, 3)  # warms caches
        samples = alternate_calls(cases, ROUNDS)
    canonical = samples.pop("").median
    yield Row("call read, median", canonical * 1e6, "µs")
    for dialect, sample in samples.items():
        yield Row(f"{dialect} over call read, median", (sample.median - canonical) * 1e6, "µs", LIMIT_MICROSECONDS)


def build_case(rail: Handrail, name: str, parameter: str) -> Callable[[], Any]:
    def call() -> None:
        if not rail.call(name, {parameter: "sample.txt"}).ok:
            raise AssertionError("the read failed: a fast error is no result")

    return call
