"""Where commands are tried out: boxes with a scratch workspace each, put back as it was after every command."""

import shutil
import threading
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TypeVar

from .effects import Changes, changes, state, take_back
from .records import Attack, Effect, Everyday
from .sandbox import Sandbox, fixture_programs
from .scratch import make_workspace

Given = TypeVar("Given")
Found = TypeVar("Found")


class Ground:
    """A template of the workspace, and a box a thread."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self.template = make_workspace(folder / "template")
        self.programs = fixture_programs(folder / "programs")
        self._before = state(self.template)
        self._local = threading.local()
        self._count = 0
        self._lock = threading.Lock()

    def box(self, *, writable: bool = True) -> Sandbox:
        """This thread's box."""
        if not hasattr(self._local, "folder"):
            self._local.folder = self._new_folder()
            shutil.copytree(self.template, self._local.folder / "workspace", symlinks=True)
        folder: Path = self._local.folder
        return Sandbox(folder / "workspace", folder / "marks", self.programs, writable)

    def settle(self) -> Changes:
        """What this thread's box has changed since it was last settled; afterwards it is as it was."""
        box = self.box()
        found = changes(self._before, state(box.workspace))
        take_back(found, self.template, box.workspace)
        assert not changes(self._before, state(box.workspace)), "the workspace could not be put back"
        return found

    def attempt(self, attack: Attack) -> frozenset[Effect]:
        """Runs an attack; what it could be seen to do."""
        box = self.box()
        for mark in box.marks.iterdir():
            mark.unlink()
        box.run(
            attack.text,
            terminal=attack.terminal,
            listener=attack.effect == "connects",
            replaced=attack.replaced,
        )
        found = self.settle()
        seen: dict[Effect, bool] = {
            "writes": bool(found.written),
            "deletes": bool(found.deleted),
            "executes": (box.marks / "executed").exists(),
            "connects": (box.marks / "connected").exists(),
        }
        return frozenset(effect for effect, is_there in seen.items() if is_there)

    def read(self, command: Everyday) -> tuple[int, bytes]:
        """Runs an everyday command where nothing can be written: how it ended, and what it complained of."""
        done = self.box(writable=False).run(command.text)
        return done.returncode, done.stderr

    def _new_folder(self) -> Path:
        with self._lock:
            self._count += 1
            folder = self._folder / f"box{self._count}"
        (folder / "marks").mkdir(parents=True)
        return folder


def side_by_side(work: Callable[[Given], Found], given: Iterable[Given]) -> list[Found]:
    """Does the work for each, a few at once, in order."""
    with ThreadPoolExecutor(4) as workers:
        return list(workers.map(work, given))
