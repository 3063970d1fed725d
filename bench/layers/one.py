"""A command that changes one of very many files."""

import time
from collections.abc import Callable, Iterator
from pathlib import Path
from statistics import median

from bench.layers.tree import opened
from bench.measure import Row
from handrail import Handrail
from handrail.protocol.permissions import AnswerKind, PermissionRequest

PREVIEW_RATIO, PREVIEW_MS = 2.0, 20.0
COMMAND = "echo changed >>part0/file0.py"
LOOKING = "tail -n 1 part0/file0.py"
"""At tier 2 what changes something is compared with all that was there before; so that is timed by what only looks."""
WARMING, ROUNDS = 5, 31


def one_file(workspace: Path, state: Path) -> Iterator[Row]:
    person = Person()
    with (
        opened(workspace, state, "full", tier=2) as bare,
        opened(workspace, state, "ask", tier=3, answer=person.answer) as asking,
        opened(workspace, state, "full", tier=3) as keeping,
    ):
        cases: dict[str, Callable[[], float]] = {
            "tier 2, only looking": lambda: ran(bare, LOOKING, "read-only"),
            "previewed": lambda: person.waited(asking),
            "in a layer, and kept": lambda: ran(keeping, COMMAND, "layer"),
        }
        medians = measured(cases)
    for name, taken in medians.items():
        yield Row(f"one file: {name}", taken * 1e3, "ms", PREVIEW_MS if name == "previewed" else None)
    ratio = medians["previewed"] / medians["tier 2, only looking"]
    yield Row("one file: previewed / tier 2", ratio, "x", PREVIEW_RATIO)


def measured(cases: dict[str, Callable[[], float]]) -> dict[str, float]:
    """Each in turn, forwards and backwards."""
    taken: dict[str, list[float]] = {name: [] for name in cases}
    for number in range(WARMING + ROUNDS):
        turns = list(cases.items())
        for name, case in turns if number % 2 == 0 else reversed(turns):
            taken[name].append(case())
    return {name: median(times[WARMING:]) for name, times in taken.items()}


def ran(rail: Handrail, command: str, undo: str) -> float:
    """A fast failure is no result, nor one without the sandbox that is meant."""
    start = time.perf_counter()
    result = rail.exec(command)
    taken = time.perf_counter() - start
    used = result.meta.sandbox
    if result.data is None or result.data.exit_code != 0 or used is None or used.undo != undo:
        raise AssertionError(f"{result.summary} {result.error} {used}")
    return taken


class Person:
    """Somebody who is shown what a command would change, and says no."""

    def __init__(self) -> None:
        self._asked = 0.0

    def answer(self, request: PermissionRequest) -> AnswerKind:
        self._asked = time.perf_counter()
        if request.preview is None or request.preview.kind != "run" or "+changed" not in request.preview.text:
            raise AssertionError(request.preview)
        return "deny"

    def waited(self, rail: Handrail) -> float:
        """Seconds from the call until they see it."""
        start = time.perf_counter()
        result = rail.exec(COMMAND)
        if result.error is None or result.error.code != "PERMISSION_DENIED":
            raise AssertionError(f"{result.summary} {result.error}")
        return self._asked - start
