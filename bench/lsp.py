"""Diagnostics of ty in a project of some 400 files: the first, later ones, and those that an edit waits for."""

import shutil
import statistics
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import handrail
from bench.measure import Row, measure
from handrail import Handrail
from handrail.settings import Settings

SESSIONS = 5
ROUNDS = 20
LIMIT_FIRST_SECONDS = 1.5
LIMIT_WARM_MILLISECONDS = 300.0
FILE = "handrail/api.py"
TEXTS = ('CLOSED = "this Handrail is closed"', "CLOSED: int = 'closed'")
ENABLED = Settings.from_values({"tools.enable": ("lsp_diagnostics",), "lsp.servers": ("ty",), "lsp.wait": "30s"})


def rows() -> Iterator[Row]:
    if shutil.which("ty") is None:
        raise AssertionError("ty is not in PATH; the development requirements bring it")
    with tempfile.TemporaryDirectory(prefix="handrail-bench-") as folder:
        workspace, state = Path(folder, "workspace"), Path(folder, "state")
        source = Path(handrail.__file__).parent
        shutil.copytree(source, workspace / "handrail", ignore=shutil.ignore_patterns("__pycache__"))
        (workspace / "pyproject.toml").write_text("[project]\nname = 'sample'\nversion = '1'\n")
        count = sum(1 for _ in workspace.glob("**/*.py"))
        first = [measure_first(workspace, state, number) for number in range(SESSIONS)]
        yield Row(f"first diagnostics of {count} files, median", statistics.median(first), "s", LIMIT_FIRST_SECONDS)
        with Handrail(workspace, mode="auto", state_dir=state, settings=ENABLED) as rail:
            diagnose(rail)
            warm = [measure_changed(rail, workspace, number) for number in range(ROUNDS)]
            yield Row("diagnostics after a change, median", statistics.median(warm), "ms", LIMIT_WARM_MILLISECONDS)
            edits = [measure(build_edit(rail, number), 1) * 1e3 for number in range(ROUNDS)]
            yield Row("an edit with its new problems, median", statistics.median(edits), "ms", LIMIT_WARM_MILLISECONDS)
        with Handrail(workspace, mode="auto", state_dir=state) as rail:
            edits = [measure(build_edit(rail, number), 1) * 1e3 for number in range(ROUNDS)]
            yield Row("the same edit without language servers, median", statistics.median(edits), "ms")


def measure_first(workspace: Path, state: Path, number: int) -> float:
    with Handrail(workspace, state_dir=state, session=f"first-{number}", settings=ENABLED) as rail:
        start = time.perf_counter()
        diagnose(rail)
        return time.perf_counter() - start


def measure_changed(rail: Handrail, workspace: Path, number: int) -> float:
    path = workspace / FILE
    path.write_text(path.read_text().replace(TEXTS[number % 2], TEXTS[1 - number % 2]))
    start = time.perf_counter()
    found = diagnose(rail)
    if any("closed" in one.message for one in found) == bool(number % 2):
        raise AssertionError("the diagnostics are those of the other text")
    return (time.perf_counter() - start) * 1e3


def diagnose(rail: Handrail) -> Any:
    result = rail.call("lsp_diagnostics", {"paths": [FILE]})
    if result.data is None:
        raise AssertionError(result.content)
    return result.data.diagnostics


def build_edit(rail: Handrail, number: int) -> Callable[[], None]:
    old, new = TEXTS[number % 2], TEXTS[1 - number % 2]
    if not rail.call("read", {"path": FILE}).ok:
        raise AssertionError("the file cannot be read")

    def edit() -> None:
        result = rail.call("edit", {"path": FILE, "oldText": old, "newText": new})
        if not result.ok:
            raise AssertionError(result.content)

    return edit
