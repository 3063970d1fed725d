"""Commits what scripts changed in layers, and takes it back."""

import contextlib
import hashlib
import itertools
import os
import stat
from collections.abc import Callable, Generator
from pathlib import Path

from tests.changes.layering import World

from handrail import Handrail
from handrail.changes.model import CommandPreview
from handrail.changes.overlay.changes import examine
from handrail.changes.overlay.commit import commit
from handrail.changes.overlay.previews import load_preview, save_preview
from handrail.changes.recorder import RecordedChangeSet, Recorder
from handrail.process.result import CapturedOutput, CommandResult
from handrail.protocol.results import SandboxUsed
from handrail.settings import Settings

Tree = dict[str, tuple[object, ...]]


def tree(root: Path) -> Tree:
    """What is in a folder: kind, mode, and bytes or target. As owner or root, so that closed things are seen too."""
    found: Tree = {}
    for folder, folders, files in os.walk(os.fsencode(root)):
        for name in (*folders, *files):
            path = os.path.join(folder, name)
            found[os.fsdecode(os.path.relpath(path, os.fsencode(root)))] = _state(path)
    return found


def _state(path: bytes) -> tuple[object, ...]:
    status = os.lstat(path)
    if stat.S_ISLNK(status.st_mode):
        return ("link", os.readlink(path))
    mode = stat.S_IMODE(status.st_mode)
    if stat.S_ISDIR(status.st_mode):
        return ("folder", mode)
    with open(path, "rb") as file:
        return ("file", mode, hashlib.sha256(file.read()).hexdigest(), status.st_size)


class Keeper:
    """A session over the workspace of a world."""

    def __init__(self, world: World, settings: Settings) -> None:
        self.world = world
        self.rail = Handrail(world.root, mode="auto", session="s", state_dir=world.place / "kept", settings=settings)
        session = self.rail._session
        self.workspace, self.recorder = session.workspace, session.recorder
        self._calls = itertools.count()

    def keep(
        self, script: str, *, sealed: bool = False, before: Callable[[], object] | None = None
    ) -> RecordedChangeSet:
        """Runs a script in a layer and commits it. `before`: what somebody else does just before the commit."""
        layer = self.world.layer(script)
        examined = examine(self.workspace, layer)
        if sealed:
            nothing = CapturedOutput(head=b"", total=0)
            ran = CommandResult(ending="exit", exit_code=0, seconds=0.0, output=nothing)
            trial = CommandPreview(ran=ran, examined=examined, sandbox=SandboxUsed(tier=3, net="none", undo="layer"))
            name = save_preview(self.workspace, self.recorder.history, trial, layer)
            layer.remove()
            examined = load_preview(self.recorder.history, name).examined
        if before is not None:
            before()
        return commit(
            self.workspace,
            self.recorder,
            examined,
            None if sealed else layer,
            session_id="s",
            call_id=f"call-{next(self._calls)}",
            summary=script[:60],
        )

    def undo(self, number: int | None = None) -> None:
        undone = self.rail.undo(number)
        assert undone.ok, undone.error

    def redo(self) -> None:
        redone = self.rail.redo()
        assert redone.ok, redone.error


@contextlib.contextmanager
def a_keeper(world: World, settings: Settings | None = None) -> Generator[Keeper]:
    keeper = Keeper(world, settings or Settings())
    try:
        yield keeper
    finally:
        keeper.rail.close()


__all__ = ["Keeper", "Recorder", "Tree", "a_keeper", "tree"]
