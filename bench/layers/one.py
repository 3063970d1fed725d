"""A command that changes one of very many files."""

from collections.abc import Callable, Iterator
from pathlib import Path

from bench.layers.tree import opened
from bench.measure import Row, alternate
from handrail import Handrail

PREVIEW_RATIO, PREVIEW_MS = 2.0, 20.0
COMMAND = "echo changed >>part0/file0.py"


def one_file(workspace: Path, state: Path) -> Iterator[Row]:
    with (
        opened(workspace, state, "full", tier=2) as bare,
        opened(workspace, state, "ask", tier=3) as asking,
        opened(workspace, state, "full", tier=3) as keeping,
    ):
        cases: dict[str, Callable[[], object]] = {
            "tier 2": lambda: ran(bare, 2),
            "previewed, and denied": lambda: denied(asking),
            "in a layer, and kept": lambda: ran(keeping, 3),
        }
        alternate(cases, repetitions=5)  # warms caches
        medians = {name: sample.median for name, sample in alternate(cases, repetitions=31).items()}
    for name, taken in medians.items():
        limit = PREVIEW_MS if name.startswith("previewed") else None
        yield Row(f"one file: {name}", taken * 1e3, "ms", limit)
    yield Row("one file: previewed / tier 2", medians["previewed, and denied"] / medians["tier 2"], "x", PREVIEW_RATIO)


def ran(rail: Handrail, tier: int) -> None:
    """A fast failure is no result, nor one without the sandbox that is meant."""
    result = rail.exec(COMMAND)
    used = result.meta.sandbox
    if result.data is None or result.data.exit_code != 0 or used is None or used.tier != tier:
        raise AssertionError(f"{result.summary} {result.error} {used}")


def denied(rail: Handrail) -> None:
    result = rail.exec(COMMAND)
    if result.error is None or result.error.code != "PERMISSION_DENIED":
        raise AssertionError(f"{result.summary} {result.error}")
