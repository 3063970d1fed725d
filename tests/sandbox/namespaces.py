"""A small world for commands in tier 2: a home, a state folder, a workspace, and a way to run things there."""

import os
import subprocess
from pathlib import Path
from typing import Any, NamedTuple

from handrail.sandbox.bubblewrap import BubblewrapBackend, find_bubblewrap, inspect_bubblewrap
from handrail.sandbox.launch import Launch
from handrail.sandbox.profile import SandboxHost, SandboxProfile

PROGRAM = find_bubblewrap(os.environ)


class Ended(NamedTuple):
    """What a command printed, its exit code, and what the status said."""

    out: str
    code: int
    status: str


def start(launch: Launch) -> subprocess.Popen[bytes]:
    """Start it as handrail does."""
    process = subprocess.Popen(
        launch.argv,
        env=launch.environment,
        pass_fds=launch.inherited,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        start_new_session=True,
    )
    launch.close_child_ends()
    return process


def ended(launch: Launch) -> Ended:
    """Start it and wait for its end."""
    with launch:
        process = start(launch)
        out = process.communicate(timeout=60)[0].decode("utf-8", "replace")
        return Ended(out, process.returncode, os.read(launch.status, 4096).decode())


class World:
    """Folders under one temporary folder, whose names are those of a person's machine."""

    def __init__(self, folder: Path, **environ: str) -> None:
        self.folder = Path(os.path.realpath(folder))
        self.home = self.folder / "home"
        self.workspace = self.home / "projects" / "mine"
        self.workspace.mkdir(parents=True, exist_ok=True)
        self.environ = {"PATH": "/usr/local/bin:/usr/bin:/bin", "LANG": "C.UTF-8", **environ}

    def host(self, **changes: Any) -> SandboxHost:
        facts = {"home": str(self.home), "state": str(self.folder / "state"), "environ": self.environ}
        return SandboxHost(**{**facts, **changes})

    def confinement(self, **changes: Any) -> SandboxProfile:
        root = str(self.workspace)
        facts: dict[str, Any] = {"origin": "unasked", "cwd": root, "read_only": (), "writable": (root,)}
        return SandboxProfile(**{**facts, **changes})

    def proven(self, **changes: Any) -> SandboxProfile:
        return self.confinement(origin="proven", read_only=(str(self.workspace),), writable=(), **changes)

    def run(self, text: str, confinement: SandboxProfile | None = None, **changes: Any) -> Ended:
        preparing = BubblewrapBackend(inspect_bubblewrap(PROGRAM or ""), self.host(**changes))
        return ended(preparing.launch(confinement or self.confinement(), text))

    def write(self, path: str, content: str = "content") -> Path:
        """A file under the temporary folder."""
        file = self.folder / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(content)
        return file
