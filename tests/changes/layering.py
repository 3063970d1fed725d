"""Commands in real layers over real folders, as root and as an ordinary user."""

import codecs
import os
import pickle
import subprocess
import traceback
from collections.abc import Callable, Generator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from tests.escape.starting import ordinary_number

from handrail.changes.model import OverlayChanges
from handrail.changes.overlay.changes import examine
from handrail.protocol.changes import Change
from handrail.sandbox.overlay.overlay import Overlay, require_programs, wrap_in_overlay
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
        argv = wrap_in_overlay(program, layer, require_programs())
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


@contextmanager
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
