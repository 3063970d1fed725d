"""A command that changes many files: what it takes to list, keep and take back."""

import os
import subprocess
import time
import zlib
from collections import defaultdict
from collections.abc import Callable, Iterator
from pathlib import Path
from statistics import median
from typing import TypeVar

from bench.layers.tree import IN_A_FOLDER, opened
from bench.measure import Row
from handrail import Handrail
from handrail.changes.model import OverlayChanges
from handrail.changes.overlay.changes import examine
from handrail.changes.overlay.commit import commit
from handrail.changes.overlay.walk import OverlayWalk
from handrail.process.run import run_launch
from handrail.sandbox.overlay.overlay import Overlay
from handrail.sandbox.profile import SandboxProfile

CHANGED = 1_000
LISTED_MS, COMPARED_MS = 20.0, 50.0
COMMIT_RATIO = 2.0
UNDO_RATIO = 2.0
KEPT_RATIO = 1.1
LEVEL = 1
"""How hard the store compresses."""
ROUNDS = 7
LAST = CHANGED // IN_A_FOLDER - 1
COMMAND = f"for part in part{{0..{LAST}}}; do for file in $part/*; do echo changed >>$file; done; done"
Result = TypeVar("Result")


def many_files(workspace: Path, state: Path, copies: Path) -> Iterator[Row]:
    with opened(workspace, state, "full", tier=3) as rail:
        yield from measured(Keeping(rail, workspace, copies))


def measured(keeping: "Keeping") -> Iterator[Row]:
    expected = keeping.compressed()
    before = keeping.room()
    keeping.round(0)  # warms caches
    kept = keeping.room_after_commit - before
    keeping.taken.clear()
    for number in range(1, ROUNDS + 1):
        keeping.round(number)
    medians = {name: median(taken) for name, taken in keeping.taken.items()}
    name = f"{CHANGED:,} files"
    yield Row(f"{name}: listed", medians["listed"] * 1e3, "ms", LISTED_MS)
    yield Row(f"{name}: listed, contents compared", medians["compared"] * 1e3, "ms", COMPARED_MS)
    for case in ("cp", "kept", "taken back"):
        yield Row(f"{name}: {case}", medians[case] * 1e3, "ms")
    yield Row(f"{name}: kept / cp", medians["kept"] / medians["cp"], "x", COMMIT_RATIO)
    limit = UNDO_RATIO if keeping.has_journal() else None
    yield Row(f"{name}: taken back / kept", medians["taken back"] / medians["kept"], "x", limit)
    yield Row(f"{name}: what they were, on disk / compressed", kept / expected, "x", KEPT_RATIO)


class Keeping:
    """A workspace in which many files are changed, again and again, and what each part of it takes."""

    def __init__(self, rail: Handrail, workspace: Path, copies: Path) -> None:
        self._rail = rail
        self._session = rail._session  # noqa: SLF001  # pyright: ignore[reportPrivateUsage]
        self._workspace = workspace
        self._copies = copies
        self._parts = [f"part{number}" for number in range(CHANGED // IN_A_FOLDER)]
        self.taken: defaultdict[str, list[float]] = defaultdict(list)
        self.room_after_commit = 0

    def compressed(self) -> int:
        """Bytes of what the files are before, each compressed as the store does it."""
        paths = [path for part in self._parts for path in (self._workspace / part).iterdir()]
        return sum(len(zlib.compress(path.read_bytes(), LEVEL)) for path in paths)

    def room(self) -> int:
        """Bytes that the disk gives to all contents that are kept: to all of the history but its log."""
        history = Path(self._session.recorder.history.folder)
        kept = [path for path in history.rglob("*") if path.is_file() and not path.name.startswith("changes.db")]
        return sum(path.stat().st_blocks * 512 for path in kept)

    def has_journal(self) -> bool:
        """Whether the disk makes new files at the same speed always. ext4 without a journal takes up to 0.5 ms for a
        file, 50 times as long, where files were removed within the last minutes."""
        device = os.stat(self._workspace).st_dev
        disk = Path(os.path.realpath(f"/sys/dev/block/{os.major(device)}:{os.minor(device)}")).name
        is_ext4 = Path("/proc/fs/ext4", disk).exists()
        return not is_ext4 or any(Path("/proc/fs/jbd2").glob(f"{disk}-*"))

    def round(self, number: int) -> None:
        """Changes them, keeps that and takes it back; and copies them, for comparison."""
        root = self._session.workspace.main.path
        with self._session.commands.sandbox.create_overlay((root,)) as layer:
            self._run(layer, root)
            paths = self._timed("listed", lambda: sum(1 for one in layer.overlaid for _ in OverlayWalk(one).paths()))
            examined = self._timed("compared", lambda: examine(self._session.workspace, layer))
            if len(examined.steps) != CHANGED or paths < CHANGED:
                raise AssertionError(f"{len(examined.steps)} changes were found, {paths} paths")
            self._timed("kept", lambda: self._commit(examined, layer, f"round-{number}"))
            self.room_after_commit = self.room()
        self._timed("taken back", self._undo)
        self._compare()

    def _commit(self, examined: OverlayChanges, layer: Overlay, call: str) -> None:
        workspace, recorder = self._session.workspace, self._session.recorder
        commit(workspace, recorder, examined, layer, session_id="bench", call_id=call, summary=COMMAND)

    def _undo(self) -> None:
        result = self._rail.undo()
        if not result.ok:
            raise AssertionError(result.summary)

    def _compare(self) -> None:
        """The same files, copied over those of the last time, and all of them on the disk in the end."""
        self._copies.mkdir(exist_ok=True)
        copied = [
            str(self._copies / part / f"file{number}.py") for part in self._parts for number in range(IN_A_FOLDER)
        ]
        self._timed("cp", lambda: self._succeed(["cp", "-r", *self._parts, str(self._copies)], ["sync", *copied]))

    def _succeed(self, *commands: list[str]) -> None:
        for words in commands:
            subprocess.run(words, cwd=self._workspace, check=True)

    def _timed(self, name: str, work: Callable[[], Result]) -> Result:
        start = time.perf_counter()
        result = work()
        self.taken[name].append(time.perf_counter() - start)
        return result

    def _run(self, layer: Overlay, root: str) -> None:
        commands = self._session.commands
        confinement = SandboxProfile(origin="unasked", cwd=root, read_only=(), writable=(root,))
        done = run_launch(
            commands.sandbox.launch(confinement, COMMAND, layer),
            limits=confinement.limits,
            cancelled=lambda: False,
            spill_folder=commands.spill_folder,
        )
        if done.exit_code != 0:
            raise AssertionError(done.output.head)
