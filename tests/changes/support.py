"""Set-up of these tests: commands in real overlays over real folders, as root and as an ordinary user."""

import codecs
import contextlib
import hashlib
import itertools
import os
import pickle
import stat
import subprocess
import traceback
from collections.abc import Callable, Generator
from pathlib import Path
from typing import Any

from tests.escape.starting import ordinary_number

from handrail import Handrail
from handrail.changes.model import CommandPreview, OverlayChanges
from handrail.changes.overlay.changes import examine
from handrail.changes.overlay.commit import commit
from handrail.changes.overlay.previews import load_preview, save_preview
from handrail.changes.recorder import RecordedChangeSet
from handrail.process.result import CapturedOutput, CommandResult
from handrail.protocol.changes import Change
from handrail.protocol.results import SandboxUsed
from handrail.sandbox.overlay.overlay import Overlay, wrap_in_overlay
from handrail.settings import Settings
from handrail.workspace.workspace import Workspace

USERS = ("root", "ordinary") if os.geteuid() == 0 else ("ordinary",)


class World:
    """A workspace, and a state folder with layers over it."""

    def __init__(self, place: Path) -> None:
        self.place = place
        self.root = place / "ws"
        self.root.mkdir()
        self._layers: list[Overlay] = []
        self._spaces: list[Workspace] = []

    def sh(self, script: str) -> None:
        """Runs a script on the real tree."""
        subprocess.run(["bash", "-ec", script], cwd=self.root, check=True, capture_output=True)

    def workspace(self) -> Workspace:
        if not self._spaces:
            self._spaces.append(Workspace(str(self.root)))
        return self._spaces[0]

    def layer(self, script: str, *, below: tuple[Overlay, ...] = ()) -> Overlay:
        """Runs a script in a new layer."""
        layer = Overlay(str(self.place / "state" / f"layer-{len(self._layers)}"), (str(self.root),), below)
        self._layers.append(layer)
        program = ("bash", "-ec", f'cd "$0"; {script}', str(self.root))
        argv = wrap_in_overlay(program, layer)
        done = subprocess.run(argv, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr
        return layer

    def examine(self, script: str, *, below: tuple[Overlay, ...] = ()) -> OverlayChanges:
        """What a script changed."""
        return examine(self.workspace(), self.layer(script, below=below))

    def close(self) -> None:
        for layer in reversed(self._layers):
            layer.remove()
        for space in self._spaces:
            space.close()
        subprocess.run(["chmod", "-R", "u+rwX", str(self.place)], check=False, capture_output=True)


def by_path(examined: OverlayChanges) -> dict[str, Change]:
    assert len(examined.steps) == len(examined.changes) == len(examined.manners) == len(examined.diffs)
    found = {change.path: change for change in examined.changes}
    assert len(found) == len(examined.changes), "a path has one step"
    return found


def told(examined: OverlayChanges) -> list[str]:
    """The changes in short."""
    return [f"{change.action} {change.path}" for change in examined.changes]


@contextlib.contextmanager
def a_world(place: Path) -> Generator[World]:
    world = World(place)
    try:
        yield world
    finally:
        world.close()


def as_user(user: str, place: Path, work: Callable[[World], Any]) -> Any:
    """Does the work in a process of a user, in a world of theirs; what it returns."""
    number = ordinary_number() if user == "ordinary" and os.geteuid() == 0 else None
    home = place / user
    home.mkdir(parents=True)
    if number is not None:
        os.chown(home, number, number)
    codecs.lookup("ascii")  # that user may not be able to read the library of this Python
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        _child(writing, number, home, work)
    os.close(writing)
    with open(reading, "rb") as pipe:
        said = pipe.read()
    os.waitpid(child, 0)
    ok, result = pickle.loads(said)
    assert ok, result
    return result


def _child(writing: int, number: int | None, home: Path, work: Callable[[World], Any]) -> None:
    try:
        if number is not None:
            os.setgroups([])
            os.setgid(number)
            os.setuid(number)
        with a_world(home) as world:
            result = (True, work(world))
    except BaseException:  # whatever it is, the parent tells it
        result = (False, traceback.format_exc())
    with open(writing, "wb") as pipe:
        pipe.write(pickle.dumps(result))
    os._exit(0)


class As:
    """Does things as a user."""

    def __init__(self, user: str, place: Path) -> None:
        self.user = user
        self._place = place

    def __call__(self, work: Callable[[World], Any]) -> Any:
        return as_user(self.user, self._place, work)

    def examine(self, before: str, script: str) -> OverlayChanges:
        """What a script changes where another one was before it."""

        def work(world: World) -> OverlayChanges:
            world.sh(before)
            return world.examine(script)

        return self(work)


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
