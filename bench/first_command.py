"""The first command of a session over 200,000 files, which looks for credentials to hide, against later ones."""

import statistics
import tempfile
from collections.abc import Iterator
from pathlib import Path

from bench.measure import Row, measure
from handrail import Handrail
from handrail.settings import Settings
from handrail.settings.model import Sandbox

FILES, IN_A_FOLDER = 200_000, 200
"""Each folder of a tree adds 2 µs to a later command: it is asked whether it changed."""
SESSIONS, COMMANDS = 7, 15
FIRST_MILLISECONDS, LATER_MILLISECONDS = 250.0, 13.0


def rows() -> Iterator[Row]:
    with tempfile.TemporaryDirectory(prefix="handrail-bench-") as folder:
        workspace = Path(folder, "workspace")
        make_tree(workspace)
        first: list[float] = []
        later: list[float] = []
        for number in range(SESSIONS + 1):  # the first session warms the caches
            settings = Settings(sandbox=Sandbox(least=2))
            with Handrail(workspace, mode="full", state_dir=Path(folder, f"state{number}"), settings=settings) as rail:
                times = [measure(lambda: succeed(rail), 1) for _ in range(COMMANDS)]
            if number:
                first.append(times[0])
                later += times[1:]
    yield Row("first command, median", statistics.median(first) * 1e3, "ms", FIRST_MILLISECONDS)
    yield Row("later commands, median", statistics.median(later) * 1e3, "ms", LATER_MILLISECONDS)


def make_tree(workspace: Path) -> None:
    for start in range(0, FILES, IN_A_FOLDER):
        part = workspace / f"pkg{start // 10_000}" / f"part{start // IN_A_FOLDER}"
        part.mkdir(parents=True)
        for number in range(IN_A_FOLDER):
            (part / f"file{number}.py").touch()


def succeed(rail: Handrail) -> None:
    result = rail.exec("true")
    if result.data is None or result.data.exit_code != 0:
        raise AssertionError(f"true: {result.summary} {result.error}")
