"""Another process swaps files and folders with links to outside ones while find and grep run: nothing leaks.

ripgrep walks by name and is not trusted. That it does walk out is shown by running it bare in the same race.
"""

import subprocess
import time
from collections import Counter
from collections.abc import Callable
from contextlib import AbstractContextManager
from pathlib import Path

import pytest

from handrail import Handrail
from handrail.protocol.results import ToolResult
from handrail.workspace.search.ripgrep import find_ripgrep

Rail = Callable[..., Handrail]
Flipping = Callable[[str], AbstractContextManager[None]]
Note = Callable[[str], None]
SECRET = "OUTSIDE-SECRET"
WORD = "common-word"

# Swaps each folder, and a file in it, with a link of the same shape.
SWAPS = """
for number in range(20):
    swap(b"d%d" % number, b"d%d.link" % number)
    swap(b"f%d.txt" % number, b"f%d.link" % number)
"""


@pytest.fixture
def outside(tmp_path: Path, workspace: Path) -> Path:
    """Folders and files inside, and for each a link that leads to one of the same shape outside."""
    away = tmp_path / "outside"
    for number in range(20):
        for base, text in ((workspace, "inside"), (away, SECRET)):
            folder = base / f"d{number}" / "deep"
            folder.mkdir(parents=True)
            (folder / "file.txt").write_text(f"{WORD} {text}\n")
            (base / f"f{number}.txt").write_text(f"{WORD} {text}\n")
        (away / f"d{number}" / "outside-name.txt").write_text(f"{WORD} {SECRET}\n")
        (workspace / f"d{number}.link").symlink_to(away / f"d{number}")
        (workspace / f"f{number}.link").symlink_to(away / f"f{number}.txt")
    return away


@pytest.fixture
def seconds(deep: bool) -> float:
    return 10.0 if deep else 0.4


Call = Callable[[Handrail, int], ToolResult]
CALLS: dict[str, Call] = {
    "grep": lambda rail, turn: rail.grep(WORD, max_results=(5, 100)[turn % 2]),
    "grep with context": lambda rail, turn: rail.grep(WORD, context_lines=3, file_pattern=(None, "*.txt")[turn % 2]),
    "grep a folder or file": lambda rail, turn: rail.grep(WORD, ("d1", "f1.txt", "d1/deep")[turn % 3]),
    "find": lambda rail, turn: rail.find(("*", "*.txt", "d*/**")[turn % 3], max_results=(5, 1_000)[turn % 2]),
    "find in a folder": lambda rail, turn: rail.find("*", ("d1", "d2/deep")[turn % 2]),
}


@pytest.mark.parametrize("kind", CALLS)
def test_a_swap_by_another_process_leaks_nothing(
    rail: Rail, workspace: Path, outside: Path, resolver: str, kind: str, seconds: float, flipping: Flipping, note: Note
) -> None:
    one = rail(resolver=resolver)
    outcomes: Counter[str] = Counter()
    results = 0
    with flipping(SWAPS):
        start, turn = time.monotonic(), 0
        while (lasted := time.monotonic() - start) < seconds or (
            lasted < 20 and not results  # a slow machine needs longer
        ):
            turn += 1
            result = CALLS[kind](one, turn)
            outcomes["ok" if result.ok else result.error.code] += 1
            results += result.meta.returned or 0
            shown = f"{result.content}{result.data}{result.warnings}"
            assert SECRET not in shown
            assert "outside-name" not in shown
    note(f"{kind}, {resolver}: {dict(outcomes)}, {results} results, no leaks")
    assert results, "nothing was found at all: this shows nothing"
    assert set(outcomes) <= {"ok", "OUTSIDE_WORKSPACE", "IO_ERROR", "NOT_FOUND", "NOT_A_DIRECTORY"}


def test_the_race_is_real_since_bare_ripgrep_loses_it(
    workspace: Path, outside: Path, seconds: float, flipping: Flipping, note: Note
) -> None:
    program = find_ripgrep(())
    assert program is not None
    command = [program, "--no-config", "--no-mmap", WORD]
    tries = leaks = 0
    with flipping(SWAPS):
        start = time.monotonic()
        while (lasted := time.monotonic() - start) < seconds or (
            lasted < 20 and not leaks  # a slow machine needs longer
        ):
            tries += 1
            done = subprocess.run(command, cwd=workspace, stdin=subprocess.DEVNULL, capture_output=True, check=False)
            leaks += SECRET.encode() in done.stdout
    note(f"bare ripgrep: {leaks} of {tries} runs leaked")
    assert leaks, "what is searched by name did not leak either: this was no race"
