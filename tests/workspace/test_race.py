"""Another process swaps a file, or a folder, with a link to an outside one, as fast as it can, while tools run.

Nothing of outside may be read, listed or changed. That the race is real is shown by a reader that checks the path
first and opens it then, as is common: it leaks.
"""

import os
import re
import time
from collections import Counter
from collections.abc import Callable
from contextlib import AbstractContextManager
from pathlib import Path

import pytest

from handrail import Handrail
from handrail.protocol.results import ToolResult

Rail = Callable[..., Handrail]
Flipping = Callable[[str], AbstractContextManager[None]]
Note = Callable[[str], None]
SECRET = "OUTSIDE-SECRET"

# Swaps two pairs of names of the current folder.
SWAPS = """
links = os.path.islink("file.txt") + os.path.islink("file.link")
if links != 1:  # a write that lost the race set one of them aside
    if links:
        with open("spare", "w") as file:
            file.write("inside")
    else:
        os.symlink("../outside/file.txt", "spare")
    os.rename("spare", "file.link")
for _ in range(50):
    swap(b"file.txt", b"file.link")
    swap(b"folder", b"folder.link")
"""


@pytest.fixture
def outside(tmp_path: Path, workspace: Path) -> Path:
    """An outside file and folder, each with a link to it beside an inside file and folder of the same shape."""
    away = tmp_path / "outside"
    for base, text in ((workspace, "inside"), (away, SECRET)):
        (base / "folder" / "deep").mkdir(parents=True)
        for name in ("file.txt", "folder/file.txt", "folder/deep/file.txt"):
            (base / name).write_text(text)
    (away / "folder" / "outside-name").write_text(SECRET)
    (workspace / "file.link").symlink_to("../outside/file.txt")
    (workspace / "folder.link").symlink_to(away / "folder")
    return away


def snapshot(folder: Path) -> dict[str, tuple[int, int, str]]:
    """Everything about an outside tree that a tool could have changed."""
    found: dict[str, tuple[int, int, str]] = {}
    for path in sorted(folder.rglob("*")):
        status = path.stat()
        found[str(path)] = (status.st_ino, status.st_mtime_ns, path.read_text() if path.is_file() else "")
    return found


@pytest.fixture
def seconds(deep: bool) -> float:
    return 5.0 if deep else 0.5


def take_back(rail: Handrail, turn: int) -> ToolResult:
    """Writes, and takes that back, and brings it back."""
    path = ("folder/file.txt", "folder/deep/new.txt", "folder/made/file.txt")[turn % 3]
    written = rail.write(path, f"inside {turn}")
    if not written.ok:
        return written
    return rail.undo() if turn % 2 else rail.undo() and rail.redo()


Call = Callable[[Handrail, int], ToolResult]
CALLS: dict[str, Call] = {
    "read a file": lambda rail, _: rail.read("file.txt"),
    "read in a folder": lambda rail, turn: rail.read("folder/deep/file.txt" if turn % 2 else "folder/file.txt"),
    "write a file": lambda rail, turn: rail.read("file.txt") and rail.write("file.txt", f"inside {turn}"),
    "write in a folder": lambda rail, turn: rail.write(
        ("folder/file.txt", "folder/deep/new.txt", "folder/made/file.txt")[turn % 3], f"inside {turn}"
    ),
    "edit a file": lambda rail, _: rail.edit("file.txt", "inside", "inside, still", replace_all=True),
    "edit in a folder": lambda rail, turn: rail.edit(
        "folder/deep/file.txt" if turn % 2 else "folder/file.txt", "inside", "inside, still", replace_all=True
    ),
    "take a write back": take_back,
    "list": lambda rail, turn: rail.ls(("folder", ".", "folder/deep")[turn % 3], depth=3),
}
SHARE = {kind: 1.0 if kind == "list" else 0.5 for kind in CALLS}
"""Of the time a tool gets."""


FAIR = {"ok", "NO_CHANGE", "OUTSIDE_WORKSPACE", "IO_ERROR", "CONFLICT", "STALE_FILE", "NOT_FOUND", "NOT_A_DIRECTORY"}


@pytest.mark.parametrize("kind", CALLS)
def test_a_swap_by_another_process_leaks_nothing(
    rail: Rail, workspace: Path, outside: Path, resolver: str, kind: str, seconds: float, flipping: Flipping, note: Note
) -> None:
    before = snapshot(outside)
    one = rail(resolver=resolver)
    outcomes: Counter[str] = Counter()
    leaks: list[ToolResult] = []
    told_aside: set[str] = set()
    with flipping(SWAPS):
        start, turn = time.monotonic(), 0
        while (lasted := time.monotonic() - start) < seconds * SHARE[kind] or (
            lasted < 20 and not (outcomes["ok"] and outcomes["OUTSIDE_WORKSPACE"])  # a slow machine needs longer
        ):
            turn += 1
            result = CALLS[kind](one, turn)
            outcomes["ok" if result.ok else result.error.code] += 1
            told_aside |= set(re.findall(r"saved as (\S+)\.", " ".join((result.summary, *result.warnings))))
            shown = f"{result.content}{result.data}"
            if SECRET in shown or "outside-name" in shown:
                leaks.append(result)
    note(f"{kind}, {resolver}: {dict(outcomes)}, {len(leaks)} leaks")
    assert not leaks
    assert snapshot(outside) == before
    assert outcomes["ok"]
    assert outcomes["OUTSIDE_WORKSPACE"], "the link was never there when a call looked: this was no race"
    assert set(outcomes) <= FAIR
    aside = {path.name for path in workspace.rglob(".handrail-*")}
    assert aside == told_aside, "an unfinished file was left behind"


def checked_first(top: str) -> str:
    """What a file holds, read the common way: is it inside? then open it."""
    path = f"{top}/file.txt"
    try:
        if not os.path.realpath(path).startswith(f"{top}/"):
            return "refused"
        with open(path) as file:
            return file.read()
    except OSError:  # even realpath fails when a link turns into a file under it
        return "refused"


def test_the_race_is_real_since_a_reader_that_checks_first_loses_it(
    workspace: Path, outside: Path, seconds: float, flipping: Flipping, note: Note
) -> None:
    top = os.path.realpath(workspace)
    tries = leaks = 0
    with flipping(SWAPS):
        start = time.monotonic()
        while (lasted := time.monotonic() - start) < seconds or (
            lasted < 20 and not leaks  # a slow machine needs longer
        ):
            tries += 1
            leaks += checked_first(top) == SECRET
    note(f"check, then open: {leaks} leaks of {tries}")
    assert leaks, "who checks first did not lose either: this was no race"
