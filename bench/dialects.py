"""A small read in each dialect against the canonical call. They take turns, so their difference holds at any hour."""

import tempfile
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

from bench.measure import Row
from bench.small_read import TEXT, alternate_calls
from handrail import Handrail
from handrail.settings import Settings

ROUNDS = 20
LIMIT_MICROSECONDS = 20.0
PICTURE = bytes.fromhex(
    "89504e470d0a1a0a0000000d49484452000000010000000108060000001f15c4890000000d49444154789c6260000002000001e221bc330000"
    "000049454e44ae426082"
)
FILES = {"sample.txt": TEXT.encode(), ".minds/sample.txt": TEXT.encode(), "sample.png": PICTURE}
READS: dict[str, tuple[str, str, str]] = {
    "deepchat": ("read", "path", "sample.txt"),
    "devminds": ("workspace.fs", "path", ".minds/sample.txt"),
    "clude": ("read_file", "path", "sample.txt"),
    "agentica": ("read_file", "file_path", "sample.txt"),
    "onething": ("read", "file_path", "sample.txt"),
    "claude-code": ("Read", "file_path", "sample.txt"),
    "codex": ("view_image", "path", "sample.png"),
    "opencode": ("read", "filePath", "sample.txt"),
}
"""The reading tool of each dialect, with its parameter for the path, and a file. Codex reads pictures only."""
RESTRICTED = Settings.from_values({"profile": "restricted"})


def rows() -> Iterator[Row]:
    with tempfile.TemporaryDirectory(prefix="handrail-bench-") as folder, ExitStack() as opened:
        workspace, state = Path(folder, "workspace"), Path(folder, "state")
        (workspace / ".minds").mkdir(parents=True)
        for name, data in FILES.items():
            (workspace / name).write_bytes(data)
        cases: dict[str, Callable[[], Any]] = {}
        for dialect, (name, parameter, path) in READS.items():
            settings = RESTRICTED if dialect == "devminds" else Settings()
            rail = opened.enter_context(Handrail(workspace, state_dir=state, settings=settings))
            cases.setdefault(path, build_case(rail, "read", {"path": path}))
            rail = opened.enter_context(Handrail(workspace, state_dir=state, dialect=dialect))
            operation = {"op": "read"} if dialect == "devminds" else {}
            cases[dialect] = build_case(rail, name, {parameter: path, **operation})
        alternate_calls(cases, 3)  # warms caches
        samples = alternate_calls(cases, ROUNDS)
    yield Row("call read, median", samples["sample.txt"].median * 1e6, "µs")
    for dialect, (_, _, path) in READS.items():
        over = samples[dialect].median - samples[path].median
        yield Row(f"{dialect} over call read, median", over * 1e6, "µs", LIMIT_MICROSECONDS)


def build_case(rail: Handrail, name: str, args: dict[str, Any]) -> Callable[[], Any]:
    def call() -> None:
        if not rail.call(name, args).ok:
            raise AssertionError("the read failed: a fast error is no result")

    return call
